/* SPDX-License-Identifier: MIT */
/* Private to views: call stacks of an experiment, over all its user-space traces; shared by the views of functions and
 * of user memory. */
#ifndef WEFT_VIEWS_STACKS_H
#define WEFT_VIEWS_STACKS_H

#include "views/view.h"

/* Process, from its host's kernel trace. pid: its number in user-space traces; times: host's clock. */
struct stacks_life { int32_t pid, tgid; int64_t begin, end; bool ended; };
/* Lives of processes of one host that allocate memory, by pid, then time; empty: unknown. */
struct stacks_lives { VEC(struct stacks_life) of; };
/* Trace with its entries' numbers, which are the same in all these views. */
struct stacks_trace {
    const struct stack_store *s;
    size_t host;
    uint64_t *process_keys, *thread_keys; /* keys of the entries */
    int64_t first_process, first_thread, first_row; /* entry numbers: these + number in the store */
    uint32_t *row_threads;               /* thread by row */
    const struct stacks_lives *lives;    /* lives of the trace's host */
};
struct stacks { struct stacks_trace *v; size_t n; struct stacks_lives *lives; }; /* lives: by host */
const struct stacks *stacks_of(struct views *);
int64_t stacks_root(const struct views *, size_t host); /* entry id of a host */

/* stacks_lives.c: returns whether the process that caused a thread's last event had ended at t (host's clock). Before
 * that event, the process is the one that last got the number before t. False: not known. O(log lives). */
bool stacks_process_ended(const struct stacks_lives *, int32_t pid, int64_t last_event, int64_t t);
/* Finds the lives of a host, once all traces are known. O(rows of the graph) for any number of traces; reads the graph
 * only if a trace of the host has memory data. */
void stacks_find_lives(struct stacks *, size_t host, const struct graph *);

/* Family of the views (tsp_provider.family): they share the entries of hosts, processes, threads and levels. */
#define STACKS_FAMILY "user-space stacks"

bool stacks_have_calls(const struct view *, struct views *);
bool stacks_have_memory(const struct view *, struct views *);
/* Returns whether the tree shows the thread. */
typedef bool stacks_shown(const struct stack_thread *);
stacks_shown stacks_calls_shown, stacks_memory_shown;
bool stacks_trace_shown(const struct stacks_trace *, stacks_shown *);

/* Writes the shown hosts, processes and threads, with three labels (name, PID, TID). `below` (or NULL) writes the
 * entries below each thread. The caller begins and ends the tree. */
struct stacks_tree {
    struct views *x; const struct tsp_query *q; struct tsp_answer *answer;
    stacks_shown *shown;
    bool time_graph, xy;
    bool have_data;                      /* entries of hosts, processes and threads have data */
    bool amounts; int64_t most;          /* time graphs whose axis is not time: from 0 to most */
    void (*below)(const struct stacks_tree *, const struct stacks_trace *, size_t thread);
    void *arg;
};
extern const struct tsp_header stacks_headers[3];
void stacks_write_tree(const struct stacks_tree *);

/* Label of a process, as "app (100)". Memory: the arena. */
const char *stacks_process_label(struct arena *, const struct stacks_trace *, size_t process);
uint64_t stacks_function_key(const struct stack_function *);
const char *stacks_thread_label(struct arena *, const struct stack_thread *);
/* Trace that has the entry id; NULL: none. */
const struct stacks_trace *stacks_row(const struct stacks *, int64_t id, size_t *row);
const struct stacks_trace *stacks_thread(const struct stacks *, int64_t id, size_t *thread);
const struct stacks_trace *stacks_process(const struct stacks *, int64_t id, size_t *process);

/* Number of the row's calls that begin before t (reference clock). `from`: known lower bound. */
size_t stacks_begun(const struct views *, const struct stacks_trace *, size_t row, size_t from, int64_t t);
/* Range of the row's calls that begin within [begin, end]. */
struct stacks_range { size_t first, end; };
struct stacks_range stacks_range(const struct views *, const struct stacks_trace *, size_t row, int64_t begin,
    int64_t end);

/* Style of a function: one of STACKS_COLORS keys; equal names have equal styles everywhere. */
enum { STACKS_COLORS = 24 };
const char *stacks_style(const char *function);
void stacks_write_styles(struct tsp_answer *answer);

#endif

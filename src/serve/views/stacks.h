/* SPDX-License-Identifier: MIT */
/* Private to views: the call stacks of an experiment, over all its user-space traces; what the views of functions and
 * of their memory share. */
#ifndef WEFT_VIEWS_STACKS_H
#define WEFT_VIEWS_STACKS_H

#include "views/view.h"

/* A process as the kernel trace of its host shows it. pid: its number in user-space traces; times: host's clock. */
struct stacks_life { int32_t pid, tgid; int64_t begin, end; bool ended; };
/* Lives of the processes of one host that allocate memory, by pid, then time; none: not known. */
struct stacks_lives { VEC(struct stacks_life) of; };
/* One trace with its entries' numbers, which are the same in all these views. */
struct stacks_trace {
    const struct stack_store *s;
    size_t host;
    uint64_t *process_keys, *thread_keys; /* of their entries */
    int64_t first_process, first_thread, first_row; /* entries: these + number in the store */
    uint32_t *row_threads;               /* by row */
    const struct stacks_lives *lives;    /* of its host */
};
struct stacks { struct stacks_trace *v; size_t n; struct stacks_lives *lives; }; /* lives: by host */
const struct stacks *stacks_of(struct views *);
int64_t stacks_root(const struct views *, size_t host); /* id of a host's entry */

/* stacks_lives.c: returns whether the process that caused a thread's last event had ended at t (host's clock). Before
 * that event, the process is the one that last got the number before t. False: not known. O(log lives). */
bool stacks_process_ended(const struct stacks_lives *, int32_t pid, int64_t last_event, int64_t t);
/* Finds the lives of a host, once all traces are known. O(rows of the graph), whatever the number of traces; nothing
 * is read of the graph where no trace of the host has memory. */
void stacks_find_lives(struct stacks *, size_t host, const struct graph *);

/* What the views are as tsp_provider.family: they have hosts, processes, threads and levels in common. */
#define STACKS_FAMILY "user-space stacks"

bool stacks_have_calls(const struct view *, struct views *);
bool stacks_have_memory(const struct view *, struct views *);
/* Of a process or a thread: does anything of it belong into the tree? */
typedef bool stacks_shown(const struct stack_thread *);
stacks_shown stacks_calls_shown, stacks_memory_shown;
bool stacks_trace_shown(const struct stacks_trace *, stacks_shown *);

/* Writes hosts, processes and threads that are shown, with three labels (name, PID, TID); after each thread `below`
 * (or NULL) writes what is below it. The tree is begun and ended by the caller. */
struct stacks_tree {
    struct views *x; const struct tsp_query *q; struct tsp_answer *answer;
    stacks_shown *shown;
    bool time_graph, xy;
    bool have_data;                      /* hosts, processes and threads do */
    bool amounts; int64_t most;          /* time graphs whose axis is not time: from 0 to most */
    void (*below)(const struct stacks_tree *, const struct stacks_trace *, size_t thread);
    void *arg;
};
extern const struct tsp_header stacks_headers[3];
void stacks_write_tree(const struct stacks_tree *);

/* "app (100)": what a process is called. Memory of the arena. */
const char *stacks_process_label(struct arena *, const struct stacks_trace *, size_t process);
uint64_t stacks_function_key(const struct stack_function *);
const char *stacks_thread_label(struct arena *, const struct stack_thread *);
/* The trace whose rows hold that entry id; NULL: none. */
const struct stacks_trace *stacks_row(const struct stacks *, int64_t id, size_t *row);
const struct stacks_trace *stacks_thread(const struct stacks *, int64_t id, size_t *thread);
const struct stacks_trace *stacks_process(const struct stacks *, int64_t id, size_t *process);

/* How many of the row's calls begin before t of the reference clock; `from`: so many are known to do. */
size_t stacks_begun(const struct views *, const struct stacks_trace *, size_t row, size_t from, int64_t t);
/* The row's calls that begin within [begin, end]. */
struct stacks_range { size_t first, end; };
struct stacks_range stacks_range(const struct views *, const struct stacks_trace *, size_t row, int64_t begin,
    int64_t end);

/* Style of a function: one of STACKS_COLORS keys, the same for the same name wherever it is shown. */
enum { STACKS_COLORS = 24 };
const char *stacks_style(const char *function);
void stacks_write_styles(struct tsp_answer *answer);

#endif

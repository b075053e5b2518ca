/* SPDX-License-Identifier: MIT */
/* Call stacks of user-space traces: what one LTTng-UST trace holds about the threads of its programs. */
#ifndef WEFT_STACK_STACK_H
#define WEFT_STACK_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/figures.h"
#include "base/store.h"

/* Grows whenever the same events give other stacks: stores are then built again. */
enum { STACK_RULES_VERSION = 19 };

/* A store of its own per trace: calls of instrumented functions by thread and depth, memory that threads hold.
 * Columnar, mapped, immutable, safe to read by many threads. docs/formats/stacks.md */
struct stack_store;
int stack_open(const char *path, struct stack_store **out, struct err *e); /* validates everything */
/* One store of the files of several chunks (base/chunks.h) of one trace, in order, whose rows are not used: says what
 * one pass over all of it would. ERR_FORMAT also when a chunk does not belong behind the one before. */
struct chunk;
int stack_open_list(const struct chunk *, size_t n, struct stack_store **out, struct err *e);
void stack_close(struct stack_store *);
int stack_intact(const struct stack_store *, struct err *e); /* as graph_intact */
struct stack_totals {
    int64_t begin, end;      /* first and last event; begin > end when there is none */
    uint64_t events, lost_events, calls;
    uint64_t strange_exits;  /* exits of functions that were not seen to be entered */
    uint64_t missing_exits;  /* calls that ended because one below them did */
    uint64_t too_deep;       /* calls beyond STACK_MOST_LEVELS: counted only */
    uint64_t strange_frees;  /* of memory that was not seen to be allocated */
};
enum { STACK_MOST_LEVELS = 1024 };
const struct stack_totals *stack_totals(const struct stack_store *);

/* Processes by number, threads by process, number and CPU. Where the trace has no process numbers, threads are grouped
 * by the name they first had. */
struct stack_process { int32_t pid; const char *name; uint32_t first_thread, threads; };  /* pid -1: not known */
struct stack_thread {
    int32_t tid;             /* -1: not known, then all that the stream of `cpu` recorded counts as one thread */
    int32_t cpu;             /* -1 when tid is known */
    uint32_t process, first_row, rows; /* rows: levels of its stack, the outermost function first */
    const char *name;        /* the last one, "" when not known */
    int64_t begin, end;      /* its first and last event */
    bool has_memory;
};
size_t stack_processes(const struct stack_store *);
void stack_process(const struct stack_store *, size_t i, struct stack_process *out);
size_t stack_threads(const struct stack_store *);
void stack_thread(const struct stack_store *, size_t i, struct stack_thread *out);
const char *stack_thread_name(const struct stack_store *, size_t thread, int64_t t); /* the name it had at t */

/* name: what the trace calls it, else LIBRARY+0xOFFSET, else 0xADDRESS. */
struct stack_function { uint64_t address; uint32_t process; const char *name; };
size_t stack_functions(const struct stack_store *);
void stack_function(const struct stack_store *, size_t i, struct stack_function *out);

enum stack_how {
    STACK_WHOLE,             /* entry and exit were seen */
    STACK_CUT,               /* no exit seen: ended by the trace's end, lost events, or the end of a call below it */
    STACK_UNKNOWN,           /* no call: events were lost, and a call from before may still be open */
    STACK_NOTHING,           /* no call: between two calls (stack_sample, stack_at) */
};
struct stack_call { int64_t begin, end; uint32_t function; uint8_t how; }; /* function: of WHOLE and CUT */
size_t stack_rows(const struct stack_store *);
/* WHOLE, CUT and UNKNOWN; in order, not overlapping; some may last 0 ns. None: where the last chunk is not the
 * recording's end, the only one may still be open. */
size_t stack_calls(const struct stack_store *, size_t row);
void stack_call(const struct stack_store *, size_t row, size_t i, struct stack_call *out);
size_t stack_find(const struct stack_store *, size_t row, int64_t t);      /* the first call that ends at or after t */
/* How many begin before t; `from`: at least so many are known to. O(log (the result - from)). */
size_t stack_begun(const struct stack_store *, size_t row, size_t from, int64_t t);
/* What the row does at t; between calls NOTHING from the end of the one before to the begin of the next. False outside
 * the trace's span, whose last instant counts as the one before. O(log calls). */
bool stack_at(const struct stack_store *, size_t row, int64_t t, struct stack_call *out);
/* The distinct states in force at the (ascending) times. Returns how many (at most n). */
size_t stack_sample(const struct stack_store *, size_t row, const int64_t *times, size_t n, struct stack_call *out);

/* Of WHOLE calls: `self` is without the calls one level below; squares: the sum of those of their durations. */
struct stack_figures { struct figures calls; int64_t self; figures_squares squares; };
/* Adds to of[function] the row's calls first … end - 1; calls.spread waits for stack_figures_spread.
 * O(log calls · functions) in each chunk. */
void stack_figures(const struct stack_store *, size_t row, size_t first, size_t end, struct stack_figures *of);
/* Of n functions, when all rows are added. What comes out is the same in whichever order they were. */
void stack_figures_spread(struct stack_figures *of, size_t n);
/* The shortest and the longest of them alone, which costs less. `reached` lists the n functions that have any; returns
 * how many have then. */
struct stack_extremes { int64_t least, most, least_begin, most_begin; bool any; };
size_t stack_extremes(const struct stack_store *, size_t row, size_t first, size_t end, struct stack_extremes *of,
    uint32_t *reached, size_t n);
/* Adds to counts[k] how many of them are in the k-th of n ranges (figures_range). */
void stack_histogram(const struct stack_store *, size_t row, size_t first, size_t end, int64_t width, size_t n,
    uint64_t *counts);
size_t stack_whole_before(const struct stack_store *, size_t row, size_t i); /* WHOLE ones among the first i calls */
size_t stack_whole_at(const struct stack_store *, size_t row, size_t k);   /* the k-th WHOLE one, which there is */

/* Bytes that the thread had allocated and not yet freed at the (ascending) times. What another thread freed counts
 * against that thread. */
void stack_memory(const struct stack_store *, size_t thread, const int64_t *times, size_t n, int64_t *bytes);
struct stack_loss { int64_t begin, end; uint64_t count; int32_t cpu; };     /* events are missing; cpu -1: not known */
size_t stack_losses(const struct stack_store *);                           /* sorted by begin */
void stack_loss(const struct stack_store *, size_t i, struct stack_loss *out);

struct ctf_trace; struct ctf_event;
struct stack_builder;
struct stack_builder *stack_builder_new(const struct ctf_trace *);
/* The trace grew (ctf/feed.h): its new classes and streams, before their events are fed. */
void stack_builder_extend(struct stack_builder *);
/* Merged events of that trace alone, in order. */
void stack_builder_feed(struct stack_builder *, const struct ctf_event *, size_t n);
/* Visits what is open (base/carry.h); its threads are no rows of the host, so that MARK does nothing. LOAD: before the
 * first event. */
struct carry;
void stack_builder_carry(struct stack_builder *, struct carry *);
/* The recording goes on at `to` after a chunk that is missing: as if all streams had lost events. After LOAD. */
void stack_builder_gap(struct stack_builder *, int64_t from, int64_t to);
/* After SAVE: writes what ended in [the cut before, at), and leaves what was saved to the next chunk. The builder can
 * only be freed then. */
int stack_builder_cut(struct stack_builder *, int64_t at, struct store_place, uint64_t key, struct err *e);
/* The recording's end: all that is open ends. */
int stack_builder_write(struct stack_builder *, struct store_place, uint64_t key, struct err *e);
void stack_builder_free(struct stack_builder *);

#endif

/* SPDX-License-Identifier: MIT */
/* Call stacks of user-space traces: threads of the programs in one LTTng-UST trace. */
#ifndef WEFT_STACK_STACK_H
#define WEFT_STACK_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/figures.h"
#include "base/store.h"

/* Version of the rules. Grows whenever the same events give other stacks: stores are then rebuilt. */
enum { STACK_RULES_VERSION = 20 };

/* Store of one trace: calls of instrumented functions by thread and depth, and memory that threads hold. Columnar,
 * mapped, immutable, safe to read by many threads. docs/formats/stacks.md */
struct stack_store;
int stack_open(const char *path, struct stack_store **out, struct err *e); /* validates everything */
/* Opens the files of several chunks (base/chunks.h) of one trace, in order, as one store; the chunks' rows are not
 * used. The contents are those of one pass over all. ERR_FORMAT also if a chunk does not belong behind the one
 * before. */
struct chunk;
int stack_open_list(const struct chunk *, size_t n, struct stack_store **out, struct err *e);
void stack_close(struct stack_store *);
int stack_intact(const struct stack_store *, struct err *e); /* see graph_intact */
struct stack_totals {
    int64_t begin, end;      /* first and last event; begin > end when there is none */
    uint64_t events, lost_events, calls;
    uint64_t strange_exits;  /* exits of functions that were not seen to be entered */
    uint64_t missing_exits;  /* calls that ended because one below them did */
    uint64_t too_deep;       /* calls beyond STACK_MOST_LEVELS: counted only */
    uint64_t strange_frees;  /* frees of memory that was not seen to be allocated */
};
enum { STACK_MOST_LEVELS = 1024 };
const struct stack_totals *stack_totals(const struct stack_store *);

/* Processes by number, threads by process, number and CPU. Where the trace has no process numbers, threads are grouped
 * by the name they first had. */
struct stack_process { int32_t pid; const char *name; uint32_t first_thread, threads; };  /* pid -1: not known */
struct stack_thread {
    int32_t tid;             /* -1: unknown; all that the stream of `cpu` recorded counts as one thread then */
    int32_t cpu;             /* -1 when tid is known */
    uint32_t process, first_row, rows; /* rows: levels of its stack, the outermost function first */
    const char *name;        /* the latest one; "" if unknown */
    int64_t begin, end;      /* times of its first and last event */
    bool has_memory;
};
size_t stack_processes(const struct stack_store *);
void stack_process(const struct stack_store *, size_t i, struct stack_process *out);
size_t stack_threads(const struct stack_store *);
void stack_thread(const struct stack_store *, size_t i, struct stack_thread *out);
const char *stack_thread_name(const struct stack_store *, size_t thread, int64_t t); /* the name it had at t */

/* name: from the trace, else LIBRARY+0xOFFSET, else 0xADDRESS. */
struct stack_function { uint64_t address; uint32_t process; const char *name; };
size_t stack_functions(const struct stack_store *);
void stack_function(const struct stack_store *, size_t i, struct stack_function *out);

enum stack_how {
    STACK_WHOLE,             /* entry and exit were seen */
    STACK_CUT,               /* exit not seen: ended by the trace's end, lost events, or the end of a call below it */
    STACK_UNKNOWN,           /* no call known: events were lost, and a call from before may still be open */
    STACK_NOTHING,           /* no call, between two calls (stack_sample, stack_at) */
};
struct stack_call { int64_t begin, end; uint32_t function; uint8_t how; }; /* function: for WHOLE and CUT */
size_t stack_rows(const struct stack_store *);
/* Returns the number of WHOLE, CUT and UNKNOWN calls; in order, not overlapping; some may last 0 ns. May be 0: if the
 * last chunk is not the recording's end, the only call may still be open. */
size_t stack_calls(const struct stack_store *, size_t row);
void stack_call(const struct stack_store *, size_t row, size_t i, struct stack_call *out);
size_t stack_find(const struct stack_store *, size_t row, int64_t t);      /* the first call that ends at or after t */
/* Returns how many begin before t; `from`: a number known to be not too large. O(log (the result - from)). */
size_t stack_begun(const struct stack_store *, size_t row, size_t from, int64_t t);
/* Finds the row's call at t; between calls NOTHING from the end of one to the begin of the next. Returns false outside
 * the trace's span, whose last instant counts as the one before. O(log calls). */
bool stack_at(const struct stack_store *, size_t row, int64_t t, struct stack_call *out);
/* Finds the distinct states in force at the (ascending) times. Returns their number (at most n). */
size_t stack_sample(const struct stack_store *, size_t row, const int64_t *times, size_t n, struct stack_call *out);

/* Figures of WHOLE calls. self: time without the calls one level below; squares: sum of the squared durations. */
struct stack_figures { struct figures calls; int64_t self; figures_squares squares; };
/* Adds calls first … end - 1 of the row to of[function]; calls.spread is set by stack_figures_spread. O(log calls ·
 * functions) in each chunk. */
void stack_figures(const struct stack_store *, size_t row, size_t first, size_t end, struct stack_figures *of);
/* Completes the figures of n functions after all rows were added. The result does not depend on their order. */
void stack_figures_spread(struct stack_figures *of, size_t n);
/* Adds only the shortest and the longest calls, which costs less. `reached` lists the n functions that have any;
 * returns the new n. */
struct stack_extremes { int64_t least, most, least_begin, most_begin; bool any; };
size_t stack_extremes(const struct stack_store *, size_t row, size_t first, size_t end, struct stack_extremes *of,
    uint32_t *reached, size_t n);
/* Adds to counts[k] the number of calls in the k-th of n ranges (figures_range). */
void stack_histogram(const struct stack_store *, size_t row, size_t first, size_t end, int64_t width, size_t n,
    uint64_t *counts);
size_t stack_whole_before(const struct stack_store *, size_t row, size_t i); /* WHOLE calls among the first i */
size_t stack_whole_at(const struct stack_store *, size_t row, size_t k);   /* index of the k-th WHOLE call, which must
                                                                            * exist */

/* Returns the bytes that the thread had allocated and not yet freed at the (ascending) times. Memory freed by another
 * thread counts against that thread. */
void stack_memory(const struct stack_store *, size_t thread, const int64_t *times, size_t n, int64_t *bytes);
struct stack_loss { int64_t begin, end; uint64_t count; int32_t cpu; };     /* period with missing events; cpu -1:
                                                                             * unknown */
size_t stack_losses(const struct stack_store *);                           /* sorted by begin */
void stack_loss(const struct stack_store *, size_t i, struct stack_loss *out);

struct ctf_trace; struct ctf_event;
struct stack_builder;
struct stack_builder *stack_builder_new(const struct ctf_trace *);
/* Takes new classes and streams of a trace that grew (ctf/feed.h), before their events are fed. */
void stack_builder_extend(struct stack_builder *);
/* Takes merged events of that trace alone, in order. */
void stack_builder_feed(struct stack_builder *, const struct ctf_event *, size_t n);
/* Visits open state (base/carry.h). Its threads are not rows of the host, so MARK does nothing. LOAD: before the first
 * event. */
struct carry;
void stack_builder_carry(struct stack_builder *, struct carry *);
/* Continues at `to` after a missing chunk, as if all streams had lost events. After LOAD. */
void stack_builder_gap(struct stack_builder *, int64_t from, int64_t to);
/* Writes what ended in [the cut before, at), and leaves what was saved to the next chunk. To be called after SAVE.
 * Afterwards the builder can only be freed. */
int stack_builder_cut(struct stack_builder *, int64_t at, struct store_place, uint64_t key, struct err *e);
/* Writes the last chunk: at the recording's end all that is open ends. */
int stack_builder_write(struct stack_builder *, struct store_place, uint64_t key, struct err *e);
void stack_builder_free(struct stack_builder *);

#endif

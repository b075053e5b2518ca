/* SPDX-License-Identifier: MIT */
/* Private to state: the builder while records arrive. Each part has its own header; this one includes all of them. */
#ifndef WEFT_STATE_BUILDER_H
#define WEFT_STATE_BUILDER_H

#include "kernel/kernel.h"
#include "state/codes.h"
#include "state/counters.h"
#include "state/cpus.h"
#include "state/gaps.h"
#include "state/held.h"
#include "state/threads.h"
#include "state/tracks.h"

enum { BUILDER_VECTORS = 16, NOBODY = -1 };

/* Carried row: its entries from `first` on. begin: its begin in the next chunk; INT64_MAX: unknown. */
struct builder_saved {
    struct series *series;
    size_t first;
    int64_t begin;
};

struct state_builder {
    const struct kernel_tracker *tracker;
    struct series_pool pool;
    VEC(struct builder_thread) threads;
    VEC(struct state_builder_cpu) cpus;
    VEC(struct builder_irq) irqs;
    struct map irq_by_number;            /* kind << 32 | number -> index in irqs + 1 */
    builder_devices disks, nets;
    struct builder_amounts amounts[BUILDER_AMOUNTS];
    VEC(struct state_builder_code) codes;
    struct strings texts;                /* names of codes and devices: strings of each chunk's tracker */
                                         /* Codes by other numbers. */
    VEC(uint32_t) text_of;               /* text + 1 by the tracker's string; 0: none yet */
    VEC(uint32_t) call_codes;            /* code by the tracker's string */
    struct map call_code_of;             /* code by text */
    struct map irq_codes, ipi_numbers;   /* code by number, or text */
    struct map handler_codes;            /* code by interrupt's code, and CPU */
    VEC(struct builder_lock) locks;
    struct map lock_codes;               /* code by mixed process and address */
    uint32_t other_locks;                /* code of the locks beyond the limit; 0: none yet */
    uint32_t vector_codes[BUILDER_VECTORS];
    VEC(struct builder_futex_user) futex_users;
    struct map futex_user_of;            /* thread << 32 | code -> index in futex_users + 1 */
    struct builder_tracks futex_waits, futex_wakes, irq_handlers;
    struct latency_series latencies[STATE_LATENCY_KINDS];
    latency_far far;                     /* results of calls that do not fit in the table */
    VEC(struct state_disk_loss) losses;
    builder_gaps gaps;                   /* gaps of all CPUs */
    uint32_t n_losses;                   /* losses reported so far, in any form */
    int64_t suspect_until;               /* latest end of packets with losses: events are missing somewhere before it */
    struct builder_held held;
    VEC(struct builder_saved) saved;     /* carried rows */
    int64_t now;
    bool goes_on;                        /* begun in an earlier chunk */
    uint64_t events, events_before; /* events_before: those before the chunk */
    int64_t last_event, last_checkpoint;
    series_values event_buffer;
    size_t event_buffered;
    struct series_table event_times;
    struct builder_files *files;
    VEC(struct builder_requests) requests;
};

static inline uint32_t builder_text(struct state_builder *b, uint32_t string)
{
    return string < b->text_of.n && b->text_of.v[string] ? b->text_of.v[string] - 1 : state_builder_new_text(b, string);
}
static inline uint32_t builder_call_code(struct state_builder *b, uint32_t string)
{
    return string < b->call_codes.n && b->call_codes.v[string] ? b->call_codes.v[string]
                                                               : state_builder_new_call_code(b, string);
}
/* NULL for NOBODY; valid until the next call. */
static inline struct builder_thread *builder_thread(struct state_builder *b, int32_t row)
{
    if (row < 0)
        return NULL;
    if (__builtin_expect((size_t)row >= b->threads.n, 0))
        state_builder_add_threads(b, (size_t)row + 1);
    return &b->threads.v[row];
}
/* Handles a record, in order of time. */
void state_builder_record(struct state_builder *, const struct kernel_record *);
static inline int32_t builder_cpu_number(const struct state_builder *b, const struct state_builder_cpu *c)
{
    return (int32_t)(c - b->cpus.v);
}

#endif

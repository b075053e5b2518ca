/* Private to state: the builder while records go by. Each part has a header of its own; this one holds all of them. */
#ifndef WEFT_STATE_BUILDER_H
#define WEFT_STATE_BUILDER_H

#include "kernel/kernel.h"
#include "state/codes.h"
#include "state/counters.h"
#include "state/cpus.h"
#include "state/threads.h"
#include "state/tracks.h"

enum { BUILDER_VECTORS = 16, NOBODY = -1 };

struct state_builder {
    const struct kernel_tracker *tracker;
    char *path;
    uint64_t fingerprint;
    struct series_pool pool;
    VEC(struct builder_thread) threads;
    VEC(struct builder_cpu) cpus;
    VEC(struct builder_irq) irqs;
    struct map irq_by_number;            /* kind << 32 | number -> index in irqs + 1 */
    builder_devices disks, nets;
    struct builder_amounts amounts[BUILDER_AMOUNTS];
    uint32_t n_cpu_counters;
    VEC(struct builder_code) codes;
    VEC(uint32_t) call_codes;            /* by string number */
    struct map irq_codes, ipi_numbers;
    VEC(struct builder_lock) locks;
    struct map lock_codes;               /* by mixed process and address */
    uint32_t other_locks;                /* code of those that are too many; 0 none yet */
    uint32_t vector_codes[BUILDER_VECTORS];
    VEC(struct builder_futex_user) futex_users;
    struct map futex_user_of;            /* thread << 32 | code -> index in futex_users + 1 */
    struct builder_tracks futex_waits, futex_wakes, irq_handlers;
    struct latency_series latencies[STATE_LATENCY_KINDS];
    latency_far far;                     /* results of calls that need many bits */
    VEC(struct state_disk_loss) losses;
    VEC(struct builder_window) windows;  /* stretches with missing events; some become known only when they are over */
    int64_t suspect_until;               /* latest end of packets with losses: events are missing somewhere before it */
    int64_t now;
    bool has_wakes;
    uint64_t events;
    int64_t last_event, last_checkpoint;
    series_values event_buffer;
    size_t event_buffered;
    struct series_table event_times;
    struct builder_files *files;
    VEC(struct builder_requests) requests;
};

static inline uint32_t builder_call_code(struct state_builder *b, uint32_t string)
{
    return string < b->call_codes.n && b->call_codes.v[string] ? b->call_codes.v[string]
                                                               : builder_new_call_code(b, string);
}
/* NULL for NOBODY; valid until the next call. */
static inline struct builder_thread *builder_thread(struct state_builder *b, int32_t row)
{
    if (row < 0)
        return NULL;
    if (__builtin_expect((size_t)row >= b->threads.n, 0))
        builder_add_threads(b, (size_t)row + 1);
    return &b->threads.v[row];
}
static inline int32_t builder_cpu_number(const struct state_builder *b, const struct builder_cpu *c)
{
    return (int32_t)(c - b->cpus.v);
}

#endif

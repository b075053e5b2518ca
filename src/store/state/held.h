/* SPDX-License-Identifier: MIT */
/* Private to state: delayed records. A packet that reports lost events may have lost more behind its last event, which
 * is known only when the packet ends. Until then, states of threads on other CPUs are uncertain. So while such a packet
 * is silent, records behind its last one are delayed, up to a limit. */
#ifndef WEFT_STATE_HELD_H
#define WEFT_STATE_HELD_H

#include "base/mem.h"
#include "kernel/kernel.h"

struct carry;
struct state_builder;

enum { BUILDER_MOST_HELD = 1 << 16 };

/* Packet that reported losses, while it is read. */
struct builder_suspect {
    bool open;
    bool heard;              /* had a record */
    int64_t last_ts;         /* time of its last record */
};

struct builder_held_record {
    struct kernel_record record;
    size_t data;             /* begin of the copy of the data it points to */
};
struct builder_held {
    VEC(struct builder_suspect) suspects; /* packets by CPU */
    uint32_t open;           /* number of open suspects */
    VEC(struct builder_held_record) v;
    size_t first;            /* oldest record that still waits */
    VEC(uint8_t) data;
};

/* Number of values of a record with counters, up to the last valid one. */
static inline size_t builder_held_values(const struct kernel_record *r)
{
    return r->u.counters.present ? 64 - (size_t)__builtin_clzll(r->u.counters.present) : 0;
}

/* Time of the first delayed record; INT64_MAX: none. */
static inline int64_t builder_first_held(const struct builder_held *h)
{
    return h->first < h->v.n ? h->v.v[h->first].record.ts : INT64_MAX;
}

/* Adds the next record of the host; it may be delayed. */
void state_builder_hold(struct state_builder *, const struct kernel_record *);
/* Handles all delayed records: no more follow. */
void state_builder_release(struct state_builder *);
void state_builder_held_fini(struct builder_held *);

#endif

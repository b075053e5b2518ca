/* SPDX-License-Identifier: MIT */
/* Private to state: records that wait. A packet that reports lost events may have lost more behind its last event,
 * which is known only when the packet is over. What threads did on other CPUs meanwhile cannot be told before: so while
 * such a packet is silent, what comes behind its last record is held back, up to a number of records. */
#ifndef WEFT_STATE_HELD_H
#define WEFT_STATE_HELD_H

#include "base/mem.h"
#include "kernel/kernel.h"

struct carry;
struct state_builder;

enum { BUILDER_MOST_HELD = 1 << 16 };

/* A packet that reported losses, while it is read. */
struct builder_suspect {
    bool open;
    bool heard;              /* it has had a record */
    int64_t last_ts;         /* of the last one */
};

struct builder_held_record {
    struct kernel_record record;
    size_t data;             /* where a copy begins of what it points to */
};
struct builder_held {
    VEC(struct builder_suspect) suspects; /* by CPU */
    uint32_t open;           /* suspects that are open */
    VEC(struct builder_held_record) v;
    size_t first;            /* the oldest that still waits */
    VEC(uint8_t) data;
};

/* Of a record with counters: how many of its values lie up to the last one that is there. */
static inline size_t builder_held_values(const struct kernel_record *r)
{
    return r->u.counters.present ? 64 - (size_t)__builtin_clzll(r->u.counters.present) : 0;
}

/* Time of the first record that waits; INT64_MAX: there is none. */
static inline int64_t builder_first_held(const struct builder_held *h)
{
    return h->first < h->v.n ? h->v.v[h->first].record.ts : INT64_MAX;
}

/* The next record of the host: may be held. */
void builder_hold(struct state_builder *, const struct kernel_record *);
/* No more come: all goes on. */
void builder_release(struct state_builder *);
void builder_held_fini(struct builder_held *);

#endif

/* SPDX-License-Identifier: MIT */
/* Private to state: state that builders carry over a cut (base/carry.h), in pieces. Numbers of codes, futexes and file
 * accesses differ between chunks, so they are saved by content. */
#ifndef WEFT_STATE_CARRY_PARTS_H
#define WEFT_STATE_CARRY_PARTS_H

#include "base/carry.h"
#include "state/builder.h"

/* LOAD: marks the bytes as invalid. */
static inline void state_carry_refuse(struct carry *c)
{
    c->damaged = true;
    c->at = c->end;
}
/* LOAD: an index below `limit`. */
static inline void state_carry_index(struct carry *c, uint32_t *index, size_t limit)
{
    carry_number(c, index);
    if (c->way == CARRY_LOAD && *index >= limit) {
        state_carry_refuse(c);
        *index = 0;
    }
}
/* SAVE: number of the row in the next chunk; -1: not carried. */
static inline int32_t state_carry_row_number(const struct carry *c, int32_t row)
{
    return row >= 0 && (size_t)row < c->numbers.n ? c->numbers.v[row] : -1;
}

/* Row of futexes. from: its entries from then on may change; INT64_MAX: none. since: begin of the call in progress,
 * which will be its next entry; INT64_MAX: none. waits: the carried part includes waits. */
struct state_carried_user {
    uint32_t number; /* index in the next chunk + 1; 0: not carried */
    int64_t from, since;
    bool waits;
};

/* Visit of all state of a builder. */
struct state_carry {
    struct carry *c;
    struct state_builder *b;
    VEC(int32_t) rows;       /* SAVE: row of this chunk by row of the next one */
    VEC(uint32_t) users;     /* carried rows of futexes, not in LOAD: index here by index in the next chunk */
    VEC(struct state_carried_user) user_of; /* state by index in futex_users */
    uint64_t counters;       /* performance counters that have any value, a bit each */
    struct map frames;       /* SAVE: frame number -> number of those met before it */
};

void state_carry_code(struct state_carry *, uint32_t *code);
/* Visits the number of an entry; NULL: the number is the same in all chunks. */
typedef void state_carry_entry(struct state_carry *, int64_t *number);
/* Number of the last entries of a row that may change, including all from `renamed` on that may be renamed. */
size_t state_carry_kept(const struct series *, int64_t renamed);
void state_carry_series(struct state_carry *, struct series *, int64_t renamed, state_carry_entry *);
/* Visits a row that is dropped while it is idle: entries before its last use are not needed. Entries from `from` on may
 * change; the one before them holds until then. Without any, the row begins anew at `next`, the time of its next entry
 * (INT64_MAX: unknown). That entry may never come, if its use ends at once. */
void state_carry_series_from(struct state_carry *, struct series *, int64_t from, int64_t next);
void state_carry_latency(struct state_carry *, int kind, uint64_t *handle);
void state_carry_latency_order(struct carry *, struct latency_series *);
void state_carry_frame(struct state_carry *, uint32_t *frame);
void state_carry_held(struct state_carry *);
void state_carry_files(struct state_carry *);
void state_carry_gaps(struct carry *, builder_gaps *, size_t most);

#endif

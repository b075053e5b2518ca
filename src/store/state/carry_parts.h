/* SPDX-License-Identifier: MIT */
/* Private to state: what builders carry over a cut (base/carry.h), in pieces. Codes, futexes and accesses to files have
 * other numbers in each chunk, so they are written by what they are. */
#ifndef WEFT_STATE_CARRY_PARTS_H
#define WEFT_STATE_CARRY_PARTS_H

#include "base/carry.h"
#include "state/builder.h"

/* LOAD: the bytes make no sense. */
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
/* SAVE: the row's number in the next chunk; -1: it is not carried. */
static inline int32_t state_carry_row_number(const struct carry *c, int32_t row)
{
    return row >= 0 && (size_t)row < c->numbers.n ? c->numbers.v[row] : -1;
}

/* A row of futexes. from: its entries from then on may change; INT64_MAX: none. since: of the call in progress, which
 * will be its next entry; INT64_MAX: there is none. waits: what is carried speaks of waits. */
struct state_carried_user {
    uint32_t number; /* index in the next chunk + 1; 0: it is not carried */
    int64_t from, since;
    bool waits;
};

/* One visit of all that a builder holds. */
struct state_carry {
    struct carry *c;
    struct state_builder *b;
    VEC(int32_t) rows;       /* SAVE: by row of the next chunk: here */
    VEC(uint32_t) users;     /* rows of futexes that are carried, not in LOAD: by index in the next chunk here */
    VEC(struct state_carried_user) user_of; /* by index in futex_users */
    uint64_t counters;       /* performance counters that there is something of, a bit for each */
    struct map frames;       /* SAVE: frame numbers that were met -> how many before */
};

void state_carry_code(struct state_carry *, uint32_t *code);
/* The number of an entry; NULL: it means the same everywhere. */
typedef void state_carry_entry(struct state_carry *, int64_t *number);
/* The last entries of a row: those that may change; all of them from `renamed` on that may be renamed. How many: */
size_t state_carry_kept(const struct series *, int64_t renamed);
void state_carry_series(struct state_carry *, struct series *, int64_t renamed, state_carry_entry *);
/* Of a row that is forgotten while nothing goes on there: nothing that it had before it was needed last. Entries from
 * `from` on may change, and the one before says what holds until then; without any the row begins anew, where `next`,
 * the time of its next entry, is not known (INT64_MAX); it does not come when what it would tell ends at once. */
void state_carry_series_from(struct state_carry *, struct series *, int64_t from, int64_t next);
void state_carry_latency(struct state_carry *, int kind, uint64_t *handle);
void state_carry_latency_order(struct carry *, struct latency_series *);
void state_carry_frame(struct state_carry *, uint32_t *frame);
void state_carry_held(struct state_carry *);
void state_carry_files(struct state_carry *);
void state_carry_gaps(struct carry *, builder_gaps *, size_t most);

#endif

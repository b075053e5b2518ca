/* SPDX-License-Identifier: MIT */
/* Private to the room: selection of the messages of a pair that matter.
 *
 * A message sent by a is a point (x, d) above the true curve, d = y - x (hull.h). A curve whose slope stays within
 * [low, high] then also stays below the cone that opens upwards from it, whose sides are d + high (x' - x) to the right
 * and d + low (x' - x) to the left. So another message sent by a, on or above these sides, adds nothing, whatever
 * admissible curve is true: it is *redundant*, by two messages alone. Messages received by a are the same upside down.
 *
 * Lying on a cone is transitive, since the cones of a cone's points lie within it. So each redundant message lies on
 * the cone of one that is not. The messages that are not redundant depend only on the set of all messages: not on their
 * order, their grouping, or what was dropped in between. Keeping them is associative, commutative and idempotent.
 *
 * Three rules bound the damage if clocks violate the prior, without changing this:
 *  - One message makes others redundant within its *cell* only, about a second by a's clock, counted from the epoch (so
 *    cells do not depend on cuts, either). If a clock steps, the messages of one direction on one side of the step lie
 *    on the cones of all on the other, for as long as the prior needs to make up for the step; and a wrong match may be
 *    anywhere. So both hide good messages in at most one cell.
 *  - A message is redundant by KEEP_LAYERS others: one wrong match in a cell hides nothing.
 *  - The half hulls of all messages are kept (the hull of hulls is the hull): lines without a prior, and the bounds
 *    without it, need no other message.
 *
 * Messages kept for a prior are sufficient for every lower one, and for none: what lies on a wide cone lies on the
 * narrow ones, so selecting by the narrow prior from those kept by the wide one equals selecting from all. Number and
 * time range of the others are kept. */
#ifndef WEFT_CLOCK_KEEP_H
#define WEFT_CLOCK_KEEP_H

#include <stdbool.h>

#include "base/mem.h"
#include "clock/clock.h"
#include "clock/exact.h"

struct net_message { int64_t x, y; };    /* time on the pair's a, time on its b */

enum { KEEP_CELL_BITS = 30, KEEP_LAYERS = 2 };

struct net_span { int64_t begin, end; bool known; };
void clock_span_extend(struct net_span *, int64_t t);

/* Messages of one direction. */
struct keep_side {
    VEC(struct net_message) v;       /* once settled: sorted by x, then y, without duplicates and redundant ones */
    size_t settled;                  /* number left when it was last settled */
    uint64_t all;                    /* number of all, including dropped ones */
};

struct clock_told {
    struct keep_side sent, received; /* sent, received by a */
    struct net_span span_a, span_b;  /* spans of all messages */
    uint64_t dropped;                /* messages beyond the range of times */
    bool prior;                      /* false: only the half hulls are kept */
    int64_t low, high;               /* Q62; see course_limits */
};

/* Returns whether a time is in range; messages with other times are dropped. */
bool clock_keep_in_range(int64_t t);
/* Sets the range of slopes within the prior: either clock against the other. < 0: none. */
void clock_keep_init(struct clock_told *, double prior_ppm);
void clock_keep_fini(struct clock_told *);
/* Drops redundant messages. O(n log n) in those added since, O(n) if they were added sorted. clock_tell calls it
 * whenever as many were added as were left, so that memory is bounded by what is kept. */
void clock_keep_settle(struct clock_told *);
/* Adds messages settled for that prior, none of which is redundant. False, without effect: it is for another prior,
 * there are other messages already, or these are not sorted. */
bool clock_keep_take(struct clock_told *, bool by_a, const struct net_message *, size_t n, double prior_ppm);
/* Adds the selection of other messages, for the same prior or a wider one. */
void clock_keep_join(struct clock_told *, const struct clock_told *);

#endif

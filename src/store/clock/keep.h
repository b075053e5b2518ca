/* SPDX-License-Identifier: MIT */
/* Which messages of a pair matter. Private to the room.
 *
 * A message sent by a is a point (x, d) above the true curve, d = y - x (hull.h). A curve whose slope stays within
 * [low, high] then also stays below the cone that opens upwards from it, whose sides are d + high (x' - x) to the right
 * and d + low (x' - x) to the left. So another message sent by a, on or above these sides, says nothing that this one
 * does not say, whatever admissible curve is true: it is *redundant*, by two messages alone. Messages received by a are
 * the same upside down.
 *
 * To lie on a cone is transitive, since the cones of a cone's points lie within it. So each redundant message lies on
 * the cone of one that is not, and those that are not are a function of the set of all messages: not of their order, of
 * which came together, or of what was thrown away in between. To keep them is associative, commutative and idempotent.
 *
 * Three things bound what that costs where clocks do not keep to the prior, all of which leave it so:
 *  - One message makes others redundant within its *cell* only, about a second by a's clock, counted from the epoch (so
 *    cells do not depend on cuts, either). Where a clock steps, the messages of one direction on one side of the step
 *    lie on the cones of all on the other, for as long as the prior needs to make up for the step; and a wrong match
 *    may lie anywhere. So both hide good messages in one cell at most.
 *  - A message is redundant by KEEP_LAYERS others: one wrong match in a cell hides nothing.
 *  - The half hulls of all messages are kept (the hull of hulls is the hull): lines that ask for no prior, and the
 *    bounds without it, need no other message.
 *
 * What is kept for a prior is enough for every lesser one, and for none: what lies on a wide cone lies on the narrow
 * ones, so to keep by the narrow prior of what was kept by the wide one is to keep of all. Of the others it is known
 * how many there were, and within which times. */
#ifndef WEFT_CLOCK_KEEP_H
#define WEFT_CLOCK_KEEP_H

#include <stdbool.h>

#include "base/mem.h"
#include "clock/clock.h"
#include "clock/exact.h"

struct net_message { int64_t x, y; };    /* time on the pair's a, time on its b */

enum { KEEP_CELL_BITS = 30, KEEP_LAYERS = 2 };

struct net_span { int64_t begin, end; bool known; };
void span_extend(struct net_span *, int64_t t);

/* Those of one direction. */
struct keep_side {
    VEC(struct net_message) v;       /* once settled: sorted by x, then y, each once, and none is redundant */
    size_t settled;                  /* how many were left when it was settled last */
    uint64_t all;                    /* of which they are kept */
};

struct clock_told {
    struct keep_side sent, received; /* by a */
    struct net_span span_a, span_b;  /* of all messages */
    uint64_t dropped;                /* beyond the range of times */
    bool prior;                      /* else the half hulls are kept alone */
    int64_t low, high;               /* Q62, as in course_limits */
};

/* Messages with other times are left out. */
bool keep_in_range(int64_t t);
/* Slopes within the prior: either clock against the other. < 0: none. */
void keep_init(struct clock_told *, double prior_ppm);
void keep_fini(struct clock_told *);
/* Throws away what is redundant. O(n log n) in those that came since, O(n) when they came sorted; clock_tell does it
 * whenever as many have come as were left, so that memory is bound by what is kept. */
void keep_settle(struct clock_told *);
/* Takes what was settled for that prior, of which nothing is redundant then. False, and nothing is done: it is for
 * another prior, other messages are there already, or these are not in order. */
bool keep_take(struct clock_told *, bool by_a, const struct net_message *, size_t n, double prior_ppm);
/* Adds what another has kept of other messages, for the same prior or a wider one. */
void keep_join(struct clock_told *, const struct clock_told *);

#endif

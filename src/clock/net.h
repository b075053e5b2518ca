/* The solved state of a clock net; private to the room. */
#ifndef WEFT_CLOCK_NET_H
#define WEFT_CLOCK_NET_H

#include "base/arena.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/text.h"
#include "clock/clock.h"
#include "clock/curve.h"

struct net_message { int64_t x, y; };    /* time on the pair's a, time on its b */

struct net_pair {
    struct clock_pair out;           /* a < b */
    VEC(struct net_message) sent, received; /* by a */
    bool same;                       /* one clock */
    bool against_prior;
    uint64_t outliers;
    bool usable;                     /* `curve` leads from a's clock to b's */
    struct curve curve;
    long double width;               /* mean error of the curve: the weight of the edge */
};

struct net_host {
    const char *name;
    int64_t begin, end;              /* of the trace and the messages */
    bool has_span;
    struct curve curve;              /* to the reference of its island */
    struct clock_map map;
    struct clock_piece *pieces;      /* of map, also when the host is outside the main island */
    size_t npieces;
};

struct net_island { size_t reference, hosts; };

struct clock_net {
    struct clock_options options;
    struct arena arena;
    VEC(struct net_host) hosts;
    VEC(struct net_pair) pairs;      /* sorted by (a, b) once solved */
    struct map pair_of;              /* a << 32 | b -> index + 1; stale once sorted */
    struct clock_pair *published;
    VEC(struct net_island) islands;  /* [0]: of the reference */
    VEC(size_t) order;               /* hosts, predecessors first */
    uint64_t loopback, dropped;      /* messages from a host to itself; messages outside the range of times */
    bool solved;
};

/* pair.c: category, bounds and curve of one pair. Pairs may be solved at the same time: only the pair is written. */
void pair_solve(const struct clock_net *, struct net_pair *);
void pair_reset(struct net_pair *);
/* tree.c: islands, references, predecessors (host.map.predecessor, reference, category, island). */
int tree_build(struct clock_net *, struct err *e);
/* map.c: curves and pieces of all hosts along the trees. */
void maps_build(struct clock_net *);
void host_reset(struct net_host *);

/* One line for a whole map, as LTTV states it: t_ref = drift * t + offset. */
struct factors { long double drift, offset_ns; };
struct factors host_factors(const struct net_host *);

/* decimal.c: exact decimals of a piece. */
void decimal_drift(struct text *, const struct clock_piece *);
void decimal_offset(struct text *, const struct clock_piece *);

#endif

/* SPDX-License-Identifier: MIT */
/* Private to the room: state of a clock net. Pairs are fitted from messages, each separately; everything else is
 * composed of the pairs' curves and of trust. */
#ifndef WEFT_CLOCK_NET_H
#define WEFT_CLOCK_NET_H

#include "base/arena.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/text.h"
#include "clock/clock.h"
#include "clock/curve.h"
#include "clock/keep.h"

struct net_pair {
    struct clock_pair out;           /* a < b */
    struct clock_told messages;      /* messages that the net holds itself */
    void (*tell)(void *arg, struct clock_told *); /* source of more messages, or NULL */
    void *tell_arg;
    struct net_span span_a, span_b;  /* spans of the messages */
    bool same;                       /* states one clock for both */
    bool carried;                    /* result of another net: never fitted here */
    bool against_prior;
    uint64_t outliers;
    bool usable;                     /* `curve` converts from a's clock to b's */
    struct curve curve;
    long double width;               /* mean error of the curve: the weight of the edge */
};

struct net_host {
    const char *name;
    struct net_span trace;
    int64_t begin, end;              /* span of the trace and the messages */
    bool trusting;                   /* its path to the reference includes a trusted clock */
    struct curve curve;              /* curve to the reference of its island */
    struct clock_map map;
    int64_t trusted_ns;              /* >= 0: the predecessor is trusted, with this error; -1: the edge is a pair */
    struct clock_piece *pieces;      /* pieces of map, also if the host is outside the main island */
    size_t npieces;
};

struct net_island { size_t reference, hosts; };

/* Hosts whose clocks differ pairwise by at most `error`. So there is a time, between the earliest and the latest of
 * them, from which none differs by more than half of it. */
struct net_trust { int64_t error; VEC(size_t) hosts; };

struct clock_net {
    struct clock_options options;
    struct arena arena;
    VEC(struct net_host) hosts;
    VEC(struct net_pair) pairs;      /* sorted by (a, b) once solved */
    struct map pair_of;              /* a << 32 | b -> index + 1; stale once sorted */
    struct clock_pair *published;
    VEC(struct net_island) islands;  /* [0]: island of the reference */
    VEC(size_t) order;               /* hosts, predecessors first */
    VEC(struct net_trust) trust;
    VEC(struct clock_conflict) conflicts;
    uint64_t loopback, dropped;      /* messages from a host to itself; messages outside the range of times */
    bool fitted;                     /* the pairs are fitted; maps follow from them */
};

/* Returns the pair of a fitted net; NULL: none. */
struct net_pair *clock_net_pair_between(const struct clock_net *, size_t a, size_t b);
/* Fails with "no host is named NAME; the hosts are: …". */
int clock_net_no_such_host(const struct clock_net *, const char *name, struct err *e);

/* pair.c: category, bounds and curve of one pair from its messages. Pairs may be solved in parallel: only the pair is
 * written. */
void clock_pair_solve(const struct clock_net *, struct net_pair *, const struct clock_told *settled);
void clock_pair_reset(struct net_pair *);
/* trust.c: sets of trusted hosts, without those that messages with others of the set contradict (these are
 * recorded). */
int clock_trust_build(struct clock_net *, struct err *e);
void clock_trust_reset(struct clock_net *);
/* Curve from one trusted clock to another, over both traces. */
void clock_trust_curve(const struct clock_net *, size_t from, size_t to, int64_t error, struct curve *out);
/* Greatest distance between the corridors of two curves between the same clocks, ns; 0: they meet everywhere. */
int64_t clock_curves_apart(const struct curve *, const struct curve *);
void clock_trust_conflict(struct clock_net *, size_t a, size_t b, int64_t apart_ns, int64_t error_ns,
    bool out_of_trust);
/* tree.c: islands, references, predecessors (host.map.predecessor, reference, category, island). */
int clock_tree_build(struct clock_net *, struct err *e);
/* map.c: curves and pieces of all hosts along the trees. */
void clock_maps_build(struct clock_net *);
void clock_host_reset(struct net_host *);

/* Line for a whole map, as in LTTV: t_ref = drift * t + offset. */
struct factors { long double drift, offset_ns; };
struct factors clock_host_factors(const struct net_host *);

/* decimal.c: exact decimals of a piece. */
void clock_decimal_drift(struct text *, const struct clock_piece *);
void clock_decimal_offset(struct text *, const struct clock_piece *);

#endif

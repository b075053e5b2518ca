/* SPDX-License-Identifier: MIT */
/* Clock synchronisation by convex hulls over matched messages (Duda; LTTV's and Jabbarifar's terms;
 * reference/clocks-live-vm.md A). All arithmetic on times is exact (integers and __int128). A clock map converts a
 * host's ns to the reference's ns and knows its error. */
#ifndef WEFT_CLOCK_CLOCK_H
#define WEFT_CLOCK_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct arena;
struct text;
struct json;

/* Version of the rules: increased whenever the same messages give other maps, or others of them are kept, so that
 * stored results are computed again. */
enum { CLOCK_RULES_VERSION = 3 };

enum clock_category {
    CLOCK_REFERENCE, CLOCK_ACCURATE, CLOCK_TRUSTED, CLOCK_APPROXIMATE, CLOCK_ONE_SIDED, CLOCK_ONE_WAY, CLOCK_ABSENT
};
const char *clock_category_name(int category); /* "reference", "accurate", … */

/* Trust: a statement of the user that the clocks of some hosts differ at most by an error: PTP, containers. */
struct clock_trust {
    const char *hosts;       /* names and patterns (fnmatch), separated by commas */
    int64_t error_ns;        /* 0: one clock */
};
struct clock_options {
    /* Options for the lines and corridors of pairs. */
    double drift_prior_ppm;  /* |drift - 1| is at most this (at most 400000); < 0: no prior, LTTV's middle lines */
    double min_drift, max_drift; /* sane slopes; 0.5 and 2 by default; both 0: any that a map can hold (0.36 to 2.8) */
    /* Options for the maps, which are made from pairs. */
    const char *reference;   /* host name, or NULL: least total error */
    const struct clock_trust *trust; size_t n_trust;
    /* Unknown names in `trust` are no error. A reference that no host has, or that is not related to any other host,
     * counts as none. */
    bool some_named;
    bool no_messages;        /* set: callers need not collect messages, since maps are made by trust alone */
};
struct clock_options clock_defaults(void); /* 300 ppm: two poor crystals; no trust */
/* "HOST,…" or "HOST,…=ERROR" with a unit (50us; ns, us, ms, s). `out` borrows from the arena. ERR_ARG. */
int clock_trust_parse(struct arena *, const char *, struct clock_trust *out, struct err *e);
/* Hash of the options that pairs depend on. */
uint64_t clock_options_hash(const struct clock_options *);

struct clock_net;            /* hosts, messages between them, and the solution */
struct clock_net *clock_net_new(const struct clock_options *);
void clock_net_free(struct clock_net *);
/* Adds a host; hosts are numbered from 0. begin, end: ns span of the host's trace (maps cover it and all messages);
 * begin > end: unknown. Times beyond +-2^62 ns are not accepted: spans are cut there, messages dropped and counted. */
size_t clock_net_host(struct clock_net *, const char *name, int64_t begin, int64_t end);
/* Adds a message sent by host a at `sent` (a's ns) and received by host b at `received` (b's ns). Any order. Messages
 * of a to itself are only counted. */
void clock_net_message(struct clock_net *, size_t a, size_t b, int64_t sent, int64_t received);
/* Adds messages that the caller has: `tell` calls clock_tell for each while the pair (a < b) is fitted, then they are
 * dropped, so that messages of many pairs are never in memory together. Several threads may call it at once for
 * different pairs. Once per pair; `arg` must live until the net is solved, after which the net takes no more
 * messages. */
struct clock_told;
void clock_net_messages(struct clock_net *, size_t a, size_t b, void (*tell)(void *arg, struct clock_told *),
    void *arg);
void clock_tell(struct clock_told *, bool by_a, int64_t sent, int64_t received);
/* States that a and b have the same clock (same machine): an edge without error. */
void clock_net_same(struct clock_net *, size_t a, size_t b);
/* Copies the result that `from` (solved, same prior) has for its hosts from_a and from_b, for a pair without messages
 * now; the spans of both hosts there count, too. No effect if `from` has no such pair or orders the two differently, or
 * this net already has messages or a statement for the pair. `from` may be freed afterwards. */
void clock_net_carry(struct clock_net *, size_t a, size_t b, const struct clock_net *from, size_t from_a,
    size_t from_b);
/* Finds categories, islands, references and maps; may be called again after more messages. The answer does not depend
 * on the number of threads. ERR_ARG: no host has the name of the reference or of a trusted host (the message lists all
 * hosts), or the prior is invalid. O(m log m) in messages; islands: Dijkstra from each host. */
int clock_net_solve(struct clock_net *, struct err *e);
/* ERR_ARG if a reference was named that is not related to that host (SIZE_MAX: to any other): the host's times would be
 * by another clock. */
int clock_net_relates(const struct clock_net *, size_t host, struct err *e);
size_t clock_net_hosts(const struct clock_net *);
const char *clock_net_name(const struct clock_net *, size_t host);

struct clock_pair {
    size_t a, b;
    int category;
    uint64_t messages_ab, messages_ba;
    size_t hull_ab, hull_ba;           /* number of points on the half hulls */
    /* t_b = drift * t_a + offset for the lines that fit: bounds without the prior, and the middle line, as in LTTV. An
     * unbounded side is infinite; drift and offset are NaN if there is no middle line (one-sided, one-way). For
     * display: maps are exact, these values are not. */
    double drift_min, drift_max, drift, offset_ns, offset_at_min_ns, offset_at_max_ns;
    double error_ns;                   /* approximate: sum of violations of the best line */
};
/* Pairs that exchanged messages (or are the same machine); sorted by (a, b), a < b. */
size_t clock_net_pairs(const struct clock_net *, const struct clock_pair **out);

/* Conflict between messages and trust: a and b differ by at least apart_ns more than `error_ns` (-1: the error of trust
 * on the path to them) at some time. `out_of_trust`: host b is not trusted; otherwise messages of other hosts show the
 * conflict, and b is known only by its path in the tree. */
struct clock_conflict { size_t a, b; int64_t apart_ns, error_ns; bool out_of_trust; };
size_t clock_net_conflicts(const struct clock_net *, const struct clock_conflict **out);
void clock_conflict_words(const struct clock_net *, const struct clock_conflict *, struct text *out);

/* Piece of a map: t_ref = t + shift + ((t - t0) * slope_q62 >> 62), for begin <= t <= end */
struct clock_piece {
    int64_t begin, end, t0, shift, slope_q62;
    int64_t error_begin, error_end;    /* ns; bound of the error, linear between */
};
struct clock_map {
    size_t host, reference;
    int64_t predecessor;               /* -1 for a reference */
    int category;                      /* worst one on the path to the reference; without a path: of its best pair */
    /* Pieces in order of time, contiguous; together continuous and monotone. n = 0: no path to the reference. */
    const struct clock_piece *pieces; size_t n;
    size_t island;                     /* 0: the island of the reference */
    int64_t growth_q62;                /* growth of the error per ns outside the pieces, Q62 */
};
/* Map of a host, valid until the next solve. For hosts outside the reference's island (island > 0) it has no pieces,
 * and `reference` is that of their own island. */
const struct clock_map *clock_net_map(const struct clock_net *, size_t host);
/* Converts a time; outside the pieces the first or last one continues. Inverse is exact to 1 ns. Identity for n = 0. */
int64_t clock_to_reference(const struct clock_map *, int64_t t);
int64_t clock_from_reference(const struct clock_map *, int64_t t);
int64_t clock_error_at(const struct clock_map *, int64_t t);   /* ns; outside the pieces it grows as the drift allows */
/* Bound of the error of the map's mean drift from begin to end, from the errors at both: a ratio. 0 unless begin is
 * before end. */
long double clock_drift_error(const struct clock_map *, int64_t begin, int64_t end);
/* Last time that is not after t by the reference; first time that is not before it. */
int64_t clock_last_until(const struct clock_map *, int64_t t);
int64_t clock_first_from(const struct clock_map *, int64_t t);
/* A ctf_time_map: arg is a struct clock_map. */
void clock_map_times(void *map, int64_t *ts, size_t n);

void clock_net_write_json(const struct clock_net *, struct json *);            /* DESIGN section 2 */
/* Reads the line t_ref = drift * t + offset_ns from decimals; within 1 ns for times within +-2^62 ns, and exact if it
 * goes through known whole times. ERR_ARG says what is wrong. */
int clock_line_read(const char *drift, const char *offset_ns, struct clock_piece *out, struct err *e);
int clock_line_through(struct clock_piece *, int64_t t, int64_t t_ref, struct err *e);
/* Makes a map of pieces that were read, in order of time: errors are unknown. ERR_ARG: a time would fall behind one
 * before. The pieces are borrowed, and may be moved by few ns. */
int clock_map_of(struct clock_piece *, size_t n, struct clock_map *out, struct err *e);
void clock_net_write_table(const struct clock_net *, struct text *, bool color); /* looks.md */
void clock_net_write_stats(const struct clock_net *, struct text *);            /* LTTV's layout: reference A.7 */

/* ---- kept messages ---- */

/* Selection of the messages of a pair that matter: the others add nothing, as long as clocks drift apart by at most the
 * prior. Selecting from many messages equals selecting from the selections of any parts of them. So it can be done
 * chunk by chunk, and clocks are found from selected messages alone. A selection for a prior is sufficient for all
 * lower ones, and for none (docs/formats/messages.md). */
struct clock_told *clock_told_new(double prior_ppm);
void clock_told_free(struct clock_told *);
/* Drops messages that do not matter, which otherwise happens gradually: this makes adding to another selection
 * cheaper. */
void clock_told_settle(struct clock_told *);
/* Adds another selection, of other messages, for the same prior or a wider one. */
void clock_told_add(struct clock_told *, const struct clock_told *other);

/* Source: the records of a host before a time (INT64_MAX: all), and their hash. */
struct clock_source { uint64_t host; int64_t until; uint64_t hash; };
/* Messages of two sources, a < b; times on a's clock come first. The other fields are for the search of messages. */
struct clock_part {
    size_t a, b;
    uint64_t sure, missing, missed;
    bool far;
    struct clock_told *told;           /* NULL: not read yet */
};
/* Writes what was kept for the prior, in parts sorted by (a, b). Every pair of the sources was searched. */
int clock_kept_save(const char *path, uint64_t key, double prior_ppm, const struct clock_source *, size_t n_sources,
    const struct clock_part *, size_t n, struct err *e);

struct clock_kept;
/* ERR_STALE: the key differs; ERR_FORMAT: invalid contents. */
int clock_kept_open(const char *path, uint64_t key, struct clock_kept **out, struct err *e);
void clock_kept_close(struct clock_kept *);
double clock_kept_prior(const struct clock_kept *); /* ppm */
size_t clock_kept_sources(const struct clock_kept *, const struct clock_source **out);
size_t clock_kept_parts(const struct clock_kept *);
void clock_kept_part(const struct clock_kept *, size_t i, struct clock_part *out);
/* Adds the kept messages of the part, as if all its messages were added. */
void clock_kept_tell(const struct clock_kept *, size_t i, struct clock_told *);

/* Writes the results for pairs to a store. */
int clock_net_save(const struct clock_net *, const char *path, uint64_t key, struct err *e);
/* Reads it back; clock_net_solve then makes maps from it, with the reference and trust of these options, and fits
 * nothing. Loaded nets take no messages. ERR_STALE: the key differs. */
int clock_net_load(const char *path, uint64_t key, const struct clock_options *, struct clock_net **out, struct err *e);

#endif

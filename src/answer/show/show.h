/* SPDX-License-Identifier: MIT */
/* Output of an answer: a critical path as JSON, on a terminal, as SVG, as CSV. */
#ifndef WEFT_SHOW_SHOW_H
#define WEFT_SHOW_SHOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena; struct graph_stack; struct json; struct path; struct path_source; struct text;
struct request_group; struct request_groups; struct request_part; struct path_requests_lacking;

/* Writes the answer in words: one line without its end, at most 140 cells; rules in docs/concepts.md. Nothing for a
 * path without length. */
void show_sentence(const struct path *, const struct path_source *, struct text *);
/* Writes one object; docs/verbs/critpath.md lists its members. */
void show_json(const struct path *, const struct path_source *, const char *method, struct json *);
struct show_style {
    bool color, ascii;       /* ascii: picture without block characters */
    int width;               /* columns; limit of every line, except the list of segments for width 0 */
    bool segments;           /* adds the list of segments */
    int64_t clock_error_ns;  /* worst error of a clock on the path; < 0: not shown */
};
void show_terminal(const struct path *, const struct path_source *, const struct show_style *, struct text *);
void show_svg(const struct path *, const struct path_source *, struct text *);
void show_csv(const struct path *, const struct path_source *, struct text *);

/* Writes "0x401136 0x401020 … · kernel 0xffffffff81000010": at most `most` addresses of each, the innermost first. */
void show_stack(const struct graph_stack *, size_t most, struct text *);

/* Comparison of two paths: time of threads of one name on one machine in one state, in a and in b. */
struct show_answer { const struct path *path; const struct path_source *source; const char *method; };
void show_compare_json(const struct show_answer *a, const struct show_answer *b, struct json *);
void show_compare_terminal(const struct show_answer *a, const struct show_answer *b, const struct show_style *,
    struct text *);
void show_compare_csv(const struct show_answer *a, const struct show_answer *b, struct text *);
/* Difference, for other kinds of output. NULL: unknown or not applicable. */
struct show_change {
    uint64_t key;            /* key of the part, equal in all paths */
    const char *host, *comm, *state, *detail, *from, *reason;
    int32_t tid;             /* thread, if it is the only one in both; else -1 */
    bool assumed;
    int64_t a, b;            /* ns */
};
struct show_changes { const struct show_change *v; size_t n; const char *sentence; };
/* Side of a comparison: a path or, with path NULL, the parts of a path that is known elsewhere, in `a` of changes:
 * without duplicates, each valid (show_told), with a sum of at most INT64_MAX. */
struct show_side {
    const struct path *path;
    const struct path_source *source;
    const struct show_change *told; size_t n;
};
/* Changes, the largest first. In the arena, except names, which belong to the sources, paths and parts. */
struct show_changes show_changes(const struct show_side *a, const struct show_side *b, struct arena *);
/* Returns whether the change is a valid part of a path, with time `a`. */
bool show_told(const struct show_change *);

/* Groups of similar requests: the thread of a part of their paths; the parts, and those that took longer in the slow
 * ones; the first of each. */
void show_request_part(struct request_groups *, const struct request_part *, struct text *);
void show_request_shape(struct request_groups *, const struct request_group *, struct text *);
void show_request_growth(struct request_groups *, const struct request_group *, struct text *);
/* Kinds of missing requests. False: there are none, and nothing was written. */
enum show_requests_lack {
    SHOW_REQUESTS_UNRELATED, SHOW_REQUESTS_UNSIDED, SHOW_REQUESTS_CUT, SHOW_REQUESTS_NOBODYS, SHOW_REQUESTS_OVERLAPPED,
    SHOW_REQUESTS_LACKS
};
bool show_requests_lack(const struct path_requests_lacking *, enum show_requests_lack, struct text *);
/* Writes which of all requests the groups are based on; false: all of them. */
bool show_requests_sample(const struct request_groups *, size_t all, struct text *);

#endif

/* SPDX-License-Identifier: MIT */
/* Drawing an answer: a critical path as JSON, on a terminal, as SVG, as CSV. */
#ifndef WEFT_SHOW_SHOW_H
#define WEFT_SHOW_SHOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena; struct json; struct path; struct path_source; struct text;
struct request_group; struct request_groups; struct request_part; struct requests_lacking;

/* The answer in words: one line without its end, at most 140 cells, its rules in docs/concepts.md; nothing for a path
 * without length. */
void show_sentence(const struct path *, const struct path_source *, struct text *);
/* One object; docs/verbs/critpath.md lists its members. */
void show_json(const struct path *, const struct path_source *, const char *method, struct json *);
struct show_style {
    bool color, ascii;       /* ascii: the picture without block characters */
    int width;               /* columns; nothing is wider, except the list of segments for width 0 */
    bool segments;           /* list them, too */
    int64_t clock_error_ns;  /* worst error of a clock on the path; < 0: not said */
};
void show_terminal(const struct path *, const struct path_source *, const struct show_style *, struct text *);
void show_svg(const struct path *, const struct path_source *, struct text *);
void show_csv(const struct path *, const struct path_source *, struct text *);

/* Two paths beside each other: what threads of one name on one machine did in one state, in a and in b. */
struct show_answer { const struct path *path; const struct path_source *source; const char *method; };
void show_compare_json(const struct show_answer *a, const struct show_answer *b, struct json *);
void show_compare_terminal(const struct show_answer *a, const struct show_answer *b, const struct show_style *,
    struct text *);
void show_compare_csv(const struct show_answer *a, const struct show_answer *b, struct text *);
/* The same for who shows it in another way. What is not known or does not apply: NULL. */
struct show_change {
    uint64_t key;            /* the same for the same part of whatever paths */
    const char *host, *comm, *state, *detail, *from, *reason;
    int32_t tid;             /* of the one thread that did it in both; else -1 */
    bool assumed;
    int64_t a, b;            /* ns */
};
struct show_changes { const struct show_change *v; size_t n; const char *sentence; };
/* A path, or (path NULL) the parts of one that is known elsewhere, as `a` of changes tells them: each once, show_told
 * of each, the sum no more than INT64_MAX. */
struct show_side {
    const struct path *path;
    const struct path_source *source;
    const struct show_change *told; size_t n;
};
/* Largest change first. In the arena, but for names, which are the sources', paths' and parts'. */
struct show_changes show_changes(const struct show_side *a, const struct show_side *b, struct arena *);
/* Can the change be a part of a path, whose time is `a`? */
bool show_told(const struct show_change *);

/* Groups of like requests: whose a part of their paths is; the parts, and those that took longer in the slow ones; the
 * first of each. */
void show_request_part(struct request_groups *, const struct request_part *, struct text *);
void show_request_shape(struct request_groups *, const struct request_group *, struct text *);
void show_request_growth(struct request_groups *, const struct request_group *, struct text *);
/* What is not told of requests. False: there is no such thing, and nothing was written. */
enum show_requests_lack {
    SHOW_REQUESTS_UNRELATED, SHOW_REQUESTS_UNSIDED, SHOW_REQUESTS_CUT, SHOW_REQUESTS_NOBODYS, SHOW_REQUESTS_OVERLAPPED,
    SHOW_REQUESTS_LACKS
};
bool show_requests_lack(const struct requests_lacking *, enum show_requests_lack, struct text *);
/* By which of all requests groups are told; false: by all. */
bool show_requests_sample(const struct request_groups *, size_t all, struct text *);

#endif

/* SPDX-License-Identifier: MIT */
/* Private to show: what a path consists of, told by who did what. */
#ifndef WEFT_SHOW_PARTS_H
#define WEFT_SHOW_PARTS_H

#include "base/arena.h"
#include "path/path.h"

/* What one thread, or the interrupts of one CPU, did of a path in one state; of messages what went from one machine to
 * another. What is only assumed, and what is not known for another reason, are parts of their own. */
struct show_part {
    int64_t duration;
    const char *host, *comm; /* comm: NULL for messages */
    int32_t tid;             /* -1: an interrupt, or messages */
    uint8_t state;
    bool assumed;
    int8_t reason;           /* enum path_reason: why that wait is not explained; -1: it is */
    const char *detail;      /* of more than half of it; of messages the only connection; or NULL */
    const char *peer;        /* of what is not explained: the only one, or NULL */
    const char *from;        /* messages: the sender's machine; NULL: not known */
    size_t messages;
};
struct show_parts { const struct show_part *v; size_t n; };

/* What threads of one name did in one state on one machine. */
struct show_kind {
    struct show_part part;   /* the largest */
    int64_t duration;
    size_t threads;
};
struct show_kinds { const struct show_kind *v; size_t n; };

/* Largest first. They sum to the path's length. All in the arena, but for names, which are the source's and path's. */
struct show_parts show_parts(const struct path *, const struct path_source *, struct arena *);
/* Largest first, in the arena. */
struct show_kinds show_kinds(const struct show_parts *, struct arena *);
/* The same for parts of one kind, of whatever path. */
uint64_t show_kind_key(const struct show_part *);
uint64_t show_hash(const char *s, uint64_t seed); /* s may be NULL */
/* Its members, within an object. tid: that of more than the part, or its own. */
struct json;
void show_json_part(const struct show_part *, int32_t tid, struct json *);
/* What is said of it besides its state: of what is not explained the peer. Or NULL. */
const char *show_part_detail(const struct show_part *);
/* Messages from one machine to another. */
bool show_is_network(const struct show_part *);

#endif

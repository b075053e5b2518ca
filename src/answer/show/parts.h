/* SPDX-License-Identifier: MIT */
/* Private to show: parts of a path by actor. */
#ifndef WEFT_SHOW_PARTS_H
#define WEFT_SHOW_PARTS_H

#include "base/arena.h"
#include "path/path.h"

/* Part of a path: one thread, or the interrupts of one CPU, in one state; for messages, from one machine to another.
 * Assumed parts, and unexplained parts for different reasons, are separate. */
struct show_part {
    int64_t duration;
    const char *host, *comm; /* comm: NULL for messages */
    int32_t tid;             /* -1: an interrupt, or messages */
    uint8_t state;
    bool assumed;
    int8_t reason;           /* enum path_reason of an unexplained wait; -1: explained */
    const char *detail;      /* detail of more than half of it; for messages the only connection; or NULL */
    const char *peer;        /* peer of an unexplained part, if there is only one; or NULL */
    const char *from;        /* messages: the sender's machine; NULL: unknown */
    size_t messages;
};
struct show_parts { const struct show_part *v; size_t n; };

/* Kind: threads of one name in one state on one machine. */
struct show_kind {
    struct show_part part;   /* largest part */
    int64_t duration;
    size_t threads;
};
struct show_kinds { const struct show_kind *v; size_t n; };

/* Parts, the largest first; they sum to the path's length. In the arena, except names, which belong to the source and
 * path. */
struct show_parts show_parts(const struct path *, const struct path_source *, struct arena *);
/* Kinds, the largest first, in the arena. */
struct show_kinds show_kinds(const struct show_parts *, struct arena *);
/* Key of the kind of a part, equal in all paths. */
uint64_t show_kind_key(const struct show_part *);
uint64_t show_hash(const char *s, uint64_t seed); /* s may be NULL */
/* Writes its members, within an object. tid: thread of the whole kind, if it is the only one, or of the part. */
struct json;
void show_json_part(const struct show_part *, int32_t tid, struct json *);
/* Detail of a part besides its state; the peer if it is unexplained. Or NULL. */
const char *show_part_detail(const struct show_part *);
/* Returns whether the part is messages from one machine to another. */
bool show_is_network(const struct show_part *);

#endif

/* SPDX-License-Identifier: MIT */
/* Private to the room: the directory of a node where traces arrive from other nodes. DIR/NAME-KEY is one that is all
 * there, or an excerpt; DIR/.arriving-KEY-HASH is on its way (an excerpt: DIR/.snipping-KEY-…), DIR/.left-NAME-KEY-TIME
 * has moved on: what begins with a dot is nothing to whoever looks for traces. There is one of each host. */
#ifndef WEFT_PLACE_ARRIVALS_H
#define WEFT_PLACE_ARRIVALS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "place/moves.h"

struct arrivals;
/* Makes the directory, for nobody but the node's user, if need be. limit: bytes that all below it may take; 0: none. */
int arrivals_open(const char *dir, uint64_t limit, struct arrivals **out, struct err *e);
void arrivals_close(struct arrivals *); /* NULL-safe */
const char *arrivals_dir(const struct arrivals *);

/* TRACE arguments of what has arrived, sorted. They live in the arena. */
void arrivals_args(const struct arrivals *, struct arena *, struct cluster_trace_args *out);
/* When the trace at that path came (ns since the epoch); 0: it did not. NULL-safe. */
int64_t arrivals_since(const struct arrivals *, const char *path);
/* Did the trace, with all its directories, come as an excerpt? NULL-safe; strings live in the arena. */
bool arrivals_excerpt(const struct arrivals *, const struct ctf_trace *, struct arena *, struct cluster_excerpt *out);
/* The key that it came by; 0: it did not come. NULL-safe. */
uint64_t arrivals_key(const struct arrivals *, const char *path);
/* What came at that path is the host of that key, whatever an earlier version of weft called it. NULL-safe. */
void arrivals_rename(const struct arrivals *, const char *path, uint64_t key);
/* Is it there? */
bool arrivals_has(const struct arrivals *, struct move_trace);
/* Is the host there, as a trace that is no excerpt? */
bool arrivals_has_all(const struct arrivals *, uint64_t key);
/* Bytes that may still come: what the limit and the disk leave. */
uint64_t arrivals_room(const struct arrivals *);

/* Where it is put together. Lives in the arena. */
const char *arrivals_path(const struct arrivals *, struct arena *, struct move_trace);
/* All files are there and on disk: it becomes visible in one step, instead of an older one of that host. from: the node
 * that it came from. */
int arrivals_finish(const struct arrivals *, struct move_trace, const struct move_files *, const char *from,
    struct err *e);
/* Gives up what was on its way of that host when it was another one (it has grown), or other excerpts of it. */
void arrivals_drop_others(const struct arrivals *, struct move_trace);
/* What is on its way is given up. */
void arrivals_drop(const struct arrivals *, struct move_trace);
/* The host has moved on: nobody opens it any more, its files stay. False: it did not come here. An excerpt has,
 * whatever it was called where it came from. */
bool arrivals_put_aside(const struct arrivals *, struct move_trace);

#endif

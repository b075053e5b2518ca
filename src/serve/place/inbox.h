/* SPDX-License-Identifier: MIT */
/* Private to the room: the inbox of a node, a directory for traces from other nodes. DIR/NAME-KEY is a complete trace
 * or excerpt; DIR/.arriving-KEY-HASH is being received (an excerpt: DIR/.snipping-KEY-…); DIR/.left-NAME-KEY-TIME has
 * moved on. Searches for traces ignore names that begin with a dot. There is one trace of each host. */
#ifndef WEFT_PLACE_INBOX_H
#define WEFT_PLACE_INBOX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "place/moves.h"

struct place_inbox;
/* Opens the directory, or makes it, readable by the node's user alone. limit: bytes of all below it; 0: no limit. */
int place_inbox_open(const char *dir, uint64_t limit, struct place_inbox **out, struct err *e);
void place_inbox_close(struct place_inbox *); /* NULL-safe */
const char *place_inbox_dir(const struct place_inbox *);

/* Lists TRACE arguments of the complete traces, sorted. They live in the arena. */
void place_inbox_list(const struct place_inbox *, struct arena *, struct cluster_trace_args *out);
/* Returns when the trace at that path was received (ns since the epoch); 0: not received. NULL-safe. */
int64_t place_inbox_since(const struct place_inbox *, const char *path);
/* Returns whether the trace, with all its directories, was received as an excerpt. NULL-safe; strings live in the
 * arena. */
bool place_inbox_excerpt(const struct place_inbox *, const struct ctf_trace *, struct arena *,
    struct cluster_excerpt *out);
/* Returns the host's key at the time of receipt; 0: not received. NULL-safe. */
uint64_t place_inbox_key(const struct place_inbox *, const char *path);
/* Sets the host's key of the trace at that path, whatever an earlier version of weft called it. NULL-safe. */
void place_inbox_rename(const struct place_inbox *, const char *path, uint64_t key);
/* Returns whether the trace is complete. */
bool place_inbox_has(const struct place_inbox *, struct move_trace);
/* Returns whether a complete trace of the host, not an excerpt, is there. */
bool place_inbox_has_all(const struct place_inbox *, uint64_t key);
/* Returns the bytes that may still be received, from the limit and the disk. */
uint64_t place_inbox_room(const struct place_inbox *);

/* Returns the directory in which it is put together; lives in the arena. */
const char *place_inbox_path(const struct place_inbox *, struct arena *, struct move_trace);
/* Completes a trace whose files are all written to disk: it becomes visible in one step, and replaces an older one of
 * that host. from: the sending node. */
int place_inbox_finish(const struct place_inbox *, struct move_trace, const struct move_files *, const char *from,
    struct err *e);
/* Deletes incomplete data of the host's other states (it has grown), or of other excerpts. */
void place_inbox_drop_others(const struct place_inbox *, struct move_trace);
/* Deletes the incomplete data of a trace. */
void place_inbox_drop(const struct place_inbox *, struct move_trace);
/* Puts aside the trace of a host that has moved on: it is not opened any more, its files stay. Returns false if it was
 * not received here. An excerpt counts as received, whatever its hash was at its origin. */
bool place_inbox_put_aside(const struct place_inbox *, struct move_trace);

#endif

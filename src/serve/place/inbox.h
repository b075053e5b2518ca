/* SPDX-License-Identifier: MIT */
/* Private to the room: the inbox of a node, a directory that receives traces of other nodes. DIR/NAME-KEY is a trace,
 * or an excerpt, that is complete; DIR/.arriving-KEY-HASH is being received (an excerpt: DIR/.snipping-KEY-…);
 * DIR/.left-NAME-KEY-TIME has moved on. Names that begin with a dot are ignored by whoever looks for traces. There is
 * one trace of each host. */
#ifndef WEFT_PLACE_INBOX_H
#define WEFT_PLACE_INBOX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "place/moves.h"

struct place_inbox;
/* Makes the directory, readable by the node's user alone, if there is none. limit: bytes of all below it; 0: no
 * limit. */
int place_inbox_open(const char *dir, uint64_t limit, struct place_inbox **out, struct err *e);
void place_inbox_close(struct place_inbox *); /* NULL-safe */
const char *place_inbox_dir(const struct place_inbox *);

/* TRACE arguments of the complete traces, sorted. They live in the arena. */
void place_inbox_list(const struct place_inbox *, struct arena *, struct cluster_trace_args *out);
/* When the trace at that path was received (ns since the epoch); 0: it was not. NULL-safe. */
int64_t place_inbox_since(const struct place_inbox *, const char *path);
/* Was the trace, with all its directories, received as an excerpt? NULL-safe; strings live in the arena. */
bool place_inbox_excerpt(const struct place_inbox *, const struct ctf_trace *, struct arena *,
    struct cluster_excerpt *out);
/* The key of its host when it was received; 0: it was not. NULL-safe. */
uint64_t place_inbox_key(const struct place_inbox *, const char *path);
/* Sets the host's key of the trace at that path, whatever an earlier version of weft called it. NULL-safe. */
void place_inbox_rename(const struct place_inbox *, const char *path, uint64_t key);
/* Is the trace complete? */
bool place_inbox_has(const struct place_inbox *, struct move_trace);
/* Is a trace of the host complete that is no excerpt? */
bool place_inbox_has_all(const struct place_inbox *, uint64_t key);
/* Bytes that may still be received: what the limit and the disk leave. */
uint64_t place_inbox_room(const struct place_inbox *);

/* Where it is put together. Lives in the arena. */
const char *place_inbox_path(const struct place_inbox *, struct arena *, struct move_trace);
/* All files are there and on disk: it becomes visible in one step, instead of an older one of that host. from: the node
 * that it came from. */
int place_inbox_finish(const struct place_inbox *, struct move_trace, const struct move_files *, const char *from,
    struct err *e);
/* Deletes what is not complete of the host's other states (it has grown), or of other excerpts. */
void place_inbox_drop_others(const struct place_inbox *, struct move_trace);
/* Deletes what was received of a trace that is not complete. */
void place_inbox_drop(const struct place_inbox *, struct move_trace);
/* The host has moved on: nobody opens it any more, its files stay. False: it did not come here. An excerpt has,
 * whatever it was called where it came from. */
bool place_inbox_put_aside(const struct place_inbox *, struct move_trace);

#endif

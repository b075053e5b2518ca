/* Private to the room: the directory of a node where traces arrive from other nodes. DIR/NAME-KEY is one that is whole;
 * DIR/.arriving-KEY-HASH is on its way, DIR/.left-NAME-KEY-TIME has moved on: what begins with a dot is nothing to
 * whoever looks for traces. */
#ifndef WEFT_CLUSTER_ARRIVALS_H
#define WEFT_CLUSTER_ARRIVALS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

struct arrivals;
/* Makes the directory, for nobody but the node's user, if need be. limit: bytes that all below it may take; 0: none. */
int arrivals_open(const char *dir, uint64_t limit, struct arrivals **out, struct err *e);
void arrivals_close(struct arrivals *); /* NULL-safe */
const char *arrivals_dir(const struct arrivals *);

/* TRACE arguments of what has arrived, sorted. They live in the arena. */
struct arrivals_args { const char **v; size_t n, cap; };
void arrivals_args(const struct arrivals *, struct arena *, struct arrivals_args *out);
/* When the trace at that path came (ns since the epoch); 0: it did not. NULL-safe. */
int64_t arrivals_since(const struct arrivals *, const char *path);
/* Is the host there, made of these files? */
bool arrivals_has(const struct arrivals *, uint64_t key, uint64_t hash);
/* Bytes that may still come: what the limit and the disk leave. */
uint64_t arrivals_room(const struct arrivals *);

/* Where it is put together. Lives in the arena. */
const char *arrivals_path(const struct arrivals *, struct arena *, uint64_t key, uint64_t hash);
/* All files are there and on disk: it becomes visible in one step, instead of an older one of that host. */
int arrivals_finish(const struct arrivals *, uint64_t key, uint64_t hash, const char *name, struct err *e);
/* What was on its way of that host when it was another one (it has grown) is given up. */
void arrivals_drop_others(const struct arrivals *, uint64_t key, uint64_t hash);
/* What is on its way is given up. */
void arrivals_drop(const struct arrivals *, uint64_t key, uint64_t hash);
/* The host has moved on: nobody opens it any more, its files stay. False: it did not come here. */
bool arrivals_put_aside(const struct arrivals *, uint64_t key, uint64_t hash);

#endif

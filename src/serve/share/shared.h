/* SPDX-License-Identifier: MIT */
/* Private to the room: traces on storage that several nodes see below a directory each ("root"), and the results of
 * indexing them, as entries of a table (docs/cluster-protocol.md). All input is untrusted, and checked. */
#ifndef WEFT_SHARE_SHARED_H
#define WEFT_SHARE_SHARED_H

#include "base/arena.h"
#include "base/text.h"
#include "share/share.h"

struct bus; struct bus_table; struct bus_queue; struct bus_entry;

enum { SHARED_KEY = 33, SHARED_MOST_PATH = 1024, SHARED_MOST_TEXT = 1024 };

struct shared_trace {
    struct share_work work;    /* its state; WAITING: to be indexed */
    bool shared;                 /* indexed: nodes open it for queries */
    bool force;                  /* request to rebuild, for the indexing node */
    uint64_t keep_ns;
};
void share_entry_write(const struct shared_trace *, struct text *out);
/* Reads an entry; strings live in the arena. ERR_FORMAT, also for a path that leads out of the directory. */
int share_entry_read(struct arena *, const void *bytes, size_t n, struct shared_trace *out, struct err *e);
/* Reads an entry of the table; its key must be that of the path. */
int share_entry_check(struct arena *, const struct bus_entry *, struct shared_trace *out, struct err *e);
/* Makes the key of a path's entry, which is also the id of its item of work. */
void share_key(const char *path, char out[SHARED_KEY]);

int share_open_table(struct bus *, const char *cluster, struct bus_table **out, struct err *e);
int share_open_queue(struct bus *, const char *cluster, struct bus_queue **out, struct err *e);
/* Makes the subject at which participating nodes are members (bus_join). ERR_LIMIT. */
enum { SHARED_SUBJECT = 256 };
int share_members_subject(const char *cluster, char out[SHARED_SUBJECT], struct err *e);

/* Returns the directory of a path here; free() it. ERR_NOTFOUND: there is none. ERR_ARG: it, or a link in it, leads out
 * of the root, which is a real path. */
int share_resolve(const char *root, const char *path, char **real, struct err *e);

/* Returns the weight of a node for a trace. The trace belongs to the node with the greatest weight. All who know the
 * same names choose the same node. A node that comes or goes changes the owner only of its own traces. */
uint64_t share_weight(const char *path, const char *node);

#endif

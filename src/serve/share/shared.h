/* SPDX-License-Identifier: MIT */
/* Private to the room: traces on storage that several nodes see below a directory each ("root"), and what was found out
 * about them; as entries of a table (docs/cluster-protocol.md). All that is read may be anything, and is checked. */
#ifndef WEFT_SHARE_SHARED_H
#define WEFT_SHARE_SHARED_H

#include "base/arena.h"
#include "base/text.h"
#include "share/share.h"

struct bus; struct bus_table; struct bus_queue; struct bus_entry;

enum { SHARED_KEY = 33, SHARED_MOST_PATH = 1024, SHARED_MOST_TEXT = 1024 };

struct shared_trace {
    struct share_work work;    /* its state; WAITING: somebody shall index it */
    bool shared;                 /* it has been indexed: nodes open it for queries */
    bool force;                  /* for who indexes it */
    uint64_t keep_ns;
};
void share_entry_write(const struct shared_trace *, struct text *out);
/* Strings live in the arena. ERR_FORMAT, also for a path that leads out of where it begins. */
int share_entry_read(struct arena *, const void *bytes, size_t n, struct shared_trace *out, struct err *e);
/* The same of an entry of the table, whose key must be the path's. */
int share_entry_check(struct arena *, const struct bus_entry *, struct shared_trace *out, struct err *e);
/* Of a path: the key of its entry, and the id of its item of work. */
void share_key(const char *path, char out[SHARED_KEY]);

int share_open_table(struct bus *, const char *cluster, struct bus_table **out, struct err *e);
int share_open_queue(struct bus *, const char *cluster, struct bus_queue **out, struct err *e);
/* Where the nodes that take part tell that they are there (bus_join). ERR_LIMIT. */
enum { SHARED_SUBJECT = 256 };
int share_members_subject(const char *cluster, char out[SHARED_SUBJECT], struct err *e);

/* The directory that a path means here; free() it. ERR_NOTFOUND: there is none. ERR_ARG: it, or a link in it, leads out
 * of the root, which is a real path. */
int share_resolve(const char *root, const char *path, char **real, struct err *e);

/* Which of the nodes has a trace: the one with the greatest weight. All who know the same names choose the same; one
 * that comes or goes changes only who has its own. */
uint64_t share_weight(const char *path, const char *node);

#endif

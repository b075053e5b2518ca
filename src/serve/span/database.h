/* SPDX-License-Identifier: MIT */
/* Private to span: the database of a store, and asking it. Two kinds: SQLite in the store's directory (sqlite*.c) and
 * PostgreSQL (postgres*.c); no other file knows which it is. */
#ifndef WEFT_SPAN_DATABASE_H
#define WEFT_SPAN_DATABASE_H

#include "base/map.h"
#include "span/code.h"
#include "span/log.h"

/* ---- the collector's: one at a time of a log, which writes ---- */

/* Makes the database if need be. `directory`: the log's; what has to be remembered beside the database lies there. */
int database_open_to_write(const char *store, const char *directory, struct span_store **out, struct err *e);
/* ERR_BUSY: the database cannot be reached now. */
int database_begin(struct span_store *, struct err *e);
/* Records of a batch. What is there already is there once; open spans give way to ended ones. *damaged counts records
 * that make no sense. */
int database_add(struct span_store *, const void *records, size_t n, int64_t came_ns, uint64_t *damaged, struct err *e);
int database_commit(struct span_store *, const struct log_position *, struct err *e);
void database_rollback(struct span_store *);
/* The log's position as of the last commit, or one before it. */
int database_position(struct span_store *, struct log_position *, struct err *e);
/* All that was committed is synced. *all false: readers were in the way. */
int database_sync(struct span_store *, bool *all, struct err *e);
/* Removes spans that came before a time, and the oldest while the database is larger than so many bytes (0: any); gives
 * the space back to the file system. Does a part of it, so that spans can be added in between; *more: there is more to
 * do. ERR_BUSY: readers are in the way. */
int database_keep(struct span_store *, int64_t since_ns, uint64_t most_bytes, bool *more, struct err *e);
/* Adds some of what a store of an older weft lacks, in a transaction of its own. *more: something is left. */
int database_catch_up(struct span_store *, bool *more, struct err *e);

/* ---- anybody's ---- */

struct database_names { const char **v; size_t n, cap; }; /* in order; in the arena */
int database_services(struct span_store *, struct arena *, struct database_names *, struct err *e);
struct database_operation { const char *name; enum span_kind kind; };
struct database_operations { struct database_operation *v; size_t n, cap; };
int database_operations(struct span_store *, const char *service, struct arena *, struct database_operations *,
    struct err *e);

/* How often spans of a service are parents of spans of another, which began within [begin, end), in order of names.
 * Spans of an older store that are not counted yet are looked at; `stop`, or NULL, is asked meanwhile whether to give
 * up (ERR_BUSY). */
struct database_time { int64_t begin_s, end_s; bool (*stop)(void *arg); void *stop_arg; }; /* begin >= 0 */
struct database_call { const char *parent, *child; uint64_t count; };
struct database_calls { struct database_call *v; size_t n, cap; };
int database_calls(struct span_store *, const struct database_time *, struct arena *, struct database_calls *,
    struct err *e);

/* ---- private to the kinds ---- */

/* What a span was read from; borrowed until the next one. */
struct database_row { int64_t origin; const void *body; size_t n; };
struct database_rows;

/* As the functions of these names, and what they are made of. */
struct database_kind {
    /* directory NULL: to read */
    int (*open)(const char *store, const char *directory, struct span_store **, struct err *e);
    void (*close)(struct span_store *);
    int (*begin)(struct span_store *, struct err *e);
    /* What the next spans have in common; a span of it, with its head read. */
    int (*add_origin)(struct span_store *, const struct span_origin *, const void *body, size_t n, struct err *e);
    int (*add_span)(struct span_store *, const struct span *, const void *body, size_t n, int64_t came_ns,
        struct err *e);
    int (*commit)(struct span_store *, const struct log_position *, struct err *e);
    void (*rollback)(struct span_store *);
    int (*position)(struct span_store *, struct log_position *, struct err *e);
    int (*sync)(struct span_store *, bool *all, struct err *e);
    int (*keep)(struct span_store *, int64_t since_ns, uint64_t most_bytes, bool *more, struct err *e);
    int (*catch_up)(struct span_store *, bool *more, struct err *e);
    int (*services)(struct span_store *, struct arena *, struct database_names *, struct err *e);
    int (*operations)(struct span_store *, const char *service, struct arena *, struct database_operations *,
        struct err *e);
    int (*calls)(struct span_store *, const struct database_time *, struct arena *, struct database_calls *,
        struct err *e);
    int (*select)(struct span_store *, const struct span_query *, struct database_rows **, struct err *e);
    int (*next)(struct database_rows *, struct database_row *, struct err *e);   /* 1; 0: no more; or an error */
    /* The origin's bytes, until the next of them; n 0: there is none. */
    int (*origin)(struct database_rows *, int64_t number, const void **body, size_t *n, struct err *e);
    void (*end)(struct database_rows *);
};
extern const struct database_kind database_sqlite, database_postgres;

/* A kind's store begins with it. */
struct span_store { const struct database_kind *kind; const char *name; }; /* as messages call it */

#endif

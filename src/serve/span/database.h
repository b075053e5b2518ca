/* SPDX-License-Identifier: MIT */
/* Private to span: the database of a store, and queries to it. There are two kinds: SQLite in the store's directory
 * (sqlite*.c) and PostgreSQL (postgres*.c). No other file knows the kind. */
#ifndef WEFT_SPAN_DATABASE_H
#define WEFT_SPAN_DATABASE_H

#include "base/map.h"
#include "span/code.h"
#include "span/log.h"

/* ---- writing, by the collector: one writer per log at a time ---- */

/* Opens for writing; creates the database if necessary. `directory`: that of the log, which also holds the state that
 * is kept outside of the database. */
int database_open_to_write(const char *store, const char *directory, struct span_store **out, struct err *e);
/* Begins a transaction. ERR_BUSY: the database cannot be reached now. */
int database_begin(struct span_store *, struct err *e);
/* Adds the records of a batch. A span that is stored already is stored once; open spans are replaced by ended ones.
 * *damaged counts invalid records. */
int database_add(struct span_store *, const void *records, size_t n, int64_t came_ns, uint64_t *damaged, struct err *e);
int database_commit(struct span_store *, const struct log_position *, struct err *e);
void database_rollback(struct span_store *);
/* Reads the log's position as of the last commit, or an earlier one. */
int database_position(struct span_store *, struct log_position *, struct err *e);
/* Syncs everything committed. *all false: not all, since readers were in the way. */
int database_sync(struct span_store *, bool *all, struct err *e);
/* Deletes spans received before a time, and the oldest while the database is larger than most_bytes (0: any); returns
 * the space to the file system. Does a part of the work per call, so that spans can be added in between; *more: work is
 * left. ERR_BUSY: readers are in the way. */
int database_keep(struct span_store *, int64_t since_ns, uint64_t most_bytes, bool *more, struct err *e);
/* Adds a part of what a store of an older weft lacks, in its own transaction. *more: something is left. */
int database_catch_up(struct span_store *, bool *more, struct err *e);

/* ---- reading, by anybody ---- */

struct database_names { const char **v; size_t n, cap; }; /* sorted; in the arena */
int database_services(struct span_store *, struct arena *, struct database_names *, struct err *e);
struct database_operation { const char *name; enum span_kind kind; };
struct database_operations { struct database_operation *v; size_t n, cap; };
int database_operations(struct span_store *, const char *service, struct arena *, struct database_operations *,
    struct err *e);

/* Counts how often spans of a service are parents of spans of another that began within [begin, end). Sorted by names.
 * Reads the spans of an older store that are not counted yet; meanwhile calls `stop` (or NULL), and gives up if it
 * returns true (ERR_BUSY). */
struct database_time { int64_t begin_s, end_s; bool (*stop)(void *arg); void *stop_arg; }; /* begin >= 0 */
struct database_call { const char *parent, *child; uint64_t count; };
struct database_calls { struct database_call *v; size_t n, cap; };
int database_calls(struct span_store *, const struct database_time *, struct arena *, struct database_calls *,
    struct err *e);

/* ---- private to the kinds ---- */

/* Bytes that a span was read from; borrowed until the next row. */
struct database_row { int64_t origin; const void *body; size_t n; };
struct database_rows;

/* Functions of a kind: as the functions of these names above, and their parts. */
struct database_kind {
    /* directory NULL: for reading */
    int (*open)(const char *store, const char *directory, struct span_store **, struct err *e);
    void (*close)(struct span_store *);
    int (*begin)(struct span_store *, struct err *e);
    /* Origin of the next spans; a span of it, with its head read. */
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
    int (*next)(struct database_rows *, struct database_row *, struct err *e);   /* 1: a row; 0: no more; or an error */
    /* Bytes of an origin, valid until the next call; n 0: not found. */
    int (*origin)(struct database_rows *, int64_t number, const void **body, size_t *n, struct err *e);
    void (*end)(struct database_rows *);
};
extern const struct database_kind database_sqlite, database_postgres;

/* Head of every kind's store. */
struct span_store { const struct database_kind *kind; const char *name; }; /* name: for messages */

#endif

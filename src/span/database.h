/* Private to span: the database of a store, and asking it. The only files that know SQLite are database*.c. */
#ifndef WEFT_SPAN_DATABASE_H
#define WEFT_SPAN_DATABASE_H

#include "base/map.h"
#include "span/code.h"
#include "span/log.h"

/* ---- the collector's: one at a time, which writes ---- */

/* Makes the database if need be. */
int database_open_to_write(const char *directory, struct span_store **out, struct err *e);
int database_begin(struct span_store *, struct err *e);
/* Records of a batch. What is there already is there once; open spans give way to ended ones. *damaged counts records
 * that make no sense. */
int database_add(struct span_store *, const void *records, size_t n, int64_t came_ns, uint64_t *damaged, struct err *e);
int database_commit(struct span_store *, const struct log_position *, struct err *e);
void database_rollback(struct span_store *);
/* The log's position as of the last commit. */
int database_position(struct span_store *, struct log_position *, struct err *e);
/* All that was committed is synced. *all false: readers were in the way. */
int database_sync(struct span_store *, bool *all, struct err *e);
/* Removes spans that came before a time, and the oldest while the database is larger than so many bytes (0: any); gives
 * the space back to the file system. *removed: spans. */
int database_keep(struct span_store *, int64_t since_ns, uint64_t most_bytes, uint64_t *removed, struct err *e);

/* ---- anybody's ---- */

struct database_names { const char **v; size_t n, cap; }; /* in order; in the arena */
int database_services(struct span_store *, struct arena *, struct database_names *, struct err *e);
struct database_operation { const char *name; enum span_kind kind; };
struct database_operations { struct database_operation *v; size_t n, cap; };
int database_operations(struct span_store *, const char *service, struct arena *, struct database_operations *,
    struct err *e);

/* How often spans of a service are parents of spans of another, which began within [begin, end). */
struct database_call { const char *parent, *child; uint64_t count; };
struct database_calls { struct database_call *v; size_t n, cap; };
int database_calls(struct span_store *, int64_t begin_ns, int64_t end_ns, struct arena *, struct database_calls *,
    struct err *e);

/* ---- private to database*.c ---- */

struct sqlite3;
struct sqlite3_stmt;
enum database_statement {
    DATABASE_BEGIN, DATABASE_COMMIT, DATABASE_ROLLBACK, DATABASE_SAME_ID, DATABASE_REMOVE, DATABASE_INSERT,
    DATABASE_TEXT, DATABASE_NEW_TEXT, DATABASE_ORIGIN, DATABASE_NEW_ORIGIN, DATABASE_OPERATION, DATABASE_ABOUT,
    DATABASE_SET_ABOUT, DATABASE_STATEMENTS
};
struct span_store {
    struct sqlite3 *db;
    char *path;
    struct sqlite3_stmt *prepared[DATABASE_STATEMENTS];
    struct map texts, origins, operations; /* of the writer: hash → number; forgotten by a rollback */
    struct arena arena;                     /* of database_add */
    struct text scratch;
    bool to_give_back; /* what was removed: readers were in the way */
};
int database_fail(struct span_store *, struct err *e);
/* Prepared once. NULL: e is set. */
struct sqlite3_stmt *database_statement(struct span_store *, enum database_statement, struct err *e);
int database_run(struct span_store *, const char *sql, struct err *e);

#endif

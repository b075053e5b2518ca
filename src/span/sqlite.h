/* Private to span: the store in an SQLite database. The only files that know SQLite are sqlite*.c. */
#ifndef WEFT_SPAN_SQLITE_H
#define WEFT_SPAN_SQLITE_H

#include "span/database.h"

struct sqlite3;
struct sqlite3_stmt;
enum sqlite_statement {
    STATEMENT_BEGIN, STATEMENT_COMMIT, STATEMENT_ROLLBACK, STATEMENT_TRACE, STATEMENT_SAME_ID, STATEMENT_REMOVE,
    STATEMENT_INSERT, STATEMENT_NEXT, STATEMENT_TEXT, STATEMENT_NEW_TEXT, STATEMENT_USE_TEXT, STATEMENT_ORIGIN,
    STATEMENT_NEW_ORIGIN, STATEMENT_USE_ORIGIN, STATEMENT_OPERATION, STATEMENT_ABOUT, STATEMENT_SET_ABOUT, STATEMENTS
};
/* Spans are numbered in the order in which they come, and no number is used twice. Names (texts, origins, operations)
 * keep the last era that used them: an era is so many numbers. A name is unused once the oldest span is of a later
 * era. */
enum { SQLITE_ERA_SPANS = 1024, SQLITE_BUSY_MS = 10000 };
#define SQLITE_ERA(number) ((number) / SQLITE_ERA_SPANS)
struct sqlite_store {
    struct span_store is;
    struct sqlite3 *db;
    char *path;
    struct sqlite3_stmt *prepared[STATEMENTS];
    /* Of the writer. Forgotten by a rollback. */
    int64_t next, era;       /* number of the next span, 0: not read yet; era of `used` */
    struct map texts, origins;           /* hash → number */
    struct map used;         /* names that are marked as used in this era */
    /* Of the writer, too, which is the only one: traces by hash, and whether spans of them were there before; of those
     * of which none were, the hashes of the ids that were added since. */
    struct map traces, ids;
    int64_t origin, service; /* of the spans that are added */
    /* Of retention: spans go until the store is small enough; then unused names; then free pages. */
    bool shrinking, to_tidy, to_give_back;
};
static inline struct sqlite_store *sqlite_of(struct span_store *s)
{
    return (struct sqlite_store *)s;
}
int sqlite_fail(struct sqlite_store *, struct err *e);
/* Prepared once. NULL: e is set. */
struct sqlite3_stmt *sqlite_statement(struct sqlite_store *, enum sqlite_statement, struct err *e);
int sqlite_run(struct sqlite_store *, const char *sql, struct err *e);
/* Runs a statement that gives no row. NULL: it could not be prepared, e is set. */
int sqlite_finish(struct sqlite_store *, struct sqlite3_stmt *, struct err *e);
/* The number in the first row; *out stays where there is none. */
int sqlite_first_number(struct sqlite_store *, struct sqlite3_stmt *, int64_t *out, struct err *e);
int sqlite_set_about(struct sqlite_store *, const char *key, uint64_t value, struct err *e);

/* Of the writer, for its table of functions. */
int sqlite_begin(struct span_store *, struct err *e);
int sqlite_add_origin(struct span_store *, const struct span_origin *, const void *body, size_t n, struct err *e);
int sqlite_add_span(struct span_store *, const struct span *, const void *body, size_t n, int64_t came_ns,
    struct err *e);
int sqlite_commit(struct span_store *, const struct log_position *, struct err *e);
void sqlite_rollback(struct span_store *);
int sqlite_position(struct span_store *, struct log_position *, struct err *e);
int sqlite_sync(struct span_store *, bool *all, struct err *e);

/* sqlite_keep.c */
int sqlite_keep(struct span_store *, int64_t since_ns, uint64_t most_bytes, bool *more, struct err *e);

#endif

/* Private to span: the store in an SQLite database. The only files that know SQLite are sqlite*.c. */
#ifndef WEFT_SPAN_SQLITE_H
#define WEFT_SPAN_SQLITE_H

#include "span/database.h"

struct sqlite3;
struct sqlite3_stmt;
enum sqlite_statement {
    STATEMENT_BEGIN, STATEMENT_COMMIT, STATEMENT_ROLLBACK, STATEMENT_TRACE, STATEMENT_SAME_ID, STATEMENT_REMOVE,
    STATEMENT_INSERT, STATEMENT_TEXT, STATEMENT_NEW_TEXT, STATEMENT_ORIGIN, STATEMENT_NEW_ORIGIN, STATEMENT_OPERATION,
    STATEMENT_ABOUT, STATEMENT_SET_ABOUT, STATEMENTS
};
struct sqlite_store {
    struct span_store is;
    struct sqlite3 *db;
    char *path;
    struct sqlite3_stmt *prepared[STATEMENTS];
    struct map texts, origins, operations; /* of the writer: hash → number; forgotten by a rollback */
    /* Of the writer, too, which is the only one: traces by hash, and whether spans of them were there before; of those
     * of which none were, the hashes of the ids that were added since. */
    struct map traces, ids;
    int64_t origin, service; /* of the spans that are added */
    bool to_give_back;       /* what was removed: readers were in the way */
};
static inline struct sqlite_store *sqlite_of(struct span_store *s)
{
    return (struct sqlite_store *)s;
}
int sqlite_fail(struct sqlite_store *, struct err *e);
/* Prepared once. NULL: e is set. */
struct sqlite3_stmt *sqlite_statement(struct sqlite_store *, enum sqlite_statement, struct err *e);
int sqlite_run(struct sqlite_store *, const char *sql, struct err *e);

/* Of the writer, for its table of functions. */
int sqlite_begin(struct span_store *, struct err *e);
int sqlite_add_origin(struct span_store *, const struct span_origin *, const void *body, size_t n, struct err *e);
int sqlite_add_span(struct span_store *, const struct span *, const void *body, size_t n, int64_t came_ns,
    struct err *e);
int sqlite_commit(struct span_store *, const struct log_position *, struct err *e);
void sqlite_rollback(struct span_store *);
int sqlite_position(struct span_store *, struct log_position *, struct err *e);
int sqlite_sync(struct span_store *, bool *all, struct err *e);
int sqlite_keep(struct span_store *, int64_t since_ns, uint64_t most_bytes, struct err *e);

#endif

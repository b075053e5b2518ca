/* SPDX-License-Identifier: MIT */
/* Private to span: the store in an SQLite database. Only sqlite*.c include SQLite. */
#ifndef WEFT_SPAN_SQLITE_H
#define WEFT_SPAN_SQLITE_H

#include "span/database.h"
#include "span/term_sets.h"

struct sqlite3;
struct sqlite3_stmt;
enum sqlite_statement {
    STATEMENT_BEGIN, STATEMENT_COMMIT, STATEMENT_ROLLBACK, STATEMENT_TRACE, STATEMENT_SAME_ID, STATEMENT_REMOVE,
    STATEMENT_INSERT, STATEMENT_NEXT, STATEMENT_TEXT, STATEMENT_NEW_TEXT, STATEMENT_USE_TEXT, STATEMENT_ORIGIN,
    STATEMENT_NEW_ORIGIN, STATEMENT_USE_ORIGIN, STATEMENT_ORIGIN_BODY, STATEMENT_GROUP_ROWS, STATEMENT_PUT_TERMS,
    STATEMENT_PUT_GROUP, STATEMENT_OPERATION, STATEMENT_ABOUT, STATEMENT_SET_ABOUT, STATEMENT_ENDS, STATEMENT_PARENTS,
    STATEMENT_CHILDREN, STATEMENT_NEW_CHILD, STATEMENT_REMOVE_CHILD, STATEMENT_COUNT, STATEMENT_COUNTED_NONE,
    STATEMENT_FIRST_FROM, STATEMENTS
};
/* Numbers of spans are in order of arrival, and never reused. Names (texts, origins, operations) keep the era of their
 * last use: an era is SQLITE_ERA_SPANS numbers. A name is unused once the oldest span is of a later era. */
enum { SQLITE_ERA_SPANS = 1024, SQLITE_BUSY_MS = 10000 };
#define SQLITE_ERA(number) ((number) / SQLITE_ERA_SPANS)
struct sqlite_call_change { int64_t width_s, bucket, parent, child, by; };
struct sqlite_calls {
    struct map places;
    VEC(struct sqlite_call_change) changes; /* changes of counts, in this transaction */
    struct map awaited;      /* new traces: hash of a parent's ids → service of its children */
    int64_t from, to;        /* numbers of spans that are not counted as children yet; to -1: not read yet */
};
struct sqlite_store {
    struct span_store is;
    struct sqlite3 *db;
    char *path;
    struct sqlite3_stmt *prepared[STATEMENTS];
    /* Writer's caches, dropped by a rollback. */
    int64_t next, era;       /* number of the next span, 0: not read yet; era of `used` */
    struct map texts, origins;           /* hash → number */
    struct map used;         /* names marked as used in this era */
    /* Traces of the only writer, by hash: whether spans of them were stored before. ids: for new traces, hashes of the
     * ids added since (sqlite_note_service). */
    struct map traces, ids;
    struct sqlite_calls calls;
    int64_t origin, service; /* origin and service of the spans being added */
    struct term_group terms;      /* terms of `group`, which the last span is in; -1: not read yet */
    int64_t group;
    bool caught_up;          /* terms of all groups of an older store exist */
    int64_t schema;
    /* Retention phases: delete spans until the store is small enough; then unused names; then free pages. */
    bool shrinking, to_tidy, to_give_back;
};
static inline struct sqlite_store *sqlite_of(struct span_store *s)
{
    return (struct sqlite_store *)s;
}

/* sqlite_run.c */
int sqlite_fail(struct sqlite_store *, struct err *e);
/* Returns a statement, prepared once. NULL: e is set. */
struct sqlite3_stmt *sqlite_statement(struct sqlite_store *, enum sqlite_statement, struct err *e);
int sqlite_run(struct sqlite_store *, const char *sql, struct err *e);
/* Runs a statement that returns no row. NULL: it could not be prepared, e is set. */
int sqlite_finish(struct sqlite_store *, struct sqlite3_stmt *, struct err *e);
/* Reads the number in the first row; without rows, *out is unchanged. */
int sqlite_first_number(struct sqlite_store *, struct sqlite3_stmt *, int64_t *out, struct err *e);
int sqlite_set_about(struct sqlite_store *, const char *key, uint64_t value, struct err *e);
int sqlite_about(struct sqlite_store *, const char *key, uint64_t *value, struct err *e);

/* Writer's functions, for database_sqlite. */
int sqlite_begin(struct span_store *, struct err *e);
int sqlite_add_origin(struct span_store *, const struct span_origin *, const void *body, size_t n, struct err *e);
int sqlite_add_span(struct span_store *, const struct span *, const void *body, size_t n, int64_t came_ns,
    struct err *e);
int sqlite_commit(struct span_store *, const struct log_position *, struct err *e);
void sqlite_rollback(struct span_store *);
int sqlite_position(struct span_store *, struct log_position *, struct err *e);
int sqlite_sync(struct span_store *, bool *all, struct err *e);
int sqlite_catch_up(struct span_store *, bool *more, struct err *e);

/* sqlite_terms.c: terms for searches. Terms of a group of spans are written once the group is full. For spans in no
 * written group, terms are read from the spans. */
#define SQLITE_GROUP(number) ((number) / TERM_GROUP)
#define SQLITE_TERMS_KEY(group, key) ((group) << 26 | (key))
/* Call before the first span of a transaction. */
int sqlite_terms_begin(struct sqlite_store *, struct err *e);
/* Adds the terms of an added span. */
int sqlite_terms_add(struct sqlite_store *, int64_t number, const struct span *, const void *body, size_t n,
    struct err *e);
/* Writes one group of a store without terms, if any is left. *more: set if others are left, otherwise unchanged. */
int sqlite_terms_catch_up(struct sqlite_store *, bool *more, struct err *e);
void sqlite_terms_forget(struct sqlite_store *);

/* sqlite_calls.c: counts of calls between services, for database_calls. */
/* Call before the first span of a transaction; before its end. */
int sqlite_calls_begin(struct sqlite_store *, struct err *e);
int sqlite_calls_write(struct sqlite_store *, struct err *e);
/* Call before the span `next` is added. new_trace: spans of the same trace are in `ids`. */
int sqlite_calls_add(struct sqlite_store *, const struct span *, bool new_trace, struct err *e);
/* Removes a span, and the calls that it is an end of. */
int sqlite_remove_span(struct sqlite_store *, int64_t number, struct err *e);
/* Counts some spans of an older store. *more: set if others are left, otherwise unchanged. */
int sqlite_calls_catch_up(struct sqlite_store *, bool *more, struct err *e);
/* Clears the writer's set of added spans, since some are removed. */
void sqlite_forget_ids(struct sqlite_store *);
void sqlite_calls_forget(struct sqlite_store *);
/* Hashes the ids of a trace and a span. */
uint64_t sqlite_ids_hash(const void *trace, const void *id);
/* Notes the service of a span, if it is the only one with these ids; otherwise UINT64_MAX. */
void sqlite_note_service(struct map *, uint64_t ids, int64_t service, bool *fresh);
int sqlite_calls(struct span_store *, const struct database_time *, struct arena *, struct database_calls *,
    struct err *e);

/* sqlite_search.c: spans that begin within a time, newest first, in any service or by terms. */
struct sqlite_search;
int sqlite_search_begin(struct sqlite_store *, const struct span_query *, struct sqlite_search **, struct err *e);
/* 1: number of the next span; 0: no more; or an error. */
int sqlite_search_next(struct sqlite_search *, int64_t *number, struct err *e);
void sqlite_search_end(struct sqlite_search *);
/* Write the query's conditions on columns as SQL; bind their values. */
void sqlite_write_condition(const struct span_query *, struct text *sql);
void sqlite_bind_condition(const struct span_query *, struct sqlite3_stmt *);

/* sqlite_keep.c */
int sqlite_keep(struct span_store *, int64_t since_ns, uint64_t most_bytes, bool *more, struct err *e);

#endif

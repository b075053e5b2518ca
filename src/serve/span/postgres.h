/* SPDX-License-Identifier: MIT */
/* Private to span: the store in a PostgreSQL database. The only files that know libpq are postgres*.c. */
#ifndef WEFT_SPAN_POSTGRES_H
#define WEFT_SPAN_POSTGRES_H

#include <libpq-fe.h>

#include "span/database.h"
#include "span/term_sets.h"

/* Days of spans: the day in which they begin since the epoch, or one of these. */
enum { POSTGRES_OPEN = -2 /* not ended yet */, POSTGRES_OTHER = -1 /* of days that have no table of their own */ };

/* What the database has a number for. hash: of its bytes; number 0: not asked for yet. stamp: the hour that is told of
 * it. */
struct postgres_known {
    uint64_t hash[2];
    int64_t number, stamp;
    uint64_t batch;          /* the last one that it was in; `body` is of that */
    const void *body;
    size_t n;
};
struct postgres_knowns { VEC(struct postgres_known) v; VEC(uint32_t) used; struct map by_hash; };

/* A span that waits for the commit. Texts and origin: places in what is known. */
struct postgres_span {
    uint8_t trace[SPAN_TRACE_BYTES], id[SPAN_ID_BYTES], parent[SPAN_ID_BYTES];
    bool has_parent;
    enum span_life life;
    enum span_kind kind;
    int32_t day;
    int64_t hash, came, begin, lasted, number;
    uint32_t service, name, origin;
    const void *body;
    size_t n;
};

struct postgres_operation { uint32_t service, name; enum span_kind kind; };

struct postgres {
    struct span_store is;
    char *url, *shown;
    PGconn *c;
    char *schema;
    int64_t version;         /* of the schema; readers take older ones */
    int64_t patience_ns;     /* with a statement; 0: the usual one */
    char state[6];           /* SQLSTATE of the last refusal */
    bool prepared;           /* enum postgres_statement, on this connection */
    size_t reading;          /* rows that are open, in one transaction */
    unsigned named;          /* cursors so far */
    /* of the writer */
    char *filled;            /* the file that tells how far the log is in the database; NULL: a reader */
    int64_t generation;      /* of numbers and tables: when it changes, what is known is not so any more */
    struct postgres_knowns texts, origins;
    struct map operations, days;         /* told before */
    VEC(struct postgres_operation) new_operations;
    uint32_t service, origin;            /* of the spans that are added */
    uint64_t batch;
    bool caught_up;          /* nothing of an older store is to be counted */
    bool terms_are_whole;    /* of all whole groups up to the number `numbered` */
    int64_t numbered;
    /* Of the day whose old spans are being deleted: which ones, and those of traces up to this one are gone. */
    struct { bool any; int32_t day; int64_t since; uint8_t after[SPAN_TRACE_BYTES]; } removing;
    struct postgres *indexer; /* that builds an index, or NULL: none is built now, and none before this time */
    int64_t index_again_ns;
    bool untidy;             /* days went since names and groups were tidied */
    unsigned doubtful;       /* batches to come that may bring what is there already */
    VEC(struct postgres_span) spans;
    struct arena arena;      /* of the batch */
};
static inline struct postgres *postgres_of(struct span_store *s)
{
    return (struct postgres *)s;
}

/* ---- postgres.c ---- */

/* Values of a statement, in their binary form. Zero-initialise. */
enum { POSTGRES_MOST_VALUES = 16 };
struct postgres_values {
    int n;
    Oid types[POSTGRES_MOST_VALUES];
    const char *v[POSTGRES_MOST_VALUES];
    int lengths[POSTGRES_MOST_VALUES];
    uint64_t room[POSTGRES_MOST_VALUES];
};
void postgres_put_number(struct postgres_values *, int64_t);
void postgres_put_uuid(struct postgres_values *, const void *);        /* borrowed */
void postgres_put_text(struct postgres_values *, const char *);        /* borrowed */
/* An array that POSTGRES_ARRAY began and postgres_array_item filled; borrowed. */
void postgres_put_array(struct postgres_values *, const struct text *);
enum postgres_type { POSTGRES_NUMBERS = 20, POSTGRES_UUIDS = 2950, POSTGRES_TEXTS = 25, POSTGRES_BYTES = 17 };
void postgres_array(struct text *, enum postgres_type, size_t items);
void postgres_array_item(struct text *, const void *, size_t n);
void postgres_array_number(struct text *, int64_t);
/* Big-endian numbers, as COPY and arrays have them. */
void postgres_put_16(struct text *, uint16_t);
void postgres_put_32(struct text *, uint32_t);
void postgres_put_64(struct text *, uint64_t);
/* Of a result. Numbers: int8. */
int64_t postgres_number(const PGresult *, int row, int column);
const char *postgres_text(const PGresult *, int row, int column);

/* Connects if need be. */
int postgres_ready(struct postgres *, struct err *e);
/* One statement; what came is *out (PQclear), if that is not NULL. NULL values: none. A server that does not answer in
 * time is let go: ERR_BUSY, as all that may go well later. */
int postgres_ask(struct postgres *, const char *sql, const struct postgres_values *, PGresult **out, struct err *e);
/* Those that are asked often, with the plans that were made for them first. */
enum postgres_statement { POSTGRES_TRACE, POSTGRES_ORIGIN, POSTGRES_STATEMENTS };
enum { POSTGRES_SMALL_TRACE = 128 };
int postgres_ask_prepared(struct postgres *, enum postgres_statement, const struct postgres_values *, PGresult **out,
    struct err *e);
/* The same as a reader: a connection that was lost since the last question is made again. */
int postgres_ask_anew(struct postgres *, const char *sql, const struct postgres_values *, PGresult **out,
    struct err *e);
/* Bytes for COPY … FROM STDIN (FORMAT binary), which begin so. Values: as items of arrays. */
void postgres_begin_copy(struct text *);
int postgres_copy(struct postgres *, const char *sql, const struct text *, struct err *e);
/* What a text or origin is found by. */
void postgres_hash(const void *, size_t n, uint64_t out[2]);
void postgres_forget(struct postgres *);

/* ---- postgres_schema.c ---- */

/* The schema is there, in a version that this weft knows; a writer makes it if need be. */
int postgres_check_schema(struct postgres *, struct err *e);
/* One writer at a time, until the transaction ends. */
int postgres_lock(struct postgres *, struct err *e);
/* Name of a day's table. */
void postgres_day_table(int32_t day, char *out, size_t n);
int postgres_make_day(struct postgres *, int32_t day, const char *table, struct err *e);
/* Attaches the table, which postgres_make_day made. */
int postgres_attach_day(struct postgres *, int32_t day, const char *table, struct err *e);
int postgres_change(struct postgres *, struct err *e, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* ---- postgres_calls.c ---- */

/* Statements of this transaction find rows by indexes. */
#define POSTGRES_BY_INDEX \
    "SELECT set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true)," \
    " set_config('enable_seqscan', 'off', true)"
#define POSTGRES_AS_USUAL \
    "SELECT set_config(name, reset_val, true) FROM pg_settings" \
    " WHERE name IN ('enable_hashjoin', 'enable_mergejoin', 'enable_seqscan')"
/* Of rows with a `day`: an older collector drops days without the rows about them. */
#define POSTGRES_HAS_TABLE "(day < 0 OR day IN (SELECT day FROM days))"
/* Before the batch is written: whether it may have calls, and an array of its traces that have spans there already:
 * text_fini(). */
struct postgres_calls { bool any; size_t n_known; struct text known; };
int postgres_calls_look(struct postgres *, struct postgres_calls *, struct err *e);
/* The table `moved` is there: spans to be counted, while they are in their own tables, too: (day, trace, id, parent,
 * hash, service, begin). */
int postgres_calls_moved(struct postgres *, struct err *e);
/* The batch, into that. */
int postgres_calls_copy(struct postgres *, struct err *e);
/* Counts them as spans that came, or that are about to go; `moved` is empty then. With others as well: of all traces
 * (calls NULL), or of the known ones. */
int postgres_calls_count(struct postgres *, bool come, const struct postgres_calls *, struct err *e);
/* Before such spans of a table go; before a day goes; what is left of days whose tables are gone. */
int postgres_calls_remove(struct postgres *, struct err *e, const char *table, const char *condition);
int postgres_calls_drop_day(struct postgres *, int32_t day, struct err *e);
int postgres_calls_tidy(struct postgres *, struct err *e);
int postgres_catch_up(struct span_store *, bool *more, struct err *e);
int postgres_calls(struct span_store *, const struct database_time *, struct arena *, struct database_calls *,
    struct err *e);

/* ---- postgres_index.c ---- */

/* One is being built, or is to wait: nothing is to be asked now. */
bool postgres_index_is_busy(struct postgres *);
/* Begins to build what a day's table lacks, outside of a transaction. *whole: it lacks nothing. Fails, too, with what
 * became of the last one. */
int postgres_index_day(struct postgres *, const char *table, bool *whole, struct err *e);
void postgres_index_stop(struct postgres *);

/* ---- postgres_terms.c ---- */

/* The number of the next span. */
int postgres_next_number(struct postgres *, int64_t *out, struct err *e);
/* The first group that was not written; no span below it is in a group that is not there. */
int postgres_next_group(struct postgres *, int64_t *out, struct err *e);
/* Numbers the spans of the batch. */
int postgres_number_spans(struct postgres *, struct err *e);
/* Some groups that are whole. *more: others are left; else it stays. */
int postgres_terms_catch_up(struct postgres *, bool *more, struct err *e);
/* Groups that have no spans any more go. */
int postgres_terms_tidy(struct postgres *, struct err *e);

/* ---- postgres_search.c ---- */

struct postgres_search;
/* In a transaction. */
int postgres_search_begin(struct postgres *, const struct span_query *, struct postgres_search **, struct err *e);
/* 1: the next span; 0: no more; or an error. */
int postgres_search_next(struct postgres_search *, struct database_row *, struct err *e);
void postgres_search_end(struct postgres_search *);
/* What is asked of columns (postgres_read.c): " AND …", with values; and of tables. */
void postgres_write_condition(const struct span_query *, struct text *sql, struct postgres_values *);
void postgres_write_days(const struct span_query *, struct text *sql);

/* ---- postgres_read.c, postgres_write.c, postgres_keep.c: for the table of functions ---- */

int postgres_select(struct span_store *, const struct span_query *, struct database_rows **, struct err *e);
int postgres_next(struct database_rows *, struct database_row *, struct err *e);
int postgres_origin(struct database_rows *, int64_t number, const void **body, size_t *n, struct err *e);
void postgres_end(struct database_rows *);
int postgres_services(struct span_store *, struct arena *, struct database_names *, struct err *e);
int postgres_operations(struct span_store *, const char *service, struct arena *, struct database_operations *,
    struct err *e);
int postgres_begin(struct span_store *, struct err *e);
int postgres_add_origin(struct span_store *, const struct span_origin *, const void *body, size_t n, struct err *e);
int postgres_add_span(struct span_store *, const struct span *, const void *body, size_t n, int64_t came_ns,
    struct err *e);
int postgres_commit(struct span_store *, const struct log_position *, struct err *e);
void postgres_rollback(struct span_store *);
int postgres_position(struct span_store *, struct log_position *, struct err *e);
int postgres_sync(struct span_store *, bool *all, struct err *e);
int postgres_keep(struct span_store *, int64_t since_ns, uint64_t most_bytes, bool *more, struct err *e);

#endif

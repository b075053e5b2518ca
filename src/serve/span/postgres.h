/* SPDX-License-Identifier: MIT */
/* Private to span: the store in a PostgreSQL database. Only postgres*.c include libpq. */
#ifndef WEFT_SPAN_POSTGRES_H
#define WEFT_SPAN_POSTGRES_H

#include <libpq-fe.h>

#include "span/database.h"
#include "span/term_sets.h"

/* Day of a span: days from the epoch to its begin, or one of these. */
enum { POSTGRES_OPEN = -2 /* span has not ended */, POSTGRES_OTHER = -1 /* days without a table of their own */ };

/* Row with a number in the database. hash: of its bytes. number 0: not known yet. stamp: hour of last use that is
 * stored. */
struct postgres_known {
    uint64_t hash[2];
    int64_t number, stamp;
    uint64_t batch;          /* last batch that it was in, which `body` belongs to */
    const void *body;
    size_t n;
};
struct postgres_knowns { VEC(struct postgres_known) v; VEC(uint32_t) used; struct map by_hash; };

/* Span that waits for the commit. Texts and origin: indices into what is known. */
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
    int64_t version;         /* version of the schema; readers accept older ones */
    int64_t patience_ns;     /* timeout of a statement; 0: the usual one */
    char state[6];           /* SQLSTATE of the last error */
    bool prepared;           /* statements are prepared on this connection (enum postgres_statement) */
    size_t reading;          /* number of open database_rows, which share a transaction */
    unsigned named;          /* number of cursors so far */
    /* writer only */
    char *filled;            /* path of the file with the applied position of the log; NULL: a reader */
    int64_t generation;      /* generation of numbers and tables: when it changes, what is known is invalid */
    struct postgres_knowns texts, origins;
    struct map operations, days;         /* stored already */
    VEC(struct postgres_operation) new_operations;
    uint32_t service, origin;            /* service and origin of the spans being added */
    uint64_t batch;
    bool caught_up;          /* spans of an older store are all counted */
    bool terms_are_whole;    /* terms of all whole groups up to number `numbered` are written */
    int64_t numbered;
    /* Day whose old spans are being deleted: those of traces up to `after` are gone. */
    struct { bool any; int32_t day; int64_t since; uint8_t after[SPAN_TRACE_BYTES]; } removing;
    /* Table (oid) whose pages up to `end` are being deleted: those before `page` are done. */
    struct { bool any; int64_t table, page, end, cut; } shortening; /* cut: spans received later stay */
    struct postgres *indexer; /* connection that builds an index; NULL: none, and none before index_again_ns */
    int64_t index_again_ns;
    bool untidy;             /* days were dropped since names and groups were tidied */
    unsigned doubtful;       /* number of coming batches that may contain stored spans */
    VEC(struct postgres_span) spans;
    struct arena arena;      /* memory of the batch */
};
static inline struct postgres *postgres_of(struct span_store *s)
{
    return (struct postgres *)s;
}

/* ---- postgres_ask.c ---- */

/* Parameters of a statement, in binary form. Zero-initialise. */
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
/* Adds an array that postgres_array began and postgres_array_item filled; borrowed. */
void postgres_put_array(struct postgres_values *, const struct text *);
enum postgres_type { POSTGRES_NUMBERS = 20, POSTGRES_UUIDS = 2950, POSTGRES_TEXTS = 25, POSTGRES_BYTES = 17 };
void postgres_array(struct text *, enum postgres_type, size_t items);
void postgres_array_item(struct text *, const void *, size_t n);
void postgres_array_number(struct text *, int64_t);
/* Append big-endian numbers, as in COPY and arrays. */
void postgres_put_16(struct text *, uint16_t);
void postgres_put_32(struct text *, uint32_t);
void postgres_put_64(struct text *, uint64_t);
/* Return values of a result. Numbers are int8. */
int64_t postgres_number(const PGresult *, int row, int column);
const char *postgres_text(const PGresult *, int row, int column);

/* Runs one statement. *out: its result (PQclear), if out is not NULL. values NULL: none. A server that does not answer
 * in time is disconnected: ERR_BUSY, as for all errors that may pass. */
int postgres_ask(struct postgres *, const char *sql, const struct postgres_values *, PGresult **out, struct err *e);
/* Frequent statements. Each keeps the plan made at its first use. */
enum postgres_statement { POSTGRES_TRACE, POSTGRES_ORIGIN, POSTGRES_STATEMENTS };
enum { POSTGRES_SMALL_TRACE = 128 };
int postgres_ask_prepared(struct postgres *, enum postgres_statement, const struct postgres_values *, PGresult **out,
    struct err *e);
/* Begins the bytes of COPY … FROM STDIN (FORMAT binary). Values: as items of arrays. */
void postgres_begin_copy(struct text *);
int postgres_copy(struct postgres *, const char *sql, const struct text *, struct err *e);
/* Hashes a text or origin for lookup. */
void postgres_hash(const void *, size_t n, uint64_t out[2]);
/* Disconnects; `why`: of libpq. Returns ERR_BUSY. */
int postgres_fail_to_reach(struct postgres *, const char *why, struct err *e);

/* ---- postgres_connect.c ---- */

/* Connects if necessary. */
int postgres_ready(struct postgres *, struct err *e);
/* Runs a statement for readers: reconnects if the connection was lost since the last one. */
int postgres_ask_anew(struct postgres *, const char *sql, const struct postgres_values *, PGresult **out,
    struct err *e);
/* Drops what is known of the database, which may be another one after reconnecting. */
void postgres_forget(struct postgres *);
/* Makes the name for messages: the URL without any password, wherever it is. */
int postgres_show_url(const char *url, char **out, struct err *e);

/* ---- postgres_schema.c ---- */

/* Checks that the schema exists in a supported version; a writer creates it if necessary. */
int postgres_check_schema(struct postgres *, struct err *e);
/* Locks out other writers until the transaction ends. */
int postgres_lock(struct postgres *, struct err *e);
/* Writes the name of a day's table. */
void postgres_day_table(int32_t day, char *out, size_t n);
int postgres_make_day(struct postgres *, int32_t day, const char *table, struct err *e);
/* Attaches a table that postgres_make_day made. */
int postgres_attach_day(struct postgres *, int32_t day, const char *table, struct err *e);
int postgres_change(struct postgres *, struct err *e, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* ---- postgres_calls.c ---- */

/* Makes statements of this transaction find rows by indexes. */
#define POSTGRES_BY_INDEX \
    "SELECT set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true)," \
    " set_config('enable_seqscan', 'off', true)"
#define POSTGRES_AS_USUAL \
    "SELECT set_config(name, reset_val, true) FROM pg_settings" \
    " WHERE name IN ('enable_hashjoin', 'enable_mergejoin', 'enable_seqscan')"
/* Condition for rows with a `day`: an older collector drops days without the rows about them. */
#define POSTGRES_HAS_TABLE "(day < 0 OR day IN (SELECT day FROM days))"
/* Call before the batch is written. Finds whether it may have calls, and which of its traces have stored spans (an
 * array; text_fini()). */
struct postgres_calls { bool any; size_t n_known; struct text known; };
int postgres_calls_look(struct postgres *, struct postgres_calls *, struct err *e);
/* Creates the table `moved`, if necessary: spans to be counted while they also are in their own tables (day, trace, id,
 * parent, hash, service, begin). */
int postgres_calls_moved(struct postgres *, struct err *e);
/* Copies the batch into `moved`. */
int postgres_calls_copy(struct postgres *, struct err *e);
/* Counts the spans of `moved`, added (`come`) or about to be deleted, and empties it. Pairs with other spans count,
 * too: of all traces (calls NULL), or of the known ones. */
int postgres_calls_count(struct postgres *, bool come, const struct postgres_calls *, struct err *e);
/* Remove counts: before spans of a table are deleted; before a day is dropped; of days whose tables are gone. */
int postgres_calls_remove(struct postgres *, struct err *e, const char *table, const char *condition);
int postgres_calls_drop_day(struct postgres *, int32_t day, struct err *e);
int postgres_calls_tidy(struct postgres *, struct err *e);
int postgres_catch_up(struct span_store *, bool *more, struct err *e);
int postgres_calls(struct span_store *, const struct database_time *, struct arena *, struct database_calls *,
    struct err *e);

/* ---- postgres_index.c ---- */

/* Returns whether an index is being built, or its next attempt must wait. */
bool postgres_index_is_busy(struct postgres *);
/* Begins to build the missing indexes of a day's table, outside of a transaction. *whole: none is missing. Also returns
 * the error of the last build. */
int postgres_index_day(struct postgres *, const char *table, bool *whole, struct err *e);
void postgres_index_stop(struct postgres *);

/* ---- postgres_terms.c ---- */

/* Reads the number of the next span. */
int postgres_next_number(struct postgres *, int64_t *out, struct err *e);
/* Reads the first group that is not written. Spans below it are only in groups that exist. */
int postgres_next_group(struct postgres *, int64_t *out, struct err *e);
/* Numbers the spans of the batch. */
int postgres_number_spans(struct postgres *, struct err *e);
/* Writes the terms of some whole groups. *more: set if others are left, otherwise unchanged. */
int postgres_terms_catch_up(struct postgres *, bool *more, struct err *e);
/* Deletes groups that have no spans any more. */
int postgres_terms_tidy(struct postgres *, struct err *e);

/* ---- postgres_search.c ---- */

struct postgres_search;
/* Begins a search, in a transaction. */
int postgres_search_begin(struct postgres *, const struct span_query *, struct postgres_search **, struct err *e);
/* 1: the next span; 0: no more; or an error. */
int postgres_search_next(struct postgres_search *, struct database_row *, struct err *e);
void postgres_search_end(struct postgres_search *);
/* Write the query's conditions: on columns (postgres_read.c), as " AND …" with values; on tables of days. */
void postgres_write_condition(const struct span_query *, struct text *sql, struct postgres_values *);
void postgres_write_days(const struct span_query *, struct text *sql);

/* ---- postgres_read.c, postgres_write.c, postgres_keep.c: for database_postgres ---- */

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

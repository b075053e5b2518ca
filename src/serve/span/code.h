/* SPDX-License-Identifier: MIT */
/* Private to span: spans as bytes, in the log and in the database, and putting right what somebody sent. A batch is a
 * sequence of records (docs/formats/spans.md): origins, each followed by its spans. */
#ifndef WEFT_SPAN_CODE_H
#define WEFT_SPAN_CODE_H

#include "base/wire.h"
#include "span/span.h"

/* Arrays and maps within each other: what the JSON writer, which counts four levels for one of them, can write. */
enum { CODE_MOST_DEPTH = 10, CODE_MOST_ITEMS = 4096, CODE_VERSION = 1 };

/* ---- making ---- */

/* What a reader of some format makes its spans of. SPAN_MAKING; span_making_fini. */
struct span_making {
    struct text code, scratch;          /* records; fd -1 */
    struct span_told told;
    struct arena of_origin, of_span;    /* of what is being made */
    bool in_span;            /* texts and values made now are the span's */
    bool mended;             /* something of the span, or of its origin, was put right */
    bool origin_mended;
};
#define SPAN_MAKING ((struct span_making){.code = {.fd = -1}, .scratch = {.fd = -1}})
void span_making_fini(struct span_making *);
/* In these, memory that lives until the span (or origin) was put. */
struct arena *span_making_arena(struct span_making *);
/* What the texts of messages must be: UTF-8, what is not becomes U+FFFD; without NULs if `whole`. Terminated. */
const char *span_making_text(struct span_making *, const void *v, size_t n, bool whole, size_t *out_n);
/* service.name is taken of the resource; `service` NULL or else what counts. */
void span_put_origin(struct span_making *, struct span_origin *, const char *service);
/* Begins with a new origin, or span: what was made for the last is gone. */
void span_begin_origin(struct span_making *);
void span_begin(struct span_making *);
/* Its ids may be wrong, times any: it is put right, or refused and told. */
void span_put(struct span_making *, struct span *, uint64_t begin_ns, uint64_t end_ns);
/* The span cannot be taken. */
void span_refuse(struct span_making *, const char *why);
/* Notes that a part of the message, which may have held spans, was not understood: `what` has no `key`, but `instead`,
 * if that is known. */
void span_unread(struct span_making *, const char *what, const char *key, const char *instead);
/* Attributes as they came become sound ones: of each key the last value; at most CODE_MOST_ITEMS, the others are added
 * to *dropped. */
struct span_attributes span_making_attributes(struct span_making *, struct span_attribute *, size_t n,
    uint32_t *dropped);

/* ---- bytes ---- */

void span_write_origin(const struct span_origin *, struct text *);
void span_write(const struct span *, struct text *);
/* False: damaged. */
bool span_read_origin(struct wire_in *, struct arena *, struct span_origin *);
bool span_read(struct wire_in *, struct arena *, struct span *);
/* Without events and what else analyses do not read; of attributes those that are wanted. */
bool span_read_brief(struct wire_in *, struct arena *, span_wants *, const void *which, struct span *);
/* No more of it than ids, times, kind, status, life and name. */
bool span_read_head(struct wire_in *, struct arena *, struct span *);
/* What a span can be searched for: a number for a key and the text of its value. Values that are neither strings, bools
 * nor integers have the number of their key alone, SPAN_TERM_ANY. */
typedef void span_take_term(void *arg, uint64_t term);
uint64_t span_term(const char *key, size_t key_bytes, const char *value, size_t value_bytes);
#define SPAN_TERM_ANY(key, key_bytes) span_term(key, key_bytes, "\0any", 4)
/* Keys of what is no attribute. */
#define SPAN_TERM_NAME "\1name"
#define SPAN_TERM_SERVICE "\1service"
/* Those of a span, its events included, or of an origin; some may come twice. False: damaged. */
bool span_each_term(struct wire_in *, span_take_term *, void *arg);
bool span_each_origin_term(struct wire_in *, span_take_term *, void *arg);
/* As records. scratch: a text that the callers of many share. */
void span_record_origin(const struct span_origin *, struct text *scratch, struct text *);
void span_record(const struct span *, struct text *scratch, struct text *);
/* The next record: *origin or *span is set to its bytes, the other empty. False: no more, or damaged. */
bool span_next_record(struct wire_in *, struct wire_in *origin, struct wire_in *span);

#endif

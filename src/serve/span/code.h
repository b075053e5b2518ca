/* SPDX-License-Identifier: MIT */
/* Private to span: the binary codec of spans, for the log and the database, and the sanitizer of received spans. A
 * batch is a sequence of records (docs/formats/spans.md): origins, each followed by its spans. */
#ifndef WEFT_SPAN_CODE_H
#define WEFT_SPAN_CODE_H

#include "base/wire.h"
#include "span/span.h"

/* MOST_DEPTH: limit of nested arrays and maps. The JSON writer, which counts four levels for each, can write these. */
enum { CODE_MOST_DEPTH = 10, CODE_MOST_ITEMS = 4096, CODE_VERSION = 1 };

/* ---- sanitizer ---- */

/* Sanitizer: readers of all formats make their spans with it. Initialise with SPAN_MAKING; free with
 * span_making_fini. */
struct span_making {
    struct text code, scratch;          /* records; fd -1 */
    struct span_told told;
    struct arena of_origin, of_span;    /* memory of the origin and the span in progress */
    bool in_span;            /* texts and values made now belong to the span */
    bool mended;             /* something of the span or its origin was repaired */
    bool origin_mended;
};
#define SPAN_MAKING ((struct span_making){.code = {.fd = -1}, .scratch = {.fd = -1}})
void span_making_fini(struct span_making *);
/* Returns the arena for texts and values, which lives until the span (or origin) was put. */
struct arena *span_making_arena(struct span_making *);
/* Returns a valid text, terminated. Invalid UTF-8, and with `whole` each NUL, becomes U+FFFD. */
const char *span_making_text(struct span_making *, const void *v, size_t n, bool whole, size_t *out_n);
/* Puts an origin. Its service: `service`; if that is NULL or "", service.name of the resource. */
void span_put_origin(struct span_making *, struct span_origin *, const char *service);
/* Begin a new origin or span. Memory of the last one is freed. */
void span_begin_origin(struct span_making *);
void span_begin(struct span_making *);
/* Puts a span with any ids and times: it is repaired, or refused and reported. */
void span_put(struct span_making *, struct span *, uint64_t begin_ns, uint64_t end_ns);
/* Refuses the span in progress. */
void span_refuse(struct span_making *, const char *why);
/* Reports a part of the message that was not understood and may have held spans: `what` lacks `key`, but has `instead`
 * (NULL: not known). */
void span_unread(struct span_making *, const char *what, const char *key, const char *instead);
/* Makes received attributes valid: keeps the last value of each key, at most CODE_MOST_ITEMS; adds the number of others
 * to *dropped. */
struct span_attributes span_making_attributes(struct span_making *, struct span_attribute *, size_t n,
    uint32_t *dropped);

/* ---- bytes ---- */

void span_write_origin(const struct span_origin *, struct text *);
void span_write(const struct span *, struct text *);
/* Return false if the bytes are damaged. */
bool span_read_origin(struct wire_in *, struct arena *, struct span_origin *);
bool span_read(struct wire_in *, struct arena *, struct span *);
/* Reads a span without events and other parts that analyses do not need, and only with the wanted attributes. */
bool span_read_brief(struct wire_in *, struct arena *, span_wants *, const void *which, struct span *);
/* Reads only ids, times, kind, status, life and name. */
bool span_read_head(struct wire_in *, struct arena *, struct span *);
/* Terms: what a span can be searched for. A term is a hash of a key and the text of a value. Values other than strings,
 * bools and integers have only the term of their key, SPAN_TERM_ANY. */
typedef void span_take_term(void *arg, uint64_t term);
uint64_t span_term(const char *key, size_t key_bytes, const char *value, size_t value_bytes);
#define SPAN_TERM_ANY(key, key_bytes) span_term(key, key_bytes, "\0any", 4)
/* Keys of name and service, which are no attributes. */
#define SPAN_TERM_NAME "\1name"
#define SPAN_TERM_SERVICE "\1service"
/* Visit the terms of a span with its events, or of an origin; terms may repeat. Return false if the bytes are
 * damaged. */
bool span_each_term(struct wire_in *, span_take_term *, void *arg);
bool span_each_origin_term(struct wire_in *, span_take_term *, void *arg);
/* Append a record. scratch: a text for reuse by the caller's other calls. */
void span_record_origin(const struct span_origin *, struct text *scratch, struct text *);
void span_record(const struct span *, struct text *scratch, struct text *);
/* Reads the next record: sets *origin or *span to its bytes, the other to none. Returns false at the end, or if
 * damaged. */
bool span_next_record(struct wire_in *, struct wire_in *origin, struct wire_in *span);

#endif

/* SPDX-License-Identifier: MIT */
/* Streaming JSON writer: sets the commas, counts the nesting and escapes strings. Invalid UTF-8 becomes U+FFFD; control
 * characters and changes of text direction, which a terminal would obey, become \uXXXX. Reading is jansson's job. */
#ifndef WEFT_BASE_JSON_H
#define WEFT_BASE_JSON_H

#include "base/text.h"

struct json {
    struct text *out;
    uint64_t comma;          /* bit per depth: something was written there */
    uint8_t depth;           /* depth, at most 60 */
    bool key_pending;
    struct text_near near;   /* digits of the last large number */
};
#define JSON_TO(text_pointer) ((struct json){.out = (text_pointer)})

void json_begin_object(struct json *);
void json_end_object(struct json *);
void json_begin_array(struct json *);
void json_end_array(struct json *);
void json_key(struct json *, const char *key);
/* Key that is a literal and needs no escapes: JSON_KEY(j, "start"). Faster if there are many. */
#define JSON_KEY(j, key) json_known_key((j), "\"" key "\":", sizeof "\"" key "\":" - 1)
void json_write_string(struct json *, const char *s);      /* NULL writes null */
void json_string_n(struct json *, const char *s, size_t n);
void json_i64(struct json *, int64_t);
void json_u64(struct json *, uint64_t);
void json_double(struct json *, double);                   /* NaN and infinities write null */
void json_bool(struct json *, bool);
void json_write_null(struct json *);
void json_raw(struct json *, const char *s, size_t n);     /* writes a value that is JSON already */
/* Appends the quoted string only, at any position. */
void json_quote(struct text *, const char *s, size_t n);
/* Escapes the text from byte `from` on as the inside of a JSON string. */
void json_escape_since(struct text *, size_t from);
/* Writes key and value. */
static inline void json_kv_string(struct json *j, const char *key, const char *s)
{
    json_key(j, key);
    json_write_string(j, s);
}
static inline void json_kv_i64(struct json *j, const char *key, int64_t v) { json_key(j, key); json_i64(j, v); }
static inline void json_kv_u64(struct json *j, const char *key, uint64_t v) { json_key(j, key); json_u64(j, v); }
static inline void json_kv_double(struct json *j, const char *key, double v) { json_key(j, key); json_double(j, v); }
static inline void json_kv_bool(struct json *j, const char *key, bool v) { json_key(j, key); json_bool(j, v); }

/* Comma before every value but the first of its container; a value after a key takes none. */
static inline void json_before_value(struct json *j)
{
    uint64_t bit = (uint64_t)1 << j->depth;
    if (j->key_pending)
        j->key_pending = false;
    else if (j->comma & bit)
        text_putc(j->out, ',');
    else
        j->comma |= bit;
}
static inline void json_known_key(struct json *j, const char *quoted, size_t n)
{
    json_before_value(j);
    text_put(j->out, quoted, n);
    j->key_pending = true;
}

/* Short names, unless jansson.h is included, which has functions of the same names. */
#ifndef JANSSON_H
#define json_object(j) json_begin_object(j)
#define json_array(j) json_begin_array(j)
#define json_string(j, s) json_write_string(j, s)
#define json_null(j) json_write_null(j)
#endif

#endif

/* Streaming JSON writer: commas and nesting are kept by the writer, strings are escaped (invalid UTF-8 becomes U+FFFD). Reading is jansson's job. */
#ifndef WEFT_BASE_JSON_H
#define WEFT_BASE_JSON_H

#include "base/text.h"

struct json {
    struct text *out;
    uint64_t comma;          /* bit per depth: something was written there */
    uint8_t depth;           /* at most 60 */
    bool key_pending;
};
#define JSON_TO(text_pointer) ((struct json){.out = (text_pointer)})

void json_begin_object(struct json *);
void json_end_object(struct json *);
void json_begin_array(struct json *);
void json_end_array(struct json *);
void json_key(struct json *, const char *key);
void json_write_string(struct json *, const char *s);      /* NULL writes null */
void json_string_n(struct json *, const char *s, size_t n);
void json_i64(struct json *, int64_t);
void json_u64(struct json *, uint64_t);
void json_double(struct json *, double);                   /* NaN and infinities write null */
void json_bool(struct json *, bool);
void json_write_null(struct json *);
void json_raw(struct json *, const char *s, size_t n);     /* a value that is JSON already */
/* key and value in one */
void json_kv_string(struct json *, const char *key, const char *s);
void json_kv_i64(struct json *, const char *key, int64_t);
void json_kv_u64(struct json *, const char *key, uint64_t);
void json_kv_double(struct json *, const char *key, double);
void json_kv_bool(struct json *, const char *key, bool);

/* Shorter names where jansson.h, which has functions of the same names, is not included. */
#ifndef JANSSON_H
#define json_object(j) json_begin_object(j)
#define json_array(j) json_begin_array(j)
#define json_string(j, s) json_write_string(j, s)
#define json_null(j) json_write_null(j)
#endif

#endif

/* SPDX-License-Identifier: MIT */
/* Answers of servers as the coordinator reads them: it must take for JSON what another reader does, and nothing else,
 * and walk to as many values within its bounds. */
#include <assert.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/slice.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* Values in it, itself included; every slice lies within the one around it. */
static size_t walk(struct slice s, struct arena *a)
{
    struct slice_walk items = slice_items(s), members = slice_members(s);
    struct slice key, value;
    int64_t number;
    size_t count = 1;
    slice_integer(s, &number);
    slice_string(s, a);
    while (slice_next(&items, &value)) {
        assert(value.at > s.at && value.at + value.n < s.at + s.n);
        count += walk(value, a);
    }
    while (slice_next_member(&members, &key, &value)) {
        assert(key.at > s.at && value.at > key.at + key.n && value.at + value.n < s.at + s.n);
        assert(slice_is(key, '"') && slice_string(key, a));
        count += walk(value, a);
    }
    slice_get(s, "model");
    return count;
}

static size_t count(const json_t *v, int depth)
{
    size_t n = 1, i;
    const char *key;
    json_t *item;
    assert(depth < 4096);
    json_array_foreach (v, i, item)
        n += count(item, depth + 1);
    json_object_foreach ((json_t *)v, key, item)
        n += count(item, depth + 1);
    return n;
}

static int depth_of(const json_t *v)
{
    int most = 0, its;
    size_t i;
    const char *key;
    json_t *item;
    json_array_foreach (v, i, item)
        most = (its = depth_of(item)) > most ? its : most;
    json_object_foreach ((json_t *)v, key, item)
        most = (its = depth_of(item)) > most ? its : most;
    return most + (json_is_array(v) || json_is_object(v));
}

/* The other reader has limits of its own: what numbers it can keep, NUL in keys, halves of surrogate pairs. */
static bool is_beyond_other(const char *text, size_t n, const json_error_t *why)
{
    enum json_error_code code = json_error_code(why);
    if (code == json_error_numeric_overflow || code == json_error_null_byte_in_key)
        return true;
    for (size_t i = 0; i + 2 < n; i++)
        if (text[i] == '\\' && text[i + 1] == 'u' && (text[i + 2] == 'd' || text[i + 2] == 'D'))
            return true;
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    json_error_t why;
    struct arena a = {0};
    size_t bad = 0, walked = 0;
    char *text = malloc(n ? n : 1); /* exactly, so that reading beyond it shows */
    if (n)
        memcpy(text, data, n);
    struct slice s = slice_of(text, n, &a, &bad);
    assert(bad <= n);
    if (s.at)
        walked = walk(s, &a);
    json_t *other = json_loadb(text, n, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    /* A NUL is no JSON anywhere, but jansson takes one for the end of the text. */
    if (other && n < 20000 && !memchr(text, '\0', n) && depth_of(other) <= SLICE_DEPTH)
        assert(s.at && walked == count(other, 0));
    json_decref(other);
    other = json_loadb(text, n, JSON_DECODE_ANY | JSON_ALLOW_NUL, &why);
    if (s.at && n < 20000)
        assert(other || is_beyond_other(text, n, &why));
    json_decref(other);
    arena_fini(&a);
    free(text);
    return 0;
}

/* SPDX-License-Identifier: MIT */
#include "base/slice.h"

#include <endian.h>
#include <string.h>

#include "base/text.h"

/* ---- validation ---- */

/* Extents of containers, by begin. Those below WORTH_BYTES are left out: not worth a search. */
struct extent {
    uint32_t begin, end;
};
struct slice_ends {
    const char *text;
    struct extent *v;
    size_t n, room;
};
enum { WORTH_BYTES = 192 };

struct check {
    const char *at, *end;
    struct arena *arena; /* NULL: ends are not kept */
    struct slice_ends *ends;
    size_t open[SLICE_DEPTH]; /* extents of the open containers */
};

static inline bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

/* Functions below get the begin of a token and the end of the text. They return the end of the token; NULL: invalid. */
static inline const char *skip_space(const char *p, const char *end)
{
    while (p < end && is_space(*p))
        p++;
    return p;
}

/* Eight bytes at once: the functions return how many of the first WIDE bytes may be skipped, at most WIDE. */
enum { WIDE = 8 };
#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

/* Loads bytes, the first one lowest. */
static inline uint64_t eight(const char *p)
{
    uint64_t w;
    memcpy(&w, p, sizeof w);
    return le64toh(w);
}

/* Masks have bits in the first matching byte and none before it; bytes behind it are undefined. */
static inline unsigned before(uint64_t stops)
{
    return stops ? (unsigned)__builtin_ctzll(stops) / 8 : WIDE;
}

static inline uint64_t zeros(uint64_t w)
{
    return (w - EACH(1)) & ~w & EACH(0x80);
}

static inline unsigned digits_at(const char *p)
{
    uint64_t w = eight(p);
    return before(((w & EACH(0xf0)) ^ EACH(0x30)) | (((w + EACH(6)) & EACH(0xf0)) ^ EACH(0x30)));
}

static inline unsigned plain_at(const char *p)
{
    uint64_t w = eight(p);
    return before(
        (w & EACH(0x80)) | zeros(w ^ EACH('"')) | zeros(w ^ EACH('\\')) | ((w - EACH(0x20)) & ~w & EACH(0x80)));
}
static inline const char *take_digits(const char *p, const char *end)
{
    const char *first = p;
    for (unsigned n = WIDE; n == WIDE && end - p >= WIDE; p += n)
        n = digits_at(p);
    while (p < end && text_is_digit(*p))
        p++;
    return p > first ? p : NULL;
}

/* Parses the rest of a number, behind its integer digits. */
static const char *take_rest_of_number(const char *p, const char *end)
{
    if (p < end && *p == '.' && !(p = take_digits(p + 1, end)))
        return NULL;
    if (p < end && (*p | 0x20) == 'e') {
        p++;
        p += p < end && (*p == '+' || *p == '-');
        return take_digits(p, end);
    }
    return p;
}

static inline const char *take_number(const char *p, const char *end)
{
    p += p < end && *p == '-';
    p = p < end && *p == '0' ? p + 1 : take_digits(p, end);
    return p && p < end && (*p == '.' || (*p | 0x20) == 'e') ? take_rest_of_number(p, end) : p;
}

static int hex(char c)
{
    return text_is_digit(c) ? c - '0' : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10 : -1;
}

/* Parses an escape, behind its backslash. */
static const char *take_escape(const char *p, const char *end)
{
    if (p == end)
        return NULL;
    char kind = *p++;
    if (kind != 'u')
        return memchr("\"\\/bfnrt", kind, 8) ? p : NULL;
    for (int i = 0; i < 4; i++)
        if (p == end || hex(*p++) < 0)
            return NULL;
    return p;
}

/* Parses a character that is neither plain nor a quote. */
static const char *take_special(const char *p, const char *end)
{
    unsigned char byte = (unsigned char)*p;
    if (byte == '\\')
        return take_escape(p + 1, end);
    size_t n = byte < 0x80 ? 0 : text_sequence(p, (size_t)(end - p));
    return n ? p + n : NULL;
}

static inline bool is_plain(char c)
{
    return (signed char)c >= 0x20 && c != '"' && c != '\\';
}

/* Parses a string, behind its opening quote. */
static inline const char *take_string(const char *p, const char *end)
{
    for (;;) {
        for (unsigned n = WIDE; n == WIDE && end - p >= WIDE; p += n)
            n = plain_at(p);
        while (p < end && is_plain(*p))
            p++;
        if (p == end)
            return NULL;
        if (*p == '"')
            return p + 1;
        if (!(p = take_special(p, end)))
            return NULL;
    }
}

static const char *take_word(const char *p, const char *end, const char *word, size_t n)
{
    return (size_t)(end - p) >= n && !memcmp(p, word, n) ? p + n : NULL;
}

static inline const char *take_scalar(const char *p, const char *end)
{
    switch (p < end ? *p : '\0') {
    case '"': return take_string(p + 1, end);
    case 't': return take_word(p, end, "true", 4);
    case 'f': return take_word(p, end, "false", 5);
    case 'n': return take_word(p, end, "null", 4);
    default: return take_number(p, end);
    }
}

/* Parses the key of a member and its colon. */
static inline const char *take_key(const char *p, const char *end)
{
    p = skip_space(p, end);
    if (p == end || *p != '"' || !(p = take_string(p + 1, end)))
        return NULL;
    p = skip_space(p, end);
    return p < end && *p == ':' ? p + 1 : NULL;
}

static void note_begin(struct check *c, unsigned depth)
{
    struct slice_ends *e = c->ends;
    if (!e)
        return;
    if (e->n == e->room) {
        struct extent *old = e->v;
        e->room = e->room ? 2 * e->room : 64;
        e->v = arena_new(c->arena, struct extent, e->room);
        if (e->n)
            memcpy(e->v, old, e->n * sizeof *old);
    }
    c->open[depth] = e->n;
    e->v[e->n++] = (struct extent){.begin = (uint32_t)(c->at - e->text)};
}

/* Notes an end. A small container is dropped: it holds only small ones, which are dropped already, so it is the
 * last. */
static void note_end(struct check *c, unsigned depth)
{
    struct slice_ends *e = c->ends;
    if (!e)
        return;
    struct extent *s = &e->v[c->open[depth]];
    s->end = (uint32_t)(c->at - e->text);
    e->n -= s->end - s->begin < WORTH_BYTES;
}

/* Parses the value at c->at. Sets c->at to its end, or to the position of the error. */
static bool take_value(struct check *c)
{
    const char *const end = c->end, *p = c->at;
    uint64_t objects = 0; /* bit 0: the innermost open container is an object */
    unsigned depth = 0;
    for (;;) {
        p = skip_space(c->at = p, end);
        bool object = p < end && *p == '{', array = p < end && *p == '[';
        if (object || array) {
            if (depth == SLICE_DEPTH)
                return false;
            c->at = p++;
            note_begin(c, depth++);
            objects = objects << 1 | object;
            p = skip_space(p, end);
            if (p == end || *p != (object ? '}' : ']')) {
                if (object && !(p = take_key(p, end)))
                    return false;
                continue; /* the first value follows */
            }
        } else if (!(p = take_scalar(p, end))) {
            return false;
        }
        /* End of a value: containers end here, or a comma leads to the next one. */
        for (;;) {
            if (!depth) {
                c->at = p;
                return true;
            }
            object = objects & 1;
            p = skip_space(c->at = p, end);
            if (p == end)
                return false;
            if (*p == ',') {
                if (!(p = object ? take_key(p + 1, end) : p + 1))
                    return false;
                break;
            }
            if (*p != (object ? '}' : ']'))
                return false;
            c->at = ++p;
            note_end(c, --depth);
            objects >>= 1;
        }
    }
}

struct slice slice_of(const char *text, size_t n, struct arena *arena, size_t *bad)
{
    struct check c = {.at = text, .end = text + n, .arena = arena};
    if (arena && n >= WORTH_BYTES && n <= UINT32_MAX) {
        c.ends = arena_new(arena, struct slice_ends, 1);
        c.ends->text = text;
    }
    const char *first = c.at = skip_space(c.at, c.end);
    bool good = n && take_value(&c);
    const char *end = c.at;
    c.at = skip_space(c.at, c.end);
    if (bad)
        *bad = (size_t)(c.at - text);
    return good && c.at == c.end ? (struct slice){first, (size_t)(end - first), c.ends} : (struct slice){0};
}

/* ---- walks over validated text ---- */

static const char *past_space(const char *p)
{
    while (is_space(*p))
        p++;
    return p;
}

/* Returns the position behind the closing quote; p is at the opening one. */
static const char *past_string(const char *p)
{
    for (const char *first = p + 1;;) {
        const char *escape = p = rawmemchr(p + 1, '"'); /* exists, since the text is valid */
        while (escape > first && escape[-1] == '\\')
            escape--;
        if (!((p - escape) & 1))
            return p + 1;
    }
}

/* Bytes that end a scalar, or need attention within a container. */
static const bool matters[256] = {['"'] = true,
    [','] = true,
    ['['] = true,
    [']'] = true,
    ['{'] = true,
    ['}'] = true,
    [' '] = true,
    ['\n'] = true,
    ['\t'] = true,
    ['\r'] = true};

static const char *past_plain(const char *p)
{
    while (!matters[(unsigned char)*p])
        p++;
    return p;
}

static const char *past_container(const char *p)
{
    for (unsigned depth = 0;;)
        switch (*p) {
        case '"': p = past_string(p); break;
        case '{':
        case '[':
            depth++;
            p++;
            break;
        case '}':
        case ']':
            p++;
            if (!--depth)
                return p;
            break;
        default: p = past_plain(p + 1);
        }
}

/* Returns the end of the container at p; NULL: unknown. */
static const char *known_end(const struct slice_ends *e, const char *p)
{
    size_t low = 0, high = e ? e->n : 0;
    uint32_t begin = e ? (uint32_t)(p - e->text) : 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (e->v[middle].begin < begin)
            low = middle + 1;
        else
            high = middle;
    }
    return e && low < e->n && e->v[low].begin == begin ? e->text + e->v[low].end : NULL;
}

static const char *past_value(const char *p, const struct slice_ends *ends)
{
    if (*p == '"')
        return past_string(p);
    if (*p != '{' && *p != '[')
        return past_plain(p);
    const char *known = known_end(ends, p);
    return known ? known : past_container(p);
}

bool slice_is(struct slice s, char first)
{
    return s.at && *s.at == first;
}

static struct slice_walk walk(struct slice s, char open)
{
    return slice_is(s, open) ? (struct slice_walk){s.at + 1, s.at + s.n - 1, s.ends} : (struct slice_walk){0};
}

struct slice_walk slice_items(struct slice array)
{
    return walk(array, '[');
}

struct slice_walk slice_members(struct slice object)
{
    return walk(object, '{');
}

static struct slice take_slice(struct slice_walk *w)
{
    const char *end = past_value(w->at, w->ends);
    struct slice s = {w->at, (size_t)(end - w->at), w->ends};
    w->at = past_space(end);
    return s;
}

/* Moves to the next value. A comma precedes each value but the first. */
static bool begin_next(struct slice_walk *w)
{
    if (w->at == w->end)
        return false;
    w->at = past_space(w->at);
    if (*w->at == ',')
        w->at = past_space(w->at + 1);
    return w->at < w->end;
}

bool slice_next(struct slice_walk *w, struct slice *item)
{
    if (!begin_next(w))
        return false;
    *item = take_slice(w);
    return true;
}

bool slice_next_member(struct slice_walk *w, struct slice *key, struct slice *value)
{
    if (!begin_next(w))
        return false;
    *key = take_slice(w);
    w->at = past_space(w->at + 1); /* the colon */
    *value = take_slice(w);
    return true;
}

/* ---- values ---- */

bool slice_equals(struct slice s, const char *text)
{
    size_t n = strlen(text);
    return slice_is(s, '"') && s.n == n + 2 && !memcmp(s.at + 1, text, n);
}

bool slice_same(struct slice a, struct slice b)
{
    return a.n == b.n && (!a.n || !memcmp(a.at, b.at, a.n));
}

struct slice slice_get(struct slice object, const char *key)
{
    struct slice_walk w = slice_members(object);
    for (struct slice k, v; slice_next_member(&w, &k, &v);)
        if (slice_equals(k, key))
            return v;
    return (struct slice){0};
}

struct slice slice_first(struct slice value)
{
    struct slice_walk w = slice_items(value);
    struct slice item;
    return slice_next(&w, &item) ? item : value;
}

bool slice_integer(struct slice s, int64_t *out)
{
    bool negative = slice_is(s, '-');
    uint64_t v = 0;
    if (!s.at || s.n == negative || s.n > 20)
        return false;
    for (size_t i = negative; i < s.n; i++) {
        if (!text_is_digit(s.at[i]) || __builtin_mul_overflow(v, 10, &v) ||
            __builtin_add_overflow(v, (uint64_t)(s.at[i] - '0'), &v))
            return false;
    }
    if (v > (uint64_t)INT64_MAX + negative)
        return false;
    *out = negative ? (int64_t)-v : (int64_t)v;
    return true;
}

bool slice_number(struct slice s, double *out)
{
    bool is = s.n && (text_is_digit(*s.at) || *s.at == '-');
    *out = is ? strtod(s.at, NULL) : 0; /* number ends there: the text behind it is no part of one */
    return is;
}

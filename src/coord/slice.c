#include "coord/slice.h"

#include <endian.h>
#include <string.h>

#include "base/text.h"

/* ---- checking ---- */

/* Where containers begin and end, by their begin. Smaller ones are not worth a search. */
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

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static inline void skip_space(struct check *c)
{
    while (c->at < c->end && is_space(*c->at))
        c->at++;
}

static inline bool take(struct check *c, char wanted)
{
    bool is = c->at < c->end && *c->at == wanted;
    c->at += is;
    return is;
}

static bool take_word(struct check *c, const char *word)
{
    size_t n = strlen(word);
    bool is = (size_t)(c->end - c->at) >= n && !memcmp(c->at, word, n);
    c->at += is ? n : 0;
    return is;
}

/* Eight bytes at once, the first one lowest. Masks have bits in the first byte that is as said, none in those before
 * it, and whatever in those behind. */
#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

static uint64_t eight(const char *p)
{
    uint64_t w;
    memcpy(&w, p, sizeof w);
    return le64toh(w);
}

static uint64_t zeros(uint64_t w)
{
    return (w - EACH(1)) & ~w & EACH(0x80);
}

static uint64_t no_digits(uint64_t w)
{
    return ((w & EACH(0xf0)) ^ EACH(0x30)) | (((w + EACH(6)) & EACH(0xf0)) ^ EACH(0x30));
}

/* Bytes of a string that do not stand for themselves. */
static uint64_t specials(uint64_t w)
{
    return (w & EACH(0x80)) | zeros(w ^ EACH('"')) | zeros(w ^ EACH('\\')) | ((w - EACH(0x20)) & ~w & EACH(0x80));
}

/* To the first byte of the mask, as long as there are eight more. */
static inline void skip_eights(struct check *c, uint64_t (*mask)(uint64_t))
{
    for (uint64_t m = 0; !m && c->end - c->at >= 8;) {
        m = mask(eight(c->at));
        c->at += m ? __builtin_ctzll(m) / 8 : 8;
    }
}

static bool take_digits(struct check *c)
{
    const char *first = c->at;
    skip_eights(c, no_digits);
    while (c->at < c->end && text_is_digit(*c->at))
        c->at++;
    return c->at > first;
}

static bool take_number(struct check *c)
{
    take(c, '-');
    if (!take(c, '0') && !take_digits(c))
        return false;
    if (take(c, '.') && !take_digits(c))
        return false;
    if (c->at < c->end && (*c->at | 0x20) == 'e') {
        c->at++;
        if (!take(c, '+'))
            take(c, '-');
        return take_digits(c);
    }
    return true;
}

static int hex(char c)
{
    return text_is_digit(c) ? c - '0' : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10 : -1;
}

/* Behind the backslash. */
static bool take_escape(struct check *c)
{
    if (c->at == c->end)
        return false;
    char kind = *c->at++;
    if (kind != 'u')
        return memchr("\"\\/bfnrt", kind, 8) != NULL;
    for (int i = 0; i < 4; i++)
        if (c->at == c->end || hex(*c->at++) < 0)
            return false;
    return true;
}

static bool take_string(struct check *c)
{
    if (!take(c, '"'))
        return false;
    for (skip_eights(c, specials); c->at < c->end && *c->at != '"'; skip_eights(c, specials)) {
        unsigned char byte = (unsigned char)*c->at;
        size_t n = 1;
        if (byte < 0x20 || (byte >= 0x80 && !(n = text_sequence(c->at, (size_t)(c->end - c->at)))))
            return false;
        c->at += n;
        if (byte == '\\' && !take_escape(c))
            return false;
    }
    return take(c, '"');
}

static bool take_scalar(struct check *c)
{
    switch (c->at < c->end ? *c->at : '\0') {
    case '"': return take_string(c);
    case 't': return take_word(c, "true");
    case 'f': return take_word(c, "false");
    case 'n': return take_word(c, "null");
    default: return take_number(c);
    }
}

/* The key of a member and its colon. */
static bool take_key(struct check *c)
{
    skip_space(c);
    if (!take_string(c))
        return false;
    skip_space(c);
    return take(c, ':');
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

/* One that is small holds small ones only, which are gone, so that it is the last. */
static void note_end(struct check *c, unsigned depth)
{
    struct slice_ends *e = c->ends;
    if (!e)
        return;
    struct extent *s = &e->v[c->open[depth]];
    s->end = (uint32_t)(c->at - e->text);
    e->n -= s->end - s->begin < WORTH_BYTES;
}

/* What may stand between values: closes containers that end here. False: it is wrong. *more: a value follows. */
static bool take_ends(struct check *c, uint64_t *objects, unsigned *depth, bool *more)
{
    for (*more = false; *depth && !*more;) {
        bool object = *objects & 1;
        skip_space(c);
        if (take(c, ',')) {
            *more = true;
            return !object || take_key(c);
        }
        if (!take(c, object ? '}' : ']'))
            return false;
        note_end(c, *depth - 1);
        *objects >>= 1;
        --*depth;
    }
    return true;
}

static bool take_value(struct check *c)
{
    uint64_t objects = 0; /* bit 0: the innermost open container is an object */
    unsigned depth = 0;
    for (bool more = true; more;) {
        skip_space(c);
        bool object = c->at < c->end && *c->at == '{', array = c->at < c->end && *c->at == '[';
        if (!object && !array) {
            if (!take_scalar(c) || !take_ends(c, &objects, &depth, &more))
                return false;
            continue;
        }
        if (depth == SLICE_DEPTH)
            return false;
        note_begin(c, depth);
        c->at++;
        objects = objects << 1 | object;
        depth++;
        skip_space(c);
        if (c->at < c->end && *c->at == (object ? '}' : ']')) {
            if (!take_ends(c, &objects, &depth, &more))
                return false;
        } else if (object && !take_key(c)) {
            return false;
        }
    }
    return true;
}

struct slice slice_of(const char *text, size_t n, struct arena *arena, size_t *bad)
{
    struct check c = {.at = text, .end = text + n, .arena = arena};
    if (arena && n >= WORTH_BYTES && n <= UINT32_MAX) {
        c.ends = arena_new(arena, struct slice_ends, 1);
        c.ends->text = text;
    }
    skip_space(&c);
    const char *first = c.at;
    bool good = n && take_value(&c);
    const char *end = c.at;
    skip_space(&c);
    if (bad)
        *bad = (size_t)(c.at - text);
    return good && c.at == c.end ? (struct slice){first, (size_t)(end - first), c.ends} : (struct slice){0};
}

/* ---- walking what was checked ---- */

static const char *past_space(const char *p)
{
    while (is_space(*p))
        p++;
    return p;
}

/* Behind the closing quote; p is at the opening one. */
static const char *past_string(const char *p)
{
    for (const char *first = p + 1;;) {
        const char *escape = p = rawmemchr(p + 1, '"'); /* it is there, as the text was checked */
        while (escape > first && escape[-1] == '\\')
            escape--;
        if (!((p - escape) & 1))
            return p + 1;
    }
}

/* What ends a scalar, or is more than a byte within a container. */
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

/* The end of the container at p; NULL: it is not known. */
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

/* Before the first value there is none, before each other one a comma. */
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

static uint32_t hex4(const char *p)
{
    uint32_t v = 0;
    for (int i = 0; i < 4; i++)
        v = v << 4 | (uint32_t)hex(p[i]);
    return v;
}

static char *put_utf8(char *to, uint32_t c)
{
    if (c < 0x80) {
        *to++ = (char)c;
    } else if (c < 0x800) {
        *to++ = (char)(0xc0 | c >> 6);
        *to++ = (char)(0x80 | (c & 63));
    } else if (c < 0x10000) {
        *to++ = (char)(0xe0 | c >> 12);
        *to++ = (char)(0x80 | (c >> 6 & 63));
        *to++ = (char)(0x80 | (c & 63));
    } else {
        *to++ = (char)(0xf0 | c >> 18);
        *to++ = (char)(0x80 | (c >> 12 & 63));
        *to++ = (char)(0x80 | (c >> 6 & 63));
        *to++ = (char)(0x80 | (c & 63));
    }
    return to;
}

/* p is behind "\u"; a pair of surrogates is one character, one alone is none. */
static char *unescape_unicode(char *to, const char **p, const char *end)
{
    uint32_t c = hex4(*p);
    *p += 4;
    if (c >= 0xd800 && c < 0xdc00 && end - *p >= 6 && (*p)[0] == '\\' && (*p)[1] == 'u') {
        uint32_t low = hex4(*p + 2);
        if (low >= 0xdc00 && low < 0xe000) {
            *p += 6;
            return put_utf8(to, 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00));
        }
    }
    return put_utf8(to, !c || (c >= 0xd800 && c < 0xe000) ? 0xfffd : c);
}

char *slice_string(struct slice s, struct arena *a)
{
    static const char kinds[] = "bfnrt", values[] = "\b\f\n\r\t";
    if (!slice_is(s, '"'))
        return NULL;
    char *text = arena_alloc(a, s.n), *to = text; /* no escape is shorter than what it stands for */
    for (const char *p = s.at + 1, *end = s.at + s.n - 1; p < end;) {
        if (*p != '\\') {
            *to++ = *p++;
            continue;
        }
        const char *known = strchr(kinds, p[1]);
        p += 2;
        if (p[-1] == 'u')
            to = unescape_unicode(to, &p, end);
        else
            *to++ = known ? values[known - kinds] : p[-1];
    }
    *to = '\0';
    return text;
}

bool slice_number(struct slice s, double *out)
{
    bool is = s.n && (text_is_digit(*s.at) || *s.at == '-');
    *out = is ? strtod(s.at, NULL) : 0; /* what follows it in the text is no part of a number */
    return is;
}

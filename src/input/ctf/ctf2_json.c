/* SPDX-License-Identifier: MIT */
/* JSON of CTF 2 metadata. Has its own reader, because integers up to 2^64 - 1 must be exact, messages must name the
 * place of a value, and 100 000 event record classes must not become a million objects. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "ctf/ctf2.h"

enum { MOST_NODES = 1 << 22 };

struct reader {
    struct ctf2_json *j;
    const char *p, *end;
    unsigned depth;
};

static bool fail(struct reader *r, const char *at, const char *text)
{
    tsdl_fail(r->j->l, at < r->end ? at : r->end > r->j->l->text ? r->end - 1 : at, ERR_FORMAT, "%s", text);
    return false;
}

static void skip_space(struct reader *r)
{
    while (r->p < r->end && (*r->p == ' ' || *r->p == '\n' || *r->p == '\r' || *r->p == '\t'))
        r->p++;
}

/* ---- strings ---- */

static int hex4(const char *p, const char *end)
{
    int v = 0;
    if (end - p < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        char c = p[i];
        int digit = c >= '0' && c <= '9'             ? c - '0'
            : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
                                                     : -1;
        if (digit < 0)
            return -1;
        v = v * 16 + digit;
    }
    return v;
}

static char *put_utf8(char *o, unsigned c)
{
    if (c < 0x80) {
        *o++ = (char)c;
        return o;
    }
    if (c >= 0x10000) {
        *o++ = (char)(0xf0 | c >> 18);
        *o++ = (char)(0x80 | (c >> 12 & 0x3f));
    } else if (c >= 0x800) {
        *o++ = (char)(0xe0 | c >> 12);
    }
    if (c >= 0x800)
        *o++ = (char)(0x80 | (c >> 6 & 0x3f));
    else
        *o++ = (char)(0xc0 | c >> 6);
    *o++ = (char)(0x80 | (c & 0x3f));
    return o;
}

/* Reads \uXXXX, or two of them; *p is after the u. */
static bool read_code_point(struct reader *r, const char **p, unsigned *c)
{
    const char *at = *p - 2;
    int high = hex4(*p, r->end), low = -1;
    if (high < 0)
        return fail(r, at, "\\u must be followed by four hexadecimal digits");
    *p += 4;
    *c = (unsigned)high;
    if (high == 0)
        return fail(r, at, "a text with a NUL character (\\u0000) cannot be read");
    if ((high & 0xf800) != 0xd800)
        return true;
    if (r->end - *p >= 6 && (*p)[0] == '\\' && (*p)[1] == 'u')
        low = hex4(*p + 2, r->end);
    if ((high & 0x400) || (low & ~0x3ff) != 0xdc00)
        return fail(r, at, "half a surrogate pair");
    *p += 6;
    *c = 0x10000 + (((unsigned)high & 0x3ff) << 10) + ((unsigned)low & 0x3ff);
    return true;
}

/* Replaces escapes; from..to is the inside of a string, already known to be closed. */
static bool unescape(struct reader *r, const char *from, const char *to, const char **s, size_t *n)
{
    char *out = arena_alloc(r->j->arena, (size_t)(to - from) + 1), *o = out;
    for (const char *p = from; p < to;) {
        if (*p != '\\') {
            *o++ = *p++;
            continue;
        }
        static const char letters[] = "\"\\/bfnrt", bytes[] = "\"\\/\b\f\n\r\t";
        const char *letter = p + 1 < to && p[1] ? strchr(letters, p[1]) : NULL;
        unsigned c = 0;
        if (letter) {
            *o++ = bytes[letter - letters];
            p += 2;
        } else if (p + 1 < to && p[1] == 'u') {
            p += 2;
            if (!read_code_point(r, &p, &c))
                return false;
            o = put_utf8(o, c);
        } else {
            return fail(r, p, "this escape is none of JSON's");
        }
    }
    *s = out;
    *n = (size_t)(o - out);
    return true;
}

/* Reads a string: r->p starts after the opening quote and ends after the closing one. */
static bool read_string(struct reader *r, const char **s, size_t *n)
{
    const char *from = r->p, *p = from;
    bool escaped = false;
    while (p < r->end && *p != '"') {
        unsigned char c = (unsigned char)*p;
        if (c >= 0x80) {
            size_t bytes = text_sequence(p, (size_t)(r->end - p));
            if (!bytes)
                return fail(r, p, "bytes that are no UTF-8 in a string");
            p += bytes;
            continue;
        }
        if (c < 0x20)
            return fail(r, p, "a control character in a string must be written as \\u00XX");
        escaped |= c == '\\';
        p += c == '\\' && p + 1 < r->end ? 2 : 1;
    }
    if (p >= r->end)
        return fail(r, from - 1, "this string is never closed");
    r->p = p + 1;
    *s = from;
    *n = (size_t)(p - from);
    return !escaped || unescape(r, from, p, s, n);
}

/* ---- values ---- */

static bool read_value(struct reader *r, const char *key, size_t key_n);

static struct ctf2_node *add_node(struct reader *r, enum ctf2_kind kind, const char *key, size_t key_n)
{
    if (r->j->nodes.n == MOST_NODES)
        tsdl_fail(r->j->l, r->p, ERR_LIMIT, "more than %d values in one fragment", MOST_NODES);
    struct ctf2_node node = {.kind = (uint8_t)kind, .at = r->p, .key = key, .key_n = (uint32_t)key_n};
    vec_push(&r->j->nodes, node);
    return &r->j->nodes.v[r->j->nodes.n - 1];
}

static bool is_digit(const struct reader *r, const char *p)
{
    return p < r->end && *p >= '0' && *p <= '9';
}

static bool read_number(struct reader *r, const char *key, size_t key_n)
{
    const char *p = r->p;
    struct ctf2_node *node = add_node(r, CTF2_INTEGER, key, key_n);
    node->negative = *p == '-';
    p += node->negative;
    if (!is_digit(r, p))
        return fail(r, r->p, "this is no JSON value");
    if (*p == '0' && is_digit(r, p + 1))
        return fail(r, r->p, "a number must not begin with 0");
    for (; is_digit(r, p); p++)
        if (__builtin_mul_overflow(node->u, 10, &node->u) ||
            __builtin_add_overflow(node->u, (uint64_t)(*p - '0'), &node->u))
            node->kind = CTF2_HUGE;
    if (node->negative && node->u > (uint64_t)INT64_MAX + 1)
        node->kind = CTF2_HUGE;
    if (node->negative)
        node->u = -node->u;
    node->negative &= node->u != 0;
    if (p < r->end && *p == '.') {
        node->kind = CTF2_REAL;
        if (!is_digit(r, ++p))
            return fail(r, r->p, "a number needs digits behind its point");
        while (is_digit(r, p))
            p++;
    }
    if (p < r->end && (*p | 0x20) == 'e') {
        node->kind = CTF2_REAL;
        p++;
        p += p < r->end && (*p == '+' || *p == '-');
        if (!is_digit(r, p))
            return fail(r, r->p, "a number needs digits in its exponent");
        while (is_digit(r, p))
            p++;
    }
    r->p = p;
    return true;
}

static bool read_word(struct reader *r, const char *key, size_t key_n)
{
    static const struct {
        const char *word;
        enum ctf2_kind kind;
    } words[] = {{"null", CTF2_NULL}, {"false", CTF2_FALSE}, {"true", CTF2_TRUE}};
    for (size_t i = 0; i < 3; i++) {
        size_t n = strlen(words[i].word);
        if ((size_t)(r->end - r->p) >= n && !memcmp(r->p, words[i].word, n)) {
            add_node(r, words[i].kind, key, key_n);
            r->p += n;
            return true;
        }
    }
    return fail(r, r->p, "this is no JSON value");
}

static int by_key(const void *a, const void *b)
{
    const struct ctf2_node *x = *(const struct ctf2_node *const *)a, *y = *(const struct ctf2_node *const *)b;
    if (x->key_n != y->key_n)
        return x->key_n < y->key_n ? -1 : 1;
    return x->key_n ? memcmp(x->key, y->key, x->key_n) : 0;
}

/* Fails if an object has a name twice. */
static bool check_keys(struct reader *r, uint32_t object)
{
    struct ctf2_json *j = r->j;
    struct ctf2_node *node = &j->nodes.v[object];
    node->next = (uint32_t)j->nodes.n;
    j->sorted.n = 0;
    for
        CTF2_EACH(j, node, child)
    vec_push(&j->sorted, child);
    if (j->sorted.n > 1)
        qsort(j->sorted.v, j->sorted.n, sizeof *j->sorted.v, by_key);
    for (size_t i = 1; i < j->sorted.n; i++)
        if (by_key(&j->sorted.v[i - 1], &j->sorted.v[i]) == 0) {
            const struct ctf2_node *second = j->sorted.v[i];
            tsdl_fail(j->l, second->at, ERR_FORMAT, "a second property '%.*s' in the same object", (int)second->key_n,
                second->key);
            return false;
        }
    return true;
}

static bool read_member(struct reader *r)
{
    const char *key;
    size_t key_n;
    if (r->p >= r->end || *r->p != '"')
        return fail(r, r->p, "expected a property's name in double quotes");
    r->p++;
    if (!read_string(r, &key, &key_n))
        return false;
    skip_space(r);
    if (r->p >= r->end || *r->p != ':')
        return fail(r, r->p, "expected ':' behind a property's name");
    r->p++;
    skip_space(r);
    return read_value(r, key, key_n);
}

static bool read_children(struct reader *r, uint32_t parent, char close)
{
    skip_space(r);
    if (r->p < r->end && *r->p == close) {
        r->p++;
        return true;
    }
    for (;;) {
        skip_space(r);
        if (!(close == '}' ? read_member(r) : read_value(r, NULL, 0)))
            return false;
        r->j->nodes.v[parent].n++;
        skip_space(r);
        if (r->p >= r->end)
            return fail(r, r->p, close == '}' ? "this object is never closed" : "this array is never closed");
        char c = *r->p++;
        if (c == close)
            return true;
        if (c != ',')
            return fail(r, r->p - 1, close == '}' ? "expected ',' or '}'" : "expected ',' or ']'");
    }
}

static bool read_compound(struct reader *r, const char *key, size_t key_n)
{
    uint32_t number = (uint32_t)r->j->nodes.n;
    bool is_object = *r->p == '{';
    if (r->depth >= CTF2_JSON_DEPTH) {
        tsdl_fail(r->j->l, r->p, ERR_LIMIT, "values nested more than %d deep", CTF2_JSON_DEPTH);
        return false;
    }
    add_node(r, is_object ? CTF2_OBJECT : CTF2_ARRAY, key, key_n);
    r->p++;
    r->depth++;
    bool ok = read_children(r, number, is_object ? '}' : ']');
    r->depth--;
    return ok && (!is_object || check_keys(r, number));
}

static bool read_value(struct reader *r, const char *key, size_t key_n)
{
    uint32_t number = (uint32_t)r->j->nodes.n;
    bool ok;
    if (r->p >= r->end)
        return fail(r, r->p, "the text ends where a value must follow");
    if (r->j->l->failed)
        return false;
    switch (*r->p) {
    case '{':
    case '[': ok = read_compound(r, key, key_n); break;
    case '"': {
        const char *s = NULL;
        size_t n = 0;
        add_node(r, CTF2_STRING, key, key_n);
        r->p++;
        ok = read_string(r, &s, &n);
        r->j->nodes.v[number].s = s;
        r->j->nodes.v[number].s_n = n;
        break;
    }
    case '-':
    case '0' ... '9': ok = read_number(r, key, key_n); break;
    default: ok = read_word(r, key, key_n);
    }
    if (!ok)
        return false;
    r->j->nodes.v[number].end = r->p;
    r->j->nodes.v[number].next = (uint32_t)r->j->nodes.n;
    return true;
}

const struct ctf2_node *ctf2_parse(struct ctf2_json *j, const char *begin, const char *end)
{
    struct reader r = {.j = j, .p = begin, .end = end};
    j->nodes.n = 0;
    skip_space(&r);
    if (!read_value(&r, NULL, 0))
        return NULL;
    skip_space(&r);
    if (r.p < end)
        fail(&r, r.p, "something follows behind the fragment's object");
    return j->l->failed ? NULL : j->nodes.v;
}

void ctf2_json_fini(struct ctf2_json *j)
{
    vec_free(&j->nodes);
    vec_free(&j->sorted);
}

/* ---- properties ---- */

bool ctf2_is(const struct ctf2_node *node, const char *text)
{
    return node->kind == CTF2_STRING && strlen(text) == node->s_n && !memcmp(node->s, text, node->s_n);
}

char *ctf2_text(struct arena *a, const struct ctf2_node *node)
{
    return arena_strndup(a, node->s, node->s_n);
}

static bool has_key(const struct ctf2_node *node, const char *name)
{
    return strlen(name) == node->key_n && !memcmp(node->key, name, node->key_n);
}

const struct ctf2_node *ctf2_get(const struct ctf2_json *j, const struct ctf2_node *object, const char *name)
{
    if (object->kind != CTF2_OBJECT)
        return NULL;
    for
        CTF2_EACH(j, object, member)
    if (has_key(member, name))
        return member;
    return NULL;
}

static const char *const kind_words[] = {"null", "a boolean", "a boolean", "an integer", "an integer beyond 64 bits",
    "a number that is no integer as written", "a string", "an array", "an object"};

const struct ctf2_node *ctf2_get_kind(
    struct ctf2_json *j, const struct ctf2_node *object, const char *name, enum ctf2_kind kind, bool needed)
{
    const struct ctf2_node *node = ctf2_get(j, object, name);
    if (!node && needed)
        tsdl_fail(j->l, object->at, ERR_FORMAT, "there is no property '%s'", name);
    if (node && node->kind != kind) {
        tsdl_fail(
            j->l, node->at, ERR_FORMAT, "'%s' must be %s, not %s", name, kind_words[kind], kind_words[node->kind]);
        return NULL;
    }
    return node;
}

void ctf2_get_count(struct ctf2_json *j, const struct ctf2_node *object, const char *name, bool needed, uint64_t least,
    uint64_t most, uint64_t *out)
{
    const struct ctf2_node *node = ctf2_get_kind(j, object, name, CTF2_INTEGER, needed);
    if (!node)
        return;
    if (node->negative || node->u < least)
        tsdl_fail(j->l, node->at, ERR_FORMAT, "'%s' is %.*s; it must be %llu at least", name,
            (int)(node->end - node->at), node->at, (unsigned long long)least);
    else if (node->u > most)
        tsdl_fail(j->l, node->at, ERR_LIMIT, "'%s' is %.*s; it can be %llu at most", name, (int)(node->end - node->at),
            node->at, (unsigned long long)most);
    else
        *out = node->u;
}

void ctf2_get_text(struct ctf2_json *j, const struct ctf2_node *object, const char *name, bool needed, struct arena *a,
    const char **out)
{
    const struct ctf2_node *node = ctf2_get_kind(j, object, name, CTF2_STRING, needed);
    if (node)
        *out = ctf2_text(a, node);
}

void ctf2_check_common(struct ctf2_json *j, const struct ctf2_node *object)
{
    const struct ctf2_node *extensions = ctf2_get_kind(j, object, "extensions", CTF2_OBJECT, false);
    ctf2_get_kind(j, object, "attributes", CTF2_OBJECT, false);
    if (!extensions)
        return;
    for
        CTF2_EACH(j, extensions, space)
        {
            if (space->kind != CTF2_OBJECT)
                tsdl_fail(j->l, space->at, ERR_FORMAT, "a namespace of extensions must be an object");
            else if (space->n) /* the preamble of this text declares none */
                tsdl_fail(j->l, space->at, ERR_FORMAT, "extension '%.*s' of '%.*s' is not declared by the preamble",
                    (int)space[1].key_n, space[1].key, (int)space->key_n, space->key);
        }
}

const struct ctf2_node *ctf2_unknown(
    const struct ctf2_json *j, const struct ctf2_node *object, const char *const *names)
{
    for
        CTF2_EACH(j, object, member)
        {
            const char *const *name = names;
            while (*name && !has_key(member, *name))
                name++;
            if (!*name && !has_key(member, "type") && !has_key(member, "attributes") && !has_key(member, "extensions"))
                return member;
        }
    return NULL;
}

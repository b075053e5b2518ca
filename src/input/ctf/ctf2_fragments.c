/* SPDX-License-Identifier: MIT */
/* Fragments of CTF 2 metadata: their bounds, their division into own and shared ones, and the place of an error. */
#include <stdio.h>
#include <string.h>

#include "ctf/ctf2.h"

/* ---- splitting ---- */

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* Returns the position after the string whose opening quote is at p; NULL: it is never closed. */
static const char *string_end(const char *p, const char *end, bool *escaped)
{
    for (p++; p < end; p++) {
        if (*p == '"')
            return p + 1;
        if (*p == '\\') {
            *escaped = true;
            p++;
        }
    }
    return NULL;
}

/* Returns the position after the object or array at p; NULL: the text ends first. *type: the value of the property
 * `type` at its top level, with its quotes, after which nothing is read if `for_type`; `escaped`: names there contain
 * escapes. */
static const char *object_end(const char *p, const char *end, struct tsdl_span *type, bool *escaped, bool for_type)
{
    size_t depth = 0;
    const char *key = NULL, *before = NULL;
    for (; p < end; p++) {
        if (*p == '"') {
            bool odd = false;
            const char *begin = p, *stop = string_end(p, end, &odd);
            if (!stop)
                return NULL;
            p = stop - 1;
            if (depth != 1)
                continue;
            *escaped |= odd;
            if (before && *before == ':' && key && !memcmp(key, "\"type\"", 6)) {
                *type = (struct tsdl_span){begin, stop};
                if (for_type && !*escaped)
                    return stop;
            } else if (!before || *before != ':')
                key = begin;
            before = begin;
            continue;
        }
        if (*p == '{' || *p == '[')
            depth++;
        if ((*p == '}' || *p == ']') && (depth == 0 || --depth == 0))
            return p + 1;
        if (depth == 1 && !is_space(*p))
            before = p;
    }
    return NULL;
}

struct ctf2_cursor ctf2_cursor(const char *text, const char *end)
{
    return (struct ctf2_cursor){text, end, memchr(text, '\x1e', (size_t)(end - text)) != NULL};
}

struct tsdl_span ctf2_next(struct ctf2_cursor *c)
{
    while (c->p < c->end && (is_space(*c->p) || *c->p == '\x1e'))
        c->p++;
    if (c->p == c->end)
        return (struct tsdl_span){NULL, NULL};
    const char *begin = c->p, *end = c->end;
    if (c->separated)
        end = memchr(begin, '\x1e', (size_t)(c->end - begin));
    else if (*begin == '{')
        end = object_end(begin, c->end, &(struct tsdl_span){NULL, NULL}, &(bool){false}, false);
    end = end ? end : c->end;
    c->p = end;
    while (end > begin && is_space(end[-1]))
        end--;
    return (struct tsdl_span){begin, end};
}

static const char *const types[] = {
    "preamble", "field-class-alias", "trace-class", "clock-class", "data-stream-class", "event-record-class"};

enum ctf2_fragment ctf2_type(struct tsdl_span s, bool *whole)
{
    struct tsdl_span type = {NULL, NULL};
    bool escaped = false;
    bool ended = object_end(s.begin, s.end, &type, &escaped, !whole) != NULL;
    if (whole)
        *whole = ended;
    if (escaped && ended) { /* rare: uses the parser */
        struct err ignored = {0};
        struct tsdl_lexer l = {.text = s.begin, .end = s.end, .e = &ignored, .is_bare = true};
        struct arena arena = {0};
        struct ctf2_json j = {.l = &l, .arena = &arena};
        const struct ctf2_node *root = ctf2_parse(&j, s.begin, s.end), *node = root ? ctf2_get(&j, root, "type") : NULL;
        int found = CTF2_UNKNOWN_FRAGMENT;
        for (int i = 0; node && i < CTF2_UNKNOWN_FRAGMENT; i++)
            if (ctf2_is(node, types[i]))
                found = i;
        ctf2_json_fini(&j);
        arena_fini(&arena);
        return (enum ctf2_fragment)found;
    }
    for (int i = 0; type.begin && i < CTF2_UNKNOWN_FRAGMENT; i++)
        if ((size_t)(type.end - type.begin) == strlen(types[i]) + 2 &&
            !memcmp(type.begin + 1, types[i], strlen(types[i])))
            return (enum ctf2_fragment)i;
    return CTF2_UNKNOWN_FRAGMENT;
}

/* ---- places ---- */

/* Writes the path of the innermost value that contains `at`. */
static void put_path(const struct ctf2_json *j, const struct ctf2_node *node, const char *at, char *out, size_t n)
{
    size_t used = 0;
    for (bool found = true; found;) {
        uint32_t i = 0;
        found = false;
        for
            CTF2_EACH(j, node, child)
            {
                if (at >= child->at && at < child->end) {
                    int more = node->kind == CTF2_ARRAY
                        ? snprintf(out + used, n - used, "[%u]", i)
                        : snprintf(out + used, n - used, "%s%.*s", used ? "." : "", (int)child->key_n, child->key);
                    used += more > 0 && (size_t)more < n - used ? (size_t)more : 0;
                    node = child;
                    found = true;
                    break;
                }
                i++;
            }
    }
}

void ctf2_where(const char *text, const char *end, const char *at, char *out, size_t n)
{
    struct ctf2_cursor c = ctf2_cursor(text, end);
    size_t number = 0;
    struct tsdl_span s;
    for (s = ctf2_next(&c); s.begin; s = ctf2_next(&c)) {
        number++;
        if (at < s.end || c.p >= c.end)
            break;
    }
    if (!s.begin) {
        snprintf(out, n, "fragment %zu", number);
        return;
    }
    struct err ignored = {0};
    struct tsdl_lexer l = {.text = text, .end = end, .e = &ignored, .is_json = true, .is_bare = true};
    struct arena arena = {0};
    struct ctf2_json j = {.l = &l, .arena = &arena};
    char path[256] = "";
    const struct ctf2_node *root = ctf2_parse(&j, s.begin, s.end);
    if (root)
        put_path(&j, root, at, path, sizeof path);
    else if (at >= s.begin)
        snprintf(path, sizeof path, "byte %zu of it", (size_t)(at - s.begin) + 1);
    snprintf(out, n, "fragment %zu%s%s", number, *path ? ", " : "", path);
    ctf2_json_fini(&j);
    arena_fini(&arena);
}

/* ---- the scan ---- */

struct scanner {
    struct tsdl_scan *scan;
    struct tsdl_lexer l;
    size_t n, n_streams;
    bool has_trace_class;
};

static void scan_trace_class(struct scanner *c, struct tsdl_span s)
{
    struct arena arena = {0};
    struct ctf2_json j = {.l = &c->l, .arena = &arena};
    const struct ctf2_node *root = ctf2_parse(&j, s.begin, s.end);
    if (c->has_trace_class)
        tsdl_fail(&c->l, s.begin, ERR_FORMAT, "a second trace class");
    if (c->n_streams)
        tsdl_fail(&c->l, s.begin, ERR_FORMAT, "the trace class must come before the data stream classes");
    c->has_trace_class = true;
    const struct ctf2_node *header = root ? ctf2_get(&j, root, "packet-header-field-class") : NULL;
    if (header) {
        c->scan->header = (struct tsdl_span){header->at, header->end};
        vec_push(&c->scan->shared, c->scan->header);
    }
    ctf2_json_fini(&j);
    arena_fini(&arena);
}

static void scan_fragment(struct scanner *c, struct tsdl_span s, enum ctf2_fragment type)
{
    if (c->n == 1 && type != CTF2_PREAMBLE)
        tsdl_fail(&c->l, s.begin, ERR_FORMAT, "the first fragment must be a preamble");
    if (c->n > 1 && type == CTF2_PREAMBLE)
        tsdl_fail(&c->l, s.begin, ERR_FORMAT, "a second preamble");
    switch (type) {
    case CTF2_TRACE_CLASS:
        scan_trace_class(c, s);
        vec_push(&c->scan->own, s);
        break;
    case CTF2_PREAMBLE:
    case CTF2_CLOCK_CLASS: vec_push(&c->scan->own, s); break;
    case CTF2_STREAM_CLASS:
        c->n_streams++;
        vec_push(&c->scan->own, s); /* also read as own part, for the order of clocks */
        vec_push(&c->scan->shared, s);
        break;
    default: vec_push(&c->scan->shared, s);
    }
    if (type == CTF2_STREAM_CLASS || type == CTF2_EVENT_CLASS)
        c->scan->n_declarations++;
}

int ctf2_scan(const char *text, size_t n, struct tsdl_scan *scan, struct err *e)
{
    struct err first = {0};
    struct scanner c = {.scan = scan, .l = {.text = text, .end = text + n, .e = &first, .is_json = true}};
    struct ctf2_cursor cursor = ctf2_cursor(text, text + n);
    *scan = (struct tsdl_scan){.is_ctf2 = true, .end = text, .trace = {text, text}};
    for (struct tsdl_span s = ctf2_next(&cursor), next; s.begin && !c.l.failed; s = next) {
        bool whole = true;
        next = ctf2_next(&cursor);
        enum ctf2_fragment type = ctf2_type(s, next.begin ? NULL : &whole);
        c.n++;
        if (!whole && !next.begin && *s.begin == '{' && c.n_streams) { /* the end is still to come */
            scan->cut = true;
            break;
        }
        if (!whole && !next.begin && *s.begin == '{')
            tsdl_fail(&c.l, s.begin, ERR_FORMAT, "the metadata end within this fragment");
        scan_fragment(&c, s, type);
        scan->end = s.end;
    }
    return c.l.failed ? err_set(e, first.code, "%s", first.text) : 0;
}

/* SPDX-License-Identifier: MIT */
/* Finds the top-level blocks of a metadata text without parsing their contents, and selects the parts that make the
 * schema. Opening many traces spends its time here. So the inside of blocks is skipped 16 bytes at a time: only braces,
 * quotes and slashes matter. */
#include <stdlib.h>
#include <string.h>

#include "ctf/tsdl.h"

typedef uint8_t bytes16 __attribute__((vector_size(16)));
typedef uint64_t words2 __attribute__((vector_size(16)));

static bool is_special(char c)
{
    return c == '{' || c == '}' || c == '"' || c == '\'' || c == '/';
}

static const char *quoted_end(const char *p, const char *end, char quote)
{
    for (; p < end; p++) {
        if (*p == '\\')
            p++;
        else if (*p == quote)
            return p + 1;
    }
    return NULL;
}

/* Returns the position after the special character at p and its token; NULL at the text's end. */
static const char *after_special(const char *p, const char *end, size_t *depth)
{
    switch (*p) {
    case '{': ++*depth; return p + 1;
    case '}': --*depth; return p + 1;
    case '/':
        if (end - p >= 2 && p[1] == '/')
            return memchr(p, '\n', (size_t)(end - p));
        if (end - p >= 2 && p[1] == '*') {
            const char *close = memmem(p + 2, (size_t)(end - p - 2), "*/", 2);
            return close ? close + 2 : NULL;
        }
        return p + 1;
    default: return quoted_end(p + 1, end, *p);
    }
}

const char *tsdl_block_end(const char *p, const char *end)
{
    size_t depth = 1;
    while (p) {
        while (end - p >= 16) {
            bytes16 v;
            memcpy(&v, p, 16);
            words2 hits = (words2)((v == '{') | (v == '}') | (v == '"') | (v == '\'') | (v == '/'));
            uint64_t low = hits[0], high = hits[1];
            if (low | high) {
                p += low ? __builtin_ctzll(low) >> 3 : 8 + (__builtin_ctzll(high) >> 3);
                break;
            }
            p += 16;
        }
        while (p < end && !is_special(*p))
            p++;
        if (p == end)
            return NULL;
        p = after_special(p, end, &depth);
        if (depth == 0)
            return p;
    }
    return NULL;
}

/* Reads uuid and byte order of the trace block; the parser reads the rest. Starts on the block's '{' and ends on its
 * '}'. */
static void scan_trace(struct tsdl_lexer *l, struct tsdl_scan *scan)
{
    tsdl_next(l);
    while (l->t.kind != '}' && l->t.kind != TSDL_END) {
        struct tsdl_token name = l->t;
        if (l->t.kind == '{')
            tsdl_skip_block(l);
        tsdl_next(l);
        if (l->t.kind != '=' || name.kind != TSDL_WORD)
            continue;
        tsdl_next(l);
        struct tsdl_token first = l->t;
        if (tsdl_is(&name, "uuid"))
            scan->uuid = first;
        if (tsdl_is(&name, "byte_order")) {
            struct tsdl_value v;
            tsdl_value(l, &v);
            int order = tsdl_byte_order(&v);
            if (order != 0 && order != 1)
                tsdl_fail(
                    l, first.s, ERR_FORMAT, "the trace's byte_order must be le or be, not %s", tsdl_show(l, &first).s);
            scan->byte_order = order;
        }
    }
}

static void add_shared(struct tsdl_scan *scan, const char *begin, const char *end)
{
    if (end > begin)
        vec_push(&scan->shared, ((struct tsdl_span){begin, end}));
}

/* Scans a top-level statement. Returns false if the text ends within it. */
static bool scan_statement(struct tsdl_lexer *l, struct tsdl_scan *scan)
{
    struct tsdl_token first = l->t;
    bool is_trace = tsdl_is(&first, "trace"), is_own = tsdl_is(&first, "env") || tsdl_is(&first, "clock");
    const char *block_end = NULL;
    for (; l->t.kind != ';'; tsdl_next(l)) {
        if (l->t.kind == TSDL_END)
            break;
        if (l->t.kind == '}') {
            tsdl_fail(l, l->t.s, ERR_FORMAT, "this '}' closes nothing");
            return true;
        }
        if (is_own && block_end)
            tsdl_expect(l, ';', "after a block");
        if (l->t.kind != '{')
            continue;
        if (!tsdl_block_end(l->p, l->end))
            return false;
        if (is_trace)
            scan_trace(l, scan);
        else
            tsdl_skip_block(l);
        if (l->t.kind == '}')
            block_end = l->p;
    }
    if (l->failed || (l->t.kind == TSDL_END && !block_end))
        return l->failed; /* the lexer has the error */
    if (is_trace && block_end) {
        if (scan->trace.begin)
            tsdl_fail(l, first.s, ERR_FORMAT, "a second trace block");
        scan->trace = (struct tsdl_span){first.s, block_end};
    } else if (is_own && block_end) {
        vec_push(&scan->own, ((struct tsdl_span){first.s, block_end}));
    } else if (tsdl_is(&first, "event") || tsdl_is(&first, "stream")) {
        scan->n_declarations++;
    }
    scan->end = l->t.kind == ';' ? l->p : block_end;
    tsdl_next(l);
    return true;
}

/* Explains a statement without end in a text that has nothing usable before it: names the wrong bracket, if there is
 * one. */
static void explain_cut(struct tsdl_lexer *l, const char *begin)
{
    const char *open[64];
    size_t n = 0;
    tsdl_lexer_init(l, l->text, begin, l->end, l->e);
    for (; l->t.kind != TSDL_END; tsdl_next(l)) {
        const char *bracket = l->t.kind < TSDL_WORD ? strchr("{[(}])", l->t.kind) : NULL;
        if (!bracket)
            continue;
        if (strchr("{[(", *bracket)) {
            if (n == sizeof open / sizeof *open)
                break;
            open[n++] = l->t.s;
            continue;
        }
        if (n > 0 &&
            ((*open[n - 1] == '{' && *bracket == '}') || (*open[n - 1] == '[' && *bracket == ']') ||
                (*open[n - 1] == '(' && *bracket == ')')))
            n--;
        else if (n > 0)
            tsdl_fail(l, l->t.s, ERR_FORMAT, "this '%c' does not close the '%c' of line %zu", *bracket, *open[n - 1],
                tsdl_line(l->text, open[n - 1]));
        else
            tsdl_fail(l, l->t.s, ERR_FORMAT, "this '%c' closes nothing", *bracket);
    }
    tsdl_fail(l, begin, ERR_FORMAT, "the text ends within the statement that begins here");
}

/* Sets the text without env and clock blocks and without the trace's uuid. */
static void find_shared(struct tsdl_scan *scan, const char *text)
{
    const char *p = text;
    bool uuid_done = scan->uuid.kind == TSDL_END;
    for (size_t i = 0; i <= scan->own.n; i++) {
        struct tsdl_span gap = i < scan->own.n ? scan->own.v[i] : (struct tsdl_span){scan->end, scan->end};
        if (!uuid_done && scan->uuid.s < gap.begin) {
            add_shared(scan, p, scan->uuid.s);
            p = scan->uuid.s + scan->uuid.n;
            uuid_done = true;
        }
        add_shared(scan, p, gap.begin);
        p = gap.end;
    }
}

int tsdl_scan(const char *text, size_t n, struct tsdl_scan *scan, struct err *e)
{
    *scan = (struct tsdl_scan){.end = text, .byte_order = -1};
    struct tsdl_lexer l;
    struct err first = {0};
    tsdl_lexer_init(&l, text, text, text + n, &first);
    while (l.t.kind != TSDL_END) {
        const char *begin = l.t.s;
        if (!scan_statement(&l, scan)) {
            scan->cut = true;
            if (scan->n_declarations == 0)
                explain_cut(&l, begin);
            break;
        }
    }
    if (l.failed && l.truncated && scan->n_declarations > 0 && scan->trace.begin) {
        scan->cut = true;
        l.failed = false;
    }
    if (!l.failed && !scan->trace.begin)
        tsdl_fail(&l, text, ERR_FORMAT, n == 0 ? "the metadata is empty" : "there is no trace block");
    if (!l.failed && scan->byte_order < 0)
        tsdl_fail(&l, scan->trace.begin, ERR_FORMAT, "the trace block has no byte_order");
    if (l.failed)
        return err_set(e, first.code, "%s", first.text);
    find_shared(scan, text);
    return 0;
}

void tsdl_scan_fini(struct tsdl_scan *scan)
{
    vec_free(&scan->own);
    vec_free(&scan->shared);
}

/* SPDX-License-Identifier: MIT */
/* Spans from JSON files. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/order.h"
#include "http/http.h"
#include "span/read.h"

enum { MOST_FILE_BYTES = 1 << 30 };

/* Span that was read; `order`: its position in the file. */
struct found {
    const struct span *span;
    uint64_t hash[2];
    size_t order;
};

static int by_ids(const void *a, const void *b)
{
    const struct found *x = a, *y = b;
    int ids = memcmp(x->span->trace_id, y->span->trace_id, SPAN_TRACE_BYTES);
    if (!ids)
        ids = memcmp(x->span->id, y->span->id, SPAN_ID_BYTES);
    if (ids)
        return ids;
    if (x->span->life != y->span->life)
        return order_of(y->span->life, x->span->life);
    if (x->span->life < SPAN_ENDED && x->span->end_ns != y->span->end_ns)
        return order_of(y->span->end_ns, x->span->end_ns);
    int same = memcmp(x->hash, y->hash, sizeof x->hash);
    return same ? same : order_of(x->order, y->order);
}

static int by_order(const void *a, const void *b)
{
    return order_of(((const struct found *)a)->order, ((const struct found *)b)->order);
}

/* Returns whether `next`, which follows `kept` in order of ids, adds information. */
static bool says_more(const struct found *kept, const struct found *next)
{
    if (memcmp(kept->span->trace_id, next->span->trace_id, SPAN_TRACE_BYTES) ||
        memcmp(kept->span->id, next->span->id, SPAN_ID_BYTES))
        return true;
    return next->span->life == SPAN_ENDED && memcmp(kept->hash, next->hash, sizeof kept->hash) != 0;
}

static size_t keep_unique(struct found *v, size_t n)
{
    size_t kept = 0;
    if (n)
        qsort(v, n, sizeof *v, by_ids);
    for (size_t i = 0; i < n; i++)
        if (!kept || says_more(&v[kept - 1], &v[i]))
            v[kept++] = v[i];
    if (kept)
        qsort(v, kept, sizeof *v, by_order);
    return kept;
}

static void take_records(const struct text *code, struct arena *arena, struct span_list *out)
{
    struct wire_in in = wire_of(code->v, code->n), origin, body;
    VEC(struct found) found = {0};
    struct span_origin *o = NULL;
    struct map_piece pieces[2] = {{0}};
    while (span_next_record(&in, &origin, &body)) {
        if (origin.at != origin.end) {
            pieces[0] = (struct map_piece){origin.at, (size_t)(origin.end - origin.at)};
            o = arena_new(arena, struct span_origin, 1);
            span_read_origin(&origin, arena, o);
            continue;
        }
        struct span *s = arena_new(arena, struct span, 1);
        struct found f = {.span = s, .order = found.n};
        pieces[1] = (struct map_piece){body.at, (size_t)(body.end - body.at)};
        map_hash_pieces(pieces, 2, f.hash);
        span_read(&body, arena, s);
        s->origin = o;
        vec_push(&found, f);
    }
    found.n = keep_unique(found.v, found.n);
    for (size_t i = 0; i < found.n; i++)
        vec_push(out, found.v[i].span);
    vec_free(&found);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Returns whether there is one value per line, that is, whether the first line is a whole value. */
static bool has_lines(const char *s, size_t n)
{
    const char *end = memchr(s, '\n', n);
    size_t last = end ? (size_t)(end - s) : 0;
    while (last && is_blank(s[last - 1]))
        last--;
    return last > 1 && ((s[0] == '{' && s[last - 1] == '}') || (s[0] == '[' && s[last - 1] == ']'));
}

static bool is_blank_line(const char *s, size_t n)
{
    while (n && is_blank(s[n - 1]))
        n--;
    return !n;
}

/* Reads line by line. A torn line, or one without spans, is reported as a refused span and does not affect the others.
 * An error is returned only if no line could be read. */
static int read_lines(struct span_making *m, const char *s, size_t n, struct err *e)
{
    int rc = 0;
    size_t number = 1, read = 0;
    for (size_t at = 0, length; at < n; at += length + 1, number++) {
        const char *end = memchr(s + at, '\n', n - at);
        struct err torn = {0};
        length = end ? (size_t)(end - (s + at)) : n - at;
        if (is_blank_line(s + at, length))
            continue;
        int failed = span_read_saved(m, s + at, length, &torn);
        read += !failed;
        if (!failed)
            continue;
        err_wrap(&torn, "line %zu", number);
        if (!m->told.refused++)
            snprintf(m->told.why, sizeof m->told.why, "%.200s", torn.text);
        if (!rc && e)
            *e = torn;
        rc = rc ? rc : failed;
    }
    return read ? 0 : rc;
}

/* Reads what follows a byte order mark and blanks. */
static int read_plain(struct span_making *m, const char *s, size_t n, struct err *e)
{
    static const char mark[] = "\xef\xbb\xbf";
    size_t at = n >= sizeof mark - 1 && !memcmp(s, mark, sizeof mark - 1) ? sizeof mark - 1 : 0;
    while (at < n && is_blank(s[at]))
        at++;
    if (at == n)
        return err_set(e, ERR_FORMAT, "the file is empty");
    return has_lines(s + at, n - at) ? read_lines(m, s + at, n - at, e) : span_read_saved(m, s + at, n - at, e);
}

static int read_packed(struct span_making *m, const char *s, size_t n, struct err *e)
{
    struct text plain = {.fd = -1};
    int rc = http_unpack(s, n, MOST_FILE_BYTES, &plain, e);
    if (!rc)
        rc = read_plain(m, plain.v, plain.n, e);
    text_fini(&plain);
    return rc;
}

int span_read_file(const char *path, struct arena *arena, struct span_list *out, struct span_told *told, struct err *e)
{
    struct span_making m = SPAN_MAKING;
    char *data;
    size_t n;
    int rc = file_read(path, MOST_FILE_BYTES, &data, &n, e);
    if (rc)
        return rc;
    bool packed = n > 1 && !memcmp(data, "\x1f\x8b", 2);
    rc = packed ? read_packed(&m, data, n, e) : read_plain(&m, data, n, e);
    free(data);
    if (rc)
        err_wrap(e, "%s", path);
    else
        take_records(&m.code, arena, out);
    *told = m.told;
    span_making_fini(&m);
    return rc;
}

static bool is_spans_file(const char *name)
{
    static const char *const ends[] = {".json", ".jsonl", ".json.gz", ".jsonl.gz"};
    size_t n = strlen(name);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (n > strlen(ends[i]) && !strcmp(name + n - strlen(ends[i]), ends[i]))
            return true;
    return false;
}

int span_list_files(const char *directory, struct arena *a, const char *const **out, size_t *n, struct err *e)
{
    VEC(const char *) files = {0};
    DIR *d = opendir(directory);
    if (!d)
        return err_sys(e, "%s", directory);
    for (struct dirent *x; (x = readdir(d));)
        if (is_spans_file(x->d_name))
            vec_push(&files, (const char *)arena_printf(a, "%s/%s", directory, x->d_name));
    closedir(d);
    if (files.n)
        qsort(files.v, files.n, sizeof *files.v, order_strings);
    const char **kept = arena_new(a, const char *, files.n + 1);
    for (size_t i = 0; i < files.n; i++)
        kept[i] = files.v[i];
    *out = kept;
    *n = files.n;
    vec_free(&files);
    return *n
        ? 0
        : err_set(e, ERR_NOTFOUND,
              "%s: no spans there (.jsonl, .json, also with .gz); a collector's store is named by --store", directory);
}

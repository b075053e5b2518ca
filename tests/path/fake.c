/* SPDX-License-Identifier: MIT */
#include "fake.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct fake_row *row_of(struct fake *f, struct path_row row)
{
    if (row.row < 0 || (size_t)row.row >= f->rows.n || f->rows.v[row.row].host != row.host)
        return NULL;
    return &f->rows.v[row.row];
}

static void count_question(struct fake *f)
{
    if (++f->questions > f->limit && f->limit)
        fail_msg("the walk has asked %llu questions and does not end", (unsigned long long)f->questions);
}

static enum path_reply life(void *arg, struct path_row row, int64_t *begin, int64_t *end)
{
    struct fake_row *r = row_of(arg, row);
    if (!r || !r->intervals.n)
        return PATH_REPLY_NONE;
    *begin = r->intervals.v[0].begin;
    *end = r->intervals.v[r->intervals.n - 1].end;
    return PATH_REPLY_FOUND;
}

static enum path_reply interval(void *arg, struct path_row row, int64_t ts, int64_t bound, struct path_interval *out)
{
    (void)bound;
    struct fake *f = arg;
    struct fake_row *r = row_of(f, row);
    count_question(f);
    if (!r)
        return PATH_REPLY_NONE;
    size_t lo = 0, hi = r->intervals.n;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (r->intervals.v[mid].end < ts)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (lo == r->intervals.n || r->intervals.v[lo].begin >= ts)
        return PATH_REPLY_NONE;
    const struct fake_interval *iv = &r->intervals.v[lo];
    *out = (struct path_interval){.begin = iv->begin,
        .end = iv->end,
        .state = iv->state,
        .cpu = iv->cpu,
        .detail = iv->detail,
        .id = lo,
        .polling = iv->polling,
        .assumed = iv->assumed};
    return PATH_REPLY_FOUND;
}

static void cause(
    void *arg, struct path_row row, const struct path_interval *iv, int64_t bound, bool origin, struct path_cause *out)
{
    (void)bound;
    struct fake *f = arg;
    struct fake_row *r = row_of(f, row);
    count_question(f);
    *out = (struct path_cause){.kind = PATH_CAUSE_NONE};
    if (r && origin && r->intervals.n && r->intervals.v[0].begin == iv->begin)
        *out = r->origin;
    else if (r && !origin)
        *out = r->intervals.v[iv->id].cause;
}

static const char *host_name(void *arg, int32_t host)
{
    const struct fake *f = arg;
    return f->hosts && host >= 0 ? f->hosts[host] : "host";
}

static void row_name(void *arg, struct path_row row, int64_t begin, int64_t end, int32_t *tid, const char **comm)
{
    struct fake_row *r = row_of(arg, row);
    *tid = r ? r->tid : -1;
    *comm = r ? r->comm : "";
}

struct path_source fake_source(struct fake *f)
{
    return (struct path_source){
        .arg = f, .life = life, .interval = interval, .cause = cause, .host_name = host_name, .row_name = row_name};
}

int32_t fake_add_row(struct fake *f, int32_t host, int32_t tid, const char *comm)
{
    vec_push(&f->rows, ((struct fake_row){.host = host, .tid = tid, .comm = comm}));
    return (int32_t)f->rows.n - 1;
}

struct fake_interval *fake_add(struct fake *f, int32_t row, int64_t begin, int64_t end, uint8_t state)
{
    struct fake_row *r = &f->rows.v[row];
    if (begin < 0)
        begin = r->intervals.v[r->intervals.n - 1].end;
    vec_push(&r->intervals, ((struct fake_interval){.begin = begin, .end = end, .state = state, .cpu = -1}));
    return &r->intervals.v[r->intervals.n - 1];
}

void fake_cause(struct fake *f, struct fake_interval *iv, uint8_t kind, int32_t from, int64_t ts)
{
    iv->cause = (struct path_cause){.kind = kind, .ts = ts, .from = {-1, -1}};
    if (from >= 0)
        iv->cause.from = (struct path_row){f->rows.v[from].host, from};
}

void fake_fini(struct fake *f)
{
    for (size_t i = 0; i < f->rows.n; i++)
        vec_free(&f->rows.v[i].intervals);
    vec_free(&f->rows);
}

/* SPDX-License-Identifier: MIT */
/* Update of a trace's stores: which chunks are current, and building the others.
 *
 * A chunk stays if the trace's data between its cuts is what it was made of, and it was made from the state that the
 * chunk before leaves now. Any other chunk is built again between the same cuts. The chunks behind it are built again
 * only until one leaves the state that the next was made from. Data behind the last cut is built up to where the
 * recording is known to be complete (ctf_trace_sealed_until). The rest is the last chunk, which is built anew with each
 * archive that comes.
 *
 * A trace of one directory is one chunk, if memory suffices: most are never continued. */
#include <stdlib.h>
#include <string.h>

#include "base/machine.h"
#include "base/mem.h"
#include "base/pool.h"
#include "ctf/feed.h"
#include "index/stores.h"

/* Memory that builders need per event held, including the last tables of their stores during writing. Measured on
 * traces of switches and wake-ups only, which are all kept. With call stacks as much again, for the samples while they
 * grow. A chunk of fewer than LEAST_EVENTS costs more than it saves. */
enum { BYTES_PER_EVENT = 48, BYTES_PER_STACKS = 48, LEAST_EVENTS = 1 << 12 };

static int64_t sealed_until(const struct index_files *f, const struct index_history *h)
{
    bool alone = ctf_trace_directories(f->trace) < 2;
    return h->disorder || (alone && h->chunks.n < 2) ? INT64_MIN : ctf_trace_sealed_until(f->trace);
}

bool index_history_fits(const struct index_files *f, const struct index_history *h)
{
    if (!h->chunks.n || h->chunks.v[h->chunks.n - 1].end < INT64_MAX)
        return false;
    for (size_t i = 0; i < h->chunks.n; i++)
        if (!index_chunk_current(f, &h->chunks.v[i]))
            return false;
    return true;
}

/* Returns whether the chunk ends too long before the recording's end to be kept. */
static bool is_old(const struct index_chunk *c, uint64_t keep_ns, int64_t end)
{
    return keep_ns && c->end < end && (uint64_t)end - (uint64_t)c->end >= keep_ns;
}

size_t index_most_events(const struct index_files *f, const struct index_options *o)
{
    unsigned at_once = o->threads ? o->threads : pool_cpus();
    uint64_t bytes = o->memory ? o->memory : machine_memory_bytes() / 4;
    bool stacks = f->is_kernel && kernel_has_stacks(f->trace);
    uint64_t events = bytes / at_once / (BYTES_PER_EVENT + (stacks ? BYTES_PER_STACKS : 0));
    return events > LEAST_EVENTS ? (size_t)events : LEAST_EVENTS;
}

bool index_history_settled(const struct index_files *f, const struct index_history *h, const struct index_options *o)
{
    size_t first;
    return !h->chunks.n ||
        (!is_old(&h->chunks.v[0], o->keep_ns, index_history_totals(h).end) &&
            !(o->join && !h->disorder && index_joins_next(h, index_most_events(f, o), &first)));
}

/* ---- building ---- */

static void keep(struct index_pass *p, const struct index_chunk *c)
{
    const struct index_totals *t = &c->totals;
    vec_push(&p->history->chunks, *c);
    p->events += t->events;
    p->first = t->begin < p->first ? t->begin : p->first;
    p->last = t->end > p->last ? t->end : p->last;
}

static void remove_others(const struct index_files *f, const struct index_history *h)
{
    uint32_t *numbers = mem_alloc((h->chunks.n + 1) * sizeof *numbers);
    for (size_t i = 0; i < h->chunks.n; i++)
        numbers[i] = h->chunks.v[i].number;
    index_remove_chunks(f->dir, numbers, h->chunks.n);
    free(numbers);
}

/* Files are replaced only when the manifest does not name them any more. */
static int forget_bad(const struct index_files *f, const struct index_history *old, const bool *good, struct err *e)
{
    struct index_history left = {.disorder = old->disorder};
    bool any = false;
    for (size_t i = 0; i < old->chunks.n; i++)
        any |= !good[i];
    for (size_t i = 0; i < old->chunks.n && good[i]; i++)
        vec_push(&left.chunks, old->chunks.v[i]);
    int rc = any ? index_history_write(f, &left, e) : 0;
    index_history_free(&left);
    return rc;
}

struct update {
    struct index_pass pass;
    const struct index_history *old;
    bool *good; /* by chunk of the old history */
    size_t most_events;
    bool built;
};

static int build(struct update *u, int64_t begin, int64_t end, int64_t cut, struct err *e)
{
    const struct index_range range = {begin, end, cut, u->most_events};
    u->built = true;
    return index_pass_run(&u->pass, &range, e);
}

/* A chunk that was carried the same as when it was made. */
static bool still_fits(const struct update *u, size_t i)
{
    const struct index_history *h = u->pass.history;
    const struct index_chunk *c = &u->old->chunks.v[i];
    uint64_t left = h->chunks.n ? h->chunks.v[h->chunks.n - 1].after : c->before;
    return u->good[i] && !u->pass.rows_ended && c->before == left;
}

static size_t forget_old(struct index_history *h, uint64_t keep_ns)
{
    int64_t end = index_history_totals(h).end;
    size_t n = 0;
    while (n < h->chunks.n && is_old(&h->chunks.v[n], keep_ns, end))
        n++;
    memmove(h->chunks.v, h->chunks.v + n, (h->chunks.n - n) * sizeof *h->chunks.v);
    h->chunks.n -= n;
    return n;
}

static int update(struct update *u, struct err *e)
{
    const struct index_files *f = u->pass.files;
    const struct index_history *old = u->old;
    struct index_history *h = u->pass.history;
    int64_t sealed = sealed_until(f, old), begin = old->chunks.n ? old->chunks.v[0].begin : f->from;
    int rc = 0;
    size_t i = 0;
    for (; i < old->chunks.n && !rc; i++) {
        const struct index_chunk *c = &old->chunks.v[i];
        bool is_last = c->end == INT64_MAX;
        if (!is_last && ctf_trace_directories(f->trace) > 1 && c->end > sealed)
            break;
        bool fits = still_fits(u, i);
        u->good[i] = fits; /* unfit: its number is free */
        if (fits)
            keep(&u->pass, c);
        else if (is_last)
            break;
        else
            rc = build(u, c->begin, c->end, c->end, e);
        begin = c->end;
    }
    if (!rc && begin < INT64_MAX)
        rc = build(u, begin, INT64_MAX, sealed > begin ? sealed : INT64_MAX, e);
    return rc ?: index_history_write(f, h, e);
}

/* Finds chunks that are made of the trace's present data, and are as they were written. *found: damage. */
static void find_good(const struct index_files *f, const struct index_history *old, bool *good, struct err *found)
{
    struct err e = {0};
    for (size_t i = 0; i < old->chunks.n; i++) {
        const struct index_chunk *c = &old->chunks.v[i];
        good[i] = index_chunk_current(f, c) &&
            (!index_chunk_sealed(f, c, &(struct err){0}) || !index_chunk_check(f, c, &e));
        if (e.code == ERR_FORMAT && found->code != ERR_FORMAT)
            *found = e;
    }
    if (!old->disorder)
        return;
    bool all = true;
    for (size_t i = 0; i < old->chunks.n; i++)
        all &= good[i];
    memset(good, all, old->chunks.n);
}

/* A registry that is damaged, or not of this host, is begun anew; then no chunk can stay: their rows are its rows. */
static int open_kind(struct update *u, struct err *e)
{
    const struct index_kind *kind = u->pass.kind;
    int rc = kind->open(u->pass.files, NULL, &u->pass.made, e);
    if (rc != ERR_FORMAT && rc != ERR_STALE)
        return rc;
    *e = (struct err){0};
    index_rows_forget(u->pass.files->dir);
    memset(u->good, false, u->old->chunks.n);
    return kind->open(u->pass.files, NULL, &u->pass.made, e);
}

int index_has_rows(const struct index_files *f, const struct index_history *h, struct err *e)
{
    struct kernel_rows *rows = NULL;
    int rc = kernel_rows_open(f->dir, index_host_key(f->trace), &rows, e);
    for (size_t i = 0; i < h->chunks.n && !rc; i++) {
        struct index_known k;
        if (index_chunk_read(f, &h->chunks.v[i], &k, &(struct err){0}))
            continue; /* rebuilt later */
        for (size_t n = 0; n < k.n_rows && !rc; n++)
            if (k.rows[n] >= kernel_rows_count(rows))
                rc = err_set(e, ERR_FORMAT, "%s: files of the registry of rows are missing", f->dir);
        store_close(k.store);
    }
    kernel_rows_close(rows);
    return rc;
}

/* Checks a touched registry against what was written. */
static void check_rows(const struct update *u, struct err *found)
{
    const struct index_files *f = u->pass.files;
    struct err e = {0};
    if (!u->old->chunks.n || u->old->rows == index_rows_stamp(f->dir) ||
        (!kernel_rows_check(f->dir, index_host_key(f->trace), &e) && !index_has_rows(f, u->old, &e)))
        return;
    index_rows_forget(f->dir);
    memset(u->good, false, u->old->chunks.n);
    *found = e;
}

/* ---- joining ---- */

/* The run is built again as one chunk; the others stay. */
static int join(struct update *u, size_t first, size_t n, struct err *e)
{
    struct index_history old = {.disorder = u->pass.history->disorder}, *h = u->pass.history;
    struct index_history before = *h;
    uint32_t above = 0;
    for (size_t i = 0; i < before.chunks.n; i++) {
        struct index_chunk c = before.chunks.v[i];
        above = c.number > above ? c.number : above;
        if (i > first && i < first + n)
            old.chunks.v[first].end = c.end;
        else
            vec_push(&old.chunks, c);
    }
    *h = (struct index_history){.disorder = before.disorder};
    u->old = u->pass.old = &old;
    u->good = mem_resize(u->good, old.chunks.n + 1);
    u->pass.taken = u->good;
    u->pass.above = above;
    u->pass.rows_ended = false;
    u->pass.events = 0;
    u->pass.first = INT64_MAX;
    u->pass.last = INT64_MIN;
    memset(u->good, true, old.chunks.n);
    u->good[first] = false;
    int rc = update(u, e);
    index_history_free(&before);
    index_history_free(&old);
    return rc;
}

static int join_small(struct update *u, struct err *e)
{
    size_t first, n;
    int rc = 0;
    while (!rc && !u->pass.history->disorder && (n = index_joins_next(u->pass.history, u->most_events, &first)) > 0)
        rc = join(u, first, n, e);
    return rc;
}

/* ---- the whole update ---- */

static struct update update_of(const struct index_files *f, struct index_history *h, const struct index_options *o)
{
    struct update u = {.pass = {.files = f,
                           .options = o,
                           .kind = f->is_kernel ? &index_kernel : &index_user,
                           .history = h,
                           .first = INT64_MAX,
                           .last = INT64_MIN,
                           .share = {.bytes = index_stream_bytes(f->trace)}},
        .most_events = index_most_events(f, o)};
    int64_t end = 0;
    ctf_trace_span(f->trace, &u.pass.share.begin, &end);
    u.pass.share.span = (double)end - (double)u.pass.share.begin;
    return u;
}

int index_update(const struct index_files *f, struct index_history *h, const struct index_options *o, bool *built,
    struct err *found, struct err *e)
{
    struct index_history old = *h;
    old.disorder |= !ctf_trace_is_ordered(f->trace, NULL);
    struct update u = update_of(f, h, o);
    *h = (struct index_history){.disorder = old.disorder};
    u.pass.old = u.old = &old;
    u.pass.taken = u.good = mem_zalloc(old.chunks.n + 1);
    if (!o->force)
        find_good(f, &old, u.good, found);
    if (f->is_kernel)
        check_rows(&u, found);
    int rc = open_kind(&u, e);
    if (!rc) {
        rc = forget_bad(f, &old, u.good, e);
        if (o->force || (old.disorder && old.chunks.n && !u.good[0]))
            old.chunks.n = 0; /* one pass over everything */
        rc = rc ?: update(&u, e);
        if (!rc && o->join)
            rc = join_small(&u, e);
        u.pass.kind->close(u.pass.made);
    }
    if (!rc && forget_old(h, o->keep_ns))
        rc = index_history_write(f, h, e);
    if (!rc)
        remove_others(f, h);
    *built = u.built && !u.pass.not_carried;
    progress_add(o->progress, u.pass.share.bytes - u.pass.share.reported);
    index_history_free(&old);
    free(u.good);
    return rc;
}

int index_join(
    const struct index_files *f, struct index_history *h, const struct index_options *o, bool *joined, struct err *e)
{
    size_t first, n = h->disorder ? 0 : index_joins_next(h, index_most_events(f, o), &first);
    *joined = false;
    if (!n)
        return 0;
    struct update u = update_of(f, h, o);
    int rc = u.pass.kind->open(f, NULL, &u.pass.made, e);
    if (rc)
        return rc;
    rc = join(&u, first, n, e);
    if (!rc)
        remove_others(f, h);
    *joined = !rc;
    u.pass.kind->close(u.pass.made);
    free(u.good);
    return rc;
}

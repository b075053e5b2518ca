/* SPDX-License-Identifier: MIT */
/* Reads a stretch of a trace once, and builds its chunks of it. */
#include <stdlib.h>

#include "base/map.h"
#include "index/stores.h"

uint64_t index_stream_bytes(const struct ctf_trace *t)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < ctf_trace_streams(t); i++) {
        struct ctf_stream_info s;
        ctf_trace_stream(t, i, &s);
        sum += s.bytes;
    }
    return sum;
}

static const struct ctf_loss *loss_of(const struct ctf_event *ev)
{
    return (const struct ctf_loss *)(const void *)ev->data;
}

size_t index_take_times(const struct ctf_event *ev, size_t n, int64_t *times, struct index_totals *sum, bool *disorder)
{
    int64_t begin = sum->begin, end = sum->end;
    size_t events = 0;
    bool back = false;
    for (size_t i = 0; i < n; i++) {
        int64_t ts = ev[i].ts;
        if (__builtin_expect(ev[i].cls->item == CTF_EVENT, 1)) {
            times[events++] = ts;
            back |= ts < end;
            end = ts > end ? ts : end;
            begin = ts < begin ? ts : begin;
        } else if (ev[i].cls->item == CTF_LOST_EVENTS) {
            sum->lost_events += loss_of(&ev[i])->count;
        }
    }
    sum->begin = begin;
    sum->end = end;
    sum->events += events;
    *disorder |= back;
    return events;
}

/* Bytes of the trace that are done, judged by time. */
static void report(struct index_share *s, struct progress *progress, int64_t ts)
{
    double share = s->span > 0 ? ((double)ts - (double)s->begin) / s->span : 1;
    uint64_t now = share < 0 ? 0 : share > 1 ? s->bytes : (uint64_t)(share * (double)s->bytes);
    if (now > s->reported + (s->bytes >> 8)) {
        progress_add(progress, now - s->reported);
        s->reported = now;
    }
}

/* Interval between signs of life: some 100 000 to 500 000 events, which take less than a second. */
enum { BATCHES_PER_SIGN = 1024 };

struct reading {
    struct index_pass *pass;
    const struct index_range *range;
    struct ctf_merge *merge;
    VEC(uint64_t) told; /* count of each problem of the merge in earlier chunks */
    int64_t cut;        /* next known cut; the range's end: none */
    int64_t greatest;   /* time so far */
    uint64_t batches;
    /* State of the chunk that is being built: */
    struct index_chunk chunk;
    struct index_known before;
    struct types_builder *types;
    struct store_writer *file;
};

/* ---- chunks ---- */

static bool is_taken(const struct index_pass *p, uint32_t number)
{
    for (size_t i = 0; i < p->history->chunks.n; i++)
        if (p->history->chunks.v[i].number == number)
            return true;
    for (size_t i = 0; i < p->old->chunks.n; i++)
        if (p->taken[i] && p->old->chunks.v[i].number == number)
            return true;
    return false;
}

static uint32_t free_number(const struct index_pass *p)
{
    uint32_t number = p->above + 1;
    while (is_taken(p, number))
        number++;
    return number;
}

static struct store_place place_of(const struct reading *r)
{
    return (struct store_place){index_path(r->pass->files, INDEX_CHUNK, r->chunk.number), r->file};
}

static int begin_chunk(struct reading *r, int64_t begin, struct err *e)
{
    struct index_pass *p = r->pass;
    const struct index_files *f = p->files;
    const struct index_history *h = p->history;
    const struct index_chunk *last = h->chunks.n ? &h->chunks.v[h->chunks.n - 1] : NULL;
    r->chunk = (struct index_chunk){.begin = begin,
        .before = last && last->end == begin ? last->after : 0,
        .totals = {.begin = INT64_MAX, .end = INT64_MIN},
        .number = free_number(p)};
    r->chunk.key = map_mix(
        index_key(f->trace, f->is_kernel) + map_mix((uint64_t)begin + r->chunk.number) + r->chunk.before);
    r->types = index_types_builder_new(f->trace);
    r->file = index_chunk_create(f, &r->chunk);
    int rc = r->chunk.before ? index_chunk_read(f, last, &r->before, e) : 0;
    rc = rc ?: r->chunk.before ? index_chunk_carry(f, last, &r->before, e) : 0;
    rc = rc ?: p->kind->begin(p->made, &r->chunk, place_of(r), r->chunk.before ? &r->before : NULL, e);
    p->not_carried = rc && r->chunk.before;
    return rc;
}

static void drop_chunk(struct reading *r)
{
    store_close(r->before.store);
    index_types_builder_free(r->types);
    store_abort(r->file);
    r->before = (struct index_known){0};
    r->types = NULL;
    r->file = NULL;
}

/* Appends problems found since the chunk before, in packets that end before `end`. A packet across the cut is read for
 * both chunks, maybe by two passes; it is reported where it ends. */
static void take_problems(struct reading *r, int64_t end, struct text *out)
{
    const struct ctf_problem *found;
    size_t n = ctf_merge_problems(r->merge, &found);
    for (size_t i = 0; i < n; i++) {
        if (i == r->told.n)
            vec_push(&r->told, 0);
        if (found[i].end >= end && end < INT64_MAX)
            continue;
        if (found[i].count > r->told.v[i])
            text_printf(out, "%llu %s\n", (unsigned long long)(found[i].count - r->told.v[i]), found[i].text);
        r->told.v[i] = found[i].count;
    }
}

static int end_chunk(struct reading *r, int64_t end, struct err *e)
{
    struct index_pass *p = r->pass;
    struct index_outcome o = {.carry = {.fd = -1}};
    struct text problems = {.fd = -1};
    bool is_last = end == INT64_MAX;
    struct index_totals *t = &r->chunk.totals;
    take_problems(r, end, &problems);
    p->history->disorder |= t->begin < r->chunk.begin;
    r->chunk.end = end;
    r->chunk.packets = ctf_trace_range_fingerprint(p->files->trace, r->chunk.begin, end);
    p->first = t->begin < p->first ? t->begin : p->first;
    p->last = t->end > p->last ? t->end : p->last;
    p->events += t->events;
    if (is_last && t->begin > t->end)
        t->begin = t->end = p->last > INT64_MIN ? p->last : p->share.begin;
    int rc = ctf_merge_intact(r->merge, e);
    rc = rc ?: is_last ? p->kind->finish(p->made, &r->chunk, &o, e) : p->kind->cut(p->made, &r->chunk, &o, e);
    rc = rc ?: index_counts_write(place_of(r), &r->chunk, r->merge, e);
    r->chunk.after = o.after;
    if (!rc) {
        rc = index_chunk_write(r->file, &o, &problems, r->types, e);
        r->file = NULL;
    }
    rc = rc ?: p->kind->save(p->made, e);
    if (!rc)
        vec_push(&p->history->chunks, r->chunk);
    /* Other ranges would write a manifest without the chunks behind. The last chunk completes the stores, and is
     * written at the very end. */
    if (!rc && r->range->end == INT64_MAX && !is_last)
        rc = index_history_write(p->files, p->history, e);
    p->rows_ended |= o.rows_ended;
    text_fini(&problems);
    index_outcome_free(&o);
    drop_chunk(r);
    return rc;
}

static int cut_chunk(struct reading *r, struct err *e)
{
    int64_t at = r->cut;
    int rc = end_chunk(r, at, e);
    r->cut = at < r->range->cut ? r->range->cut : r->range->end;
    return rc ?: begin_chunk(r, at, e);
}

/* ---- events ---- */

static int feed(struct reading *r, const struct ctf_event *ev, size_t n, struct err *e)
{
    struct index_pass *p = r->pass;
    const struct index_options *o = p->options;
    const struct index_totals *t = &r->chunk.totals;
    int64_t times[INDEX_MOST_BATCH];
    size_t events = index_take_times(ev, n, times, &r->chunk.totals, &p->history->disorder);
    int rc = mem_check("reading the events", e);
    rc = rc ?: p->kind->feed(p->made, ev, n, times, events, e);
    r->chunk.began = p->kind->began(p->made);
    if (o->tell && events)
        o->tell(o->tell_arg, p->files->trace, events, t->begin < p->first ? t->begin : p->first,
            t->end > p->last ? t->end : p->last);
    index_types_builder_add(r->types, ev, n);
    report(&p->share, o->progress, ev[n - 1].ts);
    r->greatest = ev[n - 1].ts > r->greatest ? ev[n - 1].ts : r->greatest;
    return rc;
}

/* Returns how many of n events lie before the next cut. */
static size_t up_to_cut(const struct reading *r, const struct ctf_event *ev, size_t n)
{
    size_t i = 0;
    if (r->cut == INT64_MAX)
        return n;
    while (i < n && ev[i].ts < r->cut)
        i++;
    return i;
}

size_t index_drop_earlier(struct ctf_event *ev, size_t n, int64_t begin)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (ev[i].cls->item == CTF_EVENT || ev[i].ts > begin || loss_of(&ev[i])->begin >= begin)
            ev[kept++] = ev[i];
    return kept;
}

static int feed_batch(struct reading *r, struct ctf_event *ev, size_t n, struct err *e)
{
    const struct index_range *range = r->range;
    int rc = 0;
    if (range->begin > r->pass->files->from && ev[0].ts <= range->begin)
        n = index_drop_earlier(ev, n, range->begin);
    for (size_t i = 0; i < n && !rc;) {
        size_t k = up_to_cut(r, ev + i, n - i);
        if (k)
            rc = feed(r, ev + i, k, e);
        i += k;
        if (i < n && !rc)
            rc = cut_chunk(r, e);
    }
    /* Cut between two times: all events of one time are in one chunk. */
    if (!rc && index_chunk_held(&r->chunk) >= range->most_events && r->greatest < INT64_MAX - 1 &&
        r->greatest + 1 < r->cut)
        r->cut = r->greatest + 1;
    return rc;
}

/* Gives a sign of life to those who wait for the lock, and checks whether the caller has cancelled. */
static int look_up(const struct reading *r, struct err *e)
{
    const struct index_pass *p = r->pass;
    const struct index_options *o = p->options;
    if (p->files->lock >= 0)
        index_lock_alive(p->files->lock);
    return o->stop && o->stop(o->stop_arg)
        ? err_set(e, ERR_CANCELLED, "%s: was stopped", ctf_trace_path(p->files->trace))
        : 0;
}

static int read_range(struct reading *r, struct err *e)
{
    struct index_pass *p = r->pass;
    struct ctf_event *batch = mem_alloc(sizeof *batch * p->kind->batch);
    int rc = begin_chunk(r, r->range->begin, e);
    for (size_t n; !rc && (n = ctf_merge_next(r->merge, batch, p->kind->batch)) > 0;) {
        if (r->batches++ % BATCHES_PER_SIGN == 0)
            rc = look_up(r, e);
        rc = rc ?: feed_batch(r, batch, n, e);
    }
    free(batch);
    while (!rc && r->cut < r->range->end)
        rc = cut_chunk(r, e);
    rc = rc ?: end_chunk(r, r->range->end, e);
    if (rc)
        drop_chunk(r);
    return rc;
}

int index_pass_run(struct index_pass *p, const struct index_range *range, struct err *e)
{
    const struct ctf_trace *t = p->files->trace;
    struct ctf_source source = {.trace = (struct ctf_trace *)t};
    struct reading r = {.pass = p, .range = range, .cut = range->cut, .greatest = INT64_MIN};
    struct ctf_window window = {range->begin, range->end == INT64_MAX ? INT64_MAX : range->end - 1};
    window.end = p->files->until < window.end ? p->files->until : window.end;
    int rc = ctf_merge_new(&source, 1, window, -1, &r.merge, e);
    if (rc)
        return rc;
    ctf_merge_count(r.merge);
    rc = read_range(&r, e);
    ctf_merge_free(r.merge);
    vec_free(&r.told);
    return rc;
}

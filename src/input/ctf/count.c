/* SPDX-License-Identifier: MIT */
#include "ctf/count.h"

#include <stdlib.h>

#include "base/pool.h"

/* MARK_ITEMS: finding an item means decoding up to this many per stream; a mark takes 32 bytes. */
enum { MARK_ITEMS = 512, BATCH = 256 };

/* ---- counting while items are read ---- */

void ctf_count_packet(struct ctf_track_count *c, uint32_t packet, uint64_t cycles)
{
    struct ctf_counted one = {packet, {.cycles = cycles, .first = INT64_MAX, .last = INT64_MIN}};
    vec_push(&c->packets, one);
    c->marked = 0;
    c->last = INT64_MIN;
}

static struct ctf_packet_count *current(const struct ctf_track_count *c)
{
    return &c->packets.v[c->packets.n - 1].count;
}

size_t ctf_count_room(const struct ctf_track_count *c, size_t max)
{
    uint64_t since = current(c)->items - c->marked, left = since < MARK_ITEMS ? MARK_ITEMS - since : MARK_ITEMS;
    return left < max ? (size_t)left : max;
}

static void set_mark(
    struct ctf_track_count *c, struct ctf_packet_count *p, const struct ctf_event *ev, uint64_t pos, uint64_t cycles)
{
    struct ctf_mark m = {.before = p->items, .pos_bits = pos, .cycles = cycles, .first = ev->ts};
    vec_push(&c->marks, m);
    p->marks++;
    c->marked = p->items;
}

void ctf_count_items(struct ctf_track_count *c, const struct ctf_event *ev, size_t n, uint64_t pos, uint64_t cycles)
{
    struct ctf_packet_count *p = current(c);
    int64_t last = c->last, first = p->first, greatest = p->last;
    bool disorder = false;
    if (n && pos != UINT64_MAX && p->items - c->marked >= MARK_ITEMS)
        set_mark(c, p, ev, pos, cycles);
    for (size_t i = 0; i < n; i++) {
        disorder |= ev[i].ts < last;
        last = ev[i].ts;
        first = last < first ? last : first;
        greatest = last > greatest ? last : greatest;
    }
    c->last = last;
    p->disorder |= disorder;
    p->first = first;
    p->last = greatest;
    p->items += n;
}

void ctf_count_fini(struct ctf_track_count *c)
{
    vec_free(&c->packets);
    vec_free(&c->marks);
}

/* ---- counts found ---- */

struct ctf_found **ctf_found_new(const struct ctf_trace *t)
{
    struct ctf_found **found = mem_zalloc(sizeof *found * (t->streams.n + 1));
    for (size_t i = 0; i < t->streams.n; i++)
        found[i] = mem_zalloc(sizeof *found[i] * (t->streams.v[i].packets.n + 1));
    return found;
}

void ctf_found_free(const struct ctf_trace *t, struct ctf_found **found)
{
    for (size_t i = 0; i < t->streams.n; i++)
        free(found[i]);
    free(found);
}

void ctf_found_track(struct ctf_found *of_stream, const struct ctf_track_count *c)
{
    const struct ctf_mark *marks = c->marks.v;
    for (size_t i = 0; i < c->packets.n; i++) {
        const struct ctf_counted *p = &c->packets.v[i];
        of_stream[p->packet] = (struct ctf_found){&p->count, marks};
        if (p->count.marks)
            marks += p->count.marks;
    }
}

/* ---- storing counts in the trace ---- */

static struct ctf_mark *gather(const struct ctf_stream *s, const struct ctf_found *found)
{
    size_t n = 0;
    for (size_t k = 0; k < s->packets.n; k++)
        n += found[k].count->marks;
    struct ctf_mark *marks = mem_alloc(sizeof *marks * (n + 1)), *at = marks;
    for (size_t k = 0; k < s->packets.n; at += found[k++].count->marks)
        if (found[k].count->marks)
            memcpy(at, found[k].marks, sizeof *at * found[k].count->marks);
    return marks;
}

/* Stores the counts. Packets without items get the time of the item before them, so that times ascend in a track. */
static void set_stream(struct ctf_stream *s, const struct ctf_found *found)
{
    struct {
        uint64_t items;
        int64_t last;
    } tracks[256];
    uint32_t mark = 0;
    for (size_t i = 0; i < 256; i++) {
        tracks[i].items = 0;
        tracks[i].last = INT64_MIN;
    }
    s->marks = gather(s, found);
    for (size_t k = 0; k < s->packets.n; k++) {
        struct ctf_packet *p = &s->packets.v[k];
        const struct ctf_packet_count *c = found[k].count;
        p->items = c->items;
        if (!s->plan->has_begin)
            p->cycles = c->cycles;
        p->first = c->items ? c->first : tracks[p->track].last;
        p->last = c->items ? c->last : tracks[p->track].last;
        p->before = tracks[p->track].items;
        p->mark = mark;
        p->marks = c->marks;
        mark += c->marks;
        s->disorder |= c->disorder || (c->items && c->first < tracks[p->track].last);
        tracks[p->track].items += c->items;
        tracks[p->track].last = p->last > tracks[p->track].last ? p->last : tracks[p->track].last;
        if (ctf_stream_untimed(s) && c->items) {
            s->begin = c->first < s->begin ? c->first : s->begin;
            s->end = c->last > s->end ? c->last : s->end;
        }
    }
}

/* Stores the counts, the only change to an open trace; readers of counted fields call ctf_trace_count first. */
void ctf_counts_take(const struct ctf_trace *t, struct ctf_found *const *found)
{
    struct ctf_trace *w = (struct ctf_trace *)t;
    pthread_mutex_lock(&w->lock);
    if (!atomic_load_explicit(&w->counted, memory_order_relaxed)) {
        for (size_t i = 0; i < t->streams.n; i++)
            set_stream(&w->streams.v[i], found[i]);
        atomic_store_explicit(&w->counted, true, memory_order_release);
    }
    pthread_mutex_unlock(&w->lock);
}

/* ---- counting by reading ---- */

struct count_job {
    const struct ctf_trace *trace;
    struct ctf_found **found;
    struct ctf_track_count (*tracks)[CTF_TRACKS_MAX]; /* tracks by stream, with the packets that had no counts */
    atomic_bool failed;                               /* a packet could not be read */
};

static bool count_packet(const struct ctf_trace *t, const struct ctf_stream *s, uint32_t k, struct ctf_track_count *c,
    struct file_map *window, struct ctf_decoder *d)
{
    const struct ctf_packet *p = &s->packets.v[k];
    struct ctf_event ev[BATCH];
    const uint8_t *data = ctf_packet_data(t, p, window, NULL);
    if (!data)
        return false;
    ctf_count_packet(c, k, s->plan->has_begin ? 0 : d->cycles);
    for (uint32_t i = 0; i < p->n_losses; i++)
        ctf_count_items(c, &(struct ctf_event){.ts = s->losses.v[p->loss + i].ts}, 1, UINT64_MAX, 0);
    ctf_packet_open(t, s, p, data, d);
    for (;;) {
        uint64_t pos = d->pos, cycles = d->cycles;
        size_t n = ctf_decode(d, ev, ctf_count_room(c, BATCH));
        if (!n)
            return true;
        ctf_count_items(c, ev, n, pos, cycles);
    }
}

/* Returns whether all packets must be read because one must: without packet times, the clock runs on from one packet to
 * the next. */
static bool needs_all(const struct ctf_stream *s, const struct ctf_found *found)
{
    bool all = false;
    for (size_t k = 0; k < s->packets.n && !s->plan->has_begin; k++)
        all |= !found[k].count;
    return all;
}

static void count_stream(void *arg, size_t i)
{
    struct count_job *job = arg;
    const struct ctf_stream *s = &job->trace->streams.v[i];
    struct ctf_decoder *d = mem_zalloc(sizeof *d);
    struct file_map window = {0};
    bool all = needs_all(s, job->found[i]);
    for (uint32_t k = 0; k < s->packets.n; k++)
        if ((all || !job->found[i][k].count) &&
            !count_packet(job->trace, s, k, &job->tracks[i][s->packets.v[k].track], &window, d))
            atomic_store(&job->failed, true);
    file_map_close(&window);
    free(d);
    for (uint32_t track = 0; track < s->tracks; track++)
        ctf_found_track(job->found[i], &job->tracks[i][track]);
}

static void count_unknown(struct ctf_trace *t)
{
    struct count_job job = {.trace = t, .found = ctf_found_new(t)};
    job.tracks = mem_zalloc(sizeof *job.tracks * (t->streams.n + 1));
    if (!ctf_recall_find(t, job.found))
        pool_run(t->streams.n, 0, count_stream, &job);
    if (!atomic_load(&job.failed) && !ctf_trace_intact(t, NULL))
        ctf_counts_take(t, job.found);
    for (size_t i = 0; i < t->streams.n; i++)
        for (uint32_t track = 0; track < CTF_TRACKS_MAX; track++)
            ctf_count_fini(&job.tracks[i][track]);
    free(job.tracks);
    ctf_found_free(t, job.found);
}

void ctf_trace_count(const struct ctf_trace *t)
{
    if (atomic_load_explicit(&t->counted, memory_order_acquire) || t->growing || t->fed)
        return;
    struct ctf_trace *w = (struct ctf_trace *)t;
    pthread_mutex_lock(&w->counting); /* reader; others wait */
    if (!atomic_load_explicit(&t->counted, memory_order_acquire))
        count_unknown(w);
    pthread_mutex_unlock(&w->counting);
}

uint64_t ctf_trace_items(const struct ctf_trace *t)
{
    uint64_t sum = 0;
    ctf_trace_count(t);
    for (size_t i = 0; i < t->streams.n; i++)
        for (size_t k = 0; k < t->streams.v[i].packets.n; k++)
            sum += t->streams.v[i].packets.v[k].items;
    return sum;
}

/* ---- times of streams; some are known only after counting ---- */

void ctf_trace_stream(const struct ctf_trace *t, size_t i, struct ctf_stream_info *out)
{
    const struct ctf_stream *s = &t->streams.v[i];
    if (ctf_stream_untimed(s))
        ctf_trace_count(t);
    *out = (struct ctf_stream_info){.name = s->name,
        .class_id = s->plan->sc->id,
        .instance_id = s->instance_id,
        .cpu = s->cpu,
        .packets = s->packets.n,
        .lost_events = s->lost_events,
        .lost_packets = s->lost_packets,
        .bytes = s->bytes,
        .begin = s->begin,
        .end = s->end};
    if (s->begin > s->end)
        out->begin = out->end = 0;
}

bool ctf_trace_span(const struct ctf_trace *t, int64_t *begin, int64_t *end)
{
    *begin = INT64_MAX;
    *end = INT64_MIN;
    for (size_t i = 0; i < t->streams.n; i++) {
        const struct ctf_stream *s = &t->streams.v[i];
        if (ctf_stream_untimed(s))
            ctf_trace_count(t);
        if (s->plan->sc->clock < 0 || s->begin > s->end)
            continue;
        *begin = s->begin < *begin ? s->begin : *begin;
        *end = s->end > *end ? s->end : *end;
    }
    if (*begin > *end) {
        *begin = *end = 0;
        return false;
    }
    return true;
}

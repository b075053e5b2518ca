#include "ctf/count.h"

#include <stdlib.h>

#include "base/order.h"
#include "base/pool.h"

/* Finding an item means decoding up to so many per stream; a mark takes 32 bytes. */
enum { MARK_ITEMS = 512, BATCH = 256 };

/* ---- while items are read ---- */

void ctf_count_packet(struct ctf_track_count *c, uint32_t packet, uint64_t cycles)
{
    c->packet = packet;
    c->marked = 0;
    c->packets[packet] = (struct ctf_packet_count){.cycles = cycles, .first = INT64_MAX, .last = INT64_MIN};
}

size_t ctf_count_room(const struct ctf_track_count *c, size_t max)
{
    uint64_t since = c->packets[c->packet].items - c->marked,
             left = since < MARK_ITEMS ? MARK_ITEMS - since : MARK_ITEMS;
    return left < max ? (size_t)left : max;
}

static void set_mark(
    struct ctf_track_count *c, struct ctf_packet_count *p, const struct ctf_event *ev, uint64_t pos, uint64_t cycles)
{
    struct ctf_track_mark m = {c->packet, {.before = p->items, .pos_bits = pos, .cycles = cycles, .first = ev->ts}};
    vec_push(&c->marks, m);
    p->marks++;
    c->marked = p->items;
}

void ctf_count_items(struct ctf_track_count *c, const struct ctf_event *ev, size_t n, uint64_t pos, uint64_t cycles)
{
    struct ctf_packet_count *p = &c->packets[c->packet];
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
    c->disorder |= disorder;
    p->first = first;
    p->last = greatest;
    p->items += n;
}

/* ---- what the trace then knows ---- */

/* marks: of all packets in order; taken over. Packets without items get the time of the item before them, so that times
 * ascend in a track. */
static void set_stream(struct ctf_stream *s, const struct ctf_packet_count *packets, struct ctf_mark *marks)
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
    s->marks = marks;
    for (size_t k = 0; k < s->packets.n; k++) {
        struct ctf_packet *p = &s->packets.v[k];
        const struct ctf_packet_count *c = &packets[k];
        p->items = c->items;
        if (!s->plan->has_begin)
            p->cycles = c->cycles;
        p->first = c->items ? c->first : tracks[p->track].last;
        p->last = c->items ? c->last : tracks[p->track].last;
        p->before = tracks[p->track].items;
        p->mark = mark;
        p->marks = c->marks;
        mark += c->marks;
        s->disorder |= c->disorder != 0;
        tracks[p->track].items += c->items;
        tracks[p->track].last = p->last > tracks[p->track].last ? p->last : tracks[p->track].last;
        if (ctf_stream_untimed(s) && c->items) {
            s->begin = c->first < s->begin ? c->first : s->begin;
            s->end = c->last > s->end ? c->last : s->end;
        }
    }
}

static int by_position(const void *a, const void *b)
{
    const struct ctf_track_mark *p = a, *q = b;
    return p->packet != q->packet ? order_of(p->packet, q->packet) : order_of(p->mark.before, q->mark.before);
}

/* The marks of all tracks, by packet. */
static struct ctf_mark *gather(const struct ctf_stream *s, const struct ctf_stream_count *c)
{
    VEC(struct ctf_track_mark) all = {0};
    for (uint32_t track = 0; track < s->tracks; track++)
        for (size_t i = 0; i < c->tracks[track].marks.n; i++)
            vec_push(&all, c->tracks[track].marks.v[i]);
    if (s->tracks > 1 && all.n)
        qsort(all.v, all.n, sizeof *all.v, by_position);
    struct ctf_mark *marks = mem_alloc(sizeof *marks * (all.n + 1));
    for (size_t i = 0; i < all.n; i++)
        marks[i] = all.v[i].mark;
    vec_free(&all);
    return marks;
}

static void take_stream(struct ctf_stream *s, const struct ctf_stream_count *c)
{
    bool disorder = false;
    for (uint32_t track = 0; track < s->tracks; track++)
        disorder |= c->tracks[track].disorder;
    for (size_t k = 0; k < s->packets.n; k++)
        c->packets[k].disorder = disorder;
    set_stream(s, c->packets, gather(s, c));
}

/* Counts are the only change to an open trace; readers of counted fields come through ctf_trace_count first. */
void ctf_counts_take(const struct ctf_trace *t, const struct ctf_stream_count *streams)
{
    struct ctf_trace *w = (struct ctf_trace *)t;
    pthread_mutex_lock(&w->lock);
    if (!atomic_load_explicit(&w->counted, memory_order_relaxed)) {
        for (size_t i = 0; i < t->streams.n; i++)
            take_stream(&w->streams.v[i], &streams[i]);
        atomic_store_explicit(&w->counted, true, memory_order_release);
    }
    pthread_mutex_unlock(&w->lock);
}

struct ctf_stream_count *ctf_counts_new(const struct ctf_trace *t)
{
    struct ctf_stream_count *streams = mem_zalloc(sizeof *streams * (t->streams.n + 1));
    for (size_t i = 0; i < t->streams.n; i++) {
        const struct ctf_stream *s = &t->streams.v[i];
        streams[i].packets = mem_zalloc(sizeof *streams[i].packets * (s->packets.n + 1));
        streams[i].tracks = mem_alloc(sizeof *streams[i].tracks * (s->tracks + 1));
        for (uint32_t track = 0; track < s->tracks; track++)
            streams[i].tracks[track] = (struct ctf_track_count){.packets = streams[i].packets, .last = INT64_MIN};
    }
    return streams;
}

void ctf_counts_drop(const struct ctf_trace *t, struct ctf_stream_count *streams)
{
    for (size_t i = 0; streams && i < t->streams.n; i++) {
        for (uint32_t track = 0; track < t->streams.v[i].tracks; track++)
            vec_free(&streams[i].tracks[track].marks);
        free(streams[i].tracks);
        free(streams[i].packets);
    }
    free(streams);
}

/* ---- by reading ---- */

struct count_job {
    const struct ctf_trace *trace;
    struct ctf_stream_count *streams;
    atomic_bool failed; /* a packet could not be had */
};

static bool count_packet(const struct ctf_trace *t, const struct ctf_stream *s, uint32_t k, struct ctf_track_count *c,
    struct file_map *window, struct ctf_decoder *d)
{
    const struct ctf_packet *p = &s->packets.v[k];
    struct ctf_event ev[BATCH];
    const uint8_t *data = ctf_packet_data(t, p, window, NULL);
    if (!data)
        return false;
    ctf_count_packet(c, k, d->cycles);
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

static void count_stream(void *arg, size_t i)
{
    struct count_job *job = arg;
    const struct ctf_stream *s = &job->trace->streams.v[i];
    struct ctf_decoder *d = mem_zalloc(sizeof *d);
    struct file_map window = {0};
    for (uint32_t k = 0; k < s->packets.n; k++)
        if (!count_packet(job->trace, s, k, &job->streams[i].tracks[s->packets.v[k].track], &window, d))
            atomic_store(&job->failed, true);
    file_map_close(&window);
    free(d);
}

void ctf_trace_count(const struct ctf_trace *t)
{
    if (atomic_load_explicit(&t->counted, memory_order_acquire))
        return;
    struct ctf_trace *w = (struct ctf_trace *)t;
    pthread_mutex_lock(&w->counting); /* one reads, others wait */
    if (!atomic_load_explicit(&t->counted, memory_order_acquire)) {
        struct count_job job = {.trace = t, .streams = ctf_counts_new(t)};
        pool_run(t->streams.n, 0, count_stream, &job);
        if (!atomic_load(&job.failed) && !ctf_trace_intact(t, NULL))
            ctf_counts_take(t, job.streams);
        ctf_counts_drop(t, job.streams);
    }
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

/* ---- times of streams: those of some are known once they are counted ---- */

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

/* ---- counts in stores ---- */

void ctf_trace_counts(const struct ctf_trace *t, struct ctf_counts *out)
{
    VEC(struct ctf_packet_count) packets = {0};
    VEC(struct ctf_mark) marks = {0};
    ctf_trace_count(t);
    for (size_t i = 0; i < t->streams.n; i++) {
        const struct ctf_stream *s = &t->streams.v[i];
        for (size_t k = 0; k < s->packets.n; k++) {
            const struct ctf_packet *p = &s->packets.v[k];
            struct ctf_packet_count c = {p->items, p->cycles, p->first, p->last, p->marks, s->disorder};
            vec_push(&packets, c);
            for (uint32_t m = 0; m < p->marks; m++)
                vec_push(&marks, s->marks[p->mark + m]);
        }
    }
    *out = (struct ctf_counts){packets.v, packets.n, marks.v, marks.n};
}

static bool packet_fits(
    const struct ctf_packet *p, const struct ctf_packet_count *c, const struct ctf_mark *marks, size_t left)
{
    uint64_t before = 0, pos = 0;
    if (c->marks > left || (c->items && c->first > c->last))
        return false;
    for (uint32_t i = 0; i < c->marks; i++) {
        if (marks[i].before <= before || marks[i].before >= c->items || marks[i].pos_bits <= pos ||
            marks[i].pos_bits >= p->content_bits)
            return false;
        before = marks[i].before;
        pos = marks[i].pos_bits;
    }
    return true;
}

static bool all_fit(const struct ctf_trace *t, const struct ctf_counts *c)
{
    size_t packet = 0, mark = 0;
    for (size_t i = 0; i < t->streams.n; i++)
        for (size_t k = 0; k < t->streams.v[i].packets.n; k++, packet++) {
            if (packet == c->n_packets ||
                !packet_fits(&t->streams.v[i].packets.v[k], &c->packets[packet], c->marks + mark, c->n_marks - mark))
                return false;
            mark += c->packets[packet].marks;
        }
    return packet == c->n_packets && mark == c->n_marks;
}

bool ctf_trace_set_counts(const struct ctf_trace *t, const struct ctf_counts *c)
{
    struct ctf_trace *w = (struct ctf_trace *)t;
    if (!all_fit(t, c))
        return false;
    pthread_mutex_lock(&w->lock);
    bool fresh = !atomic_load_explicit(&w->counted, memory_order_relaxed);
    for (size_t i = 0, packet = 0, mark = 0; i < t->streams.n && fresh; i++) {
        size_t marks = 0;
        for (size_t k = 0; k < t->streams.v[i].packets.n; k++)
            marks += c->packets[packet + k].marks;
        struct ctf_mark *own = mem_alloc(sizeof *own * (marks + 1));
        if (marks)
            memcpy(own, c->marks + mark, sizeof *own * marks);
        set_stream(&w->streams.v[i], c->packets + packet, own);
        packet += t->streams.v[i].packets.n;
        mark += marks;
    }
    atomic_store_explicit(&w->counted, true, memory_order_release);
    pthread_mutex_unlock(&w->lock);
    return true;
}

/* SPDX-License-Identifier: MIT */
/* Numbers of events before given times. */
#include <stdlib.h>

#include "base/search.h"
#include "base/time.h"
#include "ctf/merge.h"

enum { BATCH = 512, ASK_EVERY = 64 };

struct tally {
    const struct ctf_source *source;
    const int64_t *times;
    size_t n;
    struct ctf_tally *out;
    bool (*gone)(void *arg);
    void *arg;
};

/* Counting position in a track. */
struct position {
    struct ctf_merge *m;
    struct cursor *c;
    uint64_t before;       /* number of the track's items before the head's item */
    size_t packet;         /* packet of the next loss */
    uint32_t loss;         /* next loss of the packet */
    uint64_t losses, lost; /* losses counted so far, and the events lost with them */
};

/* Passes losses of the track before the time: they are items, but no events. */
static void pass_losses(struct position *p, int64_t end)
{
    const struct ctf_stream *s = p->c->stream;
    for (; p->packet < s->packets.n; p->packet++, p->loss = 0) {
        const struct ctf_packet *packet = &s->packets.v[p->packet];
        for (; packet->track == p->c->track && p->loss < packet->n_losses; p->loss++) {
            const struct ctf_loss_item *l = &s->losses.v[packet->loss + p->loss];
            if (ctf_merge_corrected(p->c->source, l->ts) >= end)
                return;
            p->losses++;
            p->lost += l->item == CTF_LOST_EVENTS ? l->loss.count : 0;
        }
    }
}

/* Returns the number of the track's items before the time. Items before the last mark or packet are known; the others
 * are decoded, continuing from the previous time if that is nearer. */
static uint64_t items_before(struct position *p, int64_t end)
{
    struct cursor *c = p->c;
    struct merge_head *h = c->head;
    size_t n = ctf_merge_packets_begun(c, end);
    if (n == 0)
        return 0;
    const struct ctf_packet *packet = &c->stream->packets.v[n - 1];
    const struct ctf_mark *marks = packet->marks ? c->stream->marks + packet->mark : NULL;
    uint32_t k = ctf_merge_marks_begun(c, packet, end);
    uint64_t known = packet->before + (k ? marks[k - 1].before : 0),
             most = packet->before + (k < packet->marks ? marks[k].before : packet->items);
    if (k == packet->marks && ctf_merge_item_time(c, packet->last) < end)
        return most;
    if (c->packet != packet || p->before < known)
        p->before = ctf_merge_jump(p->m, c, end);
    while (p->before < most) {
        if (h->at == h->end && ctf_merge_refill(p->m, c) == KEY_NONE)
            break;
        const struct ctf_event *from = h->at;
        while (h->at < h->end && h->at->ts < end)
            h->at++;
        p->before += (uint64_t)(h->at - from);
        if (h->at < h->end)
            break;
    }
    return p->before;
}

static void count_track(const struct tally *t, struct position p)
{
    for (size_t i = 0; i < t->n && !p.m->lost; i++) {
        int64_t end = time_after(t->times[i]);
        if (i % ASK_EVERY == 0 && t->gone(t->arg))
            return;
        pass_losses(&p, end);
        uint64_t items = items_before(&p, end);
        t->out[i].events += items > p.losses ? items - p.losses : 0;
        t->out[i].lost += p.lost;
    }
}

/* Counts by reading the whole stream, where times step back or nothing is counted. */
static int count_by_reading(const struct tally *t, int stream, struct err *e)
{
    struct ctf_merge *m;
    struct ctf_event ev[BATCH];
    struct ctf_tally *at = mem_zalloc(sizeof *at * (t->n + 1)), sum = {0};
    int rc = ctf_merge_new(t->source, 1, (struct ctf_window){INT64_MIN, INT64_MAX}, stream, &m, e);
    for (size_t n; !rc && !t->gone(t->arg) && (n = ctf_merge_next(m, ev, BATCH)) > 0;)
        for (size_t k = 0; k < n; k++) {
            struct ctf_tally *to = &at[search_first(i, 0, t->n, t->times[i] >= ev[k].ts)];
            to->events += ev[k].cls->item == CTF_EVENT;
            if (ev[k].cls->item == CTF_LOST_EVENTS)
                to->lost += ((const struct ctf_loss *)(const void *)ev[k].data)->count;
        }
    for (size_t i = 0; !rc && i < t->n; i++) {
        t->out[i].events += sum.events += at[i].events;
        t->out[i].lost += sum.lost += at[i].lost;
    }
    free(at);
    if (rc)
        return rc;
    rc = ctf_merge_intact(m, e);
    ctf_merge_free(m);
    return rc;
}

static int count_stream(const struct tally *t, int stream, struct err *e)
{
    const struct ctf_trace *trace = t->source->trace;
    struct ctf_merge *m;
    if (!atomic_load_explicit(&trace->counted, memory_order_acquire) || trace->streams.v[stream].disorder)
        return count_by_reading(t, stream, e);
    int rc = ctf_merge_new(t->source, 1, (struct ctf_window){INT64_MIN, INT64_MAX}, stream, &m, e);
    if (rc)
        return rc;
    for (size_t i = 0; i < m->n_cursors; i++)
        count_track(t, (struct position){.m = m, .c = &m->cursors[i]});
    rc = ctf_merge_intact(m, e);
    ctf_merge_free(m);
    return rc;
}

int ctf_source_tally(const struct ctf_source *source, const int64_t *times, size_t n, struct ctf_tally *out,
    bool (*gone)(void *arg), void *arg, struct err *e)
{
    const struct tally t = {source, times, n, out, gone, arg};
    int rc = 0;
    ctf_trace_count(source->trace);
    for (size_t i = 0; i < source->trace->streams.n && !rc && !gone(arg); i++)
        rc = count_stream(&t, (int)i, e);
    return rc;
}

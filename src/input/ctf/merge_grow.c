/* SPDX-License-Identifier: MIT */
/* Merge of growing traces: adds arrived data, and limits how far it may go. */
#include <stdlib.h>

#include "base/order.h"
#include "ctf/feed.h"
#include "ctf/merge.h"

struct merge_growth *ctf_merge_growth_new(const struct ctf_merge *m)
{
    struct merge_growth *g = mem_zalloc(sizeof *g);
    g->seen = mem_zalloc(sizeof *g->seen * (m->n_sources + 1));
    for (size_t i = 0; i < m->n_sources; i++)
        g->seen[i].version = UINT64_MAX;
    if (m->only_stream >= 0)
        vec_push(&g->streams, ((struct merge_stream){.stream = (uint32_t)m->only_stream}));
    g->until = g->known = INT64_MIN;
    g->open = true;
    return g;
}

void ctf_merge_growth_free(struct ctf_merge *m)
{
    struct merge_growth *g = m->growth;
    if (!g)
        return;
    for (size_t i = 0; i < m->n_sources; i++)
        m->sources[i].trace->read = false;
    for (size_t i = 0; i < g->streams.n; i++)
        free(g->streams.v[i].losses);
    vec_free(&g->streams);
    free(g->seen);
    free(g);
}

/* ---- moved data ---- */

static const struct ctf_stream *stream_of(const struct ctf_merge *m, const struct merge_stream *s)
{
    return &m->sources[s->source].trace->streams.v[s->stream];
}

/* Corrects the times of new losses. */
static void correct_losses(struct ctf_merge *m, struct merge_stream *ms)
{
    const struct ctf_source *source = &m->sources[ms->source];
    const struct ctf_stream *s = stream_of(m, ms);
    if (!source->map || s->losses.n <= ms->n_losses)
        return;
    ms->losses = mem_resize(ms->losses, sizeof *ms->losses * s->losses.n);
    for (size_t i = ms->n_losses; i < s->losses.n; i++) {
        ms->losses[i] = s->losses.v[i].loss;
        source->map(source->map_arg, &ms->losses[i].begin, 1);
        source->map(source->map_arg, &ms->losses[i].end, 1);
    }
    ms->n_losses = s->losses.n;
}

/* Frees packets of fed streams that all cursors have passed. */
static void let_go(struct ctf_merge *m)
{
    struct merge_growth *g = m->growth;
    for (size_t i = 0; i < g->streams.n; i++)
        g->streams.v[i].passed = stream_of(m, &g->streams.v[i])->packets.n;
    for (size_t i = 0; i < m->n_cursors; i++) {
        const struct cursor *c = &m->cursors[i];
        struct merge_stream *ms = &g->streams.v[c->d.stream];
        size_t at = c->next_packet - (c->packet != NULL);
        ms->passed = at < ms->passed ? at : ms->passed;
    }
    for (size_t i = 0; i < g->streams.n; i++) {
        struct merge_stream *ms = &g->streams.v[i];
        struct ctf_trace *t = m->sources[ms->source].trace;
        ms->gone = ms->losses_gone = 0;
        if (!t->fed || !ms->tracks)
            continue;
        ms->gone = ctf_stream_let_go(&t->streams.v[ms->stream], ms->passed, &ms->losses_gone);
        if (ms->losses && ms->losses_gone) {
            ms->n_losses -= ms->losses_gone;
            memmove(ms->losses, ms->losses + ms->losses_gone, ms->n_losses * sizeof *ms->losses);
        }
    }
}

/* Updates pointers into the stream's arrays, which may have moved: the cursor's packet, and losses among its decoded
 * events. */
static void point_again(struct ctf_merge *m, struct cursor *c)
{
    const struct merge_stream *ms = &m->growth->streams.v[c->d.stream];
    size_t loss_bytes = ms->losses ? sizeof *ms->losses : sizeof(struct ctf_loss_item);
    c->source = &m->sources[ms->source];
    c->stream = stream_of(m, ms);
    c->next_packet -= ms->gone;
    c->gone += ms->gone;
    if (c->packet)
        c->packet = &c->stream->packets.v[c->next_packet - 1];
    ctf_merge_place_end(m, c);
    c->losses = ms->losses;
    const uint8_t *base = ms->losses ? (const uint8_t *)ms->losses : (const uint8_t *)c->stream->losses.v;
    for (struct ctf_event *ev = c->batch; ev < c->head->end; ev++)
        if (ev >= c->head->at && ev->cls->item != CTF_EVENT && c->loss_base)
            ev->data = base + ((uintptr_t)ev->data - (uintptr_t)c->loss_base) - ms->losses_gone * loss_bytes;
    c->loss_base = base;
}

/* ---- allocation ---- */

static void make_room(struct ctf_merge *m, size_t n)
{
    struct merge_growth *g = m->growth;
    if (n <= g->room)
        return;
    size_t room = g->room ? 2 * g->room : 16;
    room = room < n ? n : room;
    m->batch = 32;
    struct ctf_event *events = mem_alloc(sizeof *events * m->batch * room);
    if (m->n_cursors)
        memcpy(events, m->events, sizeof *events * m->batch * m->n_cursors);
    m->cursors = mem_resize(m->cursors, sizeof *m->cursors * room);
    m->heads = mem_resize(m->heads, sizeof *m->heads * room);
    for (size_t i = 0; i < m->n_cursors; i++) {
        struct cursor *c = &m->cursors[i];
        c->head = &m->heads[i];
        c->batch = events + i * m->batch;
        c->d.run.slots = c->d.slots;
        if (!c->head->at)
            continue;
        c->head->at = events + (c->head->at - m->events);
        c->head->end = events + (c->head->end - m->events);
    }
    free(m->events);
    m->events = events;
    g->room = room;
    for (m->leaves = 1; m->leaves < room;)
        m->leaves *= 2;
    free(m->nodes);
    m->nodes = mem_zalloc(sizeof *m->nodes * (m->leaves + 1));
}

static void add_cursor(struct ctf_merge *m, uint32_t number, uint32_t track)
{
    const struct merge_stream *ms = &m->growth->streams.v[number];
    make_room(m, m->n_cursors + 1);
    struct cursor *c = &m->cursors[m->n_cursors];
    memset(c, 0, sizeof *c);
    c->source = &m->sources[ms->source];
    c->trace = c->source->trace;
    c->stream = stream_of(m, ms);
    c->track = track;
    c->batch = m->events + m->n_cursors * m->batch;
    c->head = &m->heads[m->n_cursors++];
    *c->head = (struct merge_head){0};
    c->gone = c->stream->growth ? c->stream->growth->gone : 0;
    c->d.stream = number;
    c->d.last = INT64_MIN;
    ctf_merge_place(m, c);
}

/* Adds new streams and tracks. */
static void add_new(struct ctf_merge *m)
{
    struct merge_growth *g = m->growth;
    for (uint32_t i = 0; i < m->n_sources; i++)
        for (; g->seen[i].streams < m->sources[i].trace->streams.n && m->only_stream < 0; g->seen[i].streams++)
            vec_push(&g->streams, ((struct merge_stream){.source = i, .stream = g->seen[i].streams}));
    for (uint32_t number = 0; number < g->streams.n; number++) {
        struct merge_stream *ms = &g->streams.v[number];
        for (; ms->tracks < stream_of(m, ms)->tracks; ms->tracks++)
            add_cursor(m, number, ms->tracks);
    }
}

/* ---- order ---- */

struct ranked {
    size_t source; /* rank of the source */
    const struct ctf_stream *stream;
    uint32_t number;
};

static int by_rank(const void *a, const void *b)
{
    const struct ranked *p = a, *q = b;
    return p->source != q->source ? order_of(p->source, q->source) : ctf_stream_order(p->stream, q->stream);
}

/* Ranks all streams; new ones come between existing ones. */
static void rank_streams(struct ctf_merge *m)
{
    struct merge_growth *g = m->growth;
    struct ranked *all = mem_alloc(sizeof *all * (g->streams.n + 1));
    size_t *order = mem_alloc(sizeof *order * (m->n_sources + 1)), *rank = mem_alloc(sizeof *rank * (m->n_sources + 1));
    uint64_t *of = mem_alloc(sizeof *of * (g->streams.n + 1));
    ctf_merge_rank_sources(m, order);
    for (size_t i = 0; i < m->n_sources; i++)
        rank[order[i]] = i;
    for (uint32_t i = 0; i < g->streams.n; i++)
        all[i] = (struct ranked){rank[g->streams.v[i].source], stream_of(m, &g->streams.v[i]), i};
    if (g->streams.n)
        qsort(all, g->streams.n, sizeof *all, by_rank);
    for (size_t i = 0; i < g->streams.n; i++)
        of[all[i].number] = i;
    for (size_t i = 0; i < m->n_cursors; i++) {
        struct cursor *c = &m->cursors[i];
        c->rank = of[c->d.stream];
        c->head->tie = ctf_merge_tie(m, c);
    }
    free(all);
    free(order);
    free(rank);
    free(of);
}

/* Limits the merge to times before the least one at which a source may still bring something. */
static void set_stop(struct ctf_merge *m)
{
    struct merge_growth *g = m->growth;
    g->until = INT64_MAX;
    g->open = false;
    for (size_t i = 0; i < m->n_sources; i++) {
        const struct ctf_trace *t = m->sources[i].trace;
        if (!t->growing)
            continue;
        int64_t until = t->until > INT64_MIN && t->until < INT64_MAX ? ctf_merge_corrected(&m->sources[i], t->until)
                                                                     : t->until;
        g->open = true;
        g->until = until < g->until ? until : g->until;
    }
    m->stop = g->until == INT64_MAX ? KEY_NONE : ctf_merge_key(g->until, 0);
}

void ctf_merge_grow(struct ctf_merge *m)
{
    struct merge_growth *g = m->growth;
    bool more = false;
    for (size_t i = 0; i < m->n_sources; i++) {
        more |= g->seen[i].version != m->sources[i].trace->version;
        g->seen[i].version = m->sources[i].trace->version;
    }
    if (!more)
        return;
    let_go(m);
    for (size_t i = 0; i < g->streams.n; i++)
        correct_losses(m, &g->streams.v[i]);
    for (size_t i = 0; i < m->n_cursors; i++)
        point_again(m, &m->cursors[i]);
    size_t before = m->n_cursors;
    add_new(m);
    for (size_t i = before; i < m->n_cursors; i++) {
        struct merge_stream *ms = &g->streams.v[m->cursors[i].d.stream];
        correct_losses(m, ms);
        ms->gone = ms->losses_gone = 0;
        point_again(m, &m->cursors[i]);
    }
    if (m->n_cursors != before)
        rank_streams(m);
    set_stop(m);
    m->started = false;
    if (!m->nodes)
        make_room(m, 1);
}

/* ---- reporting ---- */

void ctf_merge_note_late(struct ctf_merge *m, const struct ctf_event *ev, size_t n)
{
    struct merge_growth *g = m->growth;
    uint64_t late = 0;
    for (size_t i = 0; i < n; i++)
        late += ev[i].ts < g->known;
    if (late)
        ctf_problem_add(&m->problems,
            "events came later than their streams had said; they are given where they came, behind later ones");
    g->late += late;
    if (n == 0 && g->until > g->known)
        g->known = g->until;
}

bool ctf_merge_ended(const struct ctf_merge *m)
{
    return !m->growth || !m->growth->open || m->lost;
}

int64_t ctf_merge_until(const struct ctf_merge *m)
{
    return m->growth ? m->growth->until : INT64_MAX;
}

uint64_t ctf_merge_late(const struct ctf_merge *m)
{
    return m->growth ? m->growth->late : 0;
}

size_t ctf_merge_stream(const struct ctf_merge *m, uint32_t stream, uint32_t *source)
{
    *source = ctf_merge_source(m, stream);
    return m->growth ? m->growth->streams.v[stream].stream : stream - m->first_stream[*source];
}

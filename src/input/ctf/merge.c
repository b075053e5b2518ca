/* SPDX-License-Identifier: MIT */
/* Events of many streams in one order: a tournament of losers over stream cursors. Each cursor decodes ahead in
 * batches. */
#include <stdlib.h>

#include "base/search.h"
#include "ctf/merge.h"

/* ---- cursors ---- */

static void correct(const struct ctf_source *s, struct ctf_event *ev, size_t n)
{
    int64_t ts[256];
    for (size_t i = 0; i < n;) {
        size_t k = n - i < 256 ? n - i : 256;
        for (size_t j = 0; j < k; j++)
            ts[j] = ev[i + j].ts;
        s->map(s->map_arg, ts, k);
        for (size_t j = 0; j < k; j++)
            ev[i + j].ts = ts[j];
        i += k;
    }
}

static size_t within(struct ctf_window w, struct ctf_event *ev, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (ev[i].ts < w.begin && ev[i].cls->item != CTF_EVENT && ((const struct ctf_loss *)ev[i].data)->end >= w.begin)
            ev[i].ts = w.begin;
        if (ev[i].ts < w.begin)
            continue;
        if (ev[i].ts <= w.end) {
            if (kept != i)
                ev[kept] = ev[i];
            kept++;
        }
    }
    return kept;
}

static bool outside(const struct ctf_merge *m, const struct cursor *c, const struct ctf_packet *p)
{
    if (!ctf_merge_limited(m->window) || !c->stream->timed)
        return false;
    if (m->window.begin != INT64_MIN && !(p->flags & CTF_PACKET_OPEN_END) &&
        ctf_merge_corrected(c->source, p->end) < m->window.begin)
        return true;
    /* Losses that a packet reports begin before it. */
    return m->window.end != INT64_MAX && !p->n_losses && ctf_merge_corrected(c->source, p->begin) > m->window.end;
}

/* Returns whether times are known to ascend, with known places of packets and marks. False while the cursor counts. */
static bool in_order(const struct cursor *c)
{
    return !c->count && atomic_load_explicit(&c->trace->counted, memory_order_acquire) && !c->stream->disorder;
}

/* Leaves the cursor's packet, whose returned events are still in use. */
static void leave_window(struct ctf_merge *m, struct cursor *c)
{
    if (c->window.data && c->gave)
        vec_push(&m->spent, c->window);
    else
        file_map_close(&c->window);
    c->window = (struct file_map){0};
    c->gave = false;
}

static const uint8_t *packet_data(struct ctf_merge *m, struct cursor *c, const struct ctf_packet *p)
{
    leave_window(m, c);
    const uint8_t *data = ctf_packet_data(c->trace, p, &c->window, &m->why);
    if (!data)
        m->lost = true;
    return data;
}

static void give_back(struct ctf_merge *m)
{
    for (size_t i = 0; i < m->spent.n; i++)
        file_map_close(&m->spent.v[i]);
    m->spent.n = 0;
}

bool ctf_merge_next_packet(struct ctf_merge *m, struct cursor *c)
{
    const struct ctf_stream *s = c->stream;
    for (; c->next_packet < c->end_packet; c->next_packet++) {
        const struct ctf_packet *p = &s->packets.v[c->next_packet];
        if (p->track != c->track || outside(m, c, p))
            continue;
        const uint8_t *data = packet_data(m, c, p);
        if (!data) {
            c->next_packet = c->end_packet;
            break;
        }
        if (c->count)
            ctf_count_packet(c->count, (uint32_t)c->next_packet, s->plan->has_begin ? 0 : c->d.cycles);
        c->next_packet++;
        c->packet = p;
        c->next_loss = 0;
        ctf_packet_open(c->trace, s, p, data, &c->d);
        if (m->window.begin != INT64_MIN && in_order(c))
            ctf_merge_to_mark(c, m->window.begin, &(uint64_t){0});
        return true;
    }
    leave_window(m, c);
    c->packet = NULL;
    return false;
}

static size_t give_losses(struct cursor *c, struct ctf_event *out, size_t max)
{
    size_t n = 0;
    for (; n < max && c->next_loss < c->packet->n_losses; n++) {
        uint32_t i = c->packet->loss + c->next_loss++;
        const struct ctf_loss_item *l = &c->stream->losses.v[i];
        out[n] = (struct ctf_event){.ts = l->ts,
            .data = (const uint8_t *)(c->losses ? &c->losses[i] : &l->loss),
            .cls = c->trace->schema->classes[l->item == CTF_LOST_EVENTS ? 0 : 1],
            .stream = c->d.stream,
            .cpu = c->d.cpu};
    }
    return n;
}

/* Reads up to `max` items of one packet into `out`; 0 at the track's end. */
static size_t fill(struct ctf_merge *m, struct cursor *c, struct ctf_event *out, size_t max)
{
    for (;;) {
        size_t n;
        if (!c->packet && !ctf_merge_next_packet(m, c))
            return 0;
        uint64_t pos = c->d.pos, cycles = c->d.cycles;
        size_t room = c->count ? ctf_count_room(c->count, max) : max;
        if (c->next_loss < c->packet->n_losses) {
            n = give_losses(c, out, room);
            pos = UINT64_MAX;
        } else if (n = ctf_decode(&c->d, out, room), ctf_packet_lost(c->trace, c->packet)) {
            m->lost = true;
            c->packet = NULL;
            c->next_packet = c->end_packet;
            return 0;
        } else if (n == 0) {
            ctf_packet_problem(c->trace, c->packet, &c->d, &m->problems);
            c->packet = NULL;
            continue;
        }
        if (c->count)
            ctf_count_items(c->count, out, n, pos, cycles);
        if (c->source->map)
            correct(c->source, out, n);
        if (ctf_merge_limited(m->window))
            n = within(m->window, out, n);
        if (n) {
            c->gave = true;
            return n;
        }
    }
}

static uint32_t cursor_of(merge_key k)
{
    return (uint32_t)k & CURSORS_MAX;
}

merge_key ctf_merge_refill(struct ctf_merge *m, struct cursor *c)
{
    struct merge_head *h = c->head;
    size_t n = fill(m, c, c->batch, m->batch);
    h->at = c->batch;
    h->end = c->batch + n;
    h->tie = ctf_merge_tie(m, c);
    if (n == 0)
        return KEY_NONE;
    h->next_ts = c->batch[n > 1].ts;
    /* Prefetches data of the next batch: streams alternate, which the hardware prefetcher does not follow. */
    const uint8_t *next = c->d.data + (c->d.pos >> 3);
    for (size_t i = 0; i < 16; i++)
        __builtin_prefetch(next + 64 * i);
    return ctf_merge_key(c->batch[0].ts, h->tie);
}

/* ---- tournament ---- */

/* Plays a cursor's new key up to the root and returns the winner's key. Has no branches on keys: they cannot be
 * predicted. */
static inline merge_key replay(struct ctf_merge *m, uint32_t leaf, merge_key key)
{
    merge_key *nodes = m->nodes;
    for (size_t i = (leaf + m->leaves) >> 1; i > 0; i >>= 1) {
        merge_key other = nodes[i];
        bool loses = other < key;
        nodes[i] = loses ? key : other;
        key = loses ? other : key;
    }
    nodes[0] = key;
    return key;
}

/* Returns the best key that lost against the winner: the winner continues up to it. */
static merge_key runner_up(const struct ctf_merge *m, uint32_t leaf)
{
    merge_key best = KEY_NONE;
    for (size_t i = (leaf + m->leaves) >> 1; i > 0; i >>= 1)
        best = m->nodes[i] < best ? m->nodes[i] : best;
    return best;
}

static void start(struct ctf_merge *m)
{
    merge_key *winners = mem_alloc(sizeof *winners * 2 * m->leaves);
    for (size_t i = 0; i < m->leaves; i++) {
        struct cursor *c = i < m->n_cursors ? &m->cursors[i] : NULL;
        winners[m->leaves + i] = !c      ? KEY_NONE
            : c->head->at < c->head->end ? ctf_merge_key(c->head->at->ts, c->head->tie)
                                         : ctf_merge_refill(m, c);
    }
    for (size_t i = m->leaves - 1; i > 0; i--) {
        merge_key a = winners[2 * i], b = winners[2 * i + 1];
        winners[i] = b < a ? b : a;
        m->nodes[i] = b < a ? a : b;
    }
    m->nodes[0] = winners[1];
    free(winners);
    m->started = true;
}

/* Copies the winner's events that precede all others'. Returns how many. */
static size_t take_run(struct merge_head *h, merge_key limit, struct ctf_event *out, size_t max)
{
    const struct ctf_event *ev = h->at, *end = h->end;
    size_t n = (size_t)(end - ev);
    if (limit == KEY_NONE) {
        n = n < max ? n : max;
        memcpy(out, ev, n * sizeof *out);
    } else {
        /* Time bound: the limit's time, inclusive if this stream ranks first. So each event costs one comparison; the
         * first is known to be next. */
        int64_t before = (int64_t)((uint64_t)(limit >> 64) ^ (uint64_t)1 << 63);
        if (h->tie < (uint64_t)limit && before < INT64_MAX)
            before++;
        if (n > max)
            end = ev + max;
        n = 0;
        do {
            out[n++] = *ev++;
        } while (ev < end && ev->ts < before);
    }
    h->at += n;
    h->next_ts = h->at + 1 < h->end ? h->at[1].ts : 0;
    return n;
}

/* Copies the rest of the batch, then decodes directly into the caller's array, because no other cursor competes. */
static size_t take_alone(struct ctf_merge *m, struct cursor *c, struct ctf_event *out, size_t max)
{
    size_t n = c->head->at < c->head->end ? take_run(c->head, KEY_NONE, out, max) : 0, k;
    while (n < max && (k = fill(m, c, out + n, max - n)) > 0)
        n += k;
    return n;
}

/* Stores the counts in the trace, after all was read. */
static void end_count(struct ctf_merge *m)
{
    const struct ctf_trace *t = m->sources[0].trace;
    if (m->why.code || ctf_merge_limited(m->window) || ctf_trace_intact(t, NULL))
        return;
    struct ctf_found **found = ctf_found_new(t);
    for (size_t i = 0; i < m->n_cursors; i++)
        ctf_found_track(found[m->cursors[i].stream - t->streams.v], &m->counts[i]);
    ctf_counts_take(t, found);
    ctf_found_free(t, found);
}

static size_t next(struct ctf_merge *m, struct ctf_event *out, size_t max)
{
    size_t n = 0;
    const merge_key stop = m->stop;
    if (m->n_cursors == 1 && stop == KEY_NONE)
        return take_alone(m, &m->cursors[0], out, max);
    if (!m->started)
        start(m);
    merge_key winner = m->nodes[0];
    uint32_t before = UINT32_MAX;
    while (n < max && winner < stop) {
        uint32_t leaf = cursor_of(winner);
        struct merge_head *h = &m->heads[leaf];
        if (leaf == before) { /* second win in a row: many may follow */
            merge_key limit = runner_up(m, leaf);
            limit = limit < stop ? limit : stop;
            n += limit == KEY_NONE ? take_alone(m, &m->cursors[leaf], out + n, max - n)
                                   : take_run(h, limit, out + n, max - n);
            winner = replay(
                m, leaf, h->at < h->end ? ctf_merge_key(h->at->ts, h->tie) : ctf_merge_refill(m, &m->cursors[leaf]));
            before = UINT32_MAX;
            continue;
        }
        before = leaf;
        out[n++] = *h->at++;
        if (h->at < h->end) {
            merge_key key = ctf_merge_key(h->next_ts, h->tie);
            h->next_ts = h->at[h->at + 1 < h->end].ts;
            winner = replay(m, leaf, key);
        } else {
            winner = replay(m, leaf, ctf_merge_refill(m, &m->cursors[leaf]));
        }
    }
    return n;
}

size_t ctf_merge_next(struct ctf_merge *m, struct ctf_event *out, size_t max)
{
    give_back(m);
    if (m->growth)
        ctf_merge_grow(m);
    size_t n = m->lost ? 0 : next(m, out, max);
    if (m->growth)
        ctf_merge_note_late(m, out, n);
    if (m->lost) /* events are missing: later ones of other streams would come too early */
        return 0;
    if (n == 0 && max && m->counts)
        end_count(m);
    return n;
}

int ctf_merge_intact(const struct ctf_merge *m, struct err *e)
{
    if (m->why.code && e)
        *e = m->why;
    int rc = m->why.code;
    for (size_t i = 0; i < m->n_sources && !rc; i++)
        rc = ctf_trace_intact(m->sources[i].trace, e);
    return rc;
}

/* ---- life ---- */

enum { MANY_CURSORS = 4096 }; /* cursors from which on less is decoded ahead: batches are most of a merge's memory */

static size_t stream_count(const struct ctf_merge *m, size_t source)
{
    return m->sources[source].trace->streams.n;
}

static int by_trace(const struct ctf_trace *a, const struct ctf_trace *b)
{
    const uint8_t *x = ctf_trace_uuid(a), *y = ctf_trace_uuid(b);
    if (!x != !y)
        return x ? -1 : 1;
    int order = x ? memcmp(x, y, 16) : 0;
    if (order)
        return order;
    const char *p = ctf_trace_env_string(a, "hostname"), *q = ctf_trace_env_string(b, "hostname");
    return !p != !q ? (p ? -1 : 1) : p ? strcmp(p, q) : 0;
}

/* Computes the rank of each source at equal times, as babeltrace2 orders traces; equal ones keep the given order. */
void ctf_merge_rank_sources(const struct ctf_merge *m, size_t *order)
{
    for (size_t i = 0; i < m->n_sources; i++)
        order[i] = i;
    for (size_t i = 1; i < m->n_sources; i++) {
        size_t one = order[i], k = i;
        for (; k > 0 && by_trace(m->sources[order[k - 1]].trace, m->sources[one].trace) > 0; k--)
            order[k] = order[k - 1];
        order[k] = one;
    }
}

static const struct ctf_loss *corrected_losses(
    struct ctf_merge *m, const struct ctf_source *source, const struct ctf_stream *s)
{
    if (!source->map || !s->losses.n)
        return NULL;
    struct ctf_loss *copy = mem_alloc(sizeof *copy * s->losses.n);
    for (size_t i = 0; i < s->losses.n; i++) {
        copy[i] = s->losses.v[i].loss;
        source->map(source->map_arg, &copy[i].begin, 1);
        source->map(source->map_arg, &copy[i].end, 1);
    }
    vec_push(&m->corrected, copy);
    return copy;
}

void ctf_merge_place_end(const struct ctf_merge *m, struct cursor *c)
{
    const struct ctf_stream *s = c->stream;
    size_t n = s->packets.n;
    c->end_packet = n;
    if (m->window.end == INT64_MAX || !s->begins_ascend)
        return;
    c->end_packet = search_first(i, 0, n, ctf_merge_corrected(c->source, s->packets.v[i].begin) > m->window.end);
    c->end_packet += c->end_packet < n; /* losses before it may begin earlier */
}

void ctf_merge_place(const struct ctf_merge *m, struct cursor *c)
{
    const struct ctf_stream *s = c->stream;
    size_t n = s->packets.n;
    ctf_merge_place_end(m, c);
    if (m->window.begin != INT64_MIN && in_order(c)) {
        size_t begun = ctf_merge_packets_begun(c, m->window.begin);
        c->next_packet = begun ? begun - 1 : 0;
    } else if (m->window.begin != INT64_MIN && s->ends_ascend) {
        c->next_packet = search_first(i, 0, n, ctf_merge_corrected(c->source, s->packets.v[i].end) >= m->window.begin);
    }
}

static void add_cursors(struct ctf_merge *m, size_t source, uint64_t *rank)
{
    const struct ctf_source *src = &m->sources[source];
    size_t first = 0, end = stream_count(m, source);
    if (m->only_stream >= 0) {
        first = (size_t)m->only_stream;
        end = source == 0 ? first + 1 : 0;
    }
    for (size_t i = first; i < end; i++, (*rank)++) {
        const struct ctf_stream *s = &src->trace->streams.v[i];
        const struct ctf_loss *losses = corrected_losses(m, src, s);
        for (uint32_t track = 0; track < s->tracks; track++) {
            struct cursor *c = &m->cursors[m->n_cursors++];
            *c = (struct cursor){
                .trace = src->trace, .source = src, .stream = s, .losses = losses, .rank = *rank, .track = track};
            c->head = &m->heads[m->n_cursors - 1];
            c->d.stream = m->first_stream[source] + (uint32_t)i;
            c->d.last = INT64_MIN;
            ctf_merge_place(m, c);
        }
    }
}

static void make_cursors(struct ctf_merge *m, size_t total)
{
    size_t *order = mem_alloc(sizeof *order * (m->n_sources + 1));
    uint64_t rank = 0;
    m->cursors = mem_zalloc(sizeof *m->cursors * (total + 1));
    m->heads = mem_zalloc(sizeof *m->heads * (total + 1));
    ctf_merge_rank_sources(m, order);
    for (size_t i = 0; i < m->n_sources; i++)
        add_cursors(m, order[i], &rank);
    free(order);
    m->leaves = 1;
    while (m->leaves < m->n_cursors)
        m->leaves *= 2;
    m->batch = m->n_cursors > MANY_CURSORS ? 8 : 32;
    m->nodes = mem_zalloc(sizeof *m->nodes * (m->leaves + 1));
    m->events = mem_alloc(sizeof *m->events * m->batch * (m->n_cursors + 1));
    for (size_t i = 0; i < m->n_cursors; i++)
        m->cursors[i].batch = m->events + i * m->batch;
    if (m->n_cursors == 0) {
        m->nodes[0] = KEY_NONE;
        m->started = true;
    }
}

int ctf_merge_new(const struct ctf_source *sources, size_t n, struct ctf_window w, int only_stream,
    struct ctf_merge **out, struct err *e)
{
    *out = NULL;
    if (only_stream >= 0 && (n == 0 || (size_t)only_stream >= sources[0].trace->streams.n))
        return err_set(
            e, ERR_NOTFOUND, "stream %d: the trace has %zu streams", only_stream, n ? sources[0].trace->streams.n : 0);
    size_t tracks = 0;
    bool growing = false;
    for (size_t i = 0; i < n; i++) {
        growing |= sources[i].trace->growing;
        if (sources[i].trace->still)
            return err_set(e, ERR_UNSUPPORTED, "%s: events of what is still being recorded cannot be read again",
                ctf_trace_path(sources[i].trace));
        if (sources[i].trace->read)
            return err_set(e, ERR_ARG, "%s: what is fed is read by one merge", ctf_trace_path(sources[i].trace));
    }
    for (size_t i = 0; i < n && only_stream < 0; i++)
        for (size_t k = 0; k < sources[i].trace->streams.n; k++)
            tracks += sources[i].trace->streams.v[k].tracks;
    if (only_stream >= 0)
        tracks = sources[0].trace->streams.v[only_stream].tracks;
    if (tracks > CURSORS_MAX)
        return err_set(e, ERR_LIMIT, "%zu streams at once; at most %d can be merged", tracks, CURSORS_MAX);
    struct ctf_merge *m = mem_zalloc(sizeof *m);
    m->sources = mem_alloc(sizeof *m->sources * (n + 1));
    if (n)
        memcpy(m->sources, sources, sizeof *sources * n);
    m->n_sources = n;
    m->window = w;
    m->only_stream = only_stream;
    m->first_stream = mem_zalloc(sizeof *m->first_stream * (n + 1));
    for (size_t i = 0; i < n; i++)
        m->first_stream[i + 1] = m->first_stream[i] + (uint32_t)stream_count(m, i);
    m->stop = KEY_NONE;
    if (growing) {
        for (size_t i = 0; i < n; i++)
            sources[i].trace->read = sources[i].trace->fed;
        m->growth = ctf_merge_growth_new(m);
    } else {
        for (size_t i = 0; i < n && w.begin != INT64_MIN; i++)
            ctf_trace_recall(sources[i].trace);
        make_cursors(m, tracks);
    }
    *out = m;
    return 0;
}

/* Enables counting. Packets are counted from their begin, so no cursor goes to a mark. */
void ctf_merge_count(struct ctf_merge *m)
{
    if (m->growth || m->n_sources != 1 || m->sources[0].map || m->only_stream >= 0 || m->started || m->counts)
        return;
    m->counts = mem_zalloc(sizeof *m->counts * (m->n_cursors + 1));
    for (size_t i = 0; i < m->n_cursors; i++) {
        struct cursor *c = &m->cursors[i];
        c->count = &m->counts[i];
        c->next_packet = 0;
        ctf_merge_place(m, c);
    }
}

void ctf_merge_counts(struct ctf_merge *m, int64_t until, struct ctf_counts *out)
{
    VEC(struct ctf_packet_count) packets = {0};
    VEC(struct ctf_mark) marks = {0};
    for (size_t i = 0; m->counts && i < m->n_cursors; i++) {
        const struct cursor *c = &m->cursors[i];
        struct ctf_track_count *of = &m->counts[i];
        for (size_t end = of->packets.n - (c->packet != NULL); of->told < end; of->told++) {
            struct ctf_counted *p = &of->packets.v[of->told];
            const struct ctf_packet *packet = &c->stream->packets.v[p->packet];
            if (packet->begin >= until && until < INT64_MAX)
                break;
            p->count.key = of->key = ctf_packet_key(c->trace, c->stream, packet, of->key);
            vec_push(&packets, p->count);
            for (uint32_t k = 0; k < p->count.marks; k++)
                vec_push(&marks, of->marks.v[of->told_marks++]);
        }
    }
    *out = (struct ctf_counts){packets.v, packets.n, marks.v, marks.n};
}

uint32_t ctf_merge_source(const struct ctf_merge *m, uint32_t stream)
{
    if (m->growth)
        return m->growth->streams.v[stream].source;
    return (uint32_t)search_first(i, 1, m->n_sources, m->first_stream[i] > stream) - 1;
}

size_t ctf_merge_problems(const struct ctf_merge *m, const struct ctf_problem **out)
{
    *out = m->problems.list.v;
    return m->problems.list.n;
}

void ctf_merge_free(struct ctf_merge *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->corrected.n; i++)
        free(m->corrected.v[i]);
    vec_free(&m->corrected);
    give_back(m);
    vec_free(&m->spent);
    for (size_t i = 0; i < m->n_cursors; i++)
        file_map_close(&m->cursors[i].window);
    ctf_problems_fini(&m->problems);
    for (size_t i = 0; m->counts && i < m->n_cursors; i++)
        ctf_count_fini(&m->counts[i]);
    free(m->counts);
    ctf_merge_growth_free(m);
    free(m->events);
    free(m->nodes);
    free(m->heads);
    free(m->cursors);
    free(m->first_stream);
    free(m->sources);
    free(m);
}

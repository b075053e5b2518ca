/* SPDX-License-Identifier: MIT */
/* Matching of a message, given by its key, to its send: TCP by byte range; acknowledgements and datagrams with IP ids
 * by their contents; other datagrams by time; translated addresses by (sequence, ack, length). */
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "flow/store.h"

enum {
    MOST_LOOKED_AT = 4096,   /* datagrams without an IP id */
    MOST_TRANSLATED = 1024,  /* sends within the window whose numbers are near */
    MOST_CARRIERS = 1 << 16, /* sends in total */
    LONGEST_SEND = 1 << 19,  /* bytes; for cards that segment */
    MOST_UNACKED = 1 << 24,  /* limit by which a retransmission's acknowledgement may be ahead of the first send's */
    MOST_ALIKE = 64,         /* equal acknowledgements with other IP ids */
    CLEARLY = 4              /* factor by which one time must be nearer than the next */
};

static uint64_t distance(int64_t a, int64_t b)
{
    return a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a;
}

static bool is_within(const struct flow_window *w, int64_t ts)
{
    return w->begin <= ts && ts <= w->end;
}

static bool is_timed(const struct flow_window *w)
{
    return w->error_ns >= 0;
}

/* Returns whether it was certainly sent before the message arrived. */
static bool is_before(const struct flow_window *w, int64_t ts)
{
    return is_timed(w) && ts <= w->at && distance(ts, w->at) >= (uint64_t)w->error_ns;
}

/* Most likely of the matching sends. */
struct choice {
    const struct flow_disk_packet *best;
    const struct flow_place *place; /* place of the best */
    int likeness;                   /* likeness of the best */
    bool ambiguous;
};

/* Considers a send. Greater likeness is better; if equal, the last that can have been sent before the arrival (the
 * nearest if all were sent after). The choice is unambiguous if the later one was certainly sent before the arrival:
 * nothing older was still travelling then. Without times it is ambiguous. */
static void choose(struct choice *c, const struct flow_place *place, const struct flow_disk_packet *p, int likeness,
    const struct flow_window *w)
{
    if (!is_within(w, p->ts))
        return;
    if (!c->best || likeness > c->likeness) {
        *c = (struct choice){p, place, likeness, false};
        return;
    }
    if (likeness < c->likeness)
        return;
    bool after = is_timed(w) && p->ts > w->at && distance(p->ts, w->at) > (uint64_t)w->error_ns;
    bool best_after = is_timed(w) && c->best->ts > w->at && distance(c->best->ts, w->at) > (uint64_t)w->error_ns;
    if (is_timed(w) && (after != best_after ? best_after : after ? p->ts < c->best->ts : p->ts > c->best->ts)) {
        c->best = p;
        c->place = place;
    }
    c->ambiguous = !is_before(w, c->best->ts);
}

static enum flow_answer answer(const struct flow_store *s, const struct choice *c, struct flow_packet *send)
{
    if (!c->best)
        return FLOW_NOT_SENT;
    flow_unpack(s, c->place->chunk, c->place->turns, c->best, send);
    return c->ambiguous ? FLOW_AMBIGUOUS : FLOW_SENT;
}

/* ---- bytes ---- */

/* Converts the end of a range of the flow's numbers to those of a place; 0: it is below all of them. */
static uint64_t in_place(const struct flow_place *place, uint64_t end)
{
    uint64_t shift = place->turns * FLOW_TURN;
    return end > shift ? end - shift : 0;
}

static uint64_t high_at(const struct flow_view *v, size_t place, const struct flow_disk_packet *p)
{
    return p->high + v->places[place].turns * FLOW_TURN;
}

static bool covers(const struct flow_disk_packet *p, uint64_t end)
{
    return end && flow_is_own(p) && flow_carries(p) && flow_begin_of(p) < end && p->seq_end >= end;
}

/* Greatest number up to `most` that ends in these 32 bits; 0: none. */
static uint64_t last_turn(uint64_t most, uint32_t end)
{
    uint64_t v = (most & ~(FLOW_TURN - 1)) | end;
    return v <= most ? v : v >= FLOW_TURN ? v - FLOW_TURN : 0;
}

/* Number of sends of a place, including all those in the places before it. */
struct spot {
    size_t place;
    struct flow_part part; /* part of the flow there */
    uint32_t n;
};

/* Moves to all sends of the place before that has some; false: there is none. */
static bool go_back(const struct flow_view *v, struct spot *s)
{
    while (s->place) {
        s->part = flow_part_of(v, --s->place);
        s->n = s->part.n_sends;
        if (s->n)
            return true;
    }
    return false;
}

/* Moves before the first of these sends whose running maximum reaches `end`; false: none does. O(log n) in a place */
static bool reach_back(const struct flow_view *v, uint64_t end, struct spot *s)
{
    uint32_t all = s->n;
    uint64_t here = in_place(&v->places[s->place], end);
    s->n = (uint32_t)search_first(i, 0, all, s->part.sends[i].high >= here);
    if (s->n == all)
        return false;
    for (struct spot before = *s; !s->n && go_back(v, &before);) {
        if (high_at(v, before.place, &before.part.sends[before.n - 1]) < end)
            break;
        here = in_place(&v->places[before.place], end);
        before.n = (uint32_t)search_first(i, 0, before.n, before.part.sends[i].high >= here);
        *s = before;
    }
    return true;
}

/* The sender's numbers continue over turns of 2^32 and over connections. Finds in each turn the first send of the byte,
 * from the last one within the window backwards. */
static void find_bytes(
    const struct flow_view *v, const struct flow_message_key *m, const struct flow_window *w, struct choice *out)
{
    struct spot at = {.place = flow_places_until(v, w->end)};
    while (at.place && !at.n) {
        at.part = flow_part_of(v, --at.place);
        at.n = (uint32_t)search_first(i, 0, at.part.n_sends, at.part.sends[i].ts > w->end);
    }
    uint64_t end = at.n ? last_turn(high_at(v, at.place, &at.part.sends[at.n - 1]), m->seq_end) : 0;
    for (uint64_t tries = flow_walk_count(v, true) + 2; end && tries; tries--) {
        if (!reach_back(v, end, &at))
            break;
        const struct flow_disk_packet *p = &at.part.sends[at.n];
        if (covers(p, in_place(&v->places[at.place], end)))
            choose(out, &v->places[at.place], p, p->ack == m->ack, w);
        if ((!at.n && !go_back(v, &at)) || at.part.sends[at.n - 1].ts < w->begin)
            break;
        uint64_t before = high_at(v, at.place, &at.part.sends[at.n - 1]), less = end >= FLOW_TURN ? end - FLOW_TURN : 0;
        end = last_turn(before < less ? before : less, m->seq_end);
    }
}

/* ---- search by other fields ---- */

/* Sends of a rank in a place. */
struct ranked {
    const struct flow_place *place;
    const struct flow_chunk *chunk;
    const uint32_t *order;
    size_t first, end;
};

static const struct flow_disk_packet *ranked_at(const struct ranked *r, size_t i)
{
    return flow_packet_at(r->chunk, r->order[i]);
}

/* more: distance that the rank's third number may be beyond. */
static struct ranked rank_in(
    const struct flow_view *v, size_t place, struct flow_rank rank, uint32_t more, const struct flow_key *key)
{
    struct flow_part part = flow_part_of(v, place);
    struct ranked r = {&v->places[place], &v->store->chunks[v->places[place].chunk], part.order, 0, 0};
    struct flow_rank last = {rank.a, rank.b, rank.c + more};
    r.first = search_first(i, 0, part.n_order, flow_rank_compare(flow_rank_of(key, ranked_at(&r, i)), rank) >= 0);
    r.end = search_first(i, r.first, part.n_order, flow_rank_compare(flow_rank_of(key, ranked_at(&r, i)), last) > 0);
    return r;
}

struct neighbour {
    const struct flow_place *place;
    const struct flow_disk_packet *p;
};

/* Considers the sends of this rank, in order of time, within the window: about the message's arrival, the last two
 * before it and the next. Without times only the first, since no later one can be distinguished from it. */
static void choose_ranked(const struct flow_view *v, struct flow_rank rank, const struct flow_key *key,
    const struct flow_window *w, int likeness, struct choice *out)
{
    struct neighbour near[3] = {0};
    size_t n = 0, past = flow_places_until(v, w->end);
    bool full = false;
    for (size_t k = flow_places_before(v, w->begin); k < past && !full; k++) {
        struct ranked r = rank_in(v, k, rank, 0, key);
        size_t end = search_first(i, r.first, r.end, ranked_at(&r, i)->ts > w->end), now = end;
        if (is_timed(w))
            now = search_first(i, r.first, end,
                ranked_at(&r, i)->ts > w->at && distance(ranked_at(&r, i)->ts, w->at) > (uint64_t)w->error_ns);
        for (size_t i = is_timed(w) && now > r.first + 2 ? now - 2 : r.first; i < end && i <= now && !full; i++) {
            if (n == 2 && i < now && is_timed(w)) {
                near[0] = near[1];
                n = 1;
            }
            near[n++] = (struct neighbour){r.place, ranked_at(&r, i)};
            full = is_timed(w) ? i == now : n == 2;
        }
    }
    for (size_t i = 0; i < n; i++)
        choose(out, near[i].place, near[i].p, likeness, w);
}

/* Of the next ones in several places, returns the one with the lowest IP id. */
static struct ranked *least_id(struct ranked *r, size_t n)
{
    struct ranked *least = NULL;
    for (size_t i = 0; i < n; i++)
        if (r[i].first < r[i].end &&
            (!least || ranked_at(&r[i], r[i].first)->ip_id < ranked_at(least, least->first)->ip_id))
            least = &r[i];
    return least;
}

/* Finds a bare acknowledgement: the same one (IP id), else any equal one. */
static void find_ack(
    const struct flow_view *v, const struct flow_message_key *m, const struct flow_window *w, struct choice *out)
{
    choose_ranked(v, (struct flow_rank){m->seq_end, m->ack, m->ip_id}, &m->flow, w, 1, out);
    if (out->best)
        return;
    struct flow_rank any = {m->seq_end, m->ack, 0};
    size_t first = flow_places_before(v, w->begin), past = flow_places_until(v, w->end), n = 0;
    struct ranked only, *list = past > first + 1 ? mem_alloc(sizeof *list * (past - first)) : &only, *next;
    for (size_t k = first; k < past; k++)
        list[n++] = rank_in(v, k, any, UINT16_MAX, &m->flow);
    for (size_t looked_at = 0, alike = 0;
         looked_at < MOST_LOOKED_AT && alike < MOST_ALIKE && (next = least_id(list, n)); looked_at++) {
        const struct flow_disk_packet *p = ranked_at(next, next->first++);
        alike += is_within(w, p->ts);
        choose(out, next->place, p, 0, w);
    }
    if (list != &only)
        free(list);
}

/* Old traces without addresses: all packets are in one flow. */
static void find_bare(
    const struct flow_view *v, const struct flow_message_key *m, const struct flow_window *w, struct choice *out)
{
    choose_ranked(v, (struct flow_rank){m->seq_end, m->ack, m->flags}, &m->flow, w, 0, out);
}

/* ---- datagrams without IP id ---- */

static bool could_be(const struct flow_disk_packet *p, const struct flow_message_key *m)
{
    return flow_is_own(p) && p->bytes == m->bytes && (!p->ip_id || !m->ip_id);
}

/* Searches from send `i` backwards for one of the same size after a silence of about this length. */
static bool find_silent(struct flow_walk *sends, const struct flow_message_key *m, uint64_t i, uint64_t length,
    uint64_t tolerance, int64_t begin, int64_t *ts)
{
    const struct flow_disk_packet *after = NULL;
    for (uint32_t tries = MOST_LOOKED_AT; i && tries; tries--) {
        const struct flow_disk_packet *p = flow_walk_at(sends, --i);
        if (!could_be(p, m))
            continue;
        uint64_t silence = after && after->ts > p->ts ? (uint64_t)after->ts - (uint64_t)p->ts : 0;
        if (silence && (silence > length ? silence - length : length - silence) <= tolerance) {
            *ts = after->ts;
            return true;
        }
        if (p->ts < begin)
            return false;
        after = p;
    }
    return false;
}

static bool agree(uint64_t a, uint64_t b)
{
    return (a > b ? a - b : b - a) <= (a > b ? b : a) / 4;
}

/* Finds the travel time of the datagram after silence i; false: the sender had no such silence. */
static bool delay_after(struct flow_walk *sends, const struct flow_message_key *m, const struct flow_window *w, int i,
    uint64_t tolerance, uint64_t *delay)
{
    int64_t came, ts;
    if (m->silences[i].since_ns > INT64_MAX || __builtin_sub_overflow(w->at, (int64_t)m->silences[i].since_ns, &came))
        return false;
    uint64_t past = search_first(k, 0, flow_walk_count(sends->view, true),
        flow_walk_at(sends, k)->ts > came && distance(flow_walk_at(sends, k)->ts, came) > (uint64_t)w->error_ns);
    int64_t begin = came > INT64_MIN + FLOW_DATAGRAM_LIFE_NS ? came - FLOW_DATAGRAM_LIFE_NS : INT64_MIN;
    if (!find_silent(sends, m, past, m->silences[i].length_ns, tolerance, begin, &ts))
        return false;
    *delay = ts < came ? distance(ts, came) : 0;
    return true;
}

/* Estimates the travel time of datagrams by silences; UINT64_MAX: unknown. Examines the longest first, those of about
 * equal length together. Accepts one that is much longer than the next, or that agrees with most, at least two others.
 * Takes the least of these: a silence seems longer if a datagram after it was lost. */
static uint64_t delay_of(struct flow_walk *sends, const struct flow_message_key *m, const struct flow_window *w)
{
    uint64_t delays[FLOW_SILENCES], least = UINT64_MAX;
    for (int i = 0, n; i < FLOW_SILENCES && m->silences[i].length_ns && least == UINT64_MAX;) {
        uint64_t longest = m->silences[i].length_ns;
        bool stands_out = false;
        int asked = 0;
        for (n = 0; i < FLOW_SILENCES && m->silences[i].length_ns && m->silences[i].length_ns >= longest / 2; i++) {
            uint64_t length = m->silences[i].length_ns, tolerance = length / 8;
            uint64_t next = i + 1 < FLOW_SILENCES ? m->silences[i + 1].length_ns : length;
            /* An observer that missed a datagram after the silence is off by an interval. */
            bool alone = next && next < length / CLEARLY;
            if (alone && next / 4 < tolerance)
                tolerance = next / 4;
            bool found = delay_after(sends, m, w, i, tolerance, &delays[n]);
            n += found;
            stands_out |= found && alone;
            asked++;
        }
        for (int k = 0; k < n; k++) {
            int same = 0;
            for (int j = 0; j < n; j++)
                same += agree(delays[j], delays[k]);
            bool believed = stands_out || (same > 2 && same * 2 > asked);
            least = believed && delays[k] < least ? delays[k] : least;
        }
    }
    return least;
}

/* Takes the send nearest to its expected time: by the usual travel time, or just before the arrival. */
static void find_nameless(
    const struct flow_view *v, const struct flow_message_key *m, const struct flow_window *w, struct choice *out)
{
    struct flow_walk sends = {.view = v, .sends = true};
    uint64_t i = search_first(k, 0, flow_walk_count(v, true), flow_walk_at(&sends, k)->ts > w->end);
    uint64_t delay = is_timed(w) ? delay_of(&sends, m, w) : UINT64_MAX, nearest = 0, next = UINT64_MAX;
    bool usual = delay != UINT64_MAX;
    int64_t expected = usual ? (int64_t)((uint64_t)w->at - delay) : w->at;
    for (uint32_t tries = MOST_LOOKED_AT; i && tries; tries--) {
        const struct flow_disk_packet *p = flow_walk_at(&sends, --i);
        if (p->ts < w->begin)
            break;
        uint64_t far = is_timed(w) ? distance(p->ts, expected) : 0;
        if (out->best && p->ts < expected && far > next)
            break;
        if (!could_be(p, m))
            continue;
        if (!out->best || far < nearest) {
            next = out->best ? nearest : next;
            nearest = far;
            out->best = p;
            out->place = &v->places[sends.place];
        } else if (far < next) {
            next = far;
        }
    }
    uint64_t doubt = usual ? 0 : (uint64_t)w->error_ns * 2;
    out->ambiguous = out->best && next != UINT64_MAX &&
        (!is_timed(w) || next / (usual ? 2 : CLEARLY) <= nearest || next - nearest <= doubt);
}

static void find_datagram(
    const struct flow_view *v, const struct flow_message_key *m, const struct flow_window *w, struct choice *out)
{
    if (m->ip_id)
        choose_ranked(v, (struct flow_rank){m->bytes, m->ip_id, 0}, &m->flow, w, 0, out);
    if (!out->best)
        find_nameless(v, m, w, out);
}

/* ---- translated addresses ---- */

static bool shares_end(const struct flow_key *a, const struct flow_key *b)
{
    return (a->sport == b->sport && !memcmp(a->saddr, b->saddr, sizeof a->saddr)) ||
        (a->dport == b->dport && !memcmp(a->daddr, b->daddr, sizeof a->daddr));
}

/* Send near the number, in any flow. */
struct carrier {
    const struct flow_disk_packet *p;
    uint32_t chunk, flow, turns; /* flow: number in the store */
};

/* Considers the first send of the byte on the flow of a send that carried it. */
static void find_first(const struct flow_store *s, const struct flow_message_key *m, const struct carrier *c,
    struct flow_view *v, struct choice *out)
{
    flow_view_of(s, c->flow, v);
    struct spot at = {.place = search_first(i, 0, v->n, v->places[i].chunk >= c->chunk)};
    uint64_t end = c->p->seq_end - ((uint32_t)c->p->seq_end - m->seq_end) + c->turns * FLOW_TURN;
    if (at.place == v->n)
        return;
    out->place = &v->places[at.place];
    at.part = flow_part_of(v, at.place);
    at.n = at.part.n_sends;
    if (!at.n || !reach_back(v, end, &at))
        return;
    const struct flow_disk_packet *first = &at.part.sends[at.n];
    if (covers(first, in_place(&v->places[at.place], end))) {
        out->best = first;
        out->place = &v->places[at.place];
    }
}

/* Cursor over sends of a chunk from the number on, wrapping around, up to LONGEST_SEND beyond it. */
struct carriers {
    const struct flow_chunk *of;
    const struct flow_of *flows; /* flow of the store by flow of the chunk; NULL: the same */
    size_t at, left;
    const struct flow_disk_packet *next;
    uint32_t chunk, flow, beyond; /* flow and distance of the next one */
};

static inline const struct flow_disk_packet *carrier_at(const struct flow_chunk *c, size_t at)
{
    return flow_packet_at(c, c->carriers[at < c->n_carriers ? at : at - c->n_carriers]);
}

/* Loads the next one; false: there is none. */
static inline bool look_ahead(struct carriers *l, uint32_t seq_end)
{
    const struct flow_disk_packet *p = l->left ? carrier_at(l->of, l->at) : NULL;
    if (!p || p->flow >= l->of->n_flows)
        return false;
    l->next = p;
    l->flow = l->flows ? l->flows[p->flow].flow : p->flow;
    l->beyond = (uint32_t)p->seq_end - seq_end;
    return l->beyond <= LONGEST_SEND;
}

static bool carriers_of(const struct flow_store *s, uint32_t chunk, uint32_t seq_end, struct carriers *out)
{
    const struct flow_chunk *c = &s->chunks[chunk];
    size_t at = search_first(i, 0, c->n_carriers, (uint32_t)carrier_at(c, i)->seq_end >= seq_end);
    *out = (struct carriers){.of = c, .at = at, .left = c->n_carriers, .chunk = chunk};
    if (s->n > 1)
        out->flows = flow_tables(s)->of[chunk];
    return look_ahead(out, seq_end);
}

/* Returns the cursor whose next is the nearest after the number; of equal ones the one with the first flow. */
static inline struct carriers *nearest(struct carriers *list, size_t n)
{
    struct carriers *least = list;
    for (struct carriers *l = list + 1; l < list + n; l++)
        if (l->beyond < least->beyond || (l->beyond == least->beyond && l->flow < least->flow))
            least = l;
    return least;
}

/* If one end of the flow is the same, it may also have acknowledged less. */
static inline void weigh(const struct carriers *c, const struct flow_message_key *m, const struct flow_window *w,
    struct carrier *best, struct choice *out)
{
    const struct flow_disk_packet *p = c->next;
    uint32_t ahead = m->ack - p->ack;
    if (!flow_is_own(p) || c->beyond >= p->seq_end - flow_begin_of(p))
        return;
    bool shared = shares_end(&c->of->flows[p->flow].key, &m->flow);
    if (ahead && (!shared || ahead > MOST_UNACKED))
        return;
    int likeness = 1 + !ahead * 2 + shared;
    if (!out->best || likeness > out->likeness) {
        *out = (struct choice){p, NULL, likeness, false};
        *best = (struct carrier){p, c->chunk, c->flow, c->flows ? c->flows[p->flow].turns : 0};
    } else if (likeness == out->likeness) {
        out->ambiguous |= c->flow != best->flow;
    }
}

static bool is_bare(const struct flow_message_key *m)
{
    return !m->bytes && !(m->flags & (FLOW_SYN | FLOW_FIN));
}

/* A bare acknowledgement follows the last data of its flow: searches there for the exact one. */
static void look_for_ack(const struct flow_store *s, const struct carriers *c, const struct flow_message_key *m,
    const struct flow_window *w, struct flow_view *v, struct choice *out)
{
    if (out->best || !flow_is_own(c->next) || c->beyond >= c->next->seq_end - flow_begin_of(c->next))
        return;
    flow_view_of(s, c->flow, v);
    choose_ranked(v, (struct flow_rank){m->seq_end, m->ack, m->ip_id}, &m->flow, w, 1, out);
}

/* Numbers are not translated: finds, among the sends near this number in any flow, one that carried the byte and
 * acknowledged the same. Removes exhausted chunks from the list. */
static void choose_carrier(const struct flow_store *s, struct carriers *list, size_t n,
    const struct flow_message_key *m, const struct flow_window *w, struct carrier *best, struct flow_view *v,
    struct choice *out)
{
    uint32_t near = 0;
    for (size_t tries = MOST_CARRIERS; tries && near < MOST_TRANSLATED && n; tries--) {
        struct carriers *c = nearest(list, n);
        if (is_within(w, c->next->ts)) {
            near++;
            if (is_bare(m))
                look_for_ack(s, c, m, w, v, out);
            else
                weigh(c, m, w, best, out);
        }
        c->at++;
        c->left--;
        if (look_ahead(c, m->seq_end))
            continue;
        n--;
        memmove(c, c + 1, (size_t)(list + n - c) * sizeof *c);
    }
}

static void find_translated(const struct flow_store *s, const struct flow_message_key *m, const struct flow_window *w,
    struct flow_view *v, struct choice *out)
{
    struct carriers only, *list = s->n > 1 ? mem_alloc(sizeof *list * s->n) : &only;
    struct carrier best = {0};
    size_t n = 0;
    for (size_t c = 0; c < s->n; c++)
        if (s->chunks[c].head.since <= w->end && s->chunks[c].head.until >= w->begin)
            n += carriers_of(s, (uint32_t)c, m->seq_end, &list[n]);
    choose_carrier(s, list, n, m, w, &best, v, out);
    if (out->best && !is_bare(m))
        find_first(s, m, &best, v, out);
    if (out->best && !out->place)
        out->best = NULL;
    if (list != &only)
        free(list);
}

static bool sends_itself(const struct flow_view *v)
{
    for (size_t i = 0; i < v->n; i++)
        if (v->store->chunks[v->places[i].chunk].flows[v->places[i].flow].own)
            return true;
    return false;
}

enum flow_answer flow_find_send(const struct flow_store *sender, const struct flow_message_key *m,
    const struct flow_window *w, struct flow_packet *send)
{
    int64_t flow = flow_lookup(sender, &m->flow);
    bool is_tcp = m->flow.family && m->flow.protocol == FLOW_TCP;
    struct choice c = {0};
    struct flow_view v = {0};
    if (flow >= 0)
        flow_view_of(sender, (size_t)flow, &v);
    if (sends_itself(&v)) {
        if (!m->flow.family)
            find_bare(&v, m, w, &c);
        else if (!is_tcp)
            find_datagram(&v, m, w, &c);
        else if (!is_bare(m))
            find_bytes(&v, m, w, &c);
        else
            find_ack(&v, m, w, &c);
    } else if (is_tcp) {
        find_translated(sender, m, w, &v, &c);
    }
    return answer(sender, &c, send);
}

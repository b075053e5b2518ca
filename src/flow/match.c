/* Which send explains a message, told by its key: TCP by byte range, acknowledgements and named datagrams by what they
 * say, other datagrams by time, translated addresses by (sequence, ack, length). */
#include <string.h>

#include "base/search.h"
#include "flow/store.h"

enum {
    MOST_LOOKED_AT = 4096,  /* datagrams without an IP id */
    MOST_TRANSLATED = 1024, /* sends whose numbers lie near */
    LONGEST_SEND = 1 << 19, /* bytes; of cards that cut them */
    MOST_UNACKED = 1 << 24, /* by which a repetition's acknowledgement may be ahead of the first send's */
    MOST_ALIKE = 64,        /* acknowledgements that say the same under other IP ids */
    CLEARLY = 4             /* times nearer than the next */
};

static const uint64_t TURN = UINT64_C(1) << 32;

static uint64_t begin_of(const struct flow_disk_packet *p)
{
    return p->seq_end - p->bytes - !!(p->flags & FLOW_SYN) - !!(p->flags & FLOW_FIN);
}

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

/* Sent before the message came, for certain? */
static bool is_before(const struct flow_window *w, int64_t ts)
{
    return is_timed(w) && ts <= w->at && distance(ts, w->at) >= (uint64_t)w->error_ns;
}

/* The likeliest of the sends that fit. */
struct choice {
    const struct flow_disk_packet *best;
    int likeness; /* of the best */
    bool ambiguous;
};

/* What is more alike is likelier; of what is equally so the last that can have been sent before the message came (the
 * one that is nearest to that where all were sent after). Two are told apart when the later was sent before the message
 * came for certain: nothing older was still under way then. Without times nothing tells them apart. */
static void choose(struct choice *c, const struct flow_disk_packet *p, int likeness, const struct flow_window *w)
{
    if (!is_within(w, p->ts))
        return;
    if (!c->best || likeness > c->likeness) {
        *c = (struct choice){p, likeness, false};
        return;
    }
    if (likeness < c->likeness)
        return;
    bool after = is_timed(w) && p->ts > w->at && distance(p->ts, w->at) > (uint64_t)w->error_ns;
    bool best_after = is_timed(w) && c->best->ts > w->at && distance(c->best->ts, w->at) > (uint64_t)w->error_ns;
    if (is_timed(w) && (after != best_after ? best_after : after ? p->ts < c->best->ts : p->ts > c->best->ts))
        c->best = p;
    c->ambiguous = !is_before(w, c->best->ts);
}

static enum flow_answer answer(const struct choice *c, struct flow_packet *send)
{
    if (!c->best)
        return FLOW_NOT_SENT;
    flow_unpack(c->best, send);
    return c->ambiguous ? FLOW_AMBIGUOUS : FLOW_SENT;
}

/* ---- bytes ---- */

/* First send whose running maximum reaches `end`; n when none. O(log n) */
static uint32_t first_reaching(const struct flow_disk_packet *sends, uint32_t n, uint64_t end)
{
    return (uint32_t)search_first(i, 0, n, sends[i].high >= end);
}

static bool covers(const struct flow_disk_packet *p, uint64_t end)
{
    return flow_is_own(p) && flow_carries(p) && begin_of(p) < end && p->seq_end >= end;
}

/* The greatest number up to `most` that ends in these 32 bits; 0: none. */
static uint64_t last_turn(uint64_t most, uint32_t end)
{
    uint64_t v = (most & ~(TURN - 1)) | end;
    return v <= most ? v : v >= TURN ? v - TURN : 0;
}

/* The sender's numbers go on over turns of 2^32 and over connections: in each turn the first send of the byte, from the
 * last one within the window backwards. */
static void find_bytes(
    const struct flow_part *from, const struct flow_message_key *m, const struct flow_window *w, struct choice *out)
{
    const struct flow_disk_packet *sends = from->sends;
    uint32_t n = (uint32_t)search_first(i, 0, from->n_sends, sends[i].ts > w->end), at;
    uint64_t end = n ? last_turn(sends[n - 1].high, m->seq_end) : 0;
    for (uint64_t tries = (uint64_t)n + 2; end && tries; tries--) {
        at = first_reaching(sends, n, end);
        if (at < n && covers(&sends[at], end))
            choose(out, &sends[at], (uint32_t)sends[at].ack == m->ack, w);
        if (!at || at > n || sends[at - 1].ts < w->begin)
            break;
        uint64_t before = sends[at - 1].high, less = end >= TURN ? end - TURN : 0;
        end = last_turn(before < less ? before : less, m->seq_end);
    }
}

/* ---- what is not found by its bytes ---- */

/* Those of this rank, in time order, that were sent within the window. */
static void choose_ranked(const struct flow_store *s, const struct flow_part *from, struct flow_rank rank,
    const struct flow_key *key, const struct flow_window *w, int likeness, struct choice *out)
{
    const uint32_t *order = from->order;
    size_t n = from->n_order;
#define RANKED(i) flow_rank_compare(flow_rank_of(key, flow_packet_at(s, order[i])), rank)
    size_t first = search_first(i, 0, n, RANKED(i) >= 0), end = search_first(i, first, n, RANKED(i) > 0);
#undef RANKED
    size_t past = search_first(i, first, end, flow_packet_at(s, order[i])->ts > w->end);
    if (!is_timed(w)) { /* the first of all, as no later one can be told from it */
        for (size_t i = first; i < past && i < first + 2; i++)
            choose(out, flow_packet_at(s, order[i]), likeness, w);
        return;
    }
    /* About the message's arrival: the last before it, and their neighbours. */
    size_t now = search_first(i, first, past,
        flow_packet_at(s, order[i])->ts > w->at &&
            distance(flow_packet_at(s, order[i])->ts, w->at) > (uint64_t)w->error_ns);
    for (size_t i = now > first + 2 ? now - 2 : first; i < past && i < now + 1; i++)
        choose(out, flow_packet_at(s, order[i]), likeness, w);
}

/* A bare acknowledgement: the same one (IP id), else any that says the same. */
static void find_ack(const struct flow_store *s, const struct flow_part *from, const struct flow_message_key *m,
    const struct flow_window *w, struct choice *out)
{
    struct flow_rank rank = {m->seq_end, m->ack, m->ip_id};
    choose_ranked(s, from, rank, &m->flow, w, 1, out);
    if (out->best)
        return;
    const uint32_t *order = from->order;
    rank.c = 0;
    size_t at = search_first(
        i, 0, from->n_order, flow_rank_compare(flow_rank_of(&m->flow, flow_packet_at(s, order[i])), rank) >= 0);
    for (size_t tries = MOST_ALIKE; at < from->n_order && tries; at++, tries--) {
        const struct flow_disk_packet *p = flow_packet_at(s, order[at]);
        if ((uint32_t)p->seq_end != m->seq_end || (uint32_t)p->ack != m->ack)
            return;
        choose(out, p, 0, w);
    }
}

/* Old traces without addresses: all packets are one flow. */
static void find_bare(const struct flow_store *s, const struct flow_part *from, const struct flow_message_key *m,
    const struct flow_window *w, struct choice *out)
{
    choose_ranked(s, from, (struct flow_rank){m->seq_end, m->ack, m->flags}, &m->flow, w, 0, out);
}

/* ---- datagrams without a name ---- */

static bool could_be(const struct flow_disk_packet *p, const struct flow_message_key *m)
{
    return flow_is_own(p) && p->bytes == m->bytes && (!p->ip_id || !m->ip_id);
}

/* Looks from send `i` backwards for one of the same size after a silence of about this length. */
static bool find_silent(const struct flow_part *from, const struct flow_message_key *m, uint32_t i, uint64_t length,
    uint64_t tolerance, int64_t begin, int64_t *ts)
{
    const struct flow_disk_packet *sends = from->sends, *after = NULL;
    for (uint32_t tries = MOST_LOOKED_AT; i && tries; tries--) {
        const struct flow_disk_packet *p = &sends[--i];
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

/* How long the datagram after silence i was under way; false: the sender had no such silence. */
static bool delay_after(const struct flow_part *from, const struct flow_message_key *m, const struct flow_window *w,
    int i, uint64_t tolerance, uint64_t *delay)
{
    int64_t came, ts;
    if (m->silences[i].since_ns > INT64_MAX || __builtin_sub_overflow(w->at, (int64_t)m->silences[i].since_ns, &came))
        return false;
    uint32_t past = (uint32_t)search_first(
        k, 0, from->n_sends, from->sends[k].ts > came && distance(from->sends[k].ts, came) > (uint64_t)w->error_ns);
    int64_t begin = came > INT64_MIN + FLOW_DATAGRAM_LIFE_NS ? came - FLOW_DATAGRAM_LIFE_NS : INT64_MIN;
    if (!find_silent(from, m, past, m->silences[i].length_ns, tolerance, begin, &ts))
        return false;
    *delay = ts < came ? distance(ts, came) : 0;
    return true;
}

/* How long datagrams are under way, as the silences tell; UINT64_MAX: they do not. The longest are asked first, those
 * of about one length together; believed is one that stands out from the next, or tells the same as most, two others
 * at least. Of these the least: a silence is longer for who missed a datagram after it. */
static uint64_t delay_of(const struct flow_part *from, const struct flow_message_key *m, const struct flow_window *w)
{
    uint64_t delays[FLOW_SILENCES], least = UINT64_MAX;
    for (int i = 0, n; i < FLOW_SILENCES && m->silences[i].length_ns && least == UINT64_MAX;) {
        uint64_t longest = m->silences[i].length_ns;
        bool stands_out = false;
        int asked = 0;
        for (n = 0; i < FLOW_SILENCES && m->silences[i].length_ns && m->silences[i].length_ns >= longest / 2; i++) {
            uint64_t length = m->silences[i].length_ns, tolerance = length / 8;
            uint64_t next = i + 1 < FLOW_SILENCES ? m->silences[i + 1].length_ns : length;
            /* Who missed a datagram after the silence is off by an interval. */
            bool alone = next && next < length / CLEARLY;
            if (alone && next / 4 < tolerance)
                tolerance = next / 4;
            bool found = delay_after(from, m, w, i, tolerance, &delays[n]);
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

/* The one that was sent nearest to when it should have been: by the usual delay, or just before it came. */
static void find_nameless(
    const struct flow_part *from, const struct flow_message_key *m, const struct flow_window *w, struct choice *out)
{
    const struct flow_disk_packet *sends = from->sends;
    uint32_t i = (uint32_t)search_first(k, 0, from->n_sends, sends[k].ts > w->end);
    uint64_t delay = is_timed(w) ? delay_of(from, m, w) : UINT64_MAX, nearest = 0, next = UINT64_MAX;
    bool usual = delay != UINT64_MAX;
    int64_t expected = usual ? (int64_t)((uint64_t)w->at - delay) : w->at;
    for (uint32_t tries = MOST_LOOKED_AT; i && tries && sends[i - 1].ts >= w->begin; tries--) {
        const struct flow_disk_packet *p = &sends[--i];
        uint64_t far = is_timed(w) ? distance(p->ts, expected) : 0;
        if (out->best && p->ts < expected && far > next)
            break;
        if (!could_be(p, m))
            continue;
        if (!out->best || far < nearest) {
            next = out->best ? nearest : next;
            nearest = far;
            out->best = p;
        } else if (far < next) {
            next = far;
        }
    }
    uint64_t doubt = usual ? 0 : (uint64_t)w->error_ns * 2;
    out->ambiguous = out->best && next != UINT64_MAX &&
        (!is_timed(w) || next / (usual ? 2 : CLEARLY) <= nearest || next - nearest <= doubt);
}

static void find_datagram(const struct flow_store *s, const struct flow_part *from, const struct flow_message_key *m,
    const struct flow_window *w, struct choice *out)
{
    if (m->ip_id)
        choose_ranked(s, from, (struct flow_rank){m->bytes, m->ip_id, 0}, &m->flow, w, 0, out);
    if (!out->best)
        find_nameless(from, m, w, out);
}

/* ---- translated addresses ---- */

static bool shares_end(const struct flow_key *a, const struct flow_key *b)
{
    return (a->sport == b->sport && !memcmp(a->saddr, b->saddr, sizeof a->saddr)) ||
        (a->dport == b->dport && !memcmp(a->daddr, b->daddr, sizeof a->daddr));
}

/* The first send of the byte on the flow of a send that carried it. */
static void find_first(const struct flow_store *s, const struct flow_message_key *m, struct choice *out)
{
    struct flow_part from = flow_part(s, out->best->flow);
    uint64_t end = out->best->seq_end - ((uint32_t)out->best->seq_end - m->seq_end);
    uint32_t first = first_reaching(from.sends, from.n_sends, end);
    if (first < from.n_sends && covers(&from.sends[first], end))
        out->best = &from.sends[first];
}

/* Numbers are not translated: among the sends near this number in any flow, one that carried the byte and acknowledged
 * the same; where one end of the flow is the same, also one that acknowledged less. */
static void find_translated(
    const struct flow_store *s, const struct flow_message_key *m, const struct flow_window *w, struct choice *out)
{
    size_t n = s->n_carriers,
           at = search_first(i, 0, n, (uint32_t)flow_packet_at(s, s->carriers[i])->seq_end >= m->seq_end);
    for (size_t tries = n < MOST_TRANSLATED ? n : MOST_TRANSLATED; tries; tries--, at++) {
        const struct flow_disk_packet *p = flow_packet_at(s, s->carriers[at < n ? at : at - n]);
        uint32_t beyond = (uint32_t)p->seq_end - m->seq_end, ahead = m->ack - (uint32_t)p->ack;
        if (beyond > LONGEST_SEND)
            break;
        if (!flow_is_own(p) || p->flow >= s->n_flows || beyond >= p->seq_end - begin_of(p) || !is_within(w, p->ts))
            continue;
        bool shared = shares_end(&s->flows[p->flow].key, &m->flow);
        if (ahead && (!shared || ahead > MOST_UNACKED))
            continue;
        int likeness = 1 + !ahead * 2 + shared;
        if (!out->best || likeness > out->likeness) {
            *out = (struct choice){p, likeness, false};
        } else if (likeness == out->likeness) {
            out->ambiguous |= p->flow != out->best->flow;
        }
    }
    if (out->best)
        find_first(s, m, out);
}

enum flow_answer flow_find_send(const struct flow_store *sender, const struct flow_message_key *m,
    const struct flow_window *w, struct flow_packet *send)
{
    int64_t flow = flow_lookup(sender, &m->flow);
    struct flow_part from = flow >= 0 ? flow_part(sender, (size_t)flow) : (struct flow_part){0};
    bool is_tcp = m->flow.family && m->flow.protocol == FLOW_TCP;
    struct choice c = {0};
    if (flow >= 0 && sender->flows[flow].own) {
        if (!m->flow.family)
            find_bare(sender, &from, m, w, &c);
        else if (!is_tcp)
            find_datagram(sender, &from, m, w, &c);
        else if (m->bytes || m->flags & (FLOW_SYN | FLOW_FIN))
            find_bytes(&from, m, w, &c);
        else
            find_ack(sender, &from, m, w, &c);
    } else if (is_tcp && (m->bytes || m->flags & (FLOW_SYN | FLOW_FIN))) {
        find_translated(sender, m, w, &c);
    }
    return answer(&c, send);
}

/* SPDX-License-Identifier: MIT */
#include "path/exchange.h"

/* Packets of a flow in order of time, one ahead. */
struct ahead {
    const struct flow_store *store;
    size_t flow, i, n;
    bool sends, has;
    struct flow_packet packet;
};

/* Fetches the next packet. Of a packet that several devices of the host recorded one after another, the last record
 * counts. */
static void fetch(struct ahead *a)
{
    do {
        a->has = a->i < a->n;
        if (a->has && a->sends)
            flow_send(a->store, a->flow, a->i++, &a->packet);
        else if (a->has)
            flow_receive(a->store, a->flow, a->i++, &a->packet);
    } while (a->has && a->packet.way & (FLOW_WENT_ON | FLOW_CARRIES));
}

static struct ahead look_ahead(const struct flow_store *s, uint32_t flow, bool sends)
{
    struct ahead a = {.store = s, .flow = flow, .sends = sends};
    a.n = sends ? flow_sends(s, flow) : flow_receives(s, flow);
    fetch(&a);
    return a;
}

/* State of one direction: the number after its last byte, without FIN, as seen and as acknowledged (`told`), which may
 * be ahead. While it is `opening`, the recording began in the middle of this message, with number `low`: overtaken
 * bytes are below it. */
struct way {
    bool known, told, ended, opening;
    uint64_t low, high;
    uint32_t edge;
};

enum phase { QUIET, ASKED, REPLIED };
struct scan {
    bool tcp;
    enum phase phase;
    struct way in, out;
    struct exchange now; /* valid unless QUIET */
    int32_t user;        /* last thread involved in the exchange */
    struct exchanges *found;
};

/* ---- bytes ---- */

static uint64_t data_end(const struct flow_packet *p)
{
    return p->seq_end - !!(p->flags & FLOW_FIN);
}

/* Returns whether this is another connection with the same addresses and ports: its numbers are at least 2^32 above,
 * further than any window. */
static bool begins_anew(const struct way *w, const struct flow_packet *p)
{
    return p->flags & FLOW_SYN || (w->known && p->bytes && data_end(p) - p->bytes > w->high + (UINT64_C(1) << 31));
}

/* Number of new bytes in the packet; those that overtook others count with them. */
static uint64_t bring_on(const struct scan *s, struct way *w, const struct flow_packet *p)
{
    if (!s->tcp)
        return p->bytes;
    uint64_t end = data_end(p), begin = end - p->bytes, fresh = 0;
    if (!w->known) {
        w->opening = p->bytes && !(p->flags & FLOW_SYN);
        w->low = w->high = begin;
    }
    w->known = true;
    w->ended |= p->flags & FLOW_FIN;
    if (p->bytes && end > w->high) {
        fresh = end - w->high;
        w->high = end;
    }
    if (p->bytes && w->opening && begin < w->low) {
        fresh += w->low - begin;
        w->low = begin;
    }
    w->told = true;
    w->edge = (uint32_t)w->high;
    return fresh;
}

/* Bytes that the sender of `p` acknowledges less (< 0) or more of the other direction than was seen or acknowledged
 * before. */
static int32_t acknowledge(const struct scan *s, struct way *other, const struct flow_packet *p)
{
    if (!s->tcp || !(p->flags & FLOW_ACK))
        return 0;
    int32_t d = other->told ? (int32_t)(p->ack - other->edge) : 0;
    if (d > 0 && other->ended)
        d--;
    if (d > 0) {
        other->high += (uint32_t)d;
        other->edge += (uint32_t)d;
    }
    if (!other->told)
        other->edge = p->ack;
    other->told = true;
    return d;
}

/* Returns whether bytes before it were not seen. */
static bool leaves_gap(const struct scan *s, const struct way *w, const struct flow_packet *p)
{
    return s->tcp && w->told && (int32_t)((uint32_t)(data_end(p) - p->bytes) - w->edge) > 0;
}

/* ---- exchanges ---- */

static void finish(struct scan *s)
{
    if (s->phase == REPLIED)
        vec_push(s->found, s->now);
    s->phase = QUIET;
}

static void start_anew(struct scan *s)
{
    finish(s);
    s->in = s->out = (struct way){0};
}

static void ask(struct scan *s, const struct flow_packet *p, uint64_t first_byte)
{
    s->now = (struct exchange){
        .begin = p->ts, .end = p->ts, .first_in = p->number, .first_byte = first_byte, .row = -1};
    s->user = -1;
    s->phase = ASKED;
}

/* Handles a packet from the client. */
static void come(struct scan *s, const struct flow_packet *p)
{
    if (s->tcp && begins_anew(&s->in, p))
        start_anew(s);
    uint64_t fresh = bring_on(s, &s->in, p);
    if (!fresh)
        return;
    int32_t had = acknowledge(s, &s->out, p);
    if (s->phase == REPLIED && had < 0) {
        s->now.overlapped = true; /* the client did not wait for this reply: the exchange continues */
        s->phase = ASKED;
    } else if (s->phase == REPLIED) {
        finish(s);
    } else if (s->phase == ASKED && had > 0) {
        s->found->cut++;
        s->phase = QUIET;
    }
    if (had > 0 && fresh > p->bytes)
        fresh = p->bytes; /* a reply to the missing part before it may exist */
    if (s->phase == QUIET)
        ask(s, p, s->in.high - fresh);
    if (s->in.opening)
        s->now.first_byte = s->in.low;
    s->out.opening = false;
    s->now.bytes_in += fresh;
    s->user = p->row >= 0 ? p->row : s->user;
}

/* Handles a packet to the client. */
static void go(struct scan *s, const struct flow_packet *p)
{
    if (s->tcp && begins_anew(&s->out, p))
        start_anew(s);
    bool gap = leaves_gap(s, &s->out, p);
    uint64_t fresh = bring_on(s, &s->out, p);
    if (!fresh)
        return;
    s->in.opening = false;
    int32_t unseen = acknowledge(s, &s->in, p);
    if (unseen > 0 && (s->phase == REPLIED || gap)) { /* what it replies to was not recorded; with a gap: possibly */
        s->found->cut += s->phase != QUIET;
        finish(s);
    }
    if (s->phase == QUIET)
        return;
    s->now.bytes_in += unseen > 0 ? (uint32_t)unseen : 0;
    bool by_thread = p->origin == FLOW_BY_THREAD && p->row >= 0;
    s->phase = REPLIED;
    s->user = by_thread ? p->row : s->user;
    s->now.row = s->user;
    s->now.end = p->ts;
    s->now.last_out = p->number;
    s->now.bytes_out += fresh;
    s->now.by_interrupt = p->origin == FLOW_BY_RECEIVE;
}

void path_exchanges_find(const struct flow_store *store, uint32_t in, uint32_t out, struct exchanges *found)
{
    struct flow_key key;
    flow_key(store, in, &key);
    struct scan s = {.tcp = key.protocol == FLOW_TCP, .found = found};
    struct ahead came = look_ahead(store, in, false), went = look_ahead(store, out, true);
    while (came.has || went.has) {
        bool next_came = came.has && (!went.has || came.packet.ts <= went.packet.ts);
        if (next_came)
            come(&s, &came.packet);
        else if (went.packet.origin != FLOW_PASSING)
            go(&s, &went.packet);
        fetch(next_came ? &came : &went);
    }
    finish(&s);
}

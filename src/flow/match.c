/* Which send explains a receive: TCP by byte range, datagrams in order, translated addresses by (sequence, ack,
 * length). */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/search.h"
#include "flow/store.h"

enum { TCP = 6, FIN = 1, SYN = 2, RST = 4, DATAGRAM_WINDOW = 4096 };

static bool carries(const struct flow_disk_packet *p)
{
    return p->bytes || p->flags & (SYN | FIN);
}

static uint64_t begin_of(const struct flow_disk_packet *p)
{
    return p->seq_end - p->bytes - !!(p->flags & SYN) - !!(p->flags & FIN);
}

/* First send whose running maximum reaches `end`; n when none. O(log n) */
static uint32_t first_reaching(const struct flow_disk_packet *sends, uint32_t n, uint64_t end)
{
    return (uint32_t)search_first(i, 0, n, sends[i].high >= end);
}

static uint64_t distance(int64_t a, int64_t b)
{
    return a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a;
}

/* The first send that carried byte end - 1, if this list has it. */
static const struct flow_disk_packet *covering(const struct flow_disk_packet *sends, uint32_t n, uint64_t end)
{
    uint32_t i = first_reaching(sends, n, end);
    return i < n && carries(&sends[i]) && begin_of(&sends[i]) < end && sends[i].seq_end >= end ? &sends[i] : NULL;
}

/* Each host unwraps from the first packet it saw, so the two sides may differ by whole turns of 2^32: of the turns that
 * fit, the nearest in time. */
static const struct flow_disk_packet *explain_bytes(const struct flow_part *from, const struct flow_packet *r)
{
    const uint64_t turn = UINT64_C(1) << 32;
    const struct flow_disk_packet *sends = from->sends, *best;
    uint32_t n = from->n_sends;
    best = covering(sends, n, r->seq_end);
    if (best && sends[n - 1].high - sends[0].seq_end < turn / 2)
        return best;
    uint64_t end = r->seq_end % turn,
             turns = (uint64_t)n + from->n_receives + 2; /* from one packet to the next it is less than a turn */
    for (; turns && end <= sends[n - 1].high; turns--, end += turn) {
        const struct flow_disk_packet *p = end >= turn / 2 ? covering(sends, n, end) : NULL;
        if (p && (!best || distance(p->ts, r->ts) < distance(best->ts, r->ts)))
            best = p;
    }
    return best;
}

/* A bare acknowledgement: the same one (IP id), else the first that acknowledged as much. */
static const struct flow_disk_packet *explain_ack(
    const struct flow_disk_packet *sends, uint32_t n, const struct flow_packet *r)
{
    const struct flow_disk_packet *best = NULL;
    for (uint32_t i = first_reaching(sends, n, r->seq_end); i < n; i++) {
        const struct flow_disk_packet *p = &sends[i];
        if (p->seq_end > r->seq_end + (UINT32_C(1) << 30))
            break;
        if (carries(p) || (uint32_t)p->seq_end != (uint32_t)r->seq_end || (uint32_t)p->ack != (uint32_t)r->ack)
            continue;
        if (p->ip_id == r->ip_id)
            return p;
        if (!best)
            best = p;
    }
    return best;
}

/* ---- datagrams ---- */

static bool same_datagram(const struct flow_disk_packet *a, const struct flow_disk_packet *b)
{
    return a->bytes == b->bytes && (a->ip_id == b->ip_id || !a->ip_id || !b->ip_id);
}

/* In order, each send once; a receive that fits none within the window stays unexplained (lost on the sender's side, or
 * never sent there). */
static uint32_t *match_datagrams(
    const struct flow_disk_packet *sends, uint32_t n, const struct flow_disk_packet *receives, uint32_t m)
{
    uint32_t *send_of = mem_alloc(sizeof *send_of * (m ? m : 1));
    uint32_t next = 0;
    for (uint32_t i = 0; i < m; i++) {
        send_of[i] = UINT32_MAX;
        for (uint32_t j = next; j < n && j - next < DATAGRAM_WINDOW; j++)
            if (same_datagram(&sends[j], &receives[i])) {
                send_of[i] = j;
                next = j + 1;
                break;
            }
    }
    return send_of;
}

static const struct flow_disk_packet *explain_datagram(struct flow_store *receiver, uint32_t flow, size_t receive,
    const struct flow_store *sender, const struct flow_part *from)
{
    pthread_mutex_lock(&receiver->lock);
    struct flow_datagrams *d = receiver->datagrams;
    while (d && (d->sender != sender || d->flow != flow))
        d = d->next;
    if (!d) {
        struct flow_part to = flow_part(receiver, flow);
        d = mem_zalloc(sizeof *d);
        *d = (struct flow_datagrams){
            sender, flow, match_datagrams(from->sends, from->n_sends, to.receives, to.n_receives), receiver->datagrams};
        receiver->datagrams = d;
    }
    uint32_t j = d->send_of[receive];
    pthread_mutex_unlock(&receiver->lock);
    return j == UINT32_MAX ? NULL : &from->sends[j];
}

/* ---- translated addresses ---- */

static uint64_t bytes_hash(uint64_t seq_end, uint64_t ack, uint32_t bytes)
{
    return map_mix((uint64_t)(uint32_t)seq_end << 32 | (uint32_t)ack) ^ map_mix(bytes);
}

static void index_bytes(struct flow_store *s)
{
    size_t size = 64;
    while (size < s->n_packets * 2)
        size *= 2;
    s->by_bytes = mem_zalloc(size * sizeof *s->by_bytes);
    s->by_bytes_size = size;
    for (size_t i = 0; i < s->n_packets; i++) {
        const struct flow_disk_packet *p = &s->packets[i];
        if (!p->is_send || !carries(p) || p->flow >= s->n_flows || s->flows[p->flow].key.protocol != TCP)
            continue;
        size_t h = bytes_hash(p->seq_end, p->ack, p->bytes) & (size - 1);
        while (s->by_bytes[h])
            h = (h + 1) & (size - 1);
        s->by_bytes[h] = (uint32_t)i + 1;
    }
}

static const struct flow_disk_packet *explain_translated(struct flow_store *sender, const struct flow_packet *r)
{
    const struct flow_disk_packet *best = NULL;
    pthread_mutex_lock(&sender->lock);
    if (!sender->by_bytes)
        index_bytes(sender);
    size_t mask = sender->by_bytes_size - 1;
    for (size_t h = bytes_hash(r->seq_end, r->ack, r->bytes) & mask; sender->by_bytes[h]; h = (h + 1) & mask) {
        const struct flow_disk_packet *p = &sender->packets[sender->by_bytes[h] - 1];
        if ((uint32_t)p->seq_end == (uint32_t)r->seq_end && (uint32_t)p->ack == (uint32_t)r->ack &&
            p->bytes == r->bytes && (!best || p->ts < best->ts))
            best = p;
    }
    pthread_mutex_unlock(&sender->lock);
    return best;
}

/* ---- old traces without addresses ---- */

static const struct flow_disk_packet *explain_bare(
    const struct flow_disk_packet *sends, uint32_t n, const struct flow_packet *r)
{
    for (uint32_t i = 0; i < n; i++)
        if (sends[i].seq_end == r->seq_end && sends[i].ack == r->ack && sends[i].flags == r->flags)
            return &sends[i];
    return NULL;
}

bool flow_explain(const struct flow_store *receiver, const struct flow_packet *receive, const struct flow_store *sender,
    struct flow_packet *send)
{
    size_t place = receive->number < receiver->n_by_number ? receiver->by_number[receive->number] : SIZE_MAX;
    struct flow_part mine = flow_part(receiver, receive->flow);
    size_t index = place - (size_t)(mine.receives - receiver->packets);
    if (index >= mine.n_receives)
        return false;
    const struct flow_key *key = &receiver->flows[receive->flow].key;
    int64_t flow = flow_lookup(sender, key);
    const struct flow_disk_packet *p = NULL;
    bool same_host = receiver == sender;
    if (!same_host && flow_is_anonymous(key))
        return false;
    struct flow_part from = flow >= 0 ? flow_part(sender, (size_t)flow) : (struct flow_part){0};
    if (from.n_sends) {
        if (!key->family)
            p = same_host ? NULL : explain_bare(from.sends, from.n_sends, receive);
        else if (key->protocol != TCP)
            p = explain_datagram((struct flow_store *)receiver, receive->flow, index, sender, &from);
        else if (receive->bytes || receive->flags & (SYN | FIN))
            p = explain_bytes(&from, receive);
        else
            p = explain_ack(from.sends, from.n_sends, receive);
    } else if (key->protocol == TCP && receive->bytes && !same_host) {
        p = explain_translated((struct flow_store *)sender, receive);
    }
    if (!p || (same_host && p->ts > receive->ts))
        return false;
    flow_unpack(p, send);
    return true;
}

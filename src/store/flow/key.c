/* SPDX-License-Identifier: MIT */
/* Keys of received messages, and windows of their sends. */
#include "base/search.h"
#include "flow/store.h"

static const int64_t SECOND = 1000000000;
enum {
    BYTES_LIFE_S = 1000, /* Linux gives up a connection after 15 tries, by default 924 s */
    BYTES_SLACK_S = 1,
    LOOK_BACK = 1024
};

/* Last receive of this size before number `to`, looking back to `from`; `from` if there is none. */
static uint64_t like_before(struct flow_walk *receives, uint64_t from, uint64_t to, uint32_t bytes)
{
    while (to > from &&
        (flow_walk_at(receives, to - 1)->bytes != bytes || flow_is_on_its_way(flow_walk_at(receives, to - 1))))
        to--;
    return to;
}

/* Keeps the longest, sorted by falling length. */
static void keep_silence(struct flow_message_key *k, struct flow_silence silence)
{
    for (int i = 0; i < FLOW_SILENCES; i++)
        if (silence.length_ns > k->silences[i].length_ns) {
            struct flow_silence shorter = k->silences[i];
            k->silences[i] = silence;
            silence = shorter;
        }
}

/* The time before the first receive is unknown. */
static void find_silences(const struct flow_view *in, uint64_t receive, struct flow_message_key *out)
{
    struct flow_walk receives = {.view = in};
    int64_t came = flow_walk_at(&receives, receive)->ts;
    uint64_t from = receive > LOOK_BACK ? receive - LOOK_BACK : 0, before;
    for (uint64_t i = receive + 1; i > from; i = before) {
        int64_t ts = flow_walk_at(&receives, i - 1)->ts;
        before = like_before(&receives, from, i - 1, out->bytes);
        int64_t since = before > from ? flow_walk_at(&receives, before - 1)->ts : ts;
        if (ts > since && came >= ts)
            keep_silence(out, (struct flow_silence){(uint64_t)ts - (uint64_t)since, (uint64_t)came - (uint64_t)ts});
    }
}

/* Index of a packet among the receives of its flow, or UINT64_MAX. */
static uint64_t place_of(const struct flow_view *in, const struct flow_packet *receive)
{
    size_t chunk = flow_chunk_of(in->store, receive->number);
    const struct flow_chunk *c = &in->store->chunks[chunk];
    const struct flow_disk_packet *p = flow_numbered(c, receive->number);
    size_t at = search_first(i, 0, in->n, in->places[i].chunk >= chunk);
    if (!p || at == in->n || in->places[at].chunk != chunk)
        return UINT64_MAX;
    struct flow_part part = flow_part_of(in, at);
    size_t i = (size_t)(p - c->packets) - (size_t)(part.receives - c->packets);
    return i < part.n_receives ? in->places[at].receives + i : UINT64_MAX;
}

void flow_message_key_of(const struct flow_store *s, const struct flow_packet *receive, struct flow_message_key *out)
{
    *out = (struct flow_message_key){.seq_end = (uint32_t)receive->seq_end,
        .ack = receive->ack,
        .bytes = receive->bytes,
        .flags = receive->flags,
        .ip_id = receive->ip_id};
    flow_key(s, receive->flow, &out->flow);
    if (!out->flow.family || out->flow.protocol == FLOW_TCP || receive->ip_id)
        return;
    struct flow_view in;
    flow_view_of(s, receive->flow, &in);
    uint64_t place = place_of(&in, receive);
    if (place != UINT64_MAX)
        find_silences(&in, place, out);
}

static int64_t earlier(int64_t t, uint64_t by)
{
    int64_t out;
    return by > INT64_MAX || __builtin_sub_overflow(t, (int64_t)by, &out) ? INT64_MIN : out;
}

static int64_t later(int64_t t, uint64_t by)
{
    int64_t out;
    return by > INT64_MAX || __builtin_add_overflow(t, (int64_t)by, &out) ? INT64_MAX : out;
}

struct flow_window flow_window_at(const struct flow_message_key *k, int64_t at, uint64_t error_ns)
{
    bool bytes = k->flow.protocol == FLOW_TCP || !k->flow.family;
    uint64_t life = (uint64_t)(bytes ? SECOND * BYTES_LIFE_S : FLOW_DATAGRAM_LIFE_NS);
    int64_t error = error_ns > INT64_MAX ? INT64_MAX : (int64_t)error_ns;
    int64_t end = later(at, error_ns);
    return (struct flow_window){.begin = earlier(earlier(at, error_ns), life),
        .end = bytes && error ? later(end, (uint64_t)SECOND * BYTES_SLACK_S) : end,
        .at = at,
        .error_ns = error};
}

struct flow_window flow_window_any(void)
{
    return (struct flow_window){.begin = INT64_MIN, .end = INT64_MAX, .error_ns = -1};
}

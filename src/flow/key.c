/* What the receiver tells of a message, and when that can have been sent. */
#include "flow/store.h"

static const int64_t SECOND = 1000000000;
enum {
    BYTES_LIFE_S = 1000, /* Linux gives a connection up after 15 tries, 924 s by default */
    BYTES_SLACK_S = 1,
    LOOK_BACK = 1024
};

/* The last of the receives of this size by number `to`, looking back to `from`; `from` when there is none. */
static uint32_t like_before(const struct flow_disk_packet *receives, uint32_t from, uint32_t to, uint32_t bytes)
{
    while (to > from && receives[to - 1].bytes != bytes)
        to--;
    return to;
}

/* Keeps the longest, the longest first. */
static void keep_silence(struct flow_message_key *k, struct flow_silence silence)
{
    for (int i = 0; i < FLOW_SILENCES; i++)
        if (silence.length_ns > k->silences[i].length_ns) {
            struct flow_silence shorter = k->silences[i];
            k->silences[i] = silence;
            silence = shorter;
        }
}

/* What came before the first receive is not known. */
static void find_silences(const struct flow_part *in, uint32_t receive, struct flow_message_key *out)
{
    const struct flow_disk_packet *receives = in->receives;
    uint32_t from = receive > LOOK_BACK ? receive - LOOK_BACK : 0, before;
    for (uint32_t i = receive + 1; i > from; i = before) {
        const struct flow_disk_packet *p = &receives[i - 1];
        before = like_before(receives, from, i - 1, receives[receive].bytes);
        int64_t since = before > from ? receives[before - 1].ts : p->ts;
        if (p->ts > since && receives[receive].ts >= p->ts)
            keep_silence(out,
                (struct flow_silence){
                    (uint64_t)p->ts - (uint64_t)since, (uint64_t)receives[receive].ts - (uint64_t)p->ts});
    }
}

void flow_message_key_of(const struct flow_store *s, const struct flow_packet *receive, struct flow_message_key *out)
{
    *out = (struct flow_message_key){.seq_end = (uint32_t)receive->seq_end,
        .ack = (uint32_t)receive->ack,
        .bytes = receive->bytes,
        .flags = receive->flags,
        .ip_id = receive->ip_id};
    flow_key(s, receive->flow, &out->flow);
    if (!out->flow.family || out->flow.protocol == FLOW_TCP || receive->ip_id)
        return;
    struct flow_part in = flow_part(s, receive->flow);
    size_t at = receive->number < s->n_by_number ? s->by_number[receive->number] : SIZE_MAX,
           place = at - (size_t)(in.receives - s->packets);
    if (place < in.n_receives)
        find_silences(&in, (uint32_t)place, out);
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

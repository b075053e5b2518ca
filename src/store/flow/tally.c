/* SPDX-License-Identifier: MIT */
/* Traffic per direction. */
#include "flow/store.h"

static void count(const struct flow_disk_packet *p, struct flow_tally *t)
{
    t->first = t->packets && t->first < p->ts ? t->first : p->ts;
    t->last = t->packets && t->last > p->ts ? t->last : p->ts;
    t->packets++;
    t->bytes += p->bytes;
    if (p->retransmission) {
        t->again_packets++;
        t->again_bytes += p->bytes;
    }
}

void flow_tally(const struct flow_store *s, size_t flow, int64_t begin, int64_t end, struct flow_tally *sent,
    struct flow_tally *received)
{
    struct flow_view v;
    bool passes = false;
    *sent = *received = (struct flow_tally){0};
    flow_view_of(s, flow, &v);
    for (int sends = 1; sends >= 0; sends--) {
        struct flow_walk w = {.view = &v, .sends = sends};
        for (uint64_t i = 0, n = flow_walk_count(&v, sends); i < n; i++) {
            const struct flow_disk_packet *p = flow_walk_at(&w, i);
            bool passing = sends ? p->origin == FLOW_PASSING : passes && !(p->way & FLOW_CAME_BACK);
            passes |= passing;
            if (!passing && !flow_is_on_its_way(p) && p->ts >= begin && p->ts <= end)
                count(p, sends ? sent : received);
        }
    }
}

void flow_carried(const struct flow_store *s, int64_t begin, int64_t end, struct flow_carried *out)
{
    for (size_t c = 0; c < s->n; c++)
        for (size_t i = 0; i < s->chunks[c].n_packets; i++) {
            const struct flow_disk_packet *p = &s->chunks[c].packets[i];
            if (!p->way || p->ts < begin || p->ts > end || p->is_copy)
                continue;
            out->carrying += (p->way & FLOW_CARRIES) != 0;
            out->opaque += (p->way & FLOW_OPAQUE) != 0;
            out->renamed += p->way & FLOW_RENAMED && p->flow < s->chunks[c].n_flows &&
                s->chunks[c].flows[p->flow].key.protocol != FLOW_TCP;
        }
}

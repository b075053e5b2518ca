/* SPDX-License-Identifier: MIT */
/* Encoding of traffic between hosts, and of its delays. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/wire.h"
#include "cluster/protocol.h"

/* ---- parts ---- */

static void put_key(struct text *out, const struct flow_key *k)
{
    text_putc(out, (char)k->family);
    text_putc(out, (char)k->protocol);
    wire_put_u(out, k->sport);
    wire_put_u(out, k->dport);
    wire_put_bytes(out, k->saddr, cluster_address_bytes(k->family));
    wire_put_bytes(out, k->daddr, cluster_address_bytes(k->family));
}

static void take_key(struct wire_in *w, struct flow_key *k)
{
    *k = (struct flow_key){0};
    wire_bytes(w, &k->family, 1);
    wire_bytes(w, &k->protocol, 1);
    k->sport = (uint16_t)wire_below(w, UINT64_C(1) << 16);
    k->dport = (uint16_t)wire_below(w, UINT64_C(1) << 16);
    wire_bytes(w, k->saddr, cluster_address_bytes(k->family));
    wire_bytes(w, k->daddr, cluster_address_bytes(k->family));
}

/* Times are written as differences to the one before. */
static void put_tally(struct text *out, const struct flow_tally *t, int64_t *before)
{
    wire_put_u(out, t->packets);
    if (!t->packets)
        return;
    wire_put_u(out, t->bytes);
    wire_put_u(out, t->again_packets);
    wire_put_u(out, t->again_bytes);
    wire_put_i(out, (int64_t)((uint64_t)t->first - (uint64_t)*before));
    wire_put_u(out, (uint64_t)t->last - (uint64_t)t->first);
    *before = t->first;
}

static void take_tally(struct wire_in *w, struct flow_tally *t, int64_t *before)
{
    *t = (struct flow_tally){.packets = wire_u(w)};
    if (!t->packets)
        return;
    t->bytes = wire_u(w);
    t->again_packets = wire_u(w);
    t->again_bytes = wire_u(w);
    t->first = *before = (int64_t)((uint64_t)*before + (uint64_t)wire_i(w));
    t->last = (int64_t)((uint64_t)t->first + wire_u(w));
    w->damaged |= t->last < t->first || t->again_packets > t->packets || t->again_bytes > t->bytes;
}

/* ---- reports of hosts ---- */

void cluster_talk_question_write(const struct talk_question *q, struct text *out)
{
    wire_put_u(out, q->n);
    for (size_t i = 0; i < q->n; i++) {
        wire_put_bytes(out, &q->hosts[i].key, sizeof q->hosts[i].key);
        wire_put_i(out, q->hosts[i].begin);
        wire_put_i(out, q->hosts[i].end);
    }
}

int cluster_talk_question_read(struct arena *a, const void *bytes, size_t n, struct talk_question *out, struct err *e)
{
    struct wire_in w = wire_of(bytes, n);
    out->n = wire_count(&w, 10);
    out->hosts = arena_new(a, struct talk_question_host, out->n + 1);
    for (size_t i = 0; i < out->n; i++) {
        wire_bytes(&w, &out->hosts[i].key, sizeof out->hosts[i].key);
        out->hosts[i].begin = wire_i(&w);
        out->hosts[i].end = wire_i(&w);
    }
    uint64_t *keys = arena_new(a, uint64_t, out->n + 1);
    for (size_t i = 0; i < out->n; i++)
        keys[i] = out->hosts[i].key;
    w.damaged |= !cluster_protocol_all_differ(a, keys, out->n);
    return w.damaged || w.at != w.end ? err_set(e, ERR_FORMAT, "a question for connections that makes no sense") : 0;
}

void cluster_talk_write(const struct talk_reports *reports, struct text *out)
{
    int64_t before = 0;
    wire_put_u(out, reports->n);
    for (size_t i = 0; i < reports->n; i++) {
        put_key(out, &reports->v[i].key);
        put_tally(out, &reports->v[i].sent, &before);
        put_tally(out, &reports->v[i].received, &before);
    }
}

int cluster_talk_read(const void *bytes, size_t n, size_t n_hosts, struct talk_reports *out, struct err *e)
{
    struct wire_in w = wire_of(bytes, n);
    for (size_t h = 0; h < n_hosts && !w.damaged; h++) {
        int64_t before = 0;
        for (size_t i = 0, count = wire_count(&w, 12); i < count && !w.damaged; i++) {
            struct path_talk_report r;
            take_key(&w, &r.key);
            take_tally(&w, &r.sent, &before);
            take_tally(&w, &r.received, &before);
            if (!w.damaged)
                vec_push(&out[h], r);
        }
    }
    return w.damaged || w.at != w.end ? err_set(e, ERR_FORMAT, "an answer that makes no sense") : 0;
}

/* ---- delays ---- */

void cluster_delays_question_write(const struct delays_question *q, struct text *out)
{
    wire_put_i(out, q->begin);
    wire_put_i(out, q->end);
    text_putc(out, q->by_flow);
    wire_put_u(out, q->hosts.n_hosts);
    wire_put_bytes(out, q->keys, q->hosts.n_hosts * sizeof *q->keys);
    path_request_write(&q->hosts, out);
}

int cluster_delays_question_read(
    struct arena *a, const void *bytes, size_t n, struct delays_question *out, struct err *e)
{
    struct wire_in w = wire_of(bytes, n);
    uint8_t by_flow;
    out->begin = wire_i(&w);
    out->end = wire_i(&w);
    wire_bytes(&w, &by_flow, 1);
    out->by_flow = by_flow & 1;
    size_t n_keys = wire_count(&w, sizeof *out->keys);
    uint64_t *keys = arena_new(a, uint64_t, n_keys + 1);
    wire_bytes(&w, keys, n_keys * sizeof *keys);
    out->keys = keys;
    w.damaged |= !cluster_protocol_all_differ(a, keys, n_keys);
    int rc = w.damaged ? ERR_FORMAT : path_request_read(a, w.at, (size_t)(w.end - w.at), &out->hosts, e);
    return rc || out->hosts.n_hosts != n_keys ? err_set(e, ERR_FORMAT, "a question for delays that makes no sense") : 0;
}

static void put_delay(struct text *out, const struct talk_delay *d, bool by_flow)
{
    wire_put_u(out, (uint64_t)d->from);
    wire_put_u(out, (uint64_t)d->to);
    if (by_flow)
        put_key(out, &d->key);
    wire_put_u(out, d->packets);
    const int64_t v[] = {d->min, d->p50, d->p99, d->max, d->error_ns};
    for (size_t i = 0; i < sizeof v / sizeof *v; i++)
        wire_put_i(out, v[i]);
}

static void take_delay(struct wire_in *w, size_t n_hosts, bool by_flow, struct talk_delay *d)
{
    *d = (struct talk_delay){.from = (int32_t)wire_below(w, n_hosts), .to = (int32_t)wire_below(w, n_hosts)};
    if (by_flow)
        take_key(w, &d->key);
    d->packets = wire_u(w);
    int64_t *v[] = {&d->min, &d->p50, &d->p99, &d->max, &d->error_ns};
    for (size_t i = 0; i < sizeof v / sizeof *v; i++)
        *v[i] = wire_i(w);
    w->damaged |= !d->packets || d->from == d->to || d->min > d->p50 || d->p50 > d->p99 || d->p99 > d->max ||
        d->error_ns < -1;
}

void cluster_delays_write(
    const struct talk_delays *delays, const bool *known, size_t n_hosts, bool by_flow, struct text *out)
{
    for (size_t i = 0; i < n_hosts; i++)
        text_putc(out, known[i]);
    wire_put_u(out, delays->n);
    for (size_t i = 0; i < delays->n; i++)
        put_delay(out, &delays->v[i], by_flow);
}

int cluster_delays_read(
    const void *bytes, size_t n, size_t n_hosts, bool by_flow, struct talk_delays *out, bool *known, struct err *e)
{
    struct wire_in w = wire_of(bytes, n);
    for (size_t i = 0; i < n_hosts; i++) {
        uint8_t is;
        wire_bytes(&w, &is, 1);
        known[i] = is == 1;
    }
    for (size_t i = 0, count = wire_count(&w, 8); i < count && !w.damaged; i++) {
        struct talk_delay d;
        take_delay(&w, n_hosts, by_flow, &d);
        w.damaged |= out->n && path_talk_delay_compare(&out->v[out->n - 1], &d) >= 0;
        if (!w.damaged)
            vec_push(out, d);
    }
    if (!w.damaged && w.at == w.end)
        return 0;
    out->n = 0;
    return err_set(e, ERR_FORMAT, "an answer that makes no sense");
}

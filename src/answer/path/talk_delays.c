/* SPDX-License-Identifier: MIT */
/* Delays of messages: from the packets that two hosts surely have in common. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/order.h"
#include "clock/clock.h"
#include "path/talk.h"

int path_talk_delay_compare(const struct talk_delay *a, const struct talk_delay *b)
{
    return order_of(a->from, b->from) ?: order_of(a->to, b->to) ?: memcmp(&a->key, &b->key, sizeof a->key);
}

/* Packets from one host to another, being examined. */
struct timing {
    const struct clock_map *from, *to;
    int64_t begin, end; /* range of the receive, on the reference clock */
    int64_t error_ns;
    VEC(int64_t) delays;
};

static int64_t error_at(const struct clock_map *map, int64_t t)
{
    return map ? clock_error_at(map, t) : 0;
}

static void on_pair(void *arg, int64_t sent, int64_t received)
{
    struct timing *t = arg;
    int64_t from = t->from ? clock_to_reference(t->from, sent) : sent, delay, error;
    int64_t to = t->to ? clock_to_reference(t->to, received) : received;
    if (to < t->begin || to > t->end || __builtin_sub_overflow(to, from, &delay))
        return;
    if (__builtin_add_overflow(error_at(t->from, sent), error_at(t->to, received), &error))
        error = INT64_MAX;
    t->error_ns = error > t->error_ns ? error : t->error_ns;
    vec_push(&t->delays, delay);
}

static int by_value(const void *a, const void *b)
{
    return order_of(*(const int64_t *)a, *(const int64_t *)b);
}

static int64_t percentile(const struct timing *t, unsigned p)
{
    return t->delays.v[(t->delays.n * p + 99) / 100 - 1];
}

/* Adds the delay found, and resets for the next. */
static void add_delay(struct timing *t, int32_t from, int32_t to, const struct flow_key *key, struct talk_delays *out)
{
    size_t n = t->delays.n;
    if (n) {
        qsort(t->delays.v, n, sizeof *t->delays.v, by_value);
        struct talk_delay d = {.from = from,
            .to = to,
            .packets = n,
            .min = t->delays.v[0],
            .p50 = percentile(t, 50),
            .p99 = percentile(t, 99),
            .max = t->delays.v[n - 1],
            .error_ns = t->from && t->to ? t->error_ns : -1};
        if (key)
            d.key = *key;
        vec_push(out, d);
    }
    t->delays.n = 0;
    t->error_ns = 0;
}

/* ---- choice of flows ---- */

static int line_compare(const void *pa, const void *pb)
{
    const struct talk_line *a = pa, *b = pb;
    return order_of(a->from, b->from) ?: order_of(a->to, b->to) ?: memcmp(&a->key, &b->key, sizeof a->key);
}

/* Lines between two hosts, in order of both and of keys. */
static void find_lines(const struct talk_host *hosts, size_t n, int64_t begin, int64_t end, struct talk_lines *out)
{
    struct talk_told *of = mem_zalloc((n + 1) * sizeof *of);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        int64_t from = begin, to = end;
        path_talk_window(hosts[i].map, &from, &to);
        path_talk_report(hosts[i].flows, from, to, &of[i].flows);
        of[i].n_own = hosts[i].flows ? flow_addresses(hosts[i].flows, &of[i].own) : 0;
    }
    path_talk_join(of, n, out);
    for (size_t i = 0; i < out->n; i++)
        if (out->v[i].from >= 0 && out->v[i].to >= 0 && out->v[i].from != out->v[i].to)
            out->v[kept++] = out->v[i];
    out->n = kept;
    if (kept)
        qsort(out->v, kept, sizeof *out->v, line_compare);
    for (size_t i = 0; i < n; i++)
        vec_free(&of[i].flows);
    free(of);
}

static bool related(const struct talk_host *a, const struct talk_host *b)
{
    return !a->map || !b->map || (a->map->island == b->map->island);
}

/* Flow of a line with both hosts here. */
static bool link_of(
    const struct talk_host *from, const struct talk_host *to, const struct talk_line *l, struct flow_link *out)
{
    int64_t sent = flow_lookup(from->flows, &l->key), received = flow_lookup(to->flows, &l->key);
    *out = (struct flow_link){(uint32_t)l->from, (uint32_t)l->to, (uint32_t)sent, (uint32_t)received};
    return sent >= 0 && received >= 0;
}

void path_talk_find_delays(
    const struct talk_host *hosts, size_t n, int64_t begin, int64_t end, bool by_flow, struct talk_delays *out)
{
    struct talk_lines lines = {0};
    VEC(struct flow_link) links = {0};
    struct timing t = {.begin = begin, .end = end};
    find_lines(hosts, n, begin, end, &lines);
    for (size_t i = 0, next; i < lines.n; i = next) {
        const struct talk_line *l = &lines.v[i];
        const struct talk_host *from = &hosts[l->from], *to = &hosts[l->to];
        struct flow_link link;
        links.n = 0;
        for (next = i; next < lines.n && lines.v[next].from == l->from && lines.v[next].to == l->to; next++) {
            if (by_flow && next > i)
                break;
            if (related(from, to) && link_of(from, to, &lines.v[next], &link))
                vec_push(&links, link);
        }
        t.from = from->map;
        t.to = to->map;
        flow_sure_pairs(from->flows, to->flows, links.v, links.n, on_pair, &t);
        add_delay(&t, l->from, l->to, by_flow ? &l->key : NULL, out);
    }
    vec_free(&t.delays);
    vec_free(&links);
    vec_free(&lines);
}

/* SPDX-License-Identifier: MIT */
#include "cli/flows.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/order.h"
#include "cli/cli.h"
#include "clock/clock.h"

enum { ADDRESS = 64, TCP = 6, UDP = 17 };

const char *cli_flows_sort_name(int sort)
{
    static const char *const names[] = {"bytes", "packets", "retransmitted", "connections", "delay", "begin"};
    return names[sort];
}

/* ---- rows ---- */

/* Compares the ends: hosts, and addresses of ends that are not traced. */
static int compare_ends(const struct talk_line *a, const struct talk_line *b)
{
    return order_of(a->from, b->from) ?: order_of(a->to, b->to)
        ?: (a->from < 0 || a->to < 0 ? order_of(a->key.family, b->key.family) : 0)
        ?: (a->from < 0 ? memcmp(a->key.saddr, b->key.saddr, sizeof a->key.saddr) : 0)
        ?: (a->to < 0 ? memcmp(a->key.daddr, b->key.daddr, sizeof a->key.daddr) : 0);
}

static int by_ends(const void *pa, const void *pb)
{
    const struct talk_line *a = pa, *b = pb;
    return compare_ends(a, b) ?: memcmp(&a->key, &b->key, sizeof a->key);
}

static void add_tally(struct flow_tally *sum, const struct flow_tally *t, const struct clock_map *map)
{
    if (!t->packets)
        return;
    int64_t first = map ? clock_to_reference(map, t->first) : t->first;
    int64_t last = map ? clock_to_reference(map, t->last) : t->last;
    sum->first = sum->packets && sum->first < first ? sum->first : first;
    sum->last = sum->packets && sum->last > last ? sum->last : last;
    sum->packets += t->packets;
    sum->bytes += t->bytes;
    sum->again_packets += t->again_packets;
    sum->again_bytes += t->again_bytes;
}

static const struct clock_map *map_of(const struct flows_host *hosts, int32_t host)
{
    return host < 0 ? NULL : hosts[host].map;
}

static int compare_delay(const void *key, const void *item)
{
    return path_talk_delay_compare(key, item);
}

static const struct talk_delay *delay_of(const struct flows_row *row, const struct talk_delays *delays, bool by_flow)
{
    struct talk_delay wanted = {.from = row->from, .to = row->to};
    if (by_flow)
        wanted.key = row->key;
    return delays->n ? bsearch(&wanted, delays->v, delays->n, sizeof wanted, compare_delay) : NULL;
}

void cli_flows_make_rows(struct talk_lines *lines, const struct talk_delays *delays, const struct flows_host *hosts,
    bool by_flow, struct flows_rows *out)
{
    if (lines->n)
        qsort(lines->v, lines->n, sizeof *lines->v, by_ends);
    for (size_t i = 0; i < lines->n; i++) {
        const struct talk_line *l = &lines->v[i];
        if (!i || (by_flow ? by_ends(l - 1, l) : compare_ends(l - 1, l)))
            vec_push(out, ((struct flows_row){.from = l->from, .to = l->to, .key = l->key}));
        struct flows_row *row = &out->v[out->n - 1];
        row->connections++;
        add_tally(&row->sent, &l->sent, map_of(hosts, l->from));
        add_tally(&row->received, &l->received, map_of(hosts, l->to));
    }
    for (size_t i = 0; i < out->n; i++)
        out->v[i].delay = delay_of(&out->v[i], delays, by_flow);
}

/* ---- order ---- */

/* Returns the traffic as the sender saw it, if known; else as the receiver saw it. */
static const struct flow_tally *tally_of(const struct flows_row *r)
{
    return r->sent.packets ? &r->sent : &r->received;
}

/* Returns the earlier begin of both ends. One may have been recorded longer, or have lost packets. */
static int64_t begin_of(const struct flows_row *r)
{
    bool sent_first = r->sent.packets && (!r->received.packets || r->sent.first < r->received.first);
    return sent_first ? r->sent.first : r->received.first;
}

static int64_t end_of(const struct flows_row *r)
{
    bool sent_last = r->sent.packets && (!r->received.packets || r->sent.last > r->received.last);
    return sent_last ? r->sent.last : r->received.last;
}

static uint64_t measure(const struct flows_row *r, int sort)
{
    switch (sort) {
    case FLOWS_PACKETS: return tally_of(r)->packets;
    case FLOWS_RETRANSMITTED: return r->sent.again_packets;
    case FLOWS_CONNECTIONS: return r->connections;
    default: return tally_of(r)->bytes;
    }
}

static int64_t lateness(const struct flows_row *r)
{
    return r->delay ? r->delay->p99 : INT64_MIN;
}

struct order {
    const struct flows_host *hosts;
    int sort;
};

static const char *name_of(const struct order *o, int32_t host)
{
    return host < 0 ? "" : o->hosts[host].name;
}

static int compare_rows(const void *pa, const void *pb, void *arg)
{
    const struct flows_row *a = pa, *b = pb;
    const struct order *o = arg;
    int by = o->sort == FLOWS_BEGIN ? order_of(begin_of(a), begin_of(b))
        : o->sort == FLOWS_DELAY    ? order_of(lateness(b), lateness(a))
                                    : order_of(measure(b, o->sort), measure(a, o->sort));
    return by ?: strcmp(name_of(o, a->from), name_of(o, b->from)) ?: strcmp(name_of(o, a->to), name_of(o, b->to))
        ?: order_of(begin_of(a), begin_of(b)) ?: memcmp(&a->key, &b->key, sizeof a->key);
}

void cli_flows_sort(struct flows_rows *rows, const struct flows_host *hosts, int sort)
{
    struct order o = {hosts, sort};
    if (rows->n)
        qsort_r(rows->v, rows->n, sizeof *rows->v, compare_rows, &o);
}

/* ---- table ---- */

static void put_address(struct cli_table *t, const struct flow_key *k, bool source)
{
    char address[ADDRESS] = "?";
    if (k->family)
        inet_ntop(k->family == 6 ? AF_INET6 : AF_INET, source ? k->saddr : k->daddr, address, sizeof address);
    cli_table_cell(t, "%s", address);
}

static void put_end(struct cli_table *t, const struct flows_row *r, bool source, const struct flows_host *hosts)
{
    int32_t host = source ? r->from : r->to;
    if (host >= 0)
        cli_table_cell(t, "%s", hosts[host].name);
    else
        put_address(t, &r->key, source);
}

static void put_connection(struct cli_table *t, const struct flow_key *k)
{
    char endpoint[ADDRESS];
    if (!k->family)
        cli_table_cell(t, "%s", "");
    else if (k->protocol == TCP || k->protocol == UDP)
        cli_table_cell(t, "%s", k->protocol == TCP ? "tcp" : "udp");
    else
        cli_table_cell(t, "%u", k->protocol);
    cli_table_cell(t, "%s", flow_format_endpoint(k, true, endpoint, sizeof endpoint));
    cli_table_cell(t, "%s", flow_format_endpoint(k, false, endpoint, sizeof endpoint));
}

static void put_count(struct cli_table *t, bool known, uint64_t n)
{
    if (known)
        cli_table_cell(t, "%llu", (unsigned long long)n);
    else
        cli_table_cell(t, "%s", "");
}

static void put_duration(struct cli_table *t, int format, bool known, int64_t ns)
{
    if (known)
        cli_table_duration(t, format, ns);
    else
        cli_table_cell(t, "%s", "");
}

static void put_delay(struct cli_table *t, int format, const struct talk_delay *d)
{
    static const struct talk_delay none = {.error_ns = -1};
    const struct talk_delay *v = d ? d : &none;
    put_duration(t, format, d, v->min);
    put_duration(t, format, d, v->p50);
    put_duration(t, format, d, v->p99);
    put_duration(t, format, d, v->max);
    put_duration(t, format, v->error_ns >= 0, v->error_ns);
    put_count(t, d, v->packets);
}

/* Tables for people count from the begin of all. */
static void put_time(struct cli_table *t, int format, int64_t ts, int64_t first)
{
    struct text when = {.fd = -1};
    if (format == CLI_TABLE) {
        int64_t since = (int64_t)((uint64_t)ts - (uint64_t)first);
        text_puts(&when, since < 0 ? "" : "+");
        text_duration(&when, since);
    } else {
        text_i64(&when, ts);
    }
    cli_table_text(t, &when);
    text_fini(&when);
}

static void put_row(struct cli_table *t, const struct flows_row *r, const struct flows_host *hosts, bool by_flow,
    int64_t first, int format)
{
    put_end(t, r, true, hosts);
    put_end(t, r, false, hosts);
    if (by_flow)
        put_connection(t, &r->key);
    else
        put_count(t, true, r->connections);
    put_count(t, true, tally_of(r)->packets);
    put_count(t, true, tally_of(r)->bytes);
    put_count(t, r->sent.packets, r->sent.again_packets);
    put_count(t, r->sent.packets, r->sent.again_bytes);
    put_delay(t, format, r->delay);
    put_time(t, format, begin_of(r), first);
    put_time(t, format, end_of(r), first);
    bool told = r->to >= 0 && hosts[r->to].told;
    put_count(t, told, r->received.packets);
    put_count(t, told, r->received.bytes);
}

enum { MOST_COLUMNS = 24 };

static size_t add_columns(struct cli_column *out, size_t at, const struct cli_column *v, size_t n)
{
    memcpy(out + at, v, n * sizeof *v);
    return at + n;
}

void cli_flows_write_rows(const struct flows_row *rows, size_t n, const struct flows_host *hosts, bool by_flow,
    int64_t first, int format, struct text *out)
{
    static const struct cli_column ends[] = {{"from", false, false}, {"to", false, false}};
    static const struct cli_column pair[] = {{"connections", true, true}};
    static const struct cli_column flow[] = {
        {"protocol", false, false}, {"source", false, false}, {"destination", false, false}};
    static const struct cli_column went[] = {{"packets", true, true}, {"bytes", true, true},
        {"retransmitted", true, true}, {"retransmitted_bytes", true, true}, {"delay_min", true, true},
        {"delay_p50", true, true}, {"delay_p99", true, true}, {"delay_max", true, true}, {"delay_error", true, true},
        {"matched", true, true}, {"begin", true, true}, {"end", true, true}, {"received_packets", true, true},
        {"received_bytes", true, true}};
    struct cli_column columns[MOST_COLUMNS];
    size_t count = add_columns(columns, 0, ends, sizeof ends / sizeof *ends);
    count = by_flow ? add_columns(columns, count, flow, sizeof flow / sizeof *flow)
                    : add_columns(columns, count, pair, sizeof pair / sizeof *pair);
    count = add_columns(columns, count, went, sizeof went / sizeof *went);
    struct cli_table *t = cli_table_new(columns, count);
    for (size_t i = 0; i < n; i++)
        put_row(t, &rows[i], hosts, by_flow, first, format);
    cli_table_write(t, format, out);
    cli_table_free(t);
}

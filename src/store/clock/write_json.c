/* SPDX-License-Identifier: MIT */
/* Writer of `sync --format json`: format in DESIGN section 2. */
#include "base/json.h"
#include "clock/net.h"

static void write_decimal(struct json *j, const char *key, void (*decimal)(struct text *, const struct clock_piece *),
    const struct clock_piece *p)
{
    struct text t = {.fd = -1};
    decimal(&t, p);
    json_kv_string(j, key, text_cstr(&t));
    text_fini(&t);
}

static void write_piece(struct json *j, const struct clock_piece *p)
{
    json_object(j);
    json_kv_i64(j, "begin", p->begin);
    json_kv_i64(j, "end", p->end);
    write_decimal(j, "drift", clock_decimal_drift, p);
    write_decimal(j, "offset_ns", clock_decimal_offset, p);
    json_key(j, "through");
    json_array(j);
    json_i64(j, p->t0);
    json_i64(j, sat64((i128)p->t0 + p->shift));
    json_end_array(j);
    json_kv_i64(j, "error_ns_begin", p->error_begin);
    json_kv_i64(j, "error_ns_end", p->error_end);
    json_end_object(j);
}

static void write_host(const struct clock_net *net, const struct net_host *h, struct json *j)
{
    json_object(j);
    json_kv_string(j, "host", h->name);
    json_kv_string(j, "reference", net->hosts.v[h->map.reference].name);
    json_kv_string(j, "predecessor", h->map.predecessor < 0 ? NULL : net->hosts.v[h->map.predecessor].name);
    json_kv_string(j, "category", clock_category_name(h->map.category));
    json_kv_u64(j, "island", h->map.island);
    json_key(j, "pieces");
    json_array(j);
    for (size_t i = 0; i < h->map.n; i++)
        write_piece(j, &h->map.pieces[i]);
    json_end_array(j);
    json_end_object(j);
}

static void write_pair(const struct clock_net *net, const struct net_pair *p, struct json *j)
{
    json_object(j);
    json_kv_string(j, "a", net->hosts.v[p->out.a].name);
    json_kv_string(j, "b", net->hosts.v[p->out.b].name);
    json_kv_string(j, "category", clock_category_name(p->out.category));
    json_key(j, "messages");
    json_array(j);
    json_u64(j, p->out.messages_ab);
    json_u64(j, p->out.messages_ba);
    json_end_array(j);
    json_kv_double(j, "drift_min", p->out.drift_min);
    json_kv_double(j, "drift_max", p->out.drift_max);
    json_kv_u64(j, "left_out", p->outliers);
    json_kv_bool(j, "against_prior", p->against_prior);
    json_end_object(j);
}

static void write_trust(const struct clock_net *net, struct json *j)
{
    json_key(j, "trust");
    json_array(j);
    for (size_t i = 0; i < net->trust.n; i++) {
        json_object(j);
        json_key(j, "hosts");
        json_array(j);
        for (size_t k = 0; k < net->trust.v[i].hosts.n; k++)
            json_string(j, net->hosts.v[net->trust.v[i].hosts.v[k]].name);
        json_end_array(j);
        json_kv_i64(j, "error_ns", net->trust.v[i].error);
        json_end_object(j);
    }
    json_end_array(j);
    json_key(j, "contradictions");
    json_array(j);
    for (size_t i = 0; i < net->conflicts.n; i++) {
        const struct clock_conflict *c = &net->conflicts.v[i];
        json_object(j);
        json_kv_string(j, "a", net->hosts.v[c->a].name);
        json_kv_string(j, "b", net->hosts.v[c->b].name);
        json_kv_i64(j, "apart_ns", c->apart_ns);
        json_kv_bool(j, "out_of_trust", c->out_of_trust);
        json_end_object(j);
    }
    json_end_array(j);
}

void clock_net_write_json(const struct clock_net *net, struct json *j)
{
    json_object(j);
    json_kv_string(j, "reference", net->islands.n ? net->hosts.v[net->islands.v[0].reference].name : NULL);
    json_key(j, "hosts");
    json_array(j);
    for (size_t i = 0; i < net->hosts.n; i++)
        write_host(net, &net->hosts.v[i], j);
    json_end_array(j);
    json_key(j, "pairs");
    json_array(j);
    for (size_t i = 0; i < net->pairs.n; i++)
        write_pair(net, &net->pairs.v[i], j);
    json_end_array(j);
    json_key(j, "islands");
    json_array(j);
    for (size_t i = 0; i < net->islands.n; i++) {
        json_object(j);
        json_kv_string(j, "reference", net->hosts.v[net->islands.v[i].reference].name);
        json_kv_u64(j, "hosts", net->islands.v[i].hosts);
        json_end_object(j);
    }
    json_end_array(j);
    write_trust(net, j);
    json_end_object(j);
}

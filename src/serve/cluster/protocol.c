/* SPDX-License-Identifier: MIT */
#include "cluster/protocol.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/order.h"
#include "base/wire.h"
#include "bus/bus.h"

enum { MOST_ITEMS = 1 << 20, MOST_LIVES = 4096 };
#define MOST_METRIC (UINT64_C(1) << 48) /* limit that keeps sums of all hosts from overflowing */

/* ---- names on the bus ---- */

int cluster_subject_of(const char *cluster, const char *node, char out[CLUSTER_SUBJECT], struct err *e)
{
    char c[CLUSTER_SUBJECT], n[CLUSTER_SUBJECT];
    int length = -1;
    if (!bus_token(cluster, c, sizeof c) && !bus_token(node, n, sizeof n))
        length = snprintf(out, CLUSTER_SUBJECT, "weft.%.*s.ask.%.*s", 200, c, 200, n);
    if (length < 0 || length > BUS_MAX_SUBJECT || strlen(c) > 200 || strlen(n) > 200)
        return err_set(
            e, ERR_LIMIT, "the names of cluster and node are too long, or empty: %.40s, %.40s", cluster, node);
    return 0;
}

static char table_letter(char c)
{
    bool fits = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    return fits ? c : '-';
}

int cluster_table_name(const char *cluster, const char *kind, char out[CLUSTER_SUBJECT], struct err *e)
{
    int length = snprintf(out, CLUSTER_SUBJECT, "weft_%s_%s", cluster, kind);
    if (length < 0 || length >= 100 || !*cluster)
        return err_set(e, ERR_LIMIT, "the name of the cluster is empty or too long: %.40s", cluster);
    for (char *p = out; *p; p++)
        *p = table_letter(*p);
    return 0;
}

int cluster_bind(struct bus *bus, const char *cluster, struct err *e)
{
    char subject[CLUSTER_SUBJECT], table[CLUSTER_SUBJECT];
    int rc = cluster_subject_of(cluster, "x", subject, e);
    rc = rc ? rc : cluster_table_name(cluster, "keys", table, e);
    if (rc)
        return rc;
    *strrchr(subject, '.') = '\0';
    return bus_bind(bus, subject, table, e);
}

void cluster_id(uint64_t key, char out[CLUSTER_ID])
{
    snprintf(out, CLUSTER_ID, "%016" PRIx64, key);
}

/* ---- parts ---- */

static void put_u64(struct text *out, uint64_t v)
{
    wire_put_bytes(out, &v, sizeof v);
}

static uint64_t take_u64(struct wire_in *w)
{
    uint64_t v;
    wire_bytes(w, &v, sizeof v);
    return v;
}

static const char *take_string(struct wire_in *w, struct arena *a)
{
    size_t n;
    const char *s = wire_string(w, &n);
    return arena_strndup(a, s, strnlen(s, n));
}

size_t cluster_address_bytes(uint8_t family)
{
    return family == 4 ? 4 : 16;
}

static void put_addresses(struct text *out, const struct flow_address *v, size_t n)
{
    wire_put_u(out, n);
    for (size_t i = 0; i < n; i++) {
        text_putc(out, (char)v[i].family);
        wire_put_bytes(out, v[i].addr, cluster_address_bytes(v[i].family));
    }
}

static size_t take_addresses(struct wire_in *w, struct arena *a, const struct flow_address **out)
{
    size_t n = wire_count(w, 5);
    n = n > MOST_ITEMS ? 0 : n;
    struct flow_address *v = arena_new(a, struct flow_address, n + 1);
    for (size_t i = 0; i < n; i++) {
        wire_bytes(w, &v[i].family, 1);
        wire_bytes(w, v[i].addr, cluster_address_bytes(v[i].family));
    }
    *out = v;
    return w->damaged ? 0 : n;
}

/* ---- entries ---- */

static void put_clock(struct text *out, const struct index_far_clock *c)
{
    wire_put_u(out, c->freq);
    if (!c->freq)
        return;
    wire_put_bytes(out, c->uuid, sizeof c->uuid);
    wire_put_string(out, c->name);
    wire_put_u(out, c->offset);
    wire_put_i(out, c->offset_s);
}

static void take_clock(struct wire_in *w, struct arena *a, struct index_far_clock *c)
{
    *c = (struct index_far_clock){.freq = wire_u(w), .name = ""};
    if (!c->freq)
        return;
    wire_bytes(w, c->uuid, sizeof c->uuid);
    c->name = take_string(w, a);
    c->offset = wire_u(w);
    c->offset_s = wire_i(w);
}

static void put_metrics(struct text *out, const struct cluster_entry_host *h)
{
    wire_put_u(out, h->bytes);
    wire_put_u(out, h->store_bytes);
    wire_put_u(out, h->events);
    wire_put_i(out, h->since);
    for (size_t i = 0; i < h->n_peers; i++) {
        wire_put_u(out, h->talk ? h->talk[i].packets : 0);
        wire_put_u(out, h->talk ? h->talk[i].bytes : 0);
    }
}

static void take_metrics(struct wire_in *w, struct arena *a, struct cluster_entry_host *h)
{
    h->bytes = wire_below(w, MOST_METRIC);
    h->store_bytes = wire_below(w, MOST_METRIC);
    h->events = wire_below(w, MOST_METRIC);
    h->since = wire_i(w);
    struct cluster_entry_talk *talk = arena_new(a, struct cluster_entry_talk, h->n_peers + 1);
    for (size_t i = 0; i < h->n_peers && !w->damaged; i++) {
        talk[i].packets = wire_below(w, MOST_METRIC);
        talk[i].bytes = wire_below(w, MOST_METRIC);
    }
    h->talk = talk;
}

static void put_excerpt(struct text *out, const struct cluster_excerpt *s)
{
    put_u64(out, s->of);
    wire_put_i(out, s->begin);
    wire_put_i(out, s->end);
    wire_put_string(out, s->from);
}

static void take_excerpt(struct wire_in *w, struct arena *a, struct cluster_excerpt *s)
{
    s->is = true;
    s->of = take_u64(w);
    s->begin = wire_i(w);
    s->end = wire_i(w);
    s->from = take_string(w, a);
    w->damaged |= s->begin > s->end;
}

void cluster_entry_write(const struct cluster_entry *c, struct text *out)
{
    text_putc(out, ENTRY_VERSION);
    wire_put_string(out, c->node);
    wire_put_string(out, c->instance);
    wire_put_u(out, c->serial);
    wire_put_u(out, c->n_hosts);
    for (size_t i = 0; i < c->n_hosts; i++) {
        const struct cluster_entry_host *h = &c->hosts[i];
        put_u64(out, h->key);
        put_u64(out, h->hash);
        wire_put_string(out, h->name);
        wire_put_string(out, h->clock_name);
        wire_put_i(out, h->begin);
        wire_put_i(out, h->end);
        wire_put_i(out, h->sealed_until);
        text_putc(out,
            (char)(h->has_graph | h->has_packets << 1 | h->excerpt.is << 2 | h->by_session << 3 |
                h->is_user_space << 4 | h->has_stacks << 5));
        put_clock(out, &h->clock);
        put_addresses(out, h->own, h->n_own);
        put_addresses(out, h->peers, h->n_peers);
        put_metrics(out, h);
        if (h->excerpt.is)
            put_excerpt(out, &h->excerpt);
    }
}

static void take_host(struct wire_in *w, struct arena *a, struct cluster_entry_host *h)
{
    uint8_t flags;
    h->key = take_u64(w);
    h->hash = take_u64(w);
    h->name = take_string(w, a);
    h->clock_name = take_string(w, a);
    h->begin = wire_i(w);
    h->end = wire_i(w);
    h->sealed_until = wire_i(w);
    wire_bytes(w, &flags, 1);
    h->has_graph = flags & 1;
    h->has_packets = flags >> 1 & 1;
    h->by_session = flags >> 3 & 1;
    h->is_user_space = flags >> 4 & 1;
    h->has_stacks = flags >> 5 & 1;
    take_clock(w, a, &h->clock);
    h->n_own = take_addresses(w, a, &h->own);
    h->n_peers = take_addresses(w, a, &h->peers);
    take_metrics(w, a, h);
    if (flags >> 2 & 1)
        take_excerpt(w, a, &h->excerpt);
    w->damaged |= !*h->name || !*h->clock_name;
}

int cluster_entry_read(struct arena *a, const void *bytes, size_t n, struct cluster_entry *out, struct err *e)
{
    struct wire_in w = wire_of(bytes, n);
    uint8_t version;
    *out = (struct cluster_entry){0};
    wire_bytes(&w, &version, 1);
    if (version != ENTRY_VERSION)
        return err_set(e, ERR_UNSUPPORTED,
            "its registry entry has version %u, this program reads %u: update the older one", version, ENTRY_VERSION);
    out->node = take_string(&w, a);
    out->instance = take_string(&w, a);
    out->serial = wire_u(&w);
    size_t n_hosts = wire_count(&w, 27);
    struct cluster_entry_host *hosts = arena_new(a, struct cluster_entry_host, n_hosts + 1);
    for (size_t i = 0; i < n_hosts && !w.damaged; i++)
        take_host(&w, a, &hosts[i]);
    out->hosts = hosts;
    out->n_hosts = n_hosts;
    if (w.damaged || !*out->node)
        return err_set(e, ERR_FORMAT, "its registry entry makes no sense");
    return 0;
}

/* ---- questions ---- */

void cluster_question_begin(struct text *out, enum cluster_question kind)
{
    text_putc(out, CLUSTER_VERSION);
    text_putc(out, (char)kind);
}

int cluster_question_kind(const void *bytes, size_t n, enum cluster_question *kind, struct err *e)
{
    const uint8_t *b = bytes;
    if (n < QUESTION_BYTES || b[0] < CLUSTER_OLDEST || b[0] > CLUSTER_VERSION)
        return err_set(e, ERR_UNSUPPORTED, "this node answers questions of versions %d to %d, not of %u",
            CLUSTER_OLDEST, CLUSTER_VERSION, n ? b[0] : 0);
    if (b[1] > CLUSTER_STACKS && (b[1] < CLUSTER_LOAD || b[1] > CLUSTER_LEAVE))
        return err_set(e, ERR_UNSUPPORTED, "a question of a kind that is not known here");
    *kind = b[1];
    return 0;
}

uint64_t cluster_state(const uint64_t *hashes, size_t n)
{
    return map_hash(hashes, n * sizeof *hashes);
}

void cluster_path_answer_begin(struct text *out, uint64_t state)
{
    put_u64(out, state);
}

int cluster_path_answer_read(const void *bytes, size_t n, struct path_answer *out, struct err *e)
{
    struct wire_in w = wire_of(bytes, n);
    out->state = take_u64(&w);
    out->fragment = w.at;
    out->n = (size_t)(w.end - w.at);
    return w.damaged ? err_set(e, ERR_FORMAT, "an answer that makes no sense") : 0;
}

void cluster_lives_question_write(const struct lives_question *q, struct text *out)
{
    wire_put_string(out, q->thread);
    wire_put_i(out, q->begin);
    wire_put_i(out, q->end);
    path_request_write(&q->hosts, out);
}

int cluster_lives_question_read(struct arena *a, const void *bytes, size_t n, struct lives_question *out, struct err *e)
{
    struct wire_in w = wire_of(bytes, n);
    out->thread = take_string(&w, a);
    out->begin = wire_i(&w);
    out->end = wire_i(&w);
    if (w.damaged)
        return err_set(e, ERR_FORMAT, "a question for threads that makes no sense");
    return path_request_read(a, w.at, (size_t)(w.end - w.at), &out->hosts, e);
}

void cluster_lives_write(const struct far_lives *lives, struct text *out)
{
    size_t n = lives->n < MOST_LIVES ? lives->n : MOST_LIVES;
    wire_put_u(out, n);
    for (size_t i = 0; i < n; i++) {
        const struct far_life *l = &lives->v[i];
        wire_put_u(out, (uint64_t)l->host);
        wire_put_u(out, l->row);
        wire_put_i(out, l->begin);
        wire_put_i(out, l->end);
        wire_put_i(out, l->tid);
        wire_put_string(out, l->name);
    }
}

int cluster_lives_read(
    struct arena *a, const void *bytes, size_t n, size_t n_hosts, struct far_lives *out, struct err *e)
{
    struct wire_in w = wire_of(bytes, n);
    size_t count = wire_count(&w, 6);
    for (size_t i = 0; i < count && !w.damaged; i++) {
        struct far_life l = {.host = (int32_t)wire_below(&w, n_hosts), .row = wire_u(&w)};
        l.begin = wire_i(&w);
        l.end = wire_i(&w);
        l.tid = (int32_t)wire_i(&w);
        l.name = take_string(&w, a);
        if (!w.damaged)
            vec_push(out, l);
    }
    return w.damaged || w.at != w.end ? err_set(e, ERR_FORMAT, "an answer that makes no sense") : 0;
}

/* ---- flows ---- */

static void put_other(struct text *out, const struct flow_other *o)
{
    wire_put_u(out, o->n_hashes);
    wire_put_bytes(out, o->hashes, o->n_hashes * sizeof *o->hashes);
    wire_put_u(out, o->n_own);
    for (size_t i = 0; i < o->n_own; i++) {
        text_putc(out, (char)o->own[i].address.family);
        wire_put_bytes(out, o->own[i].address.addr, cluster_address_bytes(o->own[i].address.family));
        wire_put_i(out, o->own[i].since);
    }
}

/* Hashes come in order, each once, as flow_needed wants them. */
static void take_other(struct wire_in *w, struct arena *a, struct flow_other *o)
{
    size_t n = wire_count(w, 8);
    uint64_t *hashes = arena_new(a, uint64_t, n + 1);
    wire_bytes(w, hashes, n * sizeof *hashes);
    for (size_t i = 1; i < n; i++)
        w->damaged |= hashes[i] <= hashes[i - 1];
    size_t n_own = wire_count(w, 6);
    struct flow_own_address *own = arena_new(a, struct flow_own_address, n_own + 1);
    for (size_t i = 0; i < n_own; i++) {
        wire_bytes(w, &own[i].address.family, 1);
        wire_bytes(w, own[i].address.addr, cluster_address_bytes(own[i].address.family));
        own[i].since = wire_i(w);
    }
    *o = (struct flow_other){hashes, n, own, n_own};
}

bool cluster_protocol_all_differ(struct arena *a, const uint64_t *keys, size_t n)
{
    uint64_t *sorted = arena_new(a, uint64_t, n + 1);
    memcpy(sorted, keys, n * sizeof *keys);
    qsort(sorted, n, sizeof *sorted, order_u64);
    for (size_t i = 1; i < n; i++)
        if (sorted[i] == sorted[i - 1])
            return false;
    return true;
}

void cluster_flows_question_write(const struct flows_question *q, struct text *out)
{
    wire_put_u(out, q->n);
    wire_put_bytes(out, q->keys, q->n * sizeof *q->keys);
}

int cluster_flows_question_read(struct arena *a, const void *bytes, size_t n, struct flows_question *out, struct err *e)
{
    struct wire_in w = wire_of(bytes, n);
    out->n = wire_count(&w, 8);
    uint64_t *keys = arena_new(a, uint64_t, out->n + 1);
    wire_bytes(&w, keys, out->n * sizeof *keys);
    out->keys = keys;
    w.damaged |= !cluster_protocol_all_differ(a, keys, out->n);
    return w.damaged || w.at != w.end ? err_set(e, ERR_FORMAT, "a question for flows that makes no sense") : 0;
}

void cluster_flows_write(const struct flow_other *o, struct text *out)
{
    put_other(out, o);
}

int cluster_flows_read(
    struct arena *a, const void *bytes, size_t n, size_t n_hosts, struct flow_other *out, struct err *e)
{
    struct wire_in w = wire_of(bytes, n);
    for (size_t i = 0; i < n_hosts; i++)
        take_other(&w, a, &out[i]);
    return w.damaged || w.at != w.end ? err_set(e, ERR_FORMAT, "an answer that makes no sense") : 0;
}

void cluster_extract_question_write(const struct extract_question *q, struct text *out)
{
    put_u64(out, q->key);
    put_other(out, &q->others);
    wire_put_u(out, q->from);
}

int cluster_extract_question_read(
    struct arena *a, const void *bytes, size_t n, struct extract_question *out, struct err *e)
{
    struct wire_in w = wire_of(bytes, n);
    out->key = take_u64(&w);
    take_other(&w, a, &out->others);
    out->from = wire_u(&w);
    return w.damaged || w.at != w.end ? err_set(e, ERR_FORMAT, "a question for packets that makes no sense") : 0;
}

void cluster_extract_part_write(const struct extract_part *p, struct text *out)
{
    wire_put_u(out, p->serial);
    wire_put_u(out, p->total);
    wire_put_bytes(out, p->bytes, p->n);
}

int cluster_extract_part_read(const void *bytes, size_t n, struct extract_part *out, struct err *e)
{
    struct wire_in w = wire_of(bytes, n);
    out->serial = wire_u(&w);
    out->total = wire_u(&w);
    out->bytes = w.at;
    out->n = (size_t)(w.end - w.at);
    return w.damaged ? err_set(e, ERR_FORMAT, "an answer that makes no sense") : 0;
}

/* ---- lines of threads ---- */

void cluster_threads_question_write(const struct threads_question *q, struct text *out)
{
    wire_put_u(out, q->n);
    wire_put_bytes(out, q->keys, q->n * sizeof *q->keys);
    const struct graph_choice *c = &q->is.choice;
    wire_put_string(out, c->thread ? c->thread : "");
    wire_put_string(out, c->container ? c->container : "");
    text_putc(out, (char)(c->idle | q->is.sort << 1));
    wire_put_i(out, c->begin);
    wire_put_i(out, c->end);
    wire_put_u(out, q->is.limit);
}

int cluster_threads_question_read(
    struct arena *a, const void *bytes, size_t n, struct threads_question *out, struct err *e)
{
    struct wire_in w = wire_of(bytes, n);
    uint8_t flags;
    *out = (struct threads_question){.n = wire_count(&w, 8)};
    uint64_t *keys = arena_new(a, uint64_t, out->n + 1);
    wire_bytes(&w, keys, out->n * sizeof *keys);
    out->keys = keys;
    w.damaged |= !cluster_protocol_all_differ(a, keys, out->n);
    struct graph_choice *c = &out->is.choice;
    c->thread = take_string(&w, a);
    c->thread = *c->thread ? c->thread : NULL;
    c->container = take_string(&w, a);
    c->container = *c->container ? c->container : NULL;
    wire_bytes(&w, &flags, 1);
    c->idle = flags & 1;
    out->is.sort = flags >> 1;
    c->begin = wire_i(&w);
    c->end = wire_i(&w);
    out->is.limit = (size_t)wire_u(&w);
    return w.damaged || w.at != w.end || out->is.sort >= GRAPH_STATE_COUNT
        ? err_set(e, ERR_FORMAT, "a question for threads that makes no sense")
        : 0;
}

void cluster_threads_write(const struct cluster_threads *threads, struct text *out)
{
    wire_put_u(out, threads->total);
    wire_put_u(out, threads->n);
    for (size_t i = 0; i < threads->n; i++) {
        const struct graph_time *t = &threads->v[i].is;
        wire_put_u(out, (uint64_t)threads->v[i].host);
        wire_put_i(out, t->row.tid);
        wire_put_i(out, t->row.tgid);
        wire_put_string(out, t->row.name);
        wire_put_string(out, t->container);
        wire_put_i(out, t->begin);
        wire_put_i(out, t->end);
        wire_put_i(out, t->row.begin);
        for (int s = 0; s < GRAPH_STATE_COUNT; s++)
            wire_put_i(out, t->totals[s]);
    }
}

int cluster_threads_read(
    struct arena *a, const void *bytes, size_t n, size_t n_hosts, struct cluster_threads *out, struct err *e)
{
    struct wire_in w = wire_of(bytes, n);
    out->total = (size_t)wire_u(&w);
    size_t count = wire_count(&w, 8 + GRAPH_STATE_COUNT);
    for (size_t i = 0; i < count && !w.damaged; i++) {
        struct graph_time t = {.row.container = GRAPH_NO_CONTAINER};
        int32_t host = (int32_t)wire_below(&w, n_hosts);
        t.row.tid = (int32_t)wire_i(&w);
        t.row.tgid = (int32_t)wire_i(&w);
        t.row.name = take_string(&w, a);
        t.container = take_string(&w, a);
        t.begin = wire_i(&w);
        t.end = wire_i(&w);
        t.row.begin = wire_i(&w);
        for (int s = 0; s < GRAPH_STATE_COUNT; s++)
            t.totals[s] = wire_i(&w);
        if (!w.damaged)
            vec_push(out, ((struct cluster_thread){host, t}));
    }
    return w.damaged || w.at != w.end ? err_set(e, ERR_FORMAT, "an answer that makes no sense") : 0;
}

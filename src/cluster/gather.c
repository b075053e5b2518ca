#include "cluster/gather.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/order.h"
#include "base/store.h"
#include "base/time.h"
#include "bus/bus.h"
#include "index/index.h"

#define PATIENCE_NS INT64_C(10000000000)

/* The extract of a host that was had last. */
struct extract {
    uint64_t key, hash, question;
    struct flow_store *flows;
    bool used;
};
struct gathered {
    VEC(struct extract) extracts;
};

struct gathered *gathered_new(void)
{
    return mem_zalloc(sizeof(struct gathered));
}

void gathered_free(struct gathered *g)
{
    if (!g)
        return;
    for (size_t i = 0; i < g->extracts.n; i++)
        flow_close(g->extracts.v[i].flows);
    vec_free(&g->extracts);
    free(g);
}

/* ---- asking ---- */

struct round {
    struct bus *bus;
    const char *cluster;
    const struct roster *roster;
    struct arena arena;
    struct flow_other *have; /* by host: what it has; */
    bool *known;             /* and whether it said so */
};

static size_t card_of(const struct roster *r, const char *node)
{
    size_t i = 0;
    while (strcmp(r->cards[i].node, node) != 0)
        i++;
    return i;
}

/* Asks each node once for all hosts that it is the first to hold. */
static void ask_flows(struct round *r)
{
    const struct roster *o = r->roster;
    struct bus_calls *calls = bus_calls_new(r->bus);
    uint64_t *keys = mem_alloc((o->n_hosts + 1) * sizeof *keys);
    size_t **hosts = mem_zalloc((o->n_cards + 1) * sizeof *hosts), *n = mem_zalloc((o->n_cards + 1) * sizeof *n);
    for (size_t i = 0; i < o->n_hosts; i++) {
        size_t card = card_of(o, o->hosts[i].nodes[0]);
        if (!hosts[card])
            hosts[card] = mem_alloc(o->n_hosts * sizeof **hosts);
        hosts[card][n[card]++] = i;
    }
    for (size_t c = 0; c < o->n_cards; c++) {
        char subject[CLUSTER_SUBJECT];
        struct text t = {.fd = -1};
        for (size_t i = 0; i < n[c]; i++)
            keys[i] = o->hosts[hosts[c][i]].card->key;
        question_begin(&t, CLUSTER_FLOWS);
        flows_question_write(&(struct flows_question){keys, n[c]}, &t);
        if (n[c] && !cluster_subject_of(r->cluster, o->cards[c].node, subject, NULL))
            bus_call(calls, subject, t.v, t.n, time_monotonic_ns() + PATIENCE_NS, c);
        text_fini(&t);
    }
    struct bus_reply reply;
    while (bus_calls_next(calls, &reply)) {
        size_t c = (size_t)reply.tag;
        struct flow_other *got = arena_new(&r->arena, struct flow_other, n[c] + 1);
        if (!reply.code && !flows_read(&r->arena, reply.data, reply.n, n[c], got, NULL))
            for (size_t i = 0; i < n[c]; i++) {
                r->have[hosts[c][i]] = got[i];
                r->known[hosts[c][i]] = true;
            }
        bus_reply_free(&reply);
    }
    bus_calls_free(calls);
    for (size_t c = 0; c < o->n_cards; c++)
        free(hosts[c]);
    free(hosts);
    free(n);
    free(keys);
}

/* ---- what they have in common ---- */

static int by_value(const void *a, const void *b)
{
    return order_of(*(const uint64_t *)a, *(const uint64_t *)b);
}

/* Hashes that several hosts have, in order, each once. */
static size_t find_common(const struct round *r, uint64_t **out)
{
    size_t n = 0, kept = 0;
    for (size_t i = 0; i < r->roster->n_hosts; i++)
        n += r->have[i].n_hashes;
    uint64_t *all = mem_alloc((n + 1) * sizeof *all);
    n = 0;
    for (size_t i = 0; i < r->roster->n_hosts; i++)
        for (size_t k = 0; k < r->have[i].n_hashes; k++)
            all[n++] = r->have[i].hashes[k];
    if (n)
        qsort(all, n, sizeof *all, by_value);
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i; end < n && all[end] == all[i];)
            end++;
        if (end - i > 1)
            all[kept++] = all[i];
    }
    *out = all;
    return kept;
}

/* What a host is asked for: its flows that another has, and what came from addresses of others. */
static struct flow_other wanted_of(struct round *r, size_t host, const uint64_t *common, size_t n_common)
{
    const struct flow_other *have = &r->have[host];
    uint64_t *hashes = arena_new(&r->arena, uint64_t, have->n_hashes + 1);
    size_t n = 0, n_own = 0;
    for (size_t i = 0, k = 0; i < have->n_hashes && k < n_common; i++) {
        while (k < n_common && common[k] < have->hashes[i])
            k++;
        if (k < n_common && common[k] == have->hashes[i])
            hashes[n++] = common[k];
    }
    for (size_t i = 0; i < r->roster->n_hosts; i++)
        n_own += i != host ? r->have[i].n_own : 0;
    struct flow_own_address *own = arena_new(&r->arena, struct flow_own_address, n_own + 1);
    n_own = 0;
    for (size_t i = 0; i < r->roster->n_hosts; i++)
        for (size_t k = 0; i != host && k < r->have[i].n_own; k++)
            own[n_own++] = r->have[i].own[k];
    return (struct flow_other){hashes, n, own, n_own};
}

/* ---- extracts ---- */

/* Whatever the bytes are: they are checked as the file of a stranger. */
static int open_extract(const void *bytes, size_t n, struct flow_store **out, struct err *e)
{
    char path[] = "/tmp/weft-gathered-XXXXXX";
    int fd = mkstemp(path), rc = fd < 0 ? err_sys(e, "%s", path) : 0;
    if (rc)
        return rc;
    close(fd);
    rc = file_write(path, bytes, n, e);
    if (!rc)
        rc = store_check(path, e);
    if (!rc)
        rc = flow_check(path, NULL, e);
    if (!rc)
        rc = flow_open(path, out, e);
    unlink(path);
    return rc;
}

static struct extract *extract_of(struct gathered *g, uint64_t key)
{
    for (size_t i = 0; i < g->extracts.n; i++)
        if (g->extracts.v[i].key == key)
            return &g->extracts.v[i];
    vec_push(&g->extracts, ((struct extract){.key = key}));
    return &g->extracts.v[g->extracts.n - 1];
}

static void ask_extracts(struct gathered *g, struct round *r)
{
    const struct roster *o = r->roster;
    struct bus_calls *calls = bus_calls_new(r->bus);
    uint64_t *common, *questions = mem_zalloc((o->n_hosts + 1) * sizeof *questions);
    size_t n_common = find_common(r, &common);
    for (size_t i = 0; i < o->n_hosts; i++) {
        const struct card_host *card = o->hosts[i].card;
        struct extract_question q = {card->key, wanted_of(r, i, common, n_common)};
        struct extract *known = extract_of(g, card->key);
        char subject[CLUSTER_SUBJECT];
        struct text t = {.fd = -1};
        question_begin(&t, CLUSTER_EXTRACT);
        extract_question_write(&q, &t);
        questions[i] = map_hash(t.v, t.n);
        known->used = true;
        if (card->has_packets && r->known[i] &&
            (!known->flows || known->hash != card->hash || known->question != questions[i]) &&
            !cluster_subject_of(r->cluster, o->hosts[i].nodes[0], subject, NULL))
            bus_call(calls, subject, t.v, t.n, time_monotonic_ns() + PATIENCE_NS, i);
        text_fini(&t);
    }
    struct bus_reply reply;
    while (bus_calls_next(calls, &reply)) {
        const struct card_host *card = o->hosts[reply.tag].card;
        struct extract *known = extract_of(g, card->key);
        struct flow_store *flows;
        if (!reply.code && !open_extract(reply.data, reply.n, &flows, NULL)) {
            flow_close(known->flows);
            *known = (struct extract){card->key, card->hash, questions[reply.tag], flows, true};
        }
        bus_reply_free(&reply);
    }
    bus_calls_free(calls);
    free(questions);
    free(common);
}

static void forget_unused(struct gathered *g)
{
    size_t kept = 0;
    for (size_t i = 0; i < g->extracts.n; i++)
        if (g->extracts.v[i].used) {
            g->extracts.v[kept] = g->extracts.v[i];
            g->extracts.v[kept++].used = false;
        } else {
            flow_close(g->extracts.v[i].flows);
        }
    g->extracts.n = kept;
}

/* ---- clocks ---- */

int gather_clocks(struct gathered *g, struct bus *bus, const char *cluster, const struct roster *roster,
    const struct clock_options *o, struct clocks_host *used, struct clock_net **out, struct err *e)
{
    struct round r = {.bus = bus, .cluster = cluster, .roster = roster};
    r.have = mem_zalloc((roster->n_hosts + 1) * sizeof *r.have);
    r.known = mem_zalloc((roster->n_hosts + 1) * sizeof *r.known);
    ask_flows(&r);
    ask_extracts(g, &r);
    struct index_far_host *hosts = mem_zalloc((roster->n_hosts + 1) * sizeof *hosts);
    for (size_t i = 0; i < roster->n_hosts; i++) {
        const struct card_host *card = roster->hosts[i].card;
        const struct extract *x = extract_of(g, card->key);
        used[i] = (struct clocks_host){card->key, card->has_packets ? x->hash : card->hash};
        hosts[i] = (struct index_far_host){.name = roster->hosts[i].clock_name,
            .begin = card->begin,
            .end = card->end,
            .sealed_until = card->sealed_until,
            .clock = card->clock,
            .flows = x->flows};
    }
    int rc = index_sync_far(hosts, roster->n_hosts, o, out, e);
    forget_unused(g);
    free(hosts);
    free(r.have);
    free(r.known);
    arena_fini(&r.arena);
    return rc;
}

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

/* Together less than the keeper's seat lasts, where none of a host's nodes answers. */
#define FLOWS_PATIENCE_NS INT64_C(3000000000)
#define EXTRACT_PATIENCE_NS INT64_C(8000000000)

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
    struct flow_other *have; /* by host: what it has, */
    bool *known;             /* whether it said so, */
    size_t *failed;          /* and how many of its nodes did not answer */
};

static size_t card_of(const struct roster *r, const char *node)
{
    size_t i = 0;
    while (strcmp(r->cards[i].node, node) != 0)
        i++;
    return i;
}

/* The node to ask of a host: the first that did not fail; NULL: all did. */
static const char *node_for(const struct round *r, size_t host)
{
    const struct roster_host *h = &r->roster->hosts[host];
    return r->failed[host] < h->n_nodes ? h->nodes[r->failed[host]] : NULL;
}

/* The hosts that a node is asked for. */
struct asked {
    VEC(size_t) hosts;
};

static void ask_node(struct round *r, struct bus_calls *calls, size_t card, const struct asked *a)
{
    char subject[CLUSTER_SUBJECT];
    struct text t = {.fd = -1};
    uint64_t *keys = mem_alloc((a->hosts.n + 1) * sizeof *keys);
    for (size_t i = 0; i < a->hosts.n; i++)
        keys[i] = r->roster->hosts[a->hosts.v[i]].card->key;
    question_begin(&t, CLUSTER_FLOWS);
    flows_question_write(&(struct flows_question){keys, a->hosts.n}, &t);
    if (!cluster_subject_of(r->cluster, r->roster->cards[card].node, subject, NULL))
        bus_call(calls, subject, t.v, t.n, time_monotonic_ns() + FLOWS_PATIENCE_NS, card);
    text_fini(&t);
    free(keys);
}

static void take_flows(struct round *r, const struct asked *a, const struct bus_reply *reply)
{
    size_t n = a->hosts.n;
    struct flow_other *got = arena_new(&r->arena, struct flow_other, n + 1);
    if (reply->code || flows_read(&r->arena, reply->data, reply->n, n, got, NULL))
        return;
    for (size_t i = 0; i < n; i++) {
        r->have[a->hosts.v[i]] = got[i];
        r->known[a->hosts.v[i]] = true;
    }
}

/* Asks each node once for all hosts of which nothing is known and that it is the next to ask for. False: there is
 * nobody to ask. */
static bool ask_flows_once(struct round *r)
{
    const struct roster *o = r->roster;
    struct bus_calls *calls = bus_calls_new(r->bus);
    struct asked *asked = mem_zalloc((o->n_cards + 1) * sizeof *asked);
    bool some = false;
    for (size_t i = 0; i < o->n_hosts; i++)
        if (!r->known[i] && node_for(r, i))
            vec_push(&asked[card_of(o, node_for(r, i))].hosts, i);
    for (size_t c = 0; c < o->n_cards; c++)
        if (asked[c].hosts.n) {
            ask_node(r, calls, c, &asked[c]);
            some = true;
        }
    struct bus_reply reply;
    while (bus_calls_next(calls, &reply)) {
        take_flows(r, &asked[reply.tag], &reply);
        bus_reply_free(&reply);
    }
    for (size_t c = 0; c < o->n_cards; c++) {
        for (size_t i = 0; i < asked[c].hosts.n; i++)
            r->failed[asked[c].hosts.v[i]] += !r->known[asked[c].hosts.v[i]];
        vec_free(&asked[c].hosts);
    }
    bus_calls_free(calls);
    free(asked);
    return some;
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
    char *path;
    int rc = file_temporary("gathered", &path, e);
    if (rc)
        return rc;
    rc = file_write(path, bytes, n, e);
    if (!rc)
        rc = store_check(path, e);
    if (!rc)
        rc = flow_check(path, NULL, e);
    if (!rc)
        rc = flow_open(path, out, e);
    unlink(path);
    free(path);
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

/* What the node says that it has of the host: a copy may be older. */
static uint64_t hash_at(const struct roster *o, const char *node, uint64_t key)
{
    const struct card *c = &o->cards[card_of(o, node)];
    for (size_t i = 0; i < c->n_hosts; i++)
        if (c->hosts[i].key == key)
            return c->hosts[i].hash;
    return 0;
}

static void take_extract(
    struct gathered *g, const struct round *r, size_t host, uint64_t question, const struct bus_reply *reply)
{
    const struct card_host *card = r->roster->hosts[host].card;
    struct extract *known = extract_of(g, card->key);
    struct flow_store *flows;
    if (reply->code || open_extract(reply->data, reply->n, &flows, NULL))
        return;
    flow_close(known->flows);
    *known = (struct extract){card->key, hash_at(r->roster, node_for(r, host), card->key), question, flows, true};
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
            !cluster_subject_of(r->cluster, node_for(r, i), subject, NULL))
            bus_call(calls, subject, t.v, t.n, time_monotonic_ns() + EXTRACT_PATIENCE_NS, i);
        text_fini(&t);
    }
    struct bus_reply reply;
    while (bus_calls_next(calls, &reply)) {
        take_extract(g, r, (size_t)reply.tag, questions[reply.tag], &reply);
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
    r.failed = mem_zalloc((roster->n_hosts + 1) * sizeof *r.failed);
    while (ask_flows_once(&r))
        continue;
    ask_extracts(g, &r);
    struct index_far_host *hosts = mem_zalloc((roster->n_hosts + 1) * sizeof *hosts);
    for (size_t i = 0; i < roster->n_hosts; i++) {
        const struct card_host *card = roster->hosts[i].card;
        const struct extract *x = extract_of(g, card->key);
        bool all = !card->has_packets || (x->flows && x->hash == card->hash);
        used[i] = (struct clocks_host){card->key, all ? card->hash : clocks_lacking(card->hash)};
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
    free(r.failed);
    arena_fini(&r.arena);
    return rc;
}

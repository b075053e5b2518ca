/* Clock maps of an experiment: messages from the flow stores; what they say of each pair of hosts is found once and
 * saved beside the stores of the first host. */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/order.h"
#include "index/stores.h"

/* Links of one pair of hosts. */
struct pair_links {
    const struct flow_store *a, *b;
    const struct flow_link *links;
    size_t n;
    uint32_t first; /* the host with the lesser number */
};

struct teller {
    struct clock_told *to;
    bool by_a;
};

static void on_pair(void *arg, int64_t sent, int64_t received)
{
    const struct teller *t = arg;
    clock_tell(t->to, t->by_a, sent, received);
}

static void tell_pair(void *arg, struct clock_told *to)
{
    const struct pair_links *p = arg;
    size_t n = 0;
    while (n < p->n && p->links[n].a == p->first)
        n++;
    flow_pairs(p->a, p->b, p->links, n, on_pair, &(struct teller){to, true});
    flow_pairs(p->b, p->a, p->links + n, p->n - n, on_pair, &(struct teller){to, false});
}

int index_sync_flows(
    struct clock_net *net, const struct flow_store *const *stores, size_t n, size_t *looked_at, struct err *e)
{
    struct flow_link *links;
    VEC(struct pair_links) pairs = {0};
    size_t n_links = flow_links(stores, n, 0, &links);
    for (size_t i = 0, end; i < n_links; i = end) {
        uint32_t a = links[i].a < links[i].b ? links[i].a : links[i].b, b = links[i].a ^ links[i].b ^ a;
        for (end = i + 1;
             end < n_links && links[end].a + links[end].b == a + b && (links[end].a == a || links[end].b == a);)
            end++;
        vec_push(&pairs, ((struct pair_links){stores[a], stores[b], links + i, end - i, a}));
    }
    for (size_t i = 0; i < pairs.n; i++) {
        uint32_t a = pairs.v[i].first;
        clock_net_messages(net, a, pairs.v[i].links->a ^ pairs.v[i].links->b ^ a, tell_pair, &pairs.v[i]);
    }
    int rc = clock_net_solve(net, e);
    if (looked_at)
        *looked_at = pairs.n;
    vec_free(&pairs);
    free(links);
    return rc;
}

/* ---- two traces of one machine in one boot share a clock ---- */

struct machine {
    const struct ctf_clock *clock;
    size_t host;
};

static int by_clock(const void *a, const void *b)
{
    const struct machine *p = a, *q = b;
    return memcmp(p->clock->uuid, q->clock->uuid, 16) ?: strcmp(p->clock->name, q->clock->name)
        ?: order_of(p->clock->freq, q->clock->freq) ?: order_of(p->host, q->host);
}

static bool same_clock(const struct machine *a, const struct machine *b)
{
    return !memcmp(a->clock->uuid, b->clock->uuid, 16) && !strcmp(a->clock->name, b->clock->name) &&
        a->clock->freq == b->clock->freq;
}

/* Each session measured the distance to the epoch anew, so the two differ by a constant. */
static __int128 shift_of(const struct ctf_clock *a, const struct ctf_clock *b)
{
    const __int128 second = 1000000000;
    return ((__int128)b->offset_s - a->offset_s) * second +
        ((__int128)b->offset - a->offset) * second / (__int128)a->freq;
}

/* Messages without delay, both ways: a corridor of no width. All traces of a machine are tied to its first. */
static void tie(struct clock_net *net, const struct index_host *hosts, const struct machine *a, const struct machine *b)
{
    const struct index_host *h = &hosts[a->host];
    __int128 shift = shift_of(a->clock, b->clock);
    int64_t ends[2] = {h->begin, h->end > h->begin ? h->end : h->begin + (h->begin < INT64_MAX)};
    for (int n = 0; n < 2; n++) {
        int64_t there;
        if (__builtin_add_overflow(ends[n], shift, &there))
            return; /* by damaged metadata, beyond all times */
        clock_net_message(net, a->host, b->host, ends[n], there);
        clock_net_message(net, b->host, a->host, there, ends[n]);
    }
}

static void tie_machines(const struct experiment *x, struct clock_net *net)
{
    VEC(struct machine) all = {0};
    for (size_t i = 0; i < x->hosts.n; i++) {
        const struct ctf_clock *c;
        if (ctf_trace_clocks(x->hosts.v[i].trace, &c) && c->has_uuid && c->freq)
            vec_push(&all, ((struct machine){c, i}));
    }
    if (all.n)
        qsort(all.v, all.n, sizeof *all.v, by_clock);
    for (size_t i = 1, first = 0; i < all.n; i++)
        if (same_clock(&all.v[first], &all.v[i]))
            tie(net, x->hosts.v, &all.v[first], &all.v[i]);
        else
            first = i;
    vec_free(&all);
}

/* ---- the experiment's ---- */

static int solve_flows(struct experiment *x, struct clock_net *net, bool messages, struct err *e)
{
    const struct flow_store **stores = mem_zalloc((x->hosts.n + 1) * sizeof *stores);
    for (size_t i = 0; i < x->hosts.n; i++) {
        clock_net_host(net, x->hosts.v[i].clock_name, x->hosts.v[i].begin, x->hosts.v[i].end);
        stores[i] = x->hosts.v[i].flows;
    }
    if (messages)
        tie_machines(x, net);
    int rc = index_sync_flows(net, stores, messages ? x->hosts.n : 0, NULL, e);
    free(stores);
    return rc;
}

static uint64_t net_key(const struct experiment *x, const struct clock_options *o)
{
    uint64_t key = clock_options_hash(o) + CLOCK_RULES_VERSION;
    for (size_t i = 0; i < x->hosts.n; i++)
        key = map_mix(key + index_key(x->hosts.v[i].trace, INDEX_FLOWS) +
            map_hash(x->hosts.v[i].clock_name, strlen(x->hosts.v[i].clock_name)));
    return key;
}

/* One file per set of traces, so that another set never replaces it. */
static const char *net_path(struct experiment *x)
{
    uint64_t id = 0;
    for (size_t i = 0; i < x->hosts.n; i++) {
        const char *path = ctf_trace_path(x->hosts.v[i].trace);
        id = map_mix(id + map_hash(path, strlen(path)));
    }
    const char *dir = x->hosts.v[0].store_dir;
    return dir ? arena_printf(&x->arena, "%s/clocks-%016llx", dir, (unsigned long long)id) : NULL;
}

/* From the file, or from the flows; what cannot be saved is computed again next time. */
static int load_or_solve(struct experiment *x, const struct clock_options *o, struct clock_net **out, struct err *e)
{
    const char *path = o->no_messages ? NULL : net_path(x);
    uint64_t key = net_key(x, o);
    struct err stale = {0};
    if (path && !clock_net_load(path, key, o, out, &stale))
        return clock_net_solve(*out, e);
    *out = clock_net_new(o);
    int rc = solve_flows(x, *out, !o->no_messages, e);
    if (path && !rc)
        clock_net_save(*out, path, key, &stale);
    return rc;
}

int experiment_sync(struct experiment *x, const struct clock_options *o, const struct clock_net **out, struct err *e)
{
    struct clock_net *net = NULL;
    clock_net_free(x->clocks);
    x->clocks = NULL;
    int rc = load_or_solve(x, o, &net, e);
    if (rc) {
        clock_net_free(net);
        experiment_note_clocks(x, e->text);
        return rc;
    }
    x->clocks = net;
    experiment_note_clocks(x, NULL);
    *out = net;
    return 0;
}

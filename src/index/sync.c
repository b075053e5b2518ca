/* Clock maps of an experiment: messages from the flow stores, solved once and saved beside the stores of the first
 * host. */
#include <string.h>

#include "base/map.h"
#include "index/stores.h"

struct messages {
    struct clock_net *net;
    size_t a, b;
};

static void on_pair(void *arg, int64_t sent, int64_t received)
{
    struct messages *m = arg;
    clock_net_message(m->net, m->a, m->b, sent, received);
}

/* Two traces of one machine in one boot share a clock; each session measured the distance to the epoch anew, so the two
 * differ by a constant. */
static bool same_clock(const struct index_host *a, const struct index_host *b, int64_t *b_minus_a)
{
    const struct ctf_clock *ca, *cb;
    if (!ctf_trace_clocks(a->trace, &ca) || !ctf_trace_clocks(b->trace, &cb) || !ca->has_uuid || !cb->has_uuid ||
        ca->freq != cb->freq || memcmp(ca->uuid, cb->uuid, 16) || strcmp(ca->name, cb->name) || !ca->freq)
        return false;
    __int128 ticks = ((__int128)cb->offset_s - ca->offset_s) * (int64_t)ca->freq + (__int128)cb->offset - ca->offset;
    *b_minus_a = (int64_t)(ticks * 1000000000 / (__int128)ca->freq);
    return true;
}

static void add_messages(struct experiment *x, struct clock_net *net)
{
    for (size_t i = 0; i < x->hosts.n; i++)
        for (size_t k = 0; k < x->hosts.n; k++) {
            const struct index_host *a = &x->hosts.v[i], *b = &x->hosts.v[k];
            int64_t shift;
            if (i == k)
                continue;
            if (i < k && same_clock(a, b, &shift)) {
                int64_t ends[2] = {a->begin, a->end > a->begin ? a->end : a->begin + 1};
                for (int n = 0; n < 2; n++) { /* messages without delay, both ways: a corridor of no width */
                    clock_net_message(net, i, k, ends[n], ends[n] + shift);
                    clock_net_message(net, k, i, ends[n] + shift, ends[n]);
                }
            }
            if (a->flows && b->flows)
                flow_pairs(a->flows, b->flows, on_pair, &(struct messages){net, i, k});
        }
}

static uint64_t net_key(const struct experiment *x, const struct clock_options *o)
{
    uint64_t key = (map_hash(&o->drift_prior_ppm, sizeof o->drift_prior_ppm) ^
                       map_hash(&o->min_drift, 2 * sizeof o->min_drift)) +
        CLOCK_RULES_VERSION;
    if (o->reference)
        key ^= map_mix(map_hash(o->reference, strlen(o->reference)));
    for (size_t i = 0; i < x->hosts.n; i++)
        key = map_mix(key + index_key(x->hosts.v[i].trace, INDEX_FLOWS) +
            map_hash(x->hosts.v[i].name, strlen(x->hosts.v[i].name)));
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

int experiment_sync(struct experiment *x, const struct clock_options *o, const struct clock_net **out, struct err *e)
{
    uint64_t key = net_key(x, o);
    const char *path = net_path(x);
    struct err stale = {0};
    clock_net_free(x->clocks);
    x->clocks = NULL;
    if (!path || clock_net_load(path, key, &x->clocks, &stale)) {
        struct clock_net *net = clock_net_new(o);
        for (size_t i = 0; i < x->hosts.n; i++)
            clock_net_host(net, x->hosts.v[i].name, x->hosts.v[i].begin, x->hosts.v[i].end);
        add_messages(x, net);
        int rc = clock_net_solve(net, e);
        if (rc) {
            clock_net_free(net);
            experiment_note_clocks(x, e->text);
            return rc;
        }
        /* What cannot be saved is computed again next time. */
        if (path)
            clock_net_save(net, path, key, &stale);
        x->clocks = net;
    }
    experiment_note_clocks(x, NULL);
    *out = x->clocks;
    return 0;
}

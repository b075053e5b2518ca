/* Clock maps of hosts, wherever their traces lie; and of an experiment: there what messages say of each pair of hosts is
 * found once and saved beside the stores of the first host. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/map.h"
#include "base/order.h"
#include "index/stores.h"

/* ---- two traces of one machine in one boot share a clock ---- */

struct machine {
    const struct index_far_clock *clock;
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
static __int128 shift_of(const struct index_far_clock *a, const struct index_far_clock *b)
{
    const __int128 second = 1000000000;
    return ((__int128)b->offset_s - a->offset_s) * second +
        ((__int128)b->offset - a->offset) * second / (__int128)a->freq;
}

/* Messages without delay, both ways: a corridor of no width. All traces of a machine are tied to its first. */
static void tie(
    struct clock_net *net, const struct index_far_host *hosts, const struct machine *a, const struct machine *b)
{
    const struct index_far_host *h = &hosts[a->host];
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

static void tie_machines(const struct index_far_host *hosts, size_t n, struct clock_net *net)
{
    VEC(struct machine) all = {0};
    for (size_t i = 0; i < n; i++)
        if (hosts[i].clock.freq)
            vec_push(&all, ((struct machine){&hosts[i].clock, i}));
    if (all.n)
        qsort(all.v, all.n, sizeof *all.v, by_clock);
    for (size_t i = 1, first = 0; i < all.n; i++)
        if (same_clock(&all.v[first], &all.v[i]))
            tie(net, hosts, &all.v[first], &all.v[i]);
        else
            first = i;
    vec_free(&all);
}

/* ---- hosts, wherever their traces lie ---- */

static int64_t sealed_until(const struct index_host *h)
{
    return h->sealed_until > h->sealed_from ? h->sealed_until : INT64_MIN;
}

struct index_far_host index_far_host_of(const struct index_host *h)
{
    const struct ctf_clock *c;
    struct index_far_host far = {
        .name = h->clock_name, .begin = h->begin, .end = h->end, .sealed_until = sealed_until(h), .clock.name = ""};
    if (!ctf_trace_clocks(h->trace, &c) || !c->has_uuid || !c->freq)
        return far;
    far.clock =
        (struct index_far_clock){.name = c->name, .freq = c->freq, .offset = c->offset, .offset_s = c->offset_s};
    memcpy(far.clock.uuid, c->uuid, sizeof far.clock.uuid);
    return far;
}

/* The net of hosts; `s` has their messages, and what is kept of them. */
static int solve(const struct index_far_host *hosts, const struct clock_options *o, struct index_sync *s,
    struct clock_net **out, struct err *e)
{
    struct clock_net *net = *out = clock_net_new(o);
    for (size_t h = 0; h < s->n; h++)
        clock_net_host(net, hosts[h].name, hosts[h].begin, hosts[h].end);
    if (o->no_messages)
        return clock_net_solve(net, e);
    tie_machines(hosts, s->n, net);
    if (s->prior_ppm < o->drift_prior_ppm)
        s->prior_ppm = o->drift_prior_ppm;
    return index_sync_flows(net, s, e);
}

int index_sync_far(const struct index_far_host *far, size_t n, const struct clock_options *o, struct clock_net **out,
    struct err *e)
{
    struct index_sync_host *hosts = mem_zalloc((n + 1) * sizeof *hosts);
    for (size_t h = 0; h < n; h++)
        hosts[h] = (struct index_sync_host){.flows = far[h].flows, .sealed.until = far[h].sealed_until};
    struct index_sync s = {.hosts = hosts, .n = n, .prior_ppm = clock_defaults().drift_prior_ppm};
    int rc = solve(far, o, &s, out, e);
    free(hosts);
    if (rc) {
        clock_net_free(*out);
        *out = NULL;
    }
    return rc;
}

/* ---- the experiment's ---- */

static uint64_t hash_of_host(const struct index_host *h)
{
    const char *path = ctf_trace_path(h->trace);
    return map_mix(map_hash(path, strlen(path))) + map_hash(h->clock_name, strlen(h->clock_name));
}

/* What a host recorded before `until`. */
static struct clock_source source_of(const struct index_host *h, int64_t until)
{
    struct clock_source s = {.host = hash_of_host(h), .until = until};
    if (until == INT64_MAX)
        s.hash = map_mix(index_key(h->trace, true) + (uint64_t)h->sealed_from);
    else if (until > INT64_MIN)
        s.hash = map_mix(ctf_trace_range_fingerprint(h->trace, h->sealed_from, until) + index_rules(true) +
            map_mix((uint64_t)h->sealed_from));
    return s;
}

uint64_t index_host_hash(const struct index_host *h)
{
    return source_of(h, INT64_MAX).hash;
}

static uint64_t net_key(const struct experiment *x, const struct clock_options *o)
{
    uint64_t key = clock_options_hash(o) + CLOCK_RULES_VERSION;
    for (size_t i = 0; i < x->hosts.n; i++) {
        const struct index_host *h = &x->hosts.v[i];
        key = map_mix(key + index_host_hash(h) + map_hash(h->clock_name, strlen(h->clock_name)));
    }
    return key;
}

/* One file per set of traces, so that another set never replaces it. */
static const char *net_path(struct experiment *x, const char *kind)
{
    uint64_t id = 0;
    for (size_t i = 0; i < x->hosts.n; i++) {
        const char *path = ctf_trace_path(x->hosts.v[i].trace);
        id = map_mix(id + map_hash(path, strlen(path)));
    }
    const char *dir = x->hosts.v[0].store_dir;
    return dir ? arena_printf(&x->arena, "%s/%s-%016llx", dir, kind, (unsigned long long)id) : NULL;
}

/* By source of what is kept: the host that still has it. Of each host there are two. */
static size_t *hosts_of(const struct experiment *x, const struct clock_kept *kept)
{
    const struct clock_source *v;
    size_t n = clock_kept_sources(kept, &v), *out = mem_alloc((n + 1) * sizeof *out);
    struct map of = {0};
    for (size_t h = 0; h < x->hosts.n; h++)
        *map_put(&of, hash_of_host(&x->hosts.v[h]), NULL) = h + 1;
    for (size_t i = 0; i < n; i++) {
        const uint64_t *at = map_find(&of, v[i].host);
        const struct index_host *h = at ? &x->hosts.v[*at - 1] : NULL;
        out[i] = SIZE_MAX;
        if (!h || (v[i].until != INT64_MAX && v[i].until > sealed_until(h)))
            continue;
        struct clock_source now = source_of(h, v[i].until);
        if (!memcmp(&now, &v[i], sizeof now))
            out[i] = *at - 1;
    }
    map_fini(&of);
    return out;
}

/* Messages are kept for the prior that was asked for, and for the usual one, so that others need no flows. */
static int solve_kept(
    struct experiment *x, const struct clock_options *o, struct index_sync *s, struct clock_net **out, struct err *e)
{
    struct index_far_host *far = mem_zalloc((x->hosts.n + 1) * sizeof *far);
    struct clock_kept *kept = NULL;
    size_t *of = NULL;
    struct err ignored = {0};
    if (s->path && !clock_kept_open(s->path, s->key, &kept, &ignored)) {
        double prior = clock_kept_prior(kept);
        s->kept = prior >= o->drift_prior_ppm && prior >= s->prior_ppm ? kept : NULL;
        s->host_of = of = hosts_of(x, kept);
        s->prior_ppm = s->kept ? prior : s->prior_ppm;
    }
    for (size_t h = 0; h < x->hosts.n; h++)
        far[h] = index_far_host_of(&x->hosts.v[h]);
    int rc = solve(far, o, s, out, e);
    clock_kept_close(kept);
    free(far);
    free(of);
    return rc;
}

static int solve_experiment(struct experiment *x, const struct clock_options *o, struct clock_net **out, struct err *e)
{
    struct index_sync_host *hosts = mem_zalloc((x->hosts.n + 1) * sizeof *hosts);
    struct index_sync s = {.hosts = hosts,
        .n = x->hosts.n,
        .prior_ppm = clock_defaults().drift_prior_ppm,
        .path = o->no_messages ? NULL : net_path(x, "messages"),
        .key = map_mix(CLOCK_RULES_VERSION)};
    for (size_t h = 0; h < x->hosts.n && !o->no_messages; h++)
        hosts[h] = (struct index_sync_host){.flows = x->hosts.v[h].flows,
            .all = source_of(&x->hosts.v[h], INT64_MAX),
            .sealed = source_of(&x->hosts.v[h], sealed_until(&x->hosts.v[h]))};
    int rc = solve_kept(x, o, &s, out, e);
    free(hosts);
    return rc;
}

/* Clocks are written after the messages that they were made of. Where these were touched since, nobody knows that they
 * are sound: clocks are made again then, which looks at them. */
static bool is_touched_since(const char *path, const char *since)
{
    struct stat a, b;
    return !stat(path, &a) && !stat(since, &b) &&
        (a.st_mtim.tv_sec > b.st_mtim.tv_sec ||
            (a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec > b.st_mtim.tv_nsec));
}

/* From the file, or from the messages; what cannot be saved is computed again next time. */
static int load_or_solve(struct experiment *x, const struct clock_options *o, struct clock_net **out, struct err *e)
{
    const char *path = o->no_messages ? NULL : net_path(x, "clocks");
    uint64_t key = net_key(x, o);
    struct err stale = {0};
    if (path && !is_touched_since(net_path(x, "messages"), path) && !clock_net_load(path, key, o, out, &stale))
        return clock_net_solve(*out, e);
    int rc = solve_experiment(x, o, out, e);
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

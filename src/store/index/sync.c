/* SPDX-License-Identifier: MIT */
/* Clock maps of an experiment. Messages between each pair of hosts are found once, and saved beside the stores of the
 * first host. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/map.h"
#include "index/stores.h"

static uint64_t hash_of_host(const struct index_host *h)
{
    const char *path = ctf_trace_path(h->trace);
    return map_mix(map_hash(path, strlen(path))) + map_hash(h->clock_name, strlen(h->clock_name));
}

/* Returns the source of what a host recorded before `until`. */
static struct clock_source source_of(const struct index_host *h, int64_t until)
{
    struct clock_source s = {.host = hash_of_host(h), .until = until};
    if (until == INT64_MAX)
        s.hash = map_mix(index_key(h->trace, true) + (uint64_t)h->sealed_from + (uint64_t)(INT64_MAX - h->until));
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

/* Returns the file of this set of traces. Each set has its own, so that none replaces another. */
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

/* Returns the host by source of `kept`; SIZE_MAX: gone. Each host has two sources. */
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
        if (!h || (v[i].until != INT64_MAX && v[i].until > index_sealed_until(h)))
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
    int rc = index_solve(far, o, NULL, s, out, e);
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
            .sealed = source_of(&x->hosts.v[h], index_sealed_until(&x->hosts.v[h]))};
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

/* Loads the net from its file, or solves it. A net that cannot be saved is computed again next time. */
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

int index_experiment_sync(
    struct experiment *x, const struct clock_options *o, const struct clock_net **out, struct err *e)
{
    struct clock_net *net = NULL;
    clock_net_free(x->clocks);
    x->clocks = NULL;
    int rc = load_or_solve(x, o, &net, e);
    if (rc) {
        clock_net_free(net);
        index_experiment_note_clocks(x, e->text);
        return rc;
    }
    x->clocks = net;
    index_experiment_note_clocks(x, NULL);
    *out = net;
    return 0;
}

/* SPDX-License-Identifier: MIT */
/* Store of results for pairs (docs/formats/clocks.md): writing and reading. Maps are not stored: they are composed anew
 * for each reference. */
#include <stdlib.h>
#include <string.h>

#include "base/store.h"
#include "clock/net.h"

enum { CLOCKS_VERSION = 2 };
static const char clocks_kind[] = "clocks";

struct stored_options {
    double drift_prior_ppm, min_drift, max_drift;
    uint64_t loopback, dropped;
};
struct stored_host {
    uint64_t name; /* position in `names` */
    int64_t begin, end;
};
struct stored_pair {
    uint64_t a, b, messages_ab, messages_ba, hull_ab, hull_ba, outliers;
    double drift_min, drift_max, drift, offset_ns, offset_at_min_ns, offset_at_max_ns, error_ns;
    int32_t category, flags;
    uint64_t first_knot, knots, first_cut, cuts;
    int64_t growth_q62;
    double slowest, fastest;
};
enum { STORED_SAME = 1, STORED_AGAINST_PRIOR = 2, STORED_USABLE = 4 };

_Static_assert(sizeof(struct stored_options) == 40 && sizeof(struct stored_host) == 24 &&
        sizeof(struct stored_pair) == 176 && sizeof(struct knot) == 16 && sizeof(struct cut) == 16,
    "layouts of docs/formats/clocks.md");

struct curves {
    VEC(struct knot) knots;
    VEC(struct cut) cuts;
};

static struct stored_pair stored_of_pair(const struct net_pair *p, struct curves *all)
{
    const struct clock_pair *o = &p->out;
    const struct curve *c = &p->curve;
    struct stored_pair out = {o->a, o->b, o->messages_ab, o->messages_ba, o->hull_ab, o->hull_ba, p->outliers,
        o->drift_min, o->drift_max, o->drift, o->offset_ns, o->offset_at_min_ns, o->offset_at_max_ns, o->error_ns,
        o->category,
        (p->same ? STORED_SAME : 0) | (p->against_prior ? STORED_AGAINST_PRIOR : 0) | (p->usable ? STORED_USABLE : 0),
        all->knots.n, p->usable ? c->nknots : 0, all->cuts.n, p->usable ? c->ncuts : 0, c->growth, c->slowest,
        c->fastest};
    for (size_t i = 0; i < out.knots; i++)
        vec_push(&all->knots, c->knots[i]);
    for (size_t i = 0; i < out.cuts; i++)
        vec_push(&all->cuts, c->cuts[i]);
    return out;
}

int clock_net_save(const struct clock_net *net, const char *path, uint64_t key, struct err *e)
{
    struct stored_options options = {
        net->options.drift_prior_ppm, net->options.min_drift, net->options.max_drift, net->loopback, net->dropped};
    struct text names = {.fd = -1};
    struct curves curves = {0};
    struct stored_host *hosts = mem_zalloc((net->hosts.n + 1) * sizeof *hosts);
    struct stored_pair *pairs = mem_zalloc((net->pairs.n + 1) * sizeof *pairs);
    for (size_t i = 0; i < net->hosts.n; i++) {
        const struct net_host *h = &net->hosts.v[i];
        hosts[i] = (struct stored_host){names.n, h->begin, h->end};
        text_put(&names, h->name, strlen(h->name) + 1);
    }
    for (size_t i = 0; i < net->pairs.n; i++)
        pairs[i] = stored_of_pair(&net->pairs.v[i], &curves);
    struct store_writer *w = store_create(path, clocks_kind, CLOCKS_VERSION, key, 6);
    store_add(w, "options", &options, sizeof options, 1);
    store_add(w, "hosts", hosts, sizeof *hosts, net->hosts.n);
    store_add(w, "names", names.v, 1, names.n);
    store_add(w, "pairs", pairs, sizeof *pairs, net->pairs.n);
    store_add(w, "knots", curves.knots.v, sizeof(struct knot), curves.knots.n);
    store_add(w, "cuts", curves.cuts.v, sizeof(struct cut), curves.cuts.n);
    int rc = store_commit(w, e);
    text_fini(&names);
    vec_free(&curves.knots);
    vec_free(&curves.cuts);
    free(hosts);
    free(pairs);
    return rc;
}

struct sections {
    const struct stored_options *options;
    const struct stored_host *hosts;
    const char *names;
    const struct stored_pair *pairs;
    const struct knot *knots;
    const struct cut *cuts;
    size_t n_options, n_hosts, n_names, n_pairs, n_knots, n_cuts;
};

static bool host_sound(const struct sections *s, const struct stored_host *h)
{
    return h->name < s->n_names && memchr(s->names + h->name, '\0', s->n_names - h->name) && h->begin <= h->end &&
        h->begin >= -CLOCK_TIME_LIMIT && h->end <= CLOCK_TIME_LIMIT;
}

static bool time_sound(int64_t t)
{
    const int64_t most = CLOCK_TIME_LIMIT + 4 * CLOCK_SPAN_LIMIT; /* products of two differences stay below 2^127 */
    return t >= -most && t <= most;
}

/* Maps are computed from these without further checks. */
static bool curve_sound(const struct sections *s, const struct stored_pair *p)
{
    if (p->knots < 2 || p->cuts < 2 || p->first_knot > s->n_knots || p->knots > s->n_knots - p->first_knot ||
        p->first_cut > s->n_cuts || p->cuts > s->n_cuts - p->first_cut)
        return false;
    const struct knot *k = s->knots + p->first_knot;
    const struct cut *c = s->cuts + p->first_cut;
    for (size_t i = 0; i < p->knots; i++)
        if (!time_sound(k[i].t) || !time_sound(k[i].y) || (i && (k[i].t <= k[i - 1].t || k[i].y <= k[i - 1].y)))
            return false;
    for (size_t i = 0; i < p->cuts; i++)
        if (!time_sound(c[i].t) || c[i].error < 0 || (i && c[i].t <= c[i - 1].t))
            return false;
    return p->growth_q62 >= 0 && p->growth_q62 <= CLOCK_SLOPE_LIMIT && p->slowest >= 0.1 && p->fastest <= 10 &&
        p->slowest <= p->fastest;
}

static bool sound(const struct sections *s)
{
    if (s->n_options != 1)
        return false;
    for (size_t i = 0; i < s->n_hosts; i++)
        if (!host_sound(s, &s->hosts[i]))
            return false;
    for (size_t i = 0; i < s->n_pairs; i++) {
        const struct stored_pair *p = &s->pairs[i];
        if (p->a >= p->b || p->b >= s->n_hosts || p->category < 0 || p->category > CLOCK_ABSENT)
            return false;
        if (i && (p[-1].a > p->a || (p[-1].a == p->a && p[-1].b >= p->b)))
            return false;
        if (p->flags & STORED_USABLE && !curve_sound(s, p))
            return false;
    }
    return true;
}

static void load_host(struct clock_net *net, const struct sections *s, const struct stored_host *k)
{
    clock_net_host(net, s->names + k->name, k->begin, k->end);
}

static void load_curve(struct net_pair *p, const struct sections *s, const struct stored_pair *k)
{
    struct curve stored = {.knots = (struct knot *)(uintptr_t)(s->knots + k->first_knot),
        .cuts = (struct cut *)(uintptr_t)(s->cuts + k->first_cut),
        .nknots = k->knots,
        .ncuts = k->cuts,
        .growth = k->growth_q62,
        .slowest = k->slowest,
        .fastest = k->fastest};
    clock_curve_copy(&stored, &p->curve);
    p->usable = true;
    p->width = p->same ? 0 : clock_curve_mean_error(&p->curve);
}

static void load_pair(struct clock_net *net, const struct sections *s, const struct stored_pair *k)
{
    struct net_pair p = {
        .outliers = k->outliers, .same = k->flags & STORED_SAME, .against_prior = k->flags & STORED_AGAINST_PRIOR};
    p.out = (struct clock_pair){.a = k->a,
        .b = k->b,
        .category = k->category,
        .messages_ab = k->messages_ab,
        .messages_ba = k->messages_ba,
        .hull_ab = k->hull_ab,
        .hull_ba = k->hull_ba,
        .drift_min = k->drift_min,
        .drift_max = k->drift_max,
        .drift = k->drift,
        .offset_ns = k->offset_ns,
        .offset_at_min_ns = k->offset_at_min_ns,
        .offset_at_max_ns = k->offset_at_max_ns,
        .error_ns = k->error_ns};
    if (k->flags & STORED_USABLE)
        load_curve(&p, s, k);
    vec_push(&net->pairs, p);
    *map_put(&net->pair_of, (uint64_t)k->a << 32 | k->b, NULL) = net->pairs.n;
}

static struct clock_net *load(const struct sections *s, const struct clock_options *asked)
{
    struct clock_options o = *asked;
    o.drift_prior_ppm = s->options->drift_prior_ppm;
    o.min_drift = s->options->min_drift;
    o.max_drift = s->options->max_drift;
    struct clock_net *net = clock_net_new(&o);
    net->loopback = s->options->loopback;
    net->dropped = s->options->dropped;
    for (size_t i = 0; i < s->n_hosts; i++)
        load_host(net, s, &s->hosts[i]);
    for (size_t i = 0; i < s->n_pairs; i++)
        load_pair(net, s, &s->pairs[i]);
    net->published = mem_alloc((net->pairs.n + 1) * sizeof *net->published);
    for (size_t i = 0; i < net->pairs.n; i++)
        net->published[i] = net->pairs.v[i].out;
    net->fitted = true;
    return net;
}

int clock_net_load(const char *path, uint64_t key, const struct clock_options *o, struct clock_net **out, struct err *e)
{
    struct store *store;
    struct sections s = {0};
    int rc = store_open(path, clocks_kind, CLOCKS_VERSION, &key, &store, e);
    if (rc)
        return rc;
    s.options = store_section(store, "options", sizeof *s.options, &s.n_options);
    s.hosts = store_section(store, "hosts", sizeof *s.hosts, &s.n_hosts);
    s.names = store_section(store, "names", 1, &s.n_names);
    s.pairs = store_section(store, "pairs", sizeof *s.pairs, &s.n_pairs);
    s.knots = store_section(store, "knots", sizeof *s.knots, &s.n_knots);
    s.cuts = store_section(store, "cuts", sizeof *s.cuts, &s.n_cuts);
    if (sound(&s))
        *out = load(&s, o);
    else
        rc = err_set(e, ERR_FORMAT,
            "%s: the contents of this clocks store make no sense; remove it, the next run makes it anew", path);
    store_close(store);
    return rc;
}

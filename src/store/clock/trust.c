/* SPDX-License-Identifier: MIT */
/* Trusted clocks: stated by the user to show the same time, within an error. */
#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "base/time.h"
#include "clock/net.h"

int clock_trust_parse(struct arena *arena, const char *s, struct clock_trust *out, struct err *e)
{
    const char *equals = strrchr(s, '=');
    *out = (struct clock_trust){
        .hosts = equals ? arena_strndup(arena, s, (size_t)(equals - s)) : arena_strdup(arena, s)};
    const char *error = equals ? arena_printf(arena, "+%s", equals + 1) : "+0s";
    if (!*out->hosts || *out->hosts == ',' || time_parse(error, 0, &out->error_ns, NULL) || out->error_ns < 0 ||
        out->error_ns > CLOCK_SPAN_LIMIT)
        return err_set(e, ERR_ARG,
            "--trust %s: give hosts and how far their clocks may be apart, such as web,db=50us or 'node*=1ms'", s);
    return 0;
}

void clock_trust_reset(struct clock_net *net)
{
    for (size_t i = 0; i < net->trust.n; i++)
        vec_free(&net->trust.v[i].hosts);
    net->trust.n = net->conflicts.n = 0;
}

void clock_trust_conflict(
    struct clock_net *net, size_t a, size_t b, int64_t apart_ns, int64_t error_ns, bool out_of_trust)
{
    struct clock_conflict c = {a, b, apart_ns, error_ns, out_of_trust};
    vec_push(&net->conflicts, c);
}

size_t clock_net_conflicts(const struct clock_net *net, const struct clock_conflict **out)
{
    *out = net->conflicts.v;
    return net->conflicts.n;
}

void clock_conflict_words(const struct clock_net *net, const struct clock_conflict *c, struct text *out)
{
    const char *a = net->hosts.v[c->a].name, *b = net->hosts.v[c->b].name;
    if (c->out_of_trust) {
        text_printf(out, "%s is left out of --trust: by its messages with %s their clocks are apart by ", b, a);
        text_duration(out, c->apart_ns);
        text_puts(out, " more than the stated ");
        text_duration(out, c->error_ns);
        return;
    }
    text_printf(out, "what is trusted and what messages say of %s and %s contradict each other by ", a, b);
    text_duration(out, c->apart_ns);
    text_printf(out, ": the error of %s may not hold the truth", b);
}

/* Returns whether the pattern matches the clock. "solo" also matches "solo@2": another boot of it. */
static bool is_meant(const char *pattern, const char *clock)
{
    if (!strcmp(clock, pattern) || !fnmatch(pattern, clock, 0))
        return true;
    const char *at = strrchr(clock, '@');
    if (!at || !at[1] || strspn(at + 1, "0123456789") != strlen(at + 1))
        return false;
    char *host = mem_strdup(clock);
    host[at - clock] = '\0';
    bool meant = !strcmp(host, pattern) || !fnmatch(pattern, host, 0);
    free(host);
    return meant;
}

/* Adds the hosts that match a pattern, in their order, without duplicates. */
static bool add_hosts(const struct clock_net *net, const char *pattern, bool *member)
{
    bool any = false;
    for (size_t h = 0; h < net->hosts.n; h++)
        if (is_meant(pattern, net->hosts.v[h].name))
            any = member[h] = true;
    return any;
}

static int name_members(const struct clock_net *net, const struct clock_trust *t, bool *member, struct err *e)
{
    char *names = mem_strdup(t->hosts), *rest = names;
    int rc = 0;
    for (const char *name; !rc && (name = strsep(&rest, ","));)
        if (*name && !add_hosts(net, name, member) && !net->options.some_named)
            rc = clock_net_no_such_host(net, name, e);
    free(names);
    if (rc)
        err_wrap(e, "--trust %s", t->hosts);
    return rc;
}

void clock_trust_curve(const struct clock_net *net, size_t from, size_t to, int64_t error, struct curve *out)
{
    const struct net_host *a = &net->hosts.v[from], *b = &net->hosts.v[to];
    i128 begin = a->begin < b->begin ? a->begin : b->begin, end = a->end > b->end ? a->end : b->end;
    clock_curve_identity(
        out, sat64(begin), sat64(end - begin > 2 * (i128)CLOCK_TIME_LIMIT ? begin + CLOCK_TIME_LIMIT : end));
    for (size_t i = 0; i < out->ncuts; i++)
        out->cuts[i].error = error;
    /* Each clock may drift within the error as far as the prior allows: knowledge from messages at an end expires at
     * that rate. */
    double p = net->options.drift_prior_ppm;
    out->growth = slope_from((p < 0 ? clock_defaults().drift_prior_ppm : p) * 1e-6L * 2);
}

static int64_t gap_at(const struct curve *a, const struct curve *b, int64_t t)
{
    i128 off = (i128)clock_curve_at(a, t) - clock_curve_at(b, t),
         gap = (off < 0 ? -off : off) - clock_curve_error(a, t) - clock_curve_error(b, t);
    return gap > 0 ? sat64(gap) : 0;
}

int64_t clock_curves_apart(const struct curve *a, const struct curve *b)
{
    int64_t worst = 0, begin = a->cuts[0].t, end = a->cuts[a->ncuts - 1].t;
    for (size_t i = 0; i < a->ncuts + b->ncuts; i++) {
        int64_t t = i < a->ncuts ? a->cuts[i].t : b->cuts[i - a->ncuts].t;
        if (t < begin || t > end)
            continue;
        int64_t gap = gap_at(a, b, t);
        worst = gap > worst ? gap : worst;
    }
    return worst;
}

/* Amount by which the messages of a pair contradict an error; 0 for lines that are only estimates. */
static int64_t contradicted(const struct clock_net *net, const struct net_pair *p, int64_t error)
{
    struct curve same;
    if (!p->usable || (net->options.drift_prior_ppm < 0 && p->out.category == CLOCK_APPROXIMATE))
        return 0;
    clock_trust_curve(net, p->out.a, p->out.b, error, &same);
    int64_t apart = clock_curves_apart(&p->curve, &same);
    clock_curve_free(&same);
    return apart > 2 ? apart : 0; /* rounding */
}

struct dispute {
    size_t a, b;
    int64_t apart;
};

/* Host with most disputes, the last of equals: dropping it first drops the fewest hosts. */
static size_t most_disputed(const struct dispute *v, size_t n, const bool *member, size_t hosts)
{
    size_t *count = mem_zalloc((hosts + 1) * sizeof *count), worst = SIZE_MAX;
    for (size_t i = 0; i < n; i++)
        if (member[v[i].a] && member[v[i].b]) {
            count[v[i].a]++;
            count[v[i].b]++;
        }
    for (size_t h = 0; h < hosts; h++)
        if (count[h] && (worst == SIZE_MAX || count[h] >= count[worst]))
            worst = h;
    free(count);
    return worst;
}

/* Messages are evidence, trust is a statement: drops the host that contradicts the others most until none does. */
static void leave_out(struct clock_net *net, int64_t error, bool *member)
{
    VEC(struct dispute) all = {0};
    for (size_t i = 0; i < net->pairs.n; i++) {
        const struct net_pair *p = &net->pairs.v[i];
        int64_t apart = member[p->out.a] && member[p->out.b] ? contradicted(net, p, error) : 0;
        if (apart)
            vec_push(&all, ((struct dispute){p->out.a, p->out.b, apart}));
    }
    for (size_t h; (h = most_disputed(all.v, all.n, member, net->hosts.n)) != SIZE_MAX; member[h] = false) {
        const struct dispute *worst = NULL;
        for (size_t i = 0; i < all.n; i++)
            if ((all.v[i].a == h || all.v[i].b == h) && member[all.v[i].a] && member[all.v[i].b] &&
                (!worst || all.v[i].apart > worst->apart))
                worst = &all.v[i];
        clock_trust_conflict(net, worst->a == h ? worst->b : worst->a, h, worst->apart, error, true);
    }
    vec_free(&all);
}

int clock_trust_build(struct clock_net *net, struct err *e)
{
    int rc = 0;
    clock_trust_reset(net);
    for (size_t i = 0; !rc && i < net->options.n_trust; i++) {
        const struct clock_trust *t = &net->options.trust[i];
        bool *member = mem_zalloc(net->hosts.n + 1);
        struct net_trust trust = {.error = t->error_ns};
        rc = name_members(net, t, member, e);
        leave_out(net, t->error_ns, member);
        for (size_t h = 0; h < net->hosts.n; h++)
            if (member[h])
                vec_push(&trust.hosts, h);
        vec_push(&net->trust, trust);
        free(member);
    }
    return rc;
}

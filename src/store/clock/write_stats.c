/* SPDX-License-Identifier: MIT */
/* Writer of LTTV's --sync-stats text (reference: the program's output; numbers with more digits, times in ns). */
#include <math.h>
#include <stdio.h>

#include "base/text.h"
#include "clock/net.h"

enum { ALL_PAIRS_HOSTS = 32 }; /* larger nets list only pairs that exchanged messages */

static const char *const indent = "\t\t                      ";

typedef void pair_line(struct text *, const struct net_pair *, size_t a, size_t b);

/* Calls line for every pair in order; p is NULL if no message was exchanged. */
static void each_pair(const struct clock_net *net, struct text *t, pair_line *line)
{
    size_t n = net->hosts.n, k = 0;
    if (n > ALL_PAIRS_HOSTS) {
        for (; k < net->pairs.n; k++)
            line(t, &net->pairs.v[k], net->pairs.v[k].out.a, net->pairs.v[k].out.b);
        return;
    }
    for (size_t a = 0; a < n; a++)
        for (size_t b = a + 1; b < n; b++) {
            bool here = k < net->pairs.n && net->pairs.v[k].out.a == a && net->pairs.v[k].out.b == b;
            line(t, here ? &net->pairs.v[k++] : NULL, a, b);
        }
}

static void traffic_line(struct text *t, const struct net_pair *p, size_t a, size_t b)
{
    text_printf(t, "\t\t%3zu - %-3zu: sent %-10llu received %-10llu\n", a, b,
        p ? (unsigned long long)p->out.messages_ab : 0ull, p ? (unsigned long long)p->out.messages_ba : 0ull);
}

static void hull_line(struct text *t, const struct net_pair *p, size_t a, size_t b)
{
    text_printf(t, "\t\t%3zu - %-3zu: lower half-hull %-5zu upper half-hull %-5zu\n", a, b, p ? p->out.hull_ab : 0,
        p ? p->out.hull_ba : 0);
}

static void write_number(struct text *t, double v)
{
    text_printf(t, "%.15g", v);
}

/* "1 + 1.371e-06" */
static void write_slope(struct text *t, double drift)
{
    text_printf(t, "1 %c %.12g", drift - 1 < 0 ? '-' : '+', fabs(drift - 1));
}

static void bound_line(struct text *t, const char *name, double offset, double drift)
{
    if (isinf(drift))
        return;
    text_printf(t, "%s%s: a0: ", indent, name);
    write_number(t, offset);
    text_puts(t, " a1: ");
    write_slope(t, drift);
    text_putc(t, '\n');
}

static void accurate_lines(struct text *t, const struct clock_pair *p)
{
    text_printf(t, "Accurate\n%sa0: ", indent);
    write_number(t, p->offset_at_max_ns);
    text_puts(t, " to ");
    write_number(t, p->offset_at_min_ns);
    text_printf(t, " (delta= %.9g)\n%sa1: 1 %+.12g to %+.12g (delta= %.9g)\n",
        p->offset_at_min_ns - p->offset_at_max_ns, indent, p->drift_min - 1, p->drift_max - 1,
        p->drift_max - p->drift_min);
}

static void factor_line(struct text *t, const struct net_pair *p, size_t a, size_t b)
{
    text_printf(t, "\t\t%3zu - %-3zu: ", a, b);
    if (!p) {
        text_puts(t, "Absent\n");
    } else if (p->same) {
        text_puts(t, "Exact      a0= 0 a1= 1 + 0\n");
    } else if (p->out.category == CLOCK_ACCURATE) {
        accurate_lines(t, &p->out);
    } else if (p->out.category == CLOCK_APPROXIMATE && !isnan(p->out.drift)) {
        text_puts(t, "Approximate   a0= ");
        write_number(t, p->out.offset_ns);
        text_puts(t, " a1= ");
        write_slope(t, p->out.drift);
        text_printf(t, " error= %.9g\n", p->out.error_ns);
    } else if (p->out.category == CLOCK_ONE_SIDED) {
        text_puts(t, "One-sided\n");
        bound_line(t, "min", p->out.offset_at_min_ns, p->out.drift_min);
        bound_line(t, "max", p->out.offset_at_max_ns, p->out.drift_max);
    } else {
        text_puts(t,
            p->out.category == CLOCK_ONE_WAY           ? "One-way\n"
                : p->out.category == CLOCK_APPROXIMATE ? "Approximate   no line\n"
                                                       : "Absent\n");
    }
}

static void write_trust(const struct clock_net *net, struct text *t)
{
    if (net->trust.n)
        text_puts(t, "Trusted clocks:\n");
    for (size_t i = 0; i < net->trust.n; i++) {
        text_printf(t, "\terror %lld:", (long long)net->trust.v[i].error);
        for (size_t k = 0; k < net->trust.v[i].hosts.n; k++)
            text_printf(t, " %zu", net->trust.v[i].hosts.v[k]);
        text_putc(t, '\n');
    }
    for (size_t i = 0; i < net->conflicts.n; i++) {
        const struct clock_conflict *c = &net->conflicts.v[i];
        text_printf(
            t, "\tcontradicted by messages: %zu - %zu: apart by %lld more\n", c->a, c->b, (long long)c->apart_ns);
    }
}

static void write_reduction(const struct clock_net *net, struct text *t)
{
    text_puts(t, "Accuracy-based factor reduction stats:\n");
    for (size_t i = 0; i < net->hosts.n; i++) {
        const struct clock_map *m = &net->hosts.v[i].map;
        if (m->predecessor < 0)
            text_printf(t, "\ttrace %zu is a reference\n", i);
        else
            text_printf(t, "\ttrace %zu: reference %zu, predecessor %lld%s\n", i, m->reference,
                (long long)m->predecessor, net->hosts.v[i].trusted_ns >= 0 ? " (trusted)" : "");
    }
}

static void write_factors(const struct clock_net *net, struct text *t)
{
    text_puts(t, "Resulting synchronization factors:\n");
    for (size_t i = 0; i < net->hosts.n; i++) {
        const struct net_host *h = &net->hosts.v[i];
        struct factors f = clock_host_factors(h);
        struct clock_map whole = {.pieces = h->pieces, .n = h->npieces};
        int64_t start = clock_to_reference(&whole, h->begin), seconds = (int64_t)floor_div(start, 1000000000);
        text_printf(t, "\ttrace %zu drift= %.15Lg offset= %.18Lg (%.9Lf) start time= %lld.%09lld\n", i, f.drift,
            f.offset_ns, f.offset_ns / 1e9L, (long long)seconds, (long long)(start - (i128)seconds * 1000000000));
    }
}

void clock_net_write_stats(const struct clock_net *net, struct text *t)
{
    uint64_t total = net->loopback, dropped = net->dropped;
    for (size_t i = 0; i < net->pairs.n; i++) {
        total += net->pairs.v[i].out.messages_ab + net->pairs.v[i].out.messages_ba;
        dropped += net->pairs.v[i].outliers;
    }
    text_puts(t, "TCP matching stats:\n");
    text_printf(t, "\ttotal input and output events matched together to form a packet: %llu\n\tMessage traffic:\n",
        (unsigned long long)total);
    each_pair(net, t, traffic_line);
    text_puts(t, "Convex hull analysis stats:\n");
    text_printf(t, "\tout of order packets dropped from analysis: %llu\n\tNumber of points in convex hulls:\n",
        (unsigned long long)dropped);
    each_pair(net, t, hull_line);
    text_puts(t, "\tIndividual synchronization factors:\n");
    each_pair(net, t, factor_line);
    write_trust(net, t);
    write_reduction(net, t);
    write_factors(net, t);
}

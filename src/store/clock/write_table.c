/* SPDX-License-Identifier: MIT */
/* Table of `weft sync`: drift of each clock against the reference, and its precision. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/shown.h"
#include "clock/net.h"

enum { HOST, REFERENCE, DRIFT, OFFSET, ERRORS, MESSAGES, FROM, COLUMNS };

struct net_table {
    VEC(struct text) cells;
};

static struct text *cell(struct net_table *table)
{
    vec_push(&table->cells, ((struct text){.fd = -1}));
    return &table->cells.v[table->cells.n - 1];
}

static void table_free(struct net_table *table)
{
    for (size_t i = 0; i < table->cells.n; i++)
        text_fini(&table->cells.v[i]);
    vec_free(&table->cells);
}

static void table_write(struct net_table *table, struct text *out, bool color)
{
    size_t width[COLUMNS] = {0};
    for (size_t i = 0; i < table->cells.n; i++) {
        struct text shown = {.fd = -1};
        shown_line(&shown, table->cells.v[i].v, table->cells.v[i].n);
        text_fini(&table->cells.v[i]);
        table->cells.v[i] = shown;
        size_t cells = text_cells(table->cells.v[i].v, table->cells.v[i].n);
        width[i % COLUMNS] = cells > width[i % COLUMNS] ? cells : width[i % COLUMNS];
    }
    for (size_t i = 0; i < table->cells.n; i++) {
        const struct text *c = &table->cells.v[i];
        size_t column = i % COLUMNS;
        if (color && i == 0)
            text_style(out, "\033[1m");
        text_put(out, c->v, c->n);
        for (size_t pad = text_cells(c->v, c->n); column + 1 < COLUMNS && pad < width[column] + 2; pad++)
            text_putc(out, ' ');
        if (color && i == COLUMNS - 1)
            text_style(out, "\033[0m");
        if (column + 1 == COLUMNS)
            text_putc(out, '\n');
    }
}

static void write_sign(struct text *t, bool negative)
{
    text_puts(t, negative ? "\u2212" : "+");
}

/* "+125.468 272 ms": whole ns, digits after the point in threes */
static void write_offset(struct text *t, int64_t ns)
{
    static const char *const units[] = {"ns", "\u00b5s", "ms", "s"};
    uint64_t v = ns < 0 ? -(uint64_t)ns : (uint64_t)ns, scale = 1;
    int unit = 0;
    for (; unit < 3 && v >= scale * 1000; unit++)
        scale *= 1000;
    write_sign(t, ns < 0);
    text_u64(t, v / scale);
    for (uint64_t part = scale; part > 1; part /= 1000) {
        text_putc(t, part == scale ? '.' : ' ');
        text_pad(t, v % part / (part / 1000), 3, '0');
    }
    text_putc(t, ' ');
    text_puts(t, units[unit]);
}

/* Two significant digits or more in a common unit: "±0.19 … ±0.21 ms" */
static void write_errors(struct text *t, int64_t least, int64_t worst)
{
    static const struct {
        double ns;
        const char *name;
    } units[] = {{1, "ns"}, {1e3, "\u00b5s"}, {1e6, "ms"}, {1e9, "s"}};
    int unit = 0;
    while (unit < 3 && (double)worst >= 100 * units[unit].ns)
        unit++;
    double a = (double)least / units[unit].ns, b = (double)worst / units[unit].ns;
    int digits = unit ? 2 : 0;
    text_printf(t, "\u00b1%.*f \u2026 \u00b1%.*f %s", digits, a, digits, b, units[unit].name);
}

/* Writes "+24.369 ±392 ppm": three digits of the bound, and no more than the drift has. */
static void write_drift(struct text *t, long double ppm, long double bound)
{
    int digits = bound >= 100 ? 0 : bound >= 10 ? 1 : bound >= 1 ? 2 : 3;
    write_sign(t, ppm < 0);
    text_printf(t, "%.3Lf \u00b1%.*Lf ppm", fabsl(ppm), digits, bound);
}

static void dashes(struct net_table *table, int n)
{
    for (int i = 0; i < n; i++)
        text_puts(cell(table), "\u2013");
}

static void measured_cells(const struct clock_net *net, const struct net_host *h, struct net_table *table)
{
    long double ppm = (clock_host_factors(h).drift - 1) * 1e6L;
    int64_t middle = (int64_t)(((i128)h->begin + h->end) / 2), least = INT64_MAX, worst = 0;
    for (size_t i = 0; i < h->map.n; i++) {
        const struct clock_piece *p = &h->map.pieces[i];
        int64_t small = p->error_begin < p->error_end ? p->error_begin : p->error_end,
                large = p->error_begin > p->error_end ? p->error_begin : p->error_end;
        least = small < least ? small : least;
        worst = large > worst ? large : worst;
    }
    write_drift(cell(table), ppm, clock_drift_error(&h->map, h->begin, h->end) * 1e6L);
    write_offset(cell(table), sat64((i128)clock_to_reference(&h->map, middle) - middle));
    write_errors(cell(table), least, worst);
    const struct net_pair *p = clock_net_pair_between(net, h->map.host, (size_t)h->map.predecessor);
    text_u64(cell(table), p ? p->out.messages_ab + p->out.messages_ba : 0);
    struct text *t = cell(table);
    text_puts(t, net->hosts.v[h->map.predecessor].name);
    if (h->map.category != CLOCK_ACCURATE)
        text_printf(t, " (%s)", clock_category_name(h->map.category));
}

static void host_row(const struct clock_net *net, const struct net_host *h, struct net_table *table)
{
    text_puts(cell(table), h->name);
    if (h->map.island == 0 && h->map.predecessor < 0) {
        text_puts(cell(table), "\u2605");
        dashes(table, COLUMNS - 2);
    } else if (h->map.n) {
        text_puts(cell(table), net->hosts.v[h->map.reference].name);
        measured_cells(net, h, table);
    } else {
        dashes(table, COLUMNS - 2);
        text_puts(cell(table),
            h->map.predecessor < 0 && h->map.category != CLOCK_REFERENCE ? clock_category_name(h->map.category)
                                                                         : "another island");
    }
}

static void island_notes(const struct clock_net *net, struct text *out)
{
    const char *reference = net->hosts.v[net->islands.v[0].reference].name;
    for (size_t i = 1; i < net->islands.n && i <= 8; i++) {
        const struct net_island *s = &net->islands.v[i];
        const char *name = net->hosts.v[s->reference].name;
        if (s->hosts == 1)
            text_printf(out, "No path from %s to %s (%s).\n", name, reference,
                clock_category_name(net->hosts.v[s->reference].map.category));
        else
            text_printf(out, "%s and %zu more are an island without a path to %s; --reference %s synchronises them.\n",
                name, s->hosts - 1, reference, name);
    }
    if (net->islands.n > 9)
        text_printf(out, "%zu more islands.\n", net->islands.n - 9);
}

static void pair_notes(const struct clock_net *net, struct text *out)
{
    for (size_t i = 0; i < net->pairs.n; i++) {
        const struct net_pair *p = &net->pairs.v[i];
        const char *a = net->hosts.v[p->out.a].name, *b = net->hosts.v[p->out.b].name;
        if (p->against_prior)
            text_printf(out,
                "%s and %s drift apart faster than the prior of %g ppm allows; it was not used for them.\n", a, b,
                net->options.drift_prior_ppm);
        if (p->outliers)
            text_printf(out, "%s and %s: %llu messages contradict all others and were left out.\n", a, b,
                (unsigned long long)p->outliers);
    }
}

static void trust_notes(const struct clock_net *net, struct text *out)
{
    enum { MOST_NOTES = 8 };
    for (size_t i = 0; i < net->trust.n; i++) {
        const struct net_trust *t = &net->trust.v[i];
        if (t->hosts.n < 2) {
            text_printf(out, "Trusted: nobody; of %s fewer than two hosts are left.\n", net->options.trust[i].hosts);
            continue;
        }
        text_printf(out, "Trusted: %s, %s", net->hosts.v[t->hosts.v[0]].name, net->hosts.v[t->hosts.v[1]].name);
        if (t->hosts.n > 2)
            text_printf(out, " and %zu more", t->hosts.n - 2);
        text_puts(out, ", at most ");
        text_duration(out, t->error);
        text_puts(out, " apart.\n");
    }
    for (size_t i = 0; i < net->conflicts.n && i < MOST_NOTES; i++) {
        clock_conflict_words(net, &net->conflicts.v[i], out);
        text_puts(out, ".\n");
    }
    if (net->conflicts.n > MOST_NOTES)
        text_printf(out, "%zu more contradictions.\n", net->conflicts.n - MOST_NOTES);
}

void clock_net_write_table(const struct clock_net *net, struct text *out, bool color)
{
    static const char *const heading[COLUMNS] = {
        "host", "reference", "drift", "offset", "error least \u2026 worst", "messages", "from"};
    struct net_table table = {0};
    for (int i = 0; i < COLUMNS; i++)
        text_puts(cell(&table), heading[i]);
    for (size_t i = 0; i < net->islands.n; i++) {
        host_row(net, &net->hosts.v[net->islands.v[i].reference], &table);
        for (size_t h = 0; h < net->hosts.n; h++)
            if (net->hosts.v[h].map.island == i && net->hosts.v[h].map.predecessor >= 0)
                host_row(net, &net->hosts.v[h], &table);
    }
    table_write(&table, out, color);
    table_free(&table);
    if (net->islands.n)
        island_notes(net, out);
    pair_notes(net, out);
    trust_notes(net, out);
}

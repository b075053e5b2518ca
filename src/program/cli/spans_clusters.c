/* SPDX-License-Identifier: MIT */
/* weft spans clusters. */
#include <math.h>

#include "cli/spans.h"

enum { TRAITS_SHOWN = 3 }; /* limit for people */

static size_t largest(const struct spans_clusters *x)
{
    size_t best = 0;
    for (size_t i = 1; i < x->n; i++)
        if (x->v[i].n > x->v[best].n)
            best = i;
    return best;
}

/* The stage that makes most of the difference between the typical units of two clusters. */
static size_t telling_stage(const struct spans_clusters *x, size_t a, size_t b)
{
    size_t best = 0;
    double most = -1;
    for (size_t k = 0; k < x->n_stages; k++) {
        double d = fabs(x->v[a].typical[k] - x->v[b].typical[k]);
        if (d > most) {
            most = d;
            best = k;
        }
    }
    return best;
}

static void write_trait(struct text *t, const struct spans *s, const struct spans_trait *x)
{
    text_printf(t, "%s=%s in %zu of %zu, %zu of %zu others (p = %.2g)", spans_text(s, x->key), spans_text(s, x->value),
        x->in, x->of, x->elsewhere, x->of_others, x->p);
}

static void advise(const struct cli_spans *c, const struct spans_clusters *x, struct cli_advice *a)
{
    const struct spans_unit *units;
    size_t usual = x->n ? largest(x) : 0;
    spans_units(c->set, &units);
    for (size_t i = 0; i < x->n; i++) {
        if (i == usual)
            continue;
        const struct spans_cluster *v = x->v + i;
        size_t stage = telling_stage(x, i, usual);
        text_printf(&a->text, "cluster %zu (%zu of %zu units): %s takes ", i + 1, v->n, x->units,
            spans_text(c->set, x->stages[stage]));
        text_duration(&a->text, llround(v->typical[stage]));
        text_puts(&a->text, ", in the largest cluster ");
        text_duration(&a->text, llround(x->v[usual].typical[stage]));
        if (v->n_traits) {
            text_puts(&a->text, "; ");
            write_trait(&a->text, c->set, v->traits);
        } else {
            text_puts(&a->text, "; no attribute explains it");
        }
        cli_advice_add(a, v->typical[stage] - x->v[usual].typical[stage], v->n, x->units);
        cli_advice_example(a, units[v->medoid].trace);
        for (size_t k = 0; k < x->units; k++)
            if (x->of[k] == i)
                cli_advice_example(a, units[x->unit[k]].trace);
    }
}

static void cluster_json(struct json *j, const struct cli_spans *c, const struct spans_clusters *x, size_t i)
{
    const struct spans_cluster *v = x->v + i;
    const struct spans_unit *units;
    spans_units(c->set, &units);
    json_object(j);
    json_kv_u64(j, "id", i + 1);
    json_kv_u64(j, "n", v->n);
    cli_spans_json_trace(j, "example", c->set, units[v->medoid].trace);
    json_kv_double(j, "duration", v->length);
    json_key(j, "stages");
    json_object(j);
    for (size_t k = 0; k < x->n_stages; k++) {
        json_key(j, spans_text(c->set, x->stages[k]));
        json_double(j, v->typical[k]);
    }
    json_end_object(j);
    json_key(j, "traits");
    json_array(j);
    for (size_t k = 0; k < v->n_traits; k++) {
        const struct spans_trait *t = v->traits + k;
        json_object(j);
        json_kv_string(j, "key", spans_text(c->set, t->key));
        json_kv_string(j, "value", spans_text(c->set, t->value));
        json_kv_u64(j, "in", t->in);
        json_kv_u64(j, "of", t->of);
        json_kv_u64(j, "elsewhere", t->elsewhere);
        json_kv_u64(j, "of_others", t->of_others);
        json_kv_double(j, "p", t->p);
        json_end_object(j);
    }
    json_end_array(j);
    json_key(j, "traces");
    json_array(j);
    struct text id = {.fd = -1};
    for (size_t k = 0, told = 0; k < x->units && told < cli_spans_limit(c, 1000, 1000); k++) {
        if (x->of[k] != i)
            continue;
        id.n = 0;
        cli_spans_trace_id(&id, c->set, units[x->unit[k]].trace);
        json_string_n(j, id.v, id.n);
        told++;
    }
    text_fini(&id);
    json_end_array(j);
    json_end_object(j);
}

static void write_json(const struct cli_spans *c, const struct spans_clusters *x, const struct spans_factors *f,
    struct cli_advice *a, struct text *out)
{
    struct json j = JSON_TO(out);
    json_object(&j);
    json_key(&j, "clusters");
    json_array(&j);
    for (size_t i = 0; i < x->n; i++)
        cluster_json(&j, c, x, i);
    json_end_array(&j);
    json_kv_u64(&j, "units", x->units);
    json_kv_double(&j, "silhouette", x->silhouette);
    json_kv_double(&j, "chance", x->chance);
    cli_factors_json(c->set, f, &j);
    cli_advice_json(a, c->set, &j);
    json_end_object(&j);
    text_putc(out, '\n');
}

static void write_rows(const struct cli_spans *c, const struct spans_clusters *x, struct text *out)
{
    struct cli_column columns[64] = {{"cluster", true, true}, {"n", true, true}, {"took", true, true}};
    size_t n = 3;
    struct text cell = {.fd = -1};
    for (size_t k = 0; k < x->n_stages && n < 63; k++)
        columns[n++] = (struct cli_column){spans_text(c->set, x->stages[k]), true, true};
    columns[n++] = (struct cli_column){"more often here", false, false};
    struct cli_table *t = cli_table_new(columns, n);
    for (size_t i = 0; i < x->n; i++) {
        const struct spans_cluster *v = x->v + i;
        cli_table_number(t, (int64_t)i + 1);
        cli_table_number(t, (int64_t)v->n);
        cli_spans_ns(t, c->format, v->length);
        for (size_t k = 0; k < n - 4; k++)
            cli_spans_ns(t, c->format, v->typical[k]);
        for (size_t k = 0; k < v->n_traits && k < TRAITS_SHOWN; k++) {
            text_puts(&cell, k ? "; " : "");
            write_trait(&cell, c->set, v->traits + k);
        }
        cli_table_text(t, &cell);
    }
    cli_table_write(t, c->format, out);
    cli_table_free(t);
    text_fini(&cell);
}

static void write_none(const struct spans_clusters *x, struct text *out)
{
    if (x->units < 2 * SPANS_FEW)
        text_printf(out, "too few units to tell clusters: %zu, and %d are needed\n", x->units, 2 * SPANS_FEW);
    else if (isnan(x->silhouette))
        text_printf(out, "no clusters among %zu units\n", x->units);
    else
        text_printf(out,
            "no clusters among %zu units: the best partition has a silhouette of %.2f, as %.0f of 100 worlds "
            "without clusters have\n",
            x->units, x->silhouette, 100 * x->chance);
}

int cli_spans_clusters(struct cli_spans *c, struct text *out, struct err *e)
{
    struct spans_clusters *x = spans_clusters(c->set);
    struct spans_factors *f = spans_factors(c->set);
    struct cli_advice advice = CLI_ADVICE;
    struct text unused = {.fd = -1};
    advise(c, x, &advice);
    cli_advice_factors(&advice, c->set, f);
    if (c->format == CLI_JSON)
        write_json(c, x, f, &advice, out);
    else if (x->n || c->format == CLI_CSV)
        write_rows(c, x, out);
    else
        write_none(x, out);
    cli_advice_lines(&advice, c->set, c->format == CLI_TABLE ? out : &unused);
    text_fini(&unused);
    spans_clusters_free(x);
    spans_factors_free(f);
    return 0;
}

/* SPDX-License-Identifier: MIT */
/* weft spans outliers. */
#include <math.h>
#include <string.h>

#include "base/time.h"
#include "cli/spans.h"

static const struct spans_row *row_of(const struct cli_spans *c, const struct spans_outlier *x)
{
    const struct spans_row *rows;
    spans_rows(c->set, &rows);
    return x->row < 0 ? NULL : rows + x->row;
}

static const struct spans_unit *unit_of(const struct cli_spans *c, const struct spans_outlier *x)
{
    const struct spans_unit *units;
    spans_units(c->set, &units);
    return units + x->unit;
}

/* Slow spans of one stage together: how much longer they took than is typical. */
static void advise(const struct cli_spans *c, const struct spans_outliers *o, struct cli_advice *a)
{
    for (size_t i = 0; i < o->n && a->n < 5; i++) {
        const struct spans_outlier *x = o->v + i;
        double lost = 0;
        size_t n = 0;
        bool told = x->what != SPANS_SLOW;
        for (size_t k = 0; k < i && !told; k++)
            told = o->v[k].what == SPANS_SLOW && o->v[k].name == x->name && o->v[k].service == x->service;
        if (told)
            continue;
        for (size_t k = i; k < o->n; k++)
            if (o->v[k].what == SPANS_SLOW && o->v[k].name == x->name && o->v[k].service == x->service) {
                lost += (double)spans_duration(row_of(c, o->v + k)) - o->v[k].typical;
                n++;
            }
        cli_spans_stage(&a->text, c->set, x->service, x->name);
        text_printf(&a->text, ": %zu of %zu took ", n, x->n);
        text_duration(&a->text, llround(lost));
        text_puts(&a->text, n > 1 ? " longer in all than is typical (" : " longer than is typical (");
        text_duration(&a->text, llround(x->typical));
        text_putc(&a->text, ')');
        cli_advice_add(a, lost, n, x->n);
        for (size_t k = i; k < o->n; k++)
            if (o->v[k].what == SPANS_SLOW && o->v[k].name == x->name && o->v[k].service == x->service)
                cli_advice_example(a, row_of(c, o->v + k)->trace);
    }
}

static void write_json(const struct cli_spans *c, const struct spans_outliers *o, const struct spans_factors *f,
    size_t shown, struct cli_advice *a, struct text *out)
{
    struct json j = JSON_TO(out);
    json_object(&j);
    json_key(&j, "outliers");
    json_array(&j);
    for (size_t i = 0; i < shown; i++) {
        const struct spans_outlier *x = o->v + i;
        const struct spans_row *r = row_of(c, x);
        json_object(&j);
        json_kv_string(&j, "what", spans_oddity_name(x->what));
        json_kv_string(&j, "service", spans_text(c->set, x->service));
        json_kv_string(&j, "stage", spans_text(c->set, x->name));
        if (r)
            cli_spans_json_span(&j, c->set, r);
        else
            cli_spans_json_trace(&j, "trace", c->set, unit_of(c, x)->trace);
        json_kv_i64(&j, "begin", r ? r->begin_ns : unit_of(c, x)->begin_ns);
        json_key(&j, "duration");
        r ? json_i64(&j, spans_duration(r)) : json_null(&j);
        json_kv_double(&j, "typical", x->typical);
        json_kv_double(&j, "z", x->z);
        json_kv_double(&j, "p", x->p);
        json_kv_u64(&j, "n", x->n);
        json_end_object(&j);
    }
    json_end_array(&j);
    json_kv_u64(&j, "found", o->n);
    json_kv_u64(&j, "looked", o->looked);
    json_kv_u64(&j, "few", o->few);
    cli_factors_json(c->set, f, &j);
    cli_advice_json(a, c->set, &j);
    json_end_object(&j);
    text_putc(out, '\n');
}

static void number_cell(struct cli_table *t, const char *format, double x)
{
    struct text cell = {.fd = -1};
    if (!isnan(x))
        text_printf(&cell, strcmp(format, "p") ? "%.1f" : "%.2g", x);
    cli_table_text(t, &cell);
    text_fini(&cell);
}

static void write_rows(const struct cli_spans *c, const struct spans_outliers *o, size_t shown, struct text *out)
{
    static const struct cli_column columns[] = {{"what", false, false}, {"service", false, false},
        {"stage", false, false}, {"took", true, true}, {"typical", true, true}, {"z", true, true}, {"p", true, true},
        {"of", true, true}, {"begin", false, false}, {"span", false, false}};
    bool several = c->format != CLI_TABLE || cli_spans_several(c->set);
    struct cli_column chosen[10];
    size_t n = 0;
    for (size_t i = 0; i < 10; i++)
        if (i != 1 || several)
            chosen[n++] = columns[i];
    struct cli_table *t = cli_table_new(chosen, n);
    struct text cell = {.fd = -1};
    for (size_t i = 0; i < shown; i++) {
        const struct spans_outlier *x = o->v + i;
        const struct spans_row *r = row_of(c, x);
        int64_t begin = r ? r->begin_ns : unit_of(c, x)->begin_ns;
        cli_table_cell(t, "%s", spans_oddity_name(x->what));
        if (several)
            cli_table_cell(t, "%s", spans_text(c->set, x->service));
        cli_table_cell(t, "%s", spans_text(c->set, x->name));
        cli_spans_ns(t, c->format, r ? (double)spans_duration(r) : NAN);
        cli_spans_ns(t, c->format, x->typical);
        number_cell(t, "z", x->z);
        number_cell(t, "p", x->p);
        cli_table_number(t, (int64_t)x->n);
        c->format == CLI_TABLE ? time_write_utc(&cell, begin, true) : text_i64(&cell, begin);
        cli_table_text(t, &cell);
        r ? cli_spans_id(&cell, c->set, r) : cli_spans_trace_id(&cell, c->set, unit_of(c, x)->trace);
        cli_table_text(t, &cell);
    }
    cli_table_write(t, c->format, out);
    cli_table_free(t);
    text_fini(&cell);
}

int cli_spans_outliers(struct cli_spans *c, struct text *out, struct err *e)
{
    struct spans_outliers *o = spans_outliers(c->set, &c->by);
    struct spans_factors *f = spans_factors(c->set);
    struct cli_advice advice = CLI_ADVICE;
    size_t limit = cli_spans_limit(c, 40, SIZE_MAX), shown = o->n < limit ? o->n : limit;
    advise(c, o, &advice);
    cli_advice_factors(&advice, c->set, f);
    if (c->format == CLI_JSON)
        write_json(c, o, f, shown, &advice, out);
    else if (o->n || c->format == CLI_CSV)
        write_rows(c, o, shown, out);
    else
        text_printf(out, "nothing is unlike the others: %zu spans were compared\n", o->looked);
    struct text unused = {.fd = -1};
    cli_advice_lines(&advice, c->set, c->format == CLI_TABLE ? out : &unused);
    text_fini(&unused);
    if (o->few)
        cli_note("%zu span%s of stages with fewer than %d: too few to tell what is typical, so nothing is claimed",
            o->few, o->few > 1 ? "s are" : " is", SPANS_FEW);
    if (shown < o->n)
        cli_note("%zu more; --limit %zu shows all", o->n - shown, o->n);
    spans_outliers_free(o);
    spans_factors_free(f);
    return 0;
}

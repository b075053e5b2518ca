/* SPDX-License-Identifier: MIT */
/* weft spans compare: two sides, or when it changed. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/time.h"
#include "cli/spans.h"

#define ALPHA 0.05

/* ---- sides ---- */

struct sides {
    const struct cli_spans *c;
    const char *key;
    uint32_t *of_trace;  /* value of each trace; UINT32_MAX: none yet */
    char a[256], b[256]; /* values, or names of the sides */
};

static int side_by_time(void *arg, const struct spans_row *r)
{
    return r->begin_ns >= ((const struct sides *)arg)->c->split_ns;
}

static int side_by_value(void *arg, const struct spans_row *r)
{
    struct sides *s = arg;
    const struct spans *set = s->c->set;
    const struct spans_trace *traces;
    uint32_t value = spans_own_value(set, r, s->key);
    spans_traces(set, &traces);
    if (!value && s->of_trace[r->trace] == UINT32_MAX)
        s->of_trace[r->trace] = spans_trace_value(set, traces + r->trace, s->key);
    const char *text = spans_text(set, value ? value : s->of_trace[r->trace]);
    return !strcmp(text, s->a) ? 0 : !strcmp(text, s->b) ? 1 : -1;
}

static int parse_sides(const struct cli_spans *c, struct sides *s, struct err *e)
{
    const char *equal = strchr(c->by_text, '='), *comma = equal ? strchr(equal, ',') : NULL;
    if (!comma || c->by.n != 1 || comma == equal + 1 || !comma[1] || (size_t)(comma - equal) > sizeof s->a ||
        strlen(comma) > sizeof s->b)
        return err_set(e, ERR_ARG, "--by %s: compare takes an attribute and the two values of it: KEY=A,B", c->by_text);
    s->key = c->by.keys[0];
    memcpy(s->a, equal + 1, (size_t)(comma - equal) - 1);
    strcpy(s->b, comma + 1);
    return 0;
}

/* ---- two sides ---- */

static const char *verdict_of(const struct spans_difference *d)
{
    if (d->few)
        return "too few";
    return d->p > ALPHA ? "no difference" : d->shift > 0 ? "slower" : d->shift < 0 ? "faster" : "other spread";
}

static void advise(
    const struct cli_spans *c, const struct spans_differences *x, const struct sides *s, struct cli_advice *a)
{
    const struct spans_row *rows;
    spans_rows(c->set, &rows);
    for (size_t i = 0; i < x->n && a->n < 5; i++) {
        const struct spans_difference *d = x->v + i;
        if (d->few || d->p > ALPHA || d->shift == 0)
            continue;
        cli_spans_stage(&a->text, c->set, d->service, d->name);
        text_puts(&a->text, ": ");
        text_duration(&a->text, llround(fabs(d->shift)));
        text_printf(&a->text, " %s %s than %s (95 %%: ", d->shift > 0 ? "slower" : "faster", s->b, s->a);
        text_duration(&a->text, llround(d->low));
        text_puts(&a->text, " to ");
        text_duration(&a->text, llround(d->high));
        text_printf(&a->text, "; p = %.2g; %zu and %zu spans)", d->p, d->n[0], d->n[1]);
        cli_advice_add(a, d->shift, d->n[1], d->n[0]);
        cli_advice_example(a, rows[d->example[0]].trace);
        cli_advice_example(a, rows[d->example[1]].trace);
    }
}

static void pair_json(struct json *j, const char *key, const double *v)
{
    json_key(j, key);
    json_array(j);
    json_double(j, v[0]);
    json_double(j, v[1]);
    json_end_array(j);
}

static void counts_json(struct json *j, const size_t *n)
{
    json_key(j, "n");
    json_array(j);
    json_u64(j, n[0]);
    json_u64(j, n[1]);
    json_end_array(j);
}

static void sides_json(const struct cli_spans *c, const struct spans_differences *x, const struct sides *s,
    struct cli_advice *a, struct text *out)
{
    struct json j = JSON_TO(out);
    json_object(&j);
    json_key(&j, "sides");
    json_array(&j);
    json_string(&j, s->a);
    json_string(&j, s->b);
    json_end_array(&j);
    json_key(&j, "stages");
    json_array(&j);
    for (size_t i = 0; i < x->n; i++) {
        const struct spans_difference *d = x->v + i;
        json_object(&j);
        json_kv_string(&j, "service", spans_text(c->set, d->service));
        json_kv_string(&j, "stage", spans_text(c->set, d->name));
        counts_json(&j, d->n);
        pair_json(&j, "p50", d->p50);
        pair_json(&j, "p95", d->p95);
        json_kv_double(&j, "shift", d->shift);
        pair_json(&j, "shift_interval", (const double[]){d->low, d->high});
        json_kv_double(&j, "p95_shift", d->tail);
        pair_json(
            &j, "p95_interval", d->few ? (const double[]){NAN, NAN} : (const double[]){d->tail_low, d->tail_high});
        json_key(&j, "p");
        json_double(&j, d->few ? NAN : d->p);
        json_kv_string(&j, "verdict", verdict_of(d));
        json_end_object(&j);
    }
    json_end_array(&j);
    cli_advice_json(a, c->set, &j);
    json_end_object(&j);
    text_putc(out, '\n');
}

static void signed_ns(struct cli_table *t, const struct cli_spans *c, double ns)
{
    struct text cell = {.fd = -1};
    if (c->format != CLI_TABLE || isnan(ns)) {
        cli_spans_ns(t, c->format, ns);
        return;
    }
    text_puts(&cell, ns > 0 ? "+" : "");
    text_duration(&cell, llround(ns));
    cli_table_text(t, &cell);
    text_fini(&cell);
}

static void sides_rows(const struct cli_spans *c, const struct spans_differences *x, struct text *out)
{
    static const struct cli_column columns[] = {{"service", false, false}, {"stage", false, false}, {"n a", true, true},
        {"n b", true, true}, {"p50 a", true, true}, {"p50 b", true, true}, {"p95 a", true, true}, {"p95 b", true, true},
        {"shift", true, true}, {"from", true, true}, {"to", true, true}, {"p", true, true}, {"verdict", false, false}};
    size_t skip = c->format == CLI_TABLE && !cli_spans_several(c->set);
    struct cli_table *t = cli_table_new(columns + skip, sizeof columns / sizeof *columns - skip);
    for (size_t i = 0; i < x->n && i < cli_spans_limit(c, SIZE_MAX, SIZE_MAX); i++) {
        const struct spans_difference *d = x->v + i;
        if (!skip)
            cli_table_cell(t, "%s", spans_text(c->set, d->service));
        cli_table_cell(t, "%s", spans_text(c->set, d->name));
        cli_table_number(t, (int64_t)d->n[0]);
        cli_table_number(t, (int64_t)d->n[1]);
        cli_spans_ns(t, c->format, d->p50[0]);
        cli_spans_ns(t, c->format, d->p50[1]);
        cli_spans_ns(t, c->format, d->p95[0]);
        cli_spans_ns(t, c->format, d->p95[1]);
        signed_ns(t, c, d->shift);
        signed_ns(t, c, d->low);
        signed_ns(t, c, d->high);
        d->few ? cli_table_cell(t, "%s", "") : cli_table_cell(t, "%.2g", d->p);
        cli_table_cell(t, "%s", verdict_of(d));
    }
    cli_table_write(t, c->format, out);
    cli_table_free(t);
}

static void compare_sides(const struct cli_spans *c, struct sides *s, spans_side *side, struct text *out)
{
    struct spans_differences *x = spans_compare(c->set, side, s);
    struct cli_advice advice = CLI_ADVICE;
    size_t few = 0, n[2] = {0, 0};
    for (size_t i = 0; i < x->n; i++) {
        few += x->v[i].few;
        n[0] += x->v[i].n[0];
        n[1] += x->v[i].n[1];
    }
    advise(c, x, s, &advice);
    if (c->format == CLI_JSON)
        sides_json(c, x, s, &advice, out);
    else
        sides_rows(c, x, out);
    struct text unused = {.fd = -1};
    cli_advice_lines(&advice, c->set, c->format == CLI_TABLE ? out : &unused);
    text_fini(&unused);
    for (int i = 0; i < 2; i++)
        if (!n[i])
            cli_note("no spans are %s%s%s", s->key ? s->key : "", s->key ? " = " : "", i ? s->b : s->a);
    if (few)
        cli_note("%zu stage%s fewer than %d spans on a side: nothing is claimed of %s", few,
            few > 1 ? "s have" : " has", SPANS_FEW, few > 1 ? "them" : "it");
    spans_differences_free(x);
}

/* ---- changes ---- */

static void advise_changes(const struct cli_spans *c, const struct spans_changes *x, struct cli_advice *a)
{
    const struct spans_row *rows;
    spans_rows(c->set, &rows);
    for (size_t i = 0; i < x->n && a->n < 5; i++) {
        const struct spans_change *d = x->v + i;
        cli_spans_stage(&a->text, c->set, d->service, d->name);
        text_puts(&a->text, ": from ");
        text_duration(&a->text, llround(d->p50[0]));
        text_puts(&a->text, " to ");
        text_duration(&a->text, llround(d->p50[1]));
        text_puts(&a->text, " at ");
        time_write_utc(&a->text, d->at_ns, true);
        text_printf(&a->text, " (p = %.2g; %zu spans before, %zu after)", d->p, d->n[0], d->n[1]);
        cli_advice_add(a, d->p50[1] - d->p50[0], d->n[1], d->n[0] + d->n[1]);
        cli_advice_example(a, rows[d->example[0]].trace);
        cli_advice_example(a, rows[d->example[1]].trace);
    }
}

static void changes_json(
    const struct cli_spans *c, const struct spans_changes *x, struct cli_advice *a, struct text *out)
{
    struct json j = JSON_TO(out);
    json_object(&j);
    json_key(&j, "changes");
    json_array(&j);
    for (size_t i = 0; i < x->n; i++) {
        const struct spans_change *d = x->v + i;
        json_object(&j);
        json_kv_string(&j, "service", spans_text(c->set, d->service));
        json_kv_string(&j, "stage", spans_text(c->set, d->name));
        json_kv_i64(&j, "at", d->at_ns);
        counts_json(&j, d->n);
        pair_json(&j, "p50", d->p50);
        json_kv_double(&j, "p", d->p);
        json_end_object(&j);
    }
    json_end_array(&j);
    json_kv_u64(&j, "stages", x->stages);
    json_kv_u64(&j, "few", x->few);
    cli_advice_json(a, c->set, &j);
    json_end_object(&j);
    text_putc(out, '\n');
}

static void changes_rows(const struct cli_spans *c, const struct spans_changes *x, struct text *out)
{
    static const struct cli_column columns[] = {{"service", false, false}, {"stage", false, false},
        {"at", false, false}, {"before", true, true}, {"after", true, true}, {"p50 before", true, true},
        {"p50 after", true, true}, {"p", true, true}};
    size_t skip = c->format == CLI_TABLE && !cli_spans_several(c->set);
    struct cli_table *t = cli_table_new(columns + skip, sizeof columns / sizeof *columns - skip);
    struct text cell = {.fd = -1};
    for (size_t i = 0; i < x->n && i < cli_spans_limit(c, SIZE_MAX, SIZE_MAX); i++) {
        const struct spans_change *d = x->v + i;
        if (!skip)
            cli_table_cell(t, "%s", spans_text(c->set, d->service));
        cli_table_cell(t, "%s", spans_text(c->set, d->name));
        c->format == CLI_TABLE ? time_write_utc(&cell, d->at_ns, true) : text_i64(&cell, d->at_ns);
        cli_table_text(t, &cell);
        cli_table_number(t, (int64_t)d->n[0]);
        cli_table_number(t, (int64_t)d->n[1]);
        cli_spans_ns(t, c->format, d->p50[0]);
        cli_spans_ns(t, c->format, d->p50[1]);
        cli_table_cell(t, "%.2g", d->p);
    }
    cli_table_write(t, c->format, out);
    cli_table_free(t);
    text_fini(&cell);
}

static void tell_changes(const struct cli_spans *c, struct text *out)
{
    struct spans_changes *x = spans_changes(c->set);
    struct cli_advice advice = CLI_ADVICE;
    struct text unused = {.fd = -1};
    advise_changes(c, x, &advice);
    if (c->format == CLI_JSON)
        changes_json(c, x, &advice, out);
    else if (x->n || c->format == CLI_CSV)
        changes_rows(c, x, out);
    else
        text_printf(out, "no stage changed its level: %zu were looked at\n", x->stages);
    cli_advice_lines(&advice, c->set, c->format == CLI_TABLE ? out : &unused);
    text_fini(&unused);
    if (x->few)
        cli_note("%zu stage%s fewer than %d spans: too few to tell a change", x->few, x->few > 1 ? "s have" : " has",
            2 * SPANS_FEW);
    spans_changes_free(x);
}

int cli_spans_compare(struct cli_spans *c, struct text *out, struct err *e)
{
    struct sides s = {.c = c};
    if (c->split && c->by_text)
        return err_set(e, ERR_ARG, "compare: either --split or --by");
    if (c->by_text) {
        int rc = parse_sides(c, &s, e);
        if (rc)
            return rc;
        const struct spans_trace *traces;
        size_t n = spans_traces(c->set, &traces);
        s.of_trace = mem_alloc((n + 1) * sizeof *s.of_trace);
        memset(s.of_trace, 0xff, n * sizeof *s.of_trace);
        compare_sides(c, &s, side_by_value, out);
        free(s.of_trace);
    } else if (c->split) {
        strcpy(s.a, "before");
        strcpy(s.b, "since");
        compare_sides(c, &s, side_by_time, out);
    } else {
        tell_changes(c, out);
    }
    return 0;
}

/* weft spans critpath. */
#include <stdlib.h>
#include <string.h>

#include "base/time.h"
#include "cli/spans.h"

static const char *kind_of(int32_t row)
{
    return row == SPANS_QUEUE ? "queue" : row == SPANS_ENVELOPE ? "between" : "span";
}

/* What a cause is called: its stage, or what is no stage. */
static void write_cause(struct text *t, const struct spans *s, const struct spans_cause *x)
{
    if (x->row)
        text_puts(t, x->row == SPANS_QUEUE ? "(queue)" : "(between stages)");
    else
        cli_spans_stage(t, s, x->service, x->name);
}

/* ---- one trace ---- */

static void sections_json(struct json *j, const struct cli_spans *c, uint32_t unit, struct spans_sections *path)
{
    const struct spans_unit *units;
    const struct spans_row *rows;
    spans_units(c->set, &units);
    spans_rows(c->set, &rows);
    const struct spans_unit *u = units + unit;
    spans_path(c->set, unit, path);
    json_object(j);
    cli_spans_json_trace(j, "trace", c->set, u->trace);
    json_kv_string(j, "service", spans_text(c->set, u->service));
    json_kv_string(j, "name", spans_text(c->set, u->name));
    json_kv_bool(j, "synthetic", u->root < 0);
    json_kv_i64(j, "begin", u->after < 0 ? u->begin_ns : rows[u->after].end_ns);
    json_kv_i64(j, "end", u->end_ns);
    json_key(j, "sections");
    json_array(j);
    for (size_t i = 0; i < path->n; i++) {
        const struct spans_section *x = path->v + i;
        json_object(j);
        json_kv_i64(j, "begin", x->begin_ns);
        json_kv_i64(j, "end", x->end_ns);
        json_kv_string(j, "kind", kind_of(x->row));
        if (x->row >= 0) {
            cli_spans_json_span(j, c->set, rows + x->row);
            json_kv_string(j, "service", spans_text(c->set, rows[x->row].service));
            json_kv_string(j, "stage", spans_text(c->set, rows[x->row].name));
        }
        json_end_object(j);
    }
    json_end_array(j);
    json_end_object(j);
}

static void write_sections(const struct cli_spans *c, uint32_t unit, struct text *out)
{
    static const struct cli_column columns[] = {{"unit", true, true}, {"begin", true, true}, {"took", true, true},
        {"share", true, true}, {"service", false, false}, {"stage", false, false}, {"span", false, false}};
    const struct spans_unit *units;
    const struct spans_row *rows;
    struct spans_sections path = {0};
    struct cli_table *t = cli_table_new(columns, sizeof columns / sizeof *columns);
    struct text cell = {.fd = -1};
    spans_units(c->set, &units);
    spans_rows(c->set, &rows);
    spans_path(c->set, unit, &path);
    double total = path.n ? (double)(path.v[path.n - 1].end_ns - path.v[0].begin_ns) : 1;
    for (size_t i = 0; i < path.n; i++) {
        const struct spans_section *x = path.v + i;
        cli_table_number(t, (int64_t)unit + 1);
        if (c->format == CLI_TABLE)
            text_putc(&cell, '+');
        c->format == CLI_TABLE ? text_duration(&cell, x->begin_ns - path.v[0].begin_ns) : text_i64(&cell, x->begin_ns);
        cli_table_text(t, &cell);
        cli_table_duration(t, c->format, x->end_ns - x->begin_ns);
        cli_table_cell(t, c->format == CLI_TABLE ? "%.1f %%" : "%.4f",
            (c->format == CLI_TABLE ? 100 : 1) * (double)(x->end_ns - x->begin_ns) / total);
        cli_table_cell(t, "%s", spans_text(c->set, x->row < 0 ? units[unit].service : rows[x->row].service));
        cli_table_cell(t, "%s",
            x->row == SPANS_QUEUE ? "(queue)"
                : x->row < 0      ? "(between stages)"
                                  : spans_text(c->set, rows[x->row].name));
        if (x->row >= 0)
            spans_write_id(&cell, rows[x->row].id);
        cli_table_text(t, &cell);
    }
    cli_table_write(t, c->format, out);
    cli_table_free(t);
    text_fini(&cell);
    free(path.v);
}

/* ---- over all ---- */

static void advise(const struct cli_spans *c, const struct spans_causes *x, struct cli_advice *a)
{
    const struct spans_unit *units;
    spans_units(c->set, &units);
    for (size_t i = 0; i < x->n && a->n < 3; i++) {
        const struct spans_cause *v = x->v + i;
        bool purpose = !v->row && !strcmp(spans_text(c->set, v->name), c->main);
        if (purpose || v->units < SPANS_FEW || v->half <= 0 || (double)v->half < 0.001 * (double)x->total)
            continue;
        write_cause(&a->text, c->set, v);
        text_puts(&a->text, ": if it took half as long, ");
        text_printf(&a->text, "%zu of %zu units would end ", v->units, x->units);
        text_duration(&a->text, v->half / (int64_t)v->units);
        text_puts(&a->text, " earlier on average (");
        text_duration(&a->text, v->half);
        text_printf(&a->text, " in all, %.1f %%)", 100 * (double)v->half / (double)x->total);
        cli_advice_add(a, (double)v->half, v->units, x->units);
        cli_advice_example(a, units[v->example].trace);
    }
}

static void causes_json(const struct cli_spans *c, const struct spans_causes *x, struct cli_advice *a, struct text *out)
{
    struct json j = JSON_TO(out);
    struct spans_sections path = {0};
    const struct spans_unit *units;
    size_t n = spans_units(c->set, &units), limit = cli_spans_limit(c, 1000, 1000);
    json_object(&j);
    json_key(&j, "causes");
    json_array(&j);
    for (size_t i = 0; i < x->n; i++) {
        const struct spans_cause *v = x->v + i;
        json_object(&j);
        json_kv_string(&j, "kind", kind_of(v->row));
        json_kv_string(&j, "service", v->row ? NULL : spans_text(c->set, v->service));
        json_kv_string(&j, "stage", v->row ? NULL : spans_text(c->set, v->name));
        json_kv_u64(&j, "spans", v->spans);
        json_kv_u64(&j, "units", v->units);
        json_kv_i64(&j, "path", v->path);
        json_kv_i64(&j, "drag", v->drag);
        json_kv_i64(&j, "half", v->half);
        cli_spans_json_trace(&j, "example", c->set, units[v->example].trace);
        json_end_object(&j);
    }
    json_end_array(&j);
    json_kv_u64(&j, "units_found", x->units);
    json_kv_i64(&j, "total", x->total);
    json_key(&j, "units");
    json_array(&j);
    for (size_t u = 0; u < n && u < limit; u++)
        sections_json(&j, c, (uint32_t)u, &path);
    json_end_array(&j);
    cli_advice_json(a, c->set, &j);
    json_end_object(&j);
    text_putc(out, '\n');
    free(path.v);
}

static void causes_rows(const struct cli_spans *c, const struct spans_causes *x, struct text *out)
{
    static const struct cli_column columns[] = {{"stage", false, false}, {"units", true, true}, {"spans", true, true},
        {"on the path", true, true}, {"share", true, true}, {"drag", true, true}, {"if halved", true, true},
        {"most in trace", false, false}};
    const struct spans_unit *units;
    struct cli_table *t = cli_table_new(columns, sizeof columns / sizeof *columns);
    struct text cell = {.fd = -1};
    spans_units(c->set, &units);
    for (size_t i = 0; i < x->n && i < cli_spans_limit(c, SIZE_MAX, SIZE_MAX); i++) {
        const struct spans_cause *v = x->v + i;
        double share = x->total ? (double)v->path / (double)x->total : 0;
        write_cause(&cell, c->set, v);
        cli_table_text(t, &cell);
        cli_table_number(t, (int64_t)v->units);
        cli_table_number(t, (int64_t)v->spans);
        cli_table_duration(t, c->format, v->path);
        cli_table_cell(t, c->format == CLI_TABLE ? "%.1f %%" : "%.6f", (c->format == CLI_TABLE ? 100 : 1) * share);
        cli_table_duration(t, c->format, v->drag);
        cli_table_duration(t, c->format, v->half);
        cli_spans_trace_id(&cell, c->set, units[v->example].trace);
        cli_table_text(t, &cell);
    }
    cli_table_write(t, c->format, out);
    cli_table_free(t);
    text_fini(&cell);
}

int cli_spans_critpath(struct cli_spans *c, struct text *out, struct err *e)
{
    const struct spans_unit *units;
    size_t n = spans_units(c->set, &units);
    if (c->trace && c->format != CLI_JSON) {
        for (size_t u = 0; u < n && u < cli_spans_limit(c, SIZE_MAX, SIZE_MAX); u++) {
            if (u && c->format == CLI_TABLE)
                text_putc(out, '\n');
            write_sections(c, (uint32_t)u, out);
        }
        return 0;
    }
    struct spans_causes *x = spans_causes(c->set);
    struct cli_advice advice = CLI_ADVICE;
    struct text unused = {.fd = -1};
    advise(c, x, &advice);
    if (c->format == CLI_JSON)
        causes_json(c, x, &advice, out);
    else
        causes_rows(c, x, out);
    cli_advice_lines(&advice, c->set, c->format == CLI_TABLE ? out : &unused);
    text_fini(&unused);
    if (x->units && x->units < SPANS_FEW)
        cli_note("%zu unit%s, fewer than %d: the numbers stand, but nothing is suggested", x->units,
            x->units > 1 ? "s" : "", SPANS_FEW);
    spans_causes_free(x);
    return 0;
}

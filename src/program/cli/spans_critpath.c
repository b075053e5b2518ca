/* SPDX-License-Identifier: MIT */
/* weft spans critpath. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/time.h"
#include "cli/spans_kernel.h"

static const char *kind_of(int32_t row)
{
    return row == SPANS_QUEUE ? "queue" : row == SPANS_ENVELOPE ? "between" : "span";
}

/* Writes the name of a cause: its stage, or a time outside stages. */
static void write_cause(struct text *t, const struct spans *s, const struct spans_cause *x)
{
    if (x->row)
        text_puts(t, x->row == SPANS_QUEUE ? "(queue)" : "(between stages)");
    else
        cli_spans_stage(t, s, x->service, x->name);
}

/* ---- reasons from the kernel ---- */

static void why_json(struct json *j, const struct cli_reasons *r)
{
    json_kv_i64(j, "traced", r->traced);
    json_key(j, "why");
    json_object(j);
    for (int i = 0; i < WHY_COUNT; i++)
        json_kv_i64(j, cli_why_names[i], r->ns[i]);
    json_end_object(j);
}

/* "kernel": null where the thread is not in the traces. */
static void section_json(struct json *j, const struct cli_spans *c, const struct spans_section *x)
{
    static const char *const ways[] = {"", "number", "namespace", "mark"}; /* enum index_span_by */
    struct cli_reasons r = {0};
    struct text sentence = {.fd = -1};
    if (cli_kernel_explain(c->kernel, x, &r, &sentence)) {
        json_key(j, "kernel");
        json_object(j);
        why_json(j, &r);
        json_kv_string(j, "sentence", text_cstr(&sentence));
        json_kv_string(j, "host", r.host);
        json_kv_i64(j, "tid", r.tid);
        json_kv_string(j, "by", ways[r.by]);
        json_end_object(j);
    } else {
        json_kv_string(j, "kernel", NULL);
    }
    text_fini(&sentence);
}

static bool is_of(const struct spans_cause *v, const struct spans_row *r)
{
    return !v->row && v->service == r->service && v->name == r->name;
}

/* Returns reasons by number of the cause; free(). */
static struct cli_reasons *reasons_of(const struct cli_spans *c, const struct spans_causes *x)
{
    struct cli_reasons *out = mem_zalloc((x->n + 1) * sizeof *out);
    struct spans_sections path = {0};
    const struct spans_row *rows;
    const struct spans_unit *units;
    size_t n = x->n ? spans_units(c->set, &units) : 0, cause = 0;
    spans_rows(c->set, &rows);
    for (size_t u = 0; u < n; u++) {
        spans_path(c->set, (uint32_t)u, &path);
        for (size_t i = 0; i < path.n; i++) {
            if (path.v[i].row < 0)
                continue;
            const struct spans_row *r = rows + path.v[i].row;
            for (size_t k = 0; k < x->n && !is_of(x->v + cause, r); k++) /* often that of before */
                cause = k;
            if (is_of(x->v + cause, r))
                cli_kernel_explain(c->kernel, path.v + i, out + cause, NULL);
        }
    }
    free(path.v);
    return out;
}

static void note_unfound(const struct cli_reasons *r, size_t n)
{
    size_t found = 0, pieces = 0;
    for (size_t i = 0; i < n; i++) {
        found += r[i].found;
        pieces += r[i].pieces;
    }
    if (!found && pieces)
        cli_note("no span's process is in these traces: spans say it by marks in them, or by host.boot_id or host.name "
                 "and process.pid (weft-span does all of it; --kernel NAME=PATH gives a machine a name)");
    else if (found < pieces)
        cli_note(
            "%zu of %zu pieces of the paths are of processes that are not in these traces", pieces - found, pieces);
}

/* Writes, below the causes, where their time went, as far as it was traced. */
static void write_reasons(const struct cli_spans *c, const struct spans_causes *x, struct text *out)
{
    struct cli_column columns[3 + WHY_COUNT] = {
        {"why", false, false}, {"on the path", true, true}, {"traced", true, true}};
    for (int i = 0; i < WHY_COUNT; i++)
        columns[3 + i] = (struct cli_column){cli_why_names[i], true, true};
    struct cli_reasons *r = reasons_of(c, x);
    struct cli_table *t = cli_table_new(columns, sizeof columns / sizeof *columns);
    struct text cell = {.fd = -1};
    size_t lines = 0;
    for (size_t i = 0; i < x->n; i++) {
        if (!r[i].found)
            continue;
        lines++;
        write_cause(&cell, c->set, x->v + i);
        cli_table_text(t, &cell);
        cli_table_duration(t, c->format, r[i].asked);
        cli_table_cell(t, "%.1f %%", 100 * (double)r[i].traced / (double)(r[i].asked ? r[i].asked : 1));
        for (int k = 0; k < WHY_COUNT; k++)
            cli_table_duration(t, c->format, r[i].ns[k]);
    }
    if (lines) {
        text_putc(out, '\n');
        cli_table_write(t, c->format, out);
    }
    note_unfound(r, x->n);
    cli_table_free(t);
    text_fini(&cell);
    free(r);
}

/* ---- single trace ---- */

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
        if (c->kernel)
            section_json(j, c, x);
        json_end_object(j);
    }
    json_end_array(j);
    json_end_object(j);
}

/* Writes, below the sections, why each took so long. */
static void write_sentences(const struct cli_spans *c, const struct spans_sections *path, struct text *out)
{
    struct cli_reasons all = {0};
    const struct spans_row *rows;
    spans_rows(c->set, &rows);
    for (size_t i = 0; i < path->n; i++) {
        struct text sentence = {.fd = -1};
        if (path->v[i].row >= 0 && cli_kernel_explain(c->kernel, path->v + i, &all, &sentence)) {
            text_puts(out, "\n  ");
            text_puts(out, spans_text(c->set, rows[path->v[i].row].name));
            text_puts(out, ", ");
            text_put(out, sentence.v, sentence.n);
        }
        text_fini(&sentence);
    }
    if (all.found)
        text_putc(out, '\n');
    note_unfound(&all, 1);
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
    if (c->kernel && c->format == CLI_TABLE)
        write_sentences(c, &path, out);
    cli_table_free(t);
    text_fini(&cell);
    free(path.v);
}

/* ---- set of traces ---- */

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

static void clocks_json(struct json *j, const struct cli_kernel *k)
{
    struct cli_clock c;
    json_key(j, "clocks");
    json_array(j);
    for (size_t i = 0; i < cli_kernel_hosts(k); i++) {
        if (!cli_kernel_clock(k, i, &c))
            continue;
        json_object(j);
        json_kv_string(j, "host", c.host);
        json_kv_u64(j, "marked", c.marked);
        json_kv_u64(j, "monotonic", c.monotonic);
        json_kv_i64(j, "least", c.least_ns);
        json_kv_i64(j, "most", c.most_ns);
        json_end_object(j);
    }
    json_end_array(j);
}

static void causes_json(const struct cli_spans *c, const struct spans_causes *x, struct cli_advice *a, struct text *out)
{
    struct json j = JSON_TO(out);
    struct spans_sections path = {0};
    const struct spans_unit *units;
    struct cli_reasons *why = c->kernel ? reasons_of(c, x) : NULL;
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
        if (why && !v->row)
            why_json(&j, why + i);
        json_end_object(&j);
    }
    json_end_array(&j);
    if (why)
        note_unfound(why, x->n);
    free(why);
    json_kv_u64(&j, "units_found", x->units);
    json_kv_i64(&j, "total", x->total);
    json_key(&j, "units");
    json_array(&j);
    for (size_t u = 0; u < n && u < limit; u++)
        sections_json(&j, c, (uint32_t)u, &path);
    json_end_array(&j);
    if (c->kernel)
        clocks_json(&j, c->kernel);
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
    if (c->kernel && c->format == CLI_TABLE)
        write_reasons(c, x, out);
    cli_advice_lines(&advice, c->set, c->format == CLI_TABLE ? out : &unused);
    text_fini(&unused);
    if (x->units && x->units < SPANS_FEW)
        cli_note("%zu unit%s, fewer than %d: the numbers stand, but nothing is suggested", x->units,
            x->units > 1 ? "s" : "", SPANS_FEW);
    spans_causes_free(x);
    return 0;
}

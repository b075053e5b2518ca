/* SPDX-License-Identifier: MIT */
/* weft spans table and stats. */
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/time.h"
#include "cli/spans.h"

/* ---- common parts of the commands ---- */

size_t cli_spans_limit(const struct cli_spans *c, size_t few, size_t many)
{
    return c->limit >= 0 ? (size_t)c->limit : c->format == CLI_TABLE ? few : many;
}

void cli_spans_ns(struct cli_table *t, int format, double ns)
{
    if (isnan(ns))
        cli_table_cell(t, "%s", "");
    else if (format == CLI_TABLE)
        cli_table_duration(t, format, llround(ns));
    else
        cli_table_cell(t, "%.17g", ns);
}

void cli_spans_trace_id(struct text *t, const struct spans *s, uint32_t trace)
{
    const struct spans_trace *traces;
    spans_traces(s, &traces);
    span_write_hex(t, traces[trace].id, SPAN_TRACE_BYTES);
}

void cli_spans_id(struct text *t, const struct spans *s, const struct spans_row *r)
{
    cli_spans_trace_id(t, s, r->trace);
    text_putc(t, ':');
    spans_write_id(t, r->id);
}

void cli_spans_json_trace(struct json *j, const char *key, const struct spans *s, uint32_t trace)
{
    struct text id = {.fd = -1};
    cli_spans_trace_id(&id, s, trace);
    json_key(j, key);
    json_string_n(j, id.v, id.n);
    text_fini(&id);
}

void cli_spans_json_span(struct json *j, const struct spans *s, const struct spans_row *r)
{
    struct text id = {.fd = -1};
    cli_spans_json_trace(j, "trace", s, r->trace);
    spans_write_id(&id, r->id);
    json_key(j, "span");
    json_string_n(j, id.v, id.n);
    text_fini(&id);
}

bool cli_spans_several(const struct spans *s)
{
    const struct spans_row *rows;
    size_t n = spans_rows(s, &rows);
    for (size_t i = 1; i < n; i++)
        if (rows[i].service != rows[0].service)
            return true;
    return false;
}

void cli_spans_stage(struct text *t, const struct spans *s, uint32_t service, uint32_t name)
{
    if (cli_spans_several(s)) {
        text_puts(t, spans_text(s, service));
        text_putc(t, ' ');
    }
    text_puts(t, spans_text(s, name));
}

/* ---- table: the six columns of GlideinWMS' tabulation ---- */

static const char *const headings[] = {
    "TraceID:SpanID", "Parent Span", "Entry", "Client", "Start Time (UTC)", "Duration(μs)"};
enum { HEADINGS = sizeof headings / sizeof *headings };

static void write_start(struct text *t, int64_t ns)
{
    time_t s = (time_t)(ns / NS_PER_S - (ns % NS_PER_S < 0));
    struct tm tm;
    char when[64] = "";
    if (gmtime_r(&s, &tm))
        strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", &tm);
    text_puts(t, when);
}

/* The i-th cell; "" is None. */
static void write_cell(
    struct text *t, const struct spans *s, const struct spans_row *r, uint32_t entry, uint32_t client, int i)
{
    switch (i) {
    case 0: cli_spans_id(t, s, r); break;
    case 1:
        if (r->parent_id)
            spans_write_id(t, r->parent_id);
        break;
    case 2: text_puts(t, spans_text(s, entry)); break;
    case 3: text_puts(t, spans_text(s, client)); break;
    case 4: write_start(t, r->recorded_ns); break;
    default: text_i64(t, (r->end_ns - r->shift_ns - r->recorded_ns) / 1000); break;
    }
}

/* Tabs between cells: what stands in a cell has none. */
static void write_tabbed(struct text *out, struct text *cell, bool last)
{
    for (size_t i = 0; i < cell->n; i++)
        if (cell->v[i] == '\t' || cell->v[i] == '\n' || cell->v[i] == '\r')
            cell->v[i] = ' ';
    if (!cell->n)
        TEXT_PUT(cell, "None");
    text_put(out, cell->v, cell->n);
    text_putc(out, last ? '\n' : '\t');
    cell->n = 0;
}

static void write_heading(struct text *out)
{
    for (int i = 0; i < HEADINGS; i++) {
        text_puts(out, headings[i]);
        text_putc(out, i + 1 < HEADINGS ? '\t' : '\n');
    }
}

int cli_spans_table(struct cli_spans *c, struct text *out, struct err *e)
{
    const struct spans_row *rows;
    const struct spans_trace *traces;
    size_t n = spans_rows(c->set, &rows), limit = cli_spans_limit(c, n, n), shown = n < limit ? n : limit;
    struct cli_column columns[HEADINGS];
    for (int i = 0; i < HEADINGS; i++)
        columns[i] = (struct cli_column){headings[i], false, i == 5};
    struct cli_table *table = cli_table_new(columns, HEADINGS);
    struct text cell = {.fd = -1};
    uint32_t entry = 0, client = 0;
    spans_traces(c->set, &traces);
    if (c->format == CLI_TABLE)
        write_heading(out);
    for (size_t r = 0; r < shown; r++) {
        if (!r || rows[r].trace != rows[r - 1].trace) {
            entry = spans_trace_value(c->set, traces + rows[r].trace, "entry");
            client = spans_trace_value(c->set, traces + rows[r].trace, "client");
        }
        for (int i = 0; i < HEADINGS; i++) {
            write_cell(&cell, c->set, rows + r, entry, client, i);
            c->format == CLI_TABLE ? write_tabbed(out, &cell, i + 1 == HEADINGS) : cli_table_text(table, &cell);
        }
    }
    if (c->format != CLI_TABLE)
        cli_table_write(table, c->format, out);
    cli_table_free(table);
    text_fini(&cell);
    if (shown < n)
        cli_note("%zu more spans; --limit %zu shows all", n - shown, n);
    return 0;
}

/* ---- stats ---- */

static void json_by(struct json *j, const struct cli_spans *c, const uint32_t *by)
{
    if (!c->by.n)
        return;
    json_key(j, "by");
    json_object(j);
    for (size_t i = 0; i < c->by.n; i++)
        json_kv_string(j, c->by.keys[i], by[i] ? spans_text(c->set, by[i]) : NULL);
    json_end_object(j);
}

static void json_stage(struct json *j, const struct cli_spans *c, const struct spans_stage *x)
{
    json_object(j);
    json_by(j, c, x->by);
    json_kv_string(j, "service", spans_text(c->set, x->service));
    json_kv_string(j, "stage", spans_text(c->set, x->name));
    json_kv_u64(j, "n", x->n);
    json_kv_u64(j, "errors", x->errors);
    json_kv_u64(j, "cut", x->cut);
    json_kv_double(j, "min", x->least);
    json_kv_double(j, "p50", x->p50);
    json_kv_double(j, "p90", x->p90);
    json_kv_double(j, "p99", x->p99);
    json_kv_double(j, "max", x->most);
    json_kv_double(j, "mean", x->mean);
    json_kv_i64(j, "total", x->total);
    json_kv_i64(j, "self", x->self);
    json_kv_double(j, "share", x->share);
    json_end_object(j);
}

static double waste_of(const struct spans_group *g)
{
    double waste = g->useful < 0 || !g->total ? NAN : 1 - (double)g->useful / (double)g->total;
    return waste < 0 ? 0 : waste;
}

static void json_unit(struct json *j, const struct cli_spans *c, const struct spans_unit *u)
{
    json_object(j);
    cli_spans_json_trace(j, "trace", c->set, u->trace);
    json_kv_string(j, "service", spans_text(c->set, u->service));
    json_kv_string(j, "name", spans_text(c->set, u->name));
    json_kv_bool(j, "synthetic", u->root < 0);
    json_kv_bool(j, "guessed", u->guessed);
    json_kv_i64(j, "begin", u->begin_ns);
    json_kv_i64(j, "end", u->end_ns);
    const struct spans_row *rows;
    spans_rows(c->set, &rows);
    json_key(j, "queue");
    u->after < 0 ? json_null(j) : json_i64(j, u->begin_ns - rows[u->after].end_ns);
    json_key(j, "spans");
    json_array(j);
    for (uint32_t i = 0; i < u->members; i++) {
        const struct spans_row *r = rows + spans_members(c->set, u)[i];
        json_object(j);
        cli_spans_json_span(j, c->set, r);
        json_kv_string(j, "stage", spans_text(c->set, r->name));
        json_kv_i64(j, "begin", r->begin_ns);
        json_kv_i64(j, "end", r->end_ns);
        json_kv_i64(j, "recorded_begin", r->recorded_ns);
        json_kv_i64(j, "shift", r->shift_ns);
        json_kv_bool(j, "cut", r->cut);
        json_end_object(j);
    }
    json_end_array(j);
    json_end_object(j);
}

static void stats_json(const struct cli_spans *c, const struct spans_stages *x, struct text *out)
{
    struct json j = JSON_TO(out);
    const struct spans_unit *units;
    const struct spans_told *told = spans_told(c->set);
    size_t n = spans_units(c->set, &units), limit = cli_spans_limit(c, 1000, 1000);
    json_object(&j);
    json_key(&j, "stages");
    json_array(&j);
    for (size_t i = 0; i < x->n; i++)
        json_stage(&j, c, x->v + i);
    json_end_array(&j);
    json_key(&j, "groups");
    json_array(&j);
    for (size_t i = 0; i < x->n_groups; i++) {
        const struct spans_group *g = x->groups + i;
        json_object(&j);
        json_by(&j, c, g->by);
        json_kv_u64(&j, "units", g->units);
        json_kv_i64(&j, "total", g->total);
        json_kv_u64(&j, "waited", g->waited);
        json_kv_i64(&j, "queue", g->queue);
        json_kv_double(&j, "waste", waste_of(g));
        json_end_object(&j);
    }
    json_end_array(&j);
    json_key(&j, "units");
    json_array(&j);
    for (size_t i = 0; i < n && i < limit; i++)
        json_unit(&j, c, units + i);
    json_end_array(&j);
    json_kv_u64(&j, "units_found", n);
    json_kv_u64(&j, "repaired", told->repaired);
    json_kv_u64(&j, "cut", told->cut);
    json_kv_u64(&j, "orphans", told->orphans);
    json_end_object(&j);
    text_putc(out, '\n');
}

/* Columns of what the figures are apart by. */
static size_t by_columns(const struct cli_spans *c, struct cli_column *columns)
{
    for (size_t i = 0; i < c->by.n; i++)
        columns[i] = (struct cli_column){c->by.keys[i], false, false};
    return c->by.n;
}

static void by_cells(struct cli_table *t, const struct cli_spans *c, const uint32_t *by)
{
    for (size_t i = 0; i < c->by.n; i++)
        cli_table_cell(t, "%s", by[i] ? spans_text(c->set, by[i]) : c->format == CLI_TABLE ? "-" : "");
}

static void share_cell(struct cli_table *t, int format, double share)
{
    if (isnan(share))
        cli_table_cell(t, "%s", "");
    else
        format == CLI_TABLE ? cli_table_cell(t, "%.1f %%", 100 * share) : cli_table_cell(t, "%.6f", share);
}

static void stats_rows(const struct cli_spans *c, const struct spans_stages *x, struct text *out)
{
    struct cli_column columns[SPANS_BY + 16];
    static const struct cli_column figures[] = {{"stage", false, false}, {"n", true, true}, {"errors", true, true},
        {"cut", true, true}, {"min", true, true}, {"p50", true, true}, {"p90", true, true}, {"p99", true, true},
        {"max", true, true}, {"total", true, true}, {"self", true, true}, {"share", true, true}};
    bool service = c->format != CLI_TABLE || cli_spans_several(c->set);
    size_t n = by_columns(c, columns), limit = cli_spans_limit(c, SIZE_MAX, SIZE_MAX);
    if (service)
        columns[n++] = (struct cli_column){"service", false, false};
    memcpy(columns + n, figures, sizeof figures);
    struct cli_table *t = cli_table_new(columns, n + sizeof figures / sizeof *figures);
    for (size_t i = 0; i < x->n && i < limit; i++) {
        const struct spans_stage *s = x->v + i;
        const double figure[] = {s->least, s->p50, s->p90, s->p99, s->most, (double)s->total, (double)s->self};
        by_cells(t, c, s->by);
        if (service)
            cli_table_cell(t, "%s", spans_text(c->set, s->service));
        cli_table_cell(t, "%s", spans_text(c->set, s->name));
        cli_table_number(t, (int64_t)s->n);
        cli_table_number(t, (int64_t)s->errors);
        cli_table_number(t, (int64_t)s->cut);
        for (size_t f = 0; f < sizeof figure / sizeof *figure; f++)
            cli_spans_ns(t, c->format, figure[f]);
        share_cell(t, c->format, s->share);
    }
    cli_table_write(t, c->format, out);
    cli_table_free(t);
}

/* Writes the groups of units, for people, below the stages. */
static void stats_groups(const struct cli_spans *c, const struct spans_stages *x, struct text *out)
{
    struct cli_column columns[SPANS_BY + 4];
    size_t n = by_columns(c, columns);
    columns[n++] = (struct cli_column){"units", true, true};
    columns[n++] = (struct cli_column){"total", true, true};
    columns[n++] = (struct cli_column){"in queue, mean", true, true};
    columns[n++] = (struct cli_column){"waste", true, true};
    struct cli_table *t = cli_table_new(columns, n);
    for (size_t i = 0; i < x->n_groups; i++) {
        const struct spans_group *g = x->groups + i;
        by_cells(t, c, g->by);
        cli_table_number(t, (int64_t)g->units);
        cli_spans_ns(t, c->format, (double)g->total);
        cli_spans_ns(t, c->format, g->waited ? (double)g->queue / (double)g->waited : NAN);
        share_cell(t, c->format, waste_of(g));
    }
    text_putc(out, '\n');
    cli_table_write(t, c->format, out);
    cli_table_free(t);
}

static void note_begins(const struct spans_told *t)
{
    if (t->repaired)
        cli_note("%zu begin%s cut to the second: repaired by the end of the stage before (--as-recorded leaves them)",
            t->repaired, t->repaired > 1 ? "s were" : " was");
    if (t->cut)
        cli_note("%zu begin%s cut to the second and nothing tells more: the durations of those (column cut) are up "
                 "to 1 s too long",
            t->cut, t->cut > 1 ? "s were" : " was");
}

int cli_spans_stats(struct cli_spans *c, struct text *out, struct err *e)
{
    struct spans_stages *x = spans_stages(c->set, &c->by, c->main);
    if (c->format == CLI_JSON)
        stats_json(c, x, out);
    else
        stats_rows(c, x, out);
    if (c->format == CLI_TABLE)
        stats_groups(c, x, out);
    note_begins(spans_told(c->set));
    spans_stages_free(x);
    return 0;
}

/* SPDX-License-Identifier: MIT */
/* Trace Notes: problems of traces and spans that did not stop the analysis. The verbs print the same on stderr. */
#include "views/spanset.h"

enum { HOST, WHAT, TIMES, ADVICE, PLACE };
static const struct tsp_column columns[] = {{HOST, "Host", "Machine that it concerns, or what was given", "STRING"},
    {WHAT, "Note", "What was found", "STRING"}, {TIMES, "Times", "How often it was found", "NUMBER"},
    {ADVICE, "What to do", "How to get rid of it", "STRING"}, {PLACE, "File", "Where it was found", "STRING"}};

static void span_cell(const struct spanset *o, const struct spans_note *n, size_t column, struct text *out)
{
    switch (columns[column].id) {
    case HOST: text_puts(out, o->shown_name); break;
    case WHAT: text_puts(out, n->what); break;
    case TIMES: text_u64(out, n->count); break;
    case ADVICE: text_puts(out, n->advice); break;
    default: text_puts(out, n->file ? n->file : "");
    }
}

static size_t trace_notes(const struct views *x, const struct index_note **notes)
{
    return x->x ? index_experiment_notes(x->x, notes) : 0;
}

/* Notes about spans follow those about traces. */
static void cell(void *arg, size_t row, size_t column, struct text *out)
{
    const struct views *x = arg;
    const struct index_note *n;
    const size_t before = trace_notes(x, &n);
    if (row >= before) {
        span_cell(x->spans, x->spans->notes.v + (row - before), column, out);
        return;
    }
    n += row;
    switch (columns[column].id) {
    case HOST: text_puts(out, n->host); break;
    case WHAT: text_puts(out, n->what); break;
    case TIMES: text_u64(out, n->count); break;
    case ADVICE: text_puts(out, index_note_advice(n->kind)); break;
    default: text_puts(out, n->file ? n->file : "");
    }
}

static void table(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_table *t)
{
    const struct index_note *ignored;
    t->rows = trace_notes(x, &ignored) + (x->spans ? x->spans->notes.n : 0);
    t->arg = x;
    t->cell = cell;
}

const struct view view_trace_notes = {
    .provider = {.id = "weft.notes",
        .name = "Trace Notes",
        .description = "What was found wrong with the traces and spans, and what to do about it",
        .type = "TABLE"},
    .has_data = view_has_rows,
    VIEW_COLUMNS(columns),
    .table = table,
};

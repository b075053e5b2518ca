/* SPDX-License-Identifier: MIT */
/* Trace Notes: problems of the traces that did not stop the analysis. The verbs print the same on stderr. */
#include "views/view.h"

enum { HOST, WHAT, TIMES, ADVICE, PLACE };
static const struct tsp_column columns[] = {{HOST, "Host", "Machine that it concerns, or what was given", "STRING"},
    {WHAT, "Note", "What was found", "STRING"}, {TIMES, "Times", "How often it was found", "NUMBER"},
    {ADVICE, "What to do", "How to get rid of it", "STRING"}, {PLACE, "File", "Where it was found", "STRING"}};

static void cell(void *arg, size_t row, size_t column, struct text *out)
{
    const struct index_note *n = (const struct index_note *)arg + row;
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
    const struct index_note *notes = NULL;
    t->rows = x->x ? experiment_notes(x->x, &notes) : 0;
    t->arg = (void *)(uintptr_t)notes;
    t->cell = cell;
}

const struct view view_trace_notes = {
    .provider = {.id = "weft.notes",
        .name = "Trace Notes",
        .description = "What was found wrong with the traces, and what to do about it",
        .type = "TABLE"},
    .has_data = view_has_rows,
    VIEW_COLUMNS(columns),
    .table = table,
};

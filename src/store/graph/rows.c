/* SPDX-License-Identifier: MIT */
/* Rows of an open graph: identities and earlier names. */
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "graph/layout.h"

size_t graph_rows(const struct graph *g)
{
    return g->n_rows;
}

/* Index of the name that a row had longest within [begin, end], or at the instant if they are equal, of n. *until is
 * the end of the first name, the next one is `stride` bytes behind; the last name has no end. */
static size_t longest_name(const int64_t *until, size_t stride, size_t n, int64_t begin, int64_t end)
{
#define END(k) (*(const int64_t *)((const char *)until + (k)*stride))
    size_t i = search_first(k, 0, n - 1, END(k) > begin), best = i;
    uint64_t longest = 0;
    for (int64_t from = begin; begin < end && from < end && i < n; i++) {
        int64_t to = i == n - 1 || END(i) > end ? end : END(i);
        if (to > from && (uint64_t)to - (uint64_t)from > longest) {
            longest = (uint64_t)to - (uint64_t)from;
            best = i;
        }
        from = to > from ? to : from;
    }
#undef END
    return best;
}

size_t graph_name_then(const struct graph_name *names, size_t n, int64_t begin, int64_t end)
{
    return longest_name(&names->until, sizeof *names, n, begin, end);
}

/* Returns a number in the table of formers; n_formers: the last name. */
size_t graph_former(const struct graph *g, int32_t row, int64_t begin, int64_t end)
{
    size_t n = g->n_formers;
    size_t first = search_first(k, 0, n, g->formers[k].row >= row);
    size_t n_own = search_first(k, first, n, g->formers[k].row > row) - first;
    if (!n_own)
        return n;
    size_t i = longest_name(&g->formers[first].until, sizeof *g->formers, n_own + 1, begin, end);
    return i < n_own ? first + i : n;
}

const struct graph_row graph_no_row = {.tid = -1,
    .tgid = -1,
    .ppid = -1,
    .parent_row = -1,
    .idle_cpu = -1,
    .vtid = -1,
    .name = "",
    .container = GRAPH_NO_CONTAINER};

void graph_row(const struct graph *g, int32_t row, struct graph_row *out)
{
    *out = row >= 0 && (size_t)row < g->n_rows ? graph_host_row_of(g, row)->row : graph_no_row;
}

void graph_row_then(const struct graph *g, int32_t row, int64_t begin, int64_t end, struct graph_row *out)
{
    graph_row(g, row, out);
    size_t i = graph_former(g, row, begin, end);
    if (i < g->n_formers) {
        out->name = g->formers[i].name;
        out->tid = g->formers[i].tid;
    }
}

bool graph_row_name(const struct graph *g, int32_t row, size_t i, struct graph_name *out)
{
    struct graph_row r;
    size_t former = graph_former(g, row, INT64_MIN, INT64_MIN), n = former;
    while (n < g->n_formers && g->formers[n].row == row)
        n++;
    if (row < 0 || (size_t)row >= g->n_rows || i > n - former)
        return false;
    graph_row(g, row, &r);
    const struct graph_former *f = i < n - former ? &g->formers[former + i] : NULL;
    *out = f ? (struct graph_name){f->until, f->tid, f->name} : (struct graph_name){INT64_MAX, r.tid, r.name};
    return true;
}

static bool is_meant(const char *thread, bool number, int32_t tid, const char *name)
{
    return number ? strtoll(thread, NULL, 10) == tid : !strcmp(thread, name);
}

bool graph_row_is(const struct graph *g, int32_t row, const char *thread)
{
    int32_t tid;
    const char *name;
    bool number = *thread && strspn(thread, "0123456789") == strlen(thread);
    if (row < 0 || (size_t)row >= g->n_rows)
        return false;
    graph_host_row_last(g, row, &tid, &name);
    if (is_meant(thread, number, tid, name))
        return true;
    for (size_t i = graph_former(g, row, INT64_MIN, INT64_MIN); i < g->n_formers && g->formers[i].row == row; i++)
        if (is_meant(thread, number, g->formers[i].tid, g->formers[i].name))
            return true;
    return false;
}

bool graph_row_time(const struct graph *g, int32_t row, const struct graph_choice *c, struct graph_time *out)
{
    graph_row(g, row, &out->row);
    out->begin = out->row.begin > c->begin ? out->row.begin : c->begin;
    out->end = out->row.end < c->end ? out->row.end : c->end;
    if (out->begin > out->end || (out->row.idle_cpu >= 0 && !c->idle) ||
        (c->thread && !graph_row_is(g, row, c->thread)) ||
        (c->container && !graph_container_is(g, out->row.container, c->container)))
        return false;
    out->container = out->row.container >= 0 ? g->containers.v[out->row.container].name : "";
    graph_row_totals(g, row, out->begin, out->end, out->totals);
    return true;
}

void graph_row_origin(const struct graph *g, int32_t row, struct graph_cause *out)
{
    struct graph_row r;
    graph_row(g, row, &r);
    *out = (struct graph_cause){.kind = GRAPH_CAUSE_NONE, .row = -1, .wake = GRAPH_NO_WAKE, .ts = r.begin};
    if (r.born && r.parent_row >= 0) {
        out->kind = GRAPH_CAUSE_FORK;
        out->row = r.parent_row;
    }
}

size_t graph_marks(const struct graph *g, const struct graph_mark **out)
{
    *out = g->marks;
    return g->n_marks;
}

size_t graph_losses(const struct graph *g, const struct graph_loss **out)
{
    *out = g->losses;
    return g->n_losses;
}

/* SPDX-License-Identifier: MIT */
#include "same.h"

#include "../base/test.h"
#include "graph/graph.h"

enum { MOST_WALKS = 300 };

static bool same_text(const char *a, const char *b)
{
    return a && b ? !strcmp(a, b) : a == b;
}

static bool same_row(struct path_row a, struct path_row b)
{
    return a.host == b.host && a.row == b.row;
}

static void same_path(const struct path *a, const struct path *b)
{
    assert_int_equal(a->begin, b->begin);
    assert_int_equal(a->end, b->end);
    assert_int_equal(a->n_segments, b->n_segments);
    for (size_t i = 0; i < a->n_segments; i++) {
        const struct path_segment *x = &a->segments[i], *y = &b->segments[i];
        if (!same_row(x->row, y->row) || x->begin != y->begin || x->end != y->end || x->state != y->state ||
            x->cpu != y->cpu || !same_text(x->detail, y->detail) || !same_row(x->sender, y->sender) ||
            x->assumed != y->assumed)
            fail_msg("segment %zu: row %d [%lld, %lld) %s %s, and row %d [%lld, %lld) %s %s", i, x->row.row,
                (long long)x->begin, (long long)x->end, graph_state_name(x->state), x->detail, y->row.row,
                (long long)y->begin, (long long)y->end, graph_state_name(y->state), y->detail);
    }
    assert_int_equal(a->n_links, b->n_links);
    for (size_t i = 0; i < a->n_links; i++)
        assert_true(same_row(a->links[i].from, b->links[i].from) && same_row(a->links[i].to, b->links[i].to) &&
            a->links[i].from_ts == b->links[i].from_ts && a->links[i].to_ts == b->links[i].to_ts &&
            a->links[i].kind == b->links[i].kind);
    assert_int_equal(a->n_totals, b->n_totals);
    for (size_t i = 0; i < a->n_totals; i++)
        assert_true(same_row(a->totals[i].row, b->totals[i].row) && a->totals[i].duration == b->totals[i].duration &&
            a->totals[i].state == b->totals[i].state && same_text(a->totals[i].detail, b->totals[i].detail));
    assert_int_equal(a->n_gaps, b->n_gaps);
    for (size_t i = 0; i < a->n_gaps; i++)
        assert_true(a->gaps[i].begin == b->gaps[i].begin && a->gaps[i].end == b->gaps[i].end &&
            a->gaps[i].reason == b->gaps[i].reason && same_text(a->gaps[i].peer, b->gaps[i].peer));
    assert_true(a->clamped == b->clamped && a->partial == b->partial);
}

static struct path *life_of(const struct path_source *s, struct path_row row)
{
    struct path *p;
    struct err e = {0};
    struct path_options o = {.begin = INT64_MIN, .end = INT64_MAX};
    if (path_walk(s, row, &o, &p, &e))
        fail_msg("%s", e.text);
    return p;
}

void same_paths(const struct path_local_host *one, const struct path_local_host *many, size_t n)
{
    struct path_local *x = path_local_new(one, n), *y = path_local_new(many, n);
    for (size_t host = 0; host < n; host++) {
        size_t rows = graph_rows(one[host].graph), step = rows / MOST_WALKS + 1;
        assert_int_equal(rows, graph_rows(many[host].graph));
        for (size_t row = 0; row < rows; row += step) {
            struct path_row at = {(int32_t)host, (int32_t)row};
            struct path *p = life_of(path_local_source(x), at), *q = life_of(path_local_source(y), at);
            same_path(p, q);
            path_free(p);
            path_free(q);
        }
    }
    path_local_free(x);
    path_local_free(y);
}

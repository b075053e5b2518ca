/* SPDX-License-Identifier: MIT */
#include "views/rows.h"

#include <stdlib.h>

int64_t view_add_row(struct view_rows *t, struct view_row row)
{
    vec_push(&t->v, row);
    return (int64_t)t->v.n - 1;
}

int64_t view_add_group(struct view_rows *t, int64_t parent, size_t host, const char *label)
{
    return view_add_row(t, (struct view_row){parent, host, label, .kind = VIEW_NO_STATES});
}

const struct view_rows *view_rows_of(struct views *x, const struct view *self)
{
    void **cache = &x->caches[view_number(self)];
    pthread_mutex_lock(&x->lock);
    if (!*cache) {
        struct view_rows *t = *cache = mem_zalloc(sizeof *t);
        for (size_t i = 0; i < x->n_hosts; i++)
            self->rows->add(self, x, i, t);
    }
    pthread_mutex_unlock(&x->lock);
    return *cache;
}

void view_rows_close(struct views *x, void *cache)
{
    struct view_rows *t = cache;
    vec_free(&t->v);
    arena_fini(&t->arena);
    free(t);
}

const struct view_row *view_row_of(const struct views *x, const struct view_rows *t, int64_t id)
{
    int64_t i = id - view_id(x, 0);
    return i >= 0 && i < (int64_t)t->v.n ? &t->v.v[i] : NULL;
}

/* ---- operations ---- */

static void write_entry(const struct view *self, const struct views *x, const struct view_rows *t, size_t i,
    struct arena *a, struct tsp_answer *answer)
{
    const struct view_row *row = &t->v.v[i];
    const struct view_host *h = &x->hosts[row->host];
    struct view_row_entry e = {.labels = {row->label, row->beside ? row->beside : "", "", ""}};
    int64_t begin, end;
    bool whole_time = self->rows->whole_time;
    state_span(h->states, &begin, &end);
    e.entry = (struct tsp_entry){.id = view_id(x, i),
        .parent = row->parent == VIEW_NO_PARENT ? -1 : view_id(x, (size_t)row->parent),
        .key = row->key || row->parent != VIEW_NO_PARENT ? row->key : h->index->key,
        .labels = e.labels,
        .n_labels = self->n_headers,
        .time_graph = true,
        .start = !i || whole_time ? x->data.begin : view_to_reference(h, begin), /* first entry: clients' time base */
        .end = whole_time ? x->data.end : view_to_reference(h, end),
        .has_data = row->kind != VIEW_NO_STATES,
        .host_id = h->id,
        .meta = e.meta};
    if (self->rows->describe)
        self->rows->describe(x, t, row, a, &e);
    tsp_write_entry(answer, &e.entry);
}

void view_rows_tree(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    const struct view_rows *t = view_rows_of(x, self);
    for (size_t i = 0; i < t->v.n && !tsp_full(answer) && (i % 1024 || !http_gone(q->http)); i++)
        if (x->hosts[t->v.v[i].host].states)
            write_entry(self, x, t, i, q->http->arena, answer);
}

void view_rows_states(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    const struct view_rows *t = view_rows_of(x, self);
    struct view_sampler s = view_begin_sampling(x, q, answer, self->rows->show);
    s.rows = t;
    s.sample = self->rows->sample;
    size_t n = q->has_items ? q->n_items : t->v.n;
    for (size_t i = 0; i < n; i++) {
        int64_t id = q->has_items ? q->items[i] : view_id(x, i);
        const struct view_row *row = view_row_of(x, t, id);
        if (row && row->kind != VIEW_NO_STATES && !view_sample_row(&s, id, row))
            break;
    }
    view_end_sampling(&s);
}

void view_rows_tooltip(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    int64_t entry, t;
    struct state_interval iv;
    const struct view_rows *rows = view_rows_of(x, self);
    const struct view_row *row = view_tooltip_target(q, &entry, &t) ? view_row_of(x, rows, entry) : NULL;
    const struct view_host *h = row ? &x->hosts[row->host] : NULL;
    tsp_begin_tooltip(answer);
    if (h && h->states) {
        int64_t at = view_sample_time(h, t);
        bool some = row->kind != VIEW_NO_STATES && state_at(h->states, row->kind, row->row, at, &iv);
        if (self->rows->tooltip(&(struct view_pointed){x, q, answer, rows, row, h, at, some ? &iv : NULL}))
            view_write_clock_error(answer, h, t);
    }
    tsp_end_tooltip(answer);
}

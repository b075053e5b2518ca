/* A critical path, arranged for queries by row and time. */
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "views/critical_view.h"

enum { ROWS_OF_INTERRUPTS = 0x10002 }; /* CPUs, the unknown one, and senders that are not known */

int64_t critical_host_entry(const struct views *x, size_t host)
{
    return view_id(x, host);
}

int64_t critical_entry(const struct views *x, size_t host, int32_t row)
{
    if (row >= 0)
        return x->hosts[host].first_thread + row;
    return view_id(x, x->n_hosts + host * ROWS_OF_INTERRUPTS + (size_t)(-1 - (int64_t)row) % ROWS_OF_INTERRUPTS);
}

/* ---- building ---- */

struct build {
    const struct views *x;
    const size_t *hosts; /* of the experiment, by host of the paths */
    struct critical_view *view;
    struct map index; /* path row -> number in rows */
    VEC(struct critical_row) rows;
};

static uint64_t key_of(struct path_row r)
{
    return (uint64_t)(uint32_t)r.host << 32 | (uint32_t)r.row;
}

static struct critical_row *row_of(struct build *b, struct path_row r)
{
    bool fresh;
    uint64_t *at = map_put(&b->index, key_of(r), &fresh);
    if (fresh) {
        struct critical_row row = {.row = r, .host = b->hosts[r.host], .seen = b->rows.n};
        row.entry = critical_entry(b->x, row.host, r.row);
        b->view->source->row_name(b->view->source->arg, r, b->view->path->end, b->view->path->end, &row.tid, &row.name);
        *at = b->rows.n;
        vec_push(&b->rows, row);
    }
    return &b->rows.v[*at];
}

static void add_segments(struct build *b)
{
    const struct path *p = b->view->path;
    size_t place = 0;
    for (size_t i = 0; i < p->n_segments; i++)
        row_of(b, p->segments[i].row)->n++;
    for (size_t i = 0; i < b->rows.n; i++) {
        b->rows.v[i].first = place;
        place += b->rows.v[i].n;
        b->rows.v[i].n = 0;
    }
    b->view->by_row = mem_alloc((p->n_segments + 1) * sizeof *b->view->by_row);
    for (size_t i = 0; i < p->n_segments; i++) {
        const struct path_segment *s = &p->segments[i];
        struct critical_row *r = row_of(b, s->row);
        b->view->by_row[r->first + r->n++] = (uint32_t)i;
        r->total += s->end - s->begin;
        r->totals[s->state] += s->end - s->begin;
    }
    for (size_t i = 0; i < p->n_links; i++) { /* the ends of arrows must be there */
        if (p->links[i].from.host >= 0)
            row_of(b, p->links[i].from);
        row_of(b, p->links[i].to);
    }
}

static int by_appearance(const void *pa, const void *pb, void *arg)
{
    const struct critical_row *a = pa, *b = pb;
    const size_t *first_seen = arg;
    if (a->host != b->host)
        return first_seen[a->host] < first_seen[b->host] ? -1 : 1;
    return a->seen < b->seen ? -1 : a->seen > b->seen;
}

static void sort_rows(struct build *b)
{
    size_t *first_seen = mem_alloc((b->x->n_hosts + 1) * sizeof *first_seen);
    for (size_t i = 0; i < b->x->n_hosts; i++)
        first_seen[i] = SIZE_MAX;
    for (size_t i = b->rows.n; i-- > 0;)
        first_seen[b->rows.v[i].host] = i;
    if (b->rows.n)
        qsort_r(b->rows.v, b->rows.n, sizeof *b->rows.v, by_appearance, first_seen);
    free(first_seen);
    for (size_t i = 0; i < b->rows.n; i++)
        *map_put(&b->view->by_entry, (uint64_t)b->rows.v[i].entry, NULL) = i;
}

struct critical_view *critical_view_new(
    const struct views *x, const size_t *hosts, const struct path_source *source, struct path *path)
{
    struct critical_view *v = mem_zalloc(sizeof *v);
    struct build b = {.x = x, .hosts = hosts, .view = v};
    v->path = path;
    v->source = source;
    v->hosts = hosts;
    add_segments(&b);
    sort_rows(&b);
    v->rows = b.rows.v;
    v->n_rows = b.rows.n;
    map_fini(&b.index);
    return v;
}

void critical_view_free(struct critical_view *v)
{
    if (!v)
        return;
    path_free(v->path);
    free(v->rows);
    free(v->by_row);
    map_fini(&v->by_entry);
    free(v);
}

/* ---- asking ---- */

const struct critical_row *critical_row_of(const struct critical_view *v, int64_t entry)
{
    const uint64_t *at = map_find(&v->by_entry, (uint64_t)entry);
    return at ? &v->rows[*at] : NULL;
}

const struct path_segment *critical_segment(const struct critical_view *v, const struct critical_row *r, size_t k)
{
    return &v->path->segments[v->by_row[r->first + k]];
}

const struct path_gap *critical_gap(const struct critical_view *v, int64_t begin, int64_t end)
{
    const struct path *p = v->path;
    size_t at = search_first(i, 0, p->n_gaps, p->gaps[i].end > begin);
    return at < p->n_gaps && p->gaps[at].begin < end ? &p->gaps[at] : NULL;
}

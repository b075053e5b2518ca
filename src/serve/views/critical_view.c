/* SPDX-License-Identifier: MIT */
/* Critical path, arranged for queries by row and time. */
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "base/text.h"
#include "show/show.h"
#include "views/critical_names.h"
#include "views/critical_view.h"

enum { ROWS_OF_INTERRUPTS = 0x10002 }; /* CPUs, the unknown CPU, and unknown senders */

/* ---- machines and rows, local and remote ---- */

static int64_t entry_here(const struct views *x, size_t host, int32_t row)
{
    if (row >= 0)
        return x->hosts[host].first_thread + row;
    return view_id(x, x->n_hosts + host * ROWS_OF_INTERRUPTS + (size_t)(-1 - (int64_t)row) % ROWS_OF_INTERRUPTS);
}

int64_t critical_first_keyed_entry(const struct views *x)
{
    return view_id(x, x->n_hosts * (ROWS_OF_INTERRUPTS + 1));
}

static struct critical_host host_here(const struct views *x, size_t host)
{
    const struct view_host *h = &x->hosts[host];
    return (struct critical_host){h->index->name, h->id, h->index->key, view_id(x, host), h};
}

static struct critical_host host_of_far(struct critical_paths *p, const struct views *x, const struct views_far_host *h)
{
    for (size_t i = 0; i < x->n_hosts; i++)
        if (x->hosts[i].index->key == h->key)
            return host_here(x, i);
    return (struct critical_host){h->name, h->name, h->key, critical_keyed_entry(p, h->key), NULL};
}

/* ---- building ---- */

struct build {
    const struct views *x;
    struct critical_paths *paths; /* NULL: all hosts are here */
    struct critical_view *view;
    VEC(struct critical_row) rows;
};

static uint64_t key_of(struct path_row r)
{
    return (uint64_t)(uint32_t)r.host << 32 | (uint32_t)r.row;
}

static int32_t container_of(const struct view_host *h, int32_t row)
{
    struct graph_row r;
    if (!h || row < 0)
        return GRAPH_NO_CONTAINER;
    graph_row(h->index->graph, row, &r);
    return r.container;
}

/* Sets entry and key of a row. Threads that are here have the same entries as in other views. */
static void name_row(const struct build *b, struct critical_row *r)
{
    const struct view_host *here = r->host->here;
    int32_t row = r->row.row;
    r->key = view_key("interrupts", row);
    r->container = GRAPH_NO_CONTAINER;
    if (row >= 0 && b->paths) {
        uint64_t id = b->view->far.row_id(&b->view->far, r->row);
        r->key = view_key("far", (int64_t)id);
        row = here ? index_row_find(here->index, id) : -1;
        if (row < 0) { /* thread of another machine, or newer than the data that is open here */
            r->entry = critical_keyed_entry(b->paths, map_mix(r->host->key) ^ r->key);
            return;
        }
    }
    r->container = container_of(here, row);
    r->entry = here ? entry_here(b->x, (size_t)(here - b->x->hosts), row)
                    : critical_keyed_entry(b->paths, map_mix(r->host->key) ^ r->key);
}

static struct critical_row *row_of(struct build *b, struct path_row r)
{
    bool fresh;
    uint64_t *at = map_put(&b->view->by_row_of_path, key_of(r), &fresh);
    if (fresh) {
        struct critical_row row = {.row = r, .host = &b->view->hosts[r.host], .seen = b->rows.n};
        name_row(b, &row);
        b->view->source->row_name(b->view->source->arg, r, b->view->path->end, b->view->path->end, &row.tid, &row.name);
        *at = b->rows.n + 1;
        vec_push(&b->rows, row);
    }
    return &b->rows.v[*at - 1];
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
    for (size_t i = 0; i < p->n_links; i++) { /* arrows need entries at both ends */
        if (p->links[i].from.host >= 0)
            row_of(b, p->links[i].from);
        row_of(b, p->links[i].to);
    }
}

static int by_appearance(const void *pa, const void *pb, void *arg)
{
    const struct critical_row *a = pa, *b = pb;
    const size_t *first_seen = arg;
    if (a->row.host != b->row.host)
        return first_seen[a->row.host] < first_seen[b->row.host] ? -1 : 1;
    return a->seen < b->seen ? -1 : a->seen > b->seen;
}

static void sort_rows(struct build *b)
{
    struct critical_view *v = b->view;
    size_t *first_seen = mem_alloc((v->n_hosts + 1) * sizeof *first_seen);
    for (size_t i = 0; i < v->n_hosts; i++)
        first_seen[i] = SIZE_MAX;
    for (size_t i = b->rows.n; i-- > 0;)
        first_seen[b->rows.v[i].row.host] = i;
    if (b->rows.n)
        qsort_r(b->rows.v, b->rows.n, sizeof *b->rows.v, by_appearance, first_seen);
    free(first_seen);
    for (size_t i = 0; i < b->rows.n; i++) {
        *map_put(&v->by_entry, (uint64_t)b->rows.v[i].entry, NULL) = i;
        *map_put(&v->by_row_of_path, key_of(b->rows.v[i].row), NULL) = i + 1;
    }
}

static char *sentence_of(const struct critical_view *v)
{
    struct text t = {.fd = -1};
    show_sentence(v->path, v->source, &t);
    char *sentence = mem_strdup(text_cstr(&t));
    text_fini(&t);
    return sentence;
}

static struct critical_view *make(struct build *b)
{
    add_segments(b);
    sort_rows(b);
    b->view->refs = 1;
    b->view->rows = b->rows.v;
    b->view->n_rows = b->rows.n;
    b->view->sentence = sentence_of(b->view);
    return b->view;
}

struct critical_view *critical_view_new(
    const struct views *x, const size_t *hosts, size_t n_hosts, const struct path_source *source, struct path *path)
{
    struct critical_view *v = mem_zalloc(sizeof *v);
    v->path = path;
    v->source = source;
    v->hosts = mem_alloc((n_hosts + 1) * sizeof *v->hosts);
    v->n_hosts = n_hosts;
    for (size_t i = 0; i < n_hosts; i++)
        v->hosts[i] = host_here(x, hosts[i]);
    return make(&(struct build){.x = x, .view = v});
}

static struct critical_view *view_of(
    struct critical_paths *p, const struct views *x, const struct views_far_path *far, const struct path_source *source)
{
    struct critical_view *v = mem_zalloc(sizeof *v);
    v->path = far->path;
    v->source = source;
    v->far = *far;
    v->hosts = mem_alloc((far->n_hosts + 1) * sizeof *v->hosts);
    v->n_hosts = far->n_hosts;
    for (size_t i = 0; i < far->n_hosts; i++) {
        struct views_far_host h = {source->host_name(source->arg, (int32_t)i), far->hosts[i].key};
        v->hosts[i] = host_of_far(p, x, &h);
    }
    return make(&(struct build){.x = x, .paths = p, .view = v});
}

struct critical_view *critical_view_of_far(struct critical_paths *p, const struct views *x, struct views_far_path *far)
{
    return view_of(p, x, far, far->source);
}

struct critical_view *critical_view_so_far(struct critical_paths *p, const struct views *x, struct views_far_path *far)
{
    struct critical_names *names = critical_names_new(far);
    struct critical_view *v = view_of(p, x, far, critical_names_source(names));
    v->names = names;
    v->far = (struct views_far_path){0};
    return v;
}

void critical_view_free(const struct views *x, struct critical_view *v)
{
    if (!v)
        return;
    if (v->far.handle)
        x->far->release(x->far->arg, &v->far);
    else
        path_free((struct path *)(uintptr_t)v->path);
    critical_names_free(v->names);
    free(v->hosts);
    free(v->rows);
    free(v->by_row);
    free(v->sentence);
    map_fini(&v->by_entry);
    map_fini(&v->by_row_of_path);
    free(v);
}

/* ---- queries ---- */

const struct critical_row *critical_row_of(const struct critical_view *v, int64_t entry)
{
    const uint64_t *at = map_find(&v->by_entry, (uint64_t)entry);
    return at ? &v->rows[*at] : NULL;
}

int64_t critical_entry(const struct critical_view *v, struct path_row row)
{
    const uint64_t *at = row.host < 0 ? NULL : map_find(&v->by_row_of_path, key_of(row));
    return at ? v->rows[*at - 1].entry : -1;
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

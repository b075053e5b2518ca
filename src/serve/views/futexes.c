/* SPDX-License-Identifier: MIT */
/* Uaddr vs Waiter: threads that wait for futexes, and their wakers. Rows: hosts; futexes with waits, by threads' total
 * time; below each the threads that use it. */
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "base/text.h"
#include "views/futex_calls.h"
#include "views/list.h"

enum { NONE = -1 };

static size_t users_of(const struct view_host *h)
{
    return h->states ? state_rows(h->states, STATE_FUTEX_USER) : 0;
}

static bool has_data(const struct view *self, const struct view_host *h)
{
    struct state_row r;
    for (size_t k = 0; k < users_of(h); k++) {
        state_row(h->states, STATE_FUTEX_USER, k, &r);
        if (r.waits)
            return true;
    }
    return false;
}

/* ---- rows: hosts, futexes, threads ---- */

/* Data of the view by host (view_rows.own), for arrows. */
struct users {
    int64_t *rows_of;      /* row number by FUTEX_USER row, or NONE */
    int64_t *by_thread;    /* FUTEX_USER rows in order of their threads */
    struct figures *waits; /* waits of all threads by futex; `row` of a futex's row is an index */
};

/* FUTEX_USER row while rows are sorted, with the figures of its futex. */
struct use {
    struct state_row row;
    struct figures waits;
};

static int by_futex(const void *pa, const void *pb)
{
    const struct use *a = pa, *b = pb;
    int names = strcmp(a->row.name, b->row.name);
    return names ? names : a->row.number < b->row.number ? -1 : a->row.number > b->row.number;
}

/* Order of rows: by time waited; waiting threads come before those that only wake. */
static int by_time_waited(const void *pa, const void *pb)
{
    const struct use *a = pa, *b = pb;
    if (a->waits.sum != b->waits.sum)
        return a->waits.sum > b->waits.sum ? -1 : 1;
    int names = strcmp(a->row.name, b->row.name);
    if (names || a->row.waits == b->row.waits)
        return names ? names : by_futex(a, b);
    return a->row.waits ? -1 : 1;
}

/* uses: sorted by futex. */
static void add_figures(const struct state_store *s, struct use *uses, size_t n)
{
    size_t names = state_latency_names(s, STATE_LATENCY_LOCK);
    struct figures *figures = mem_zalloc((names + 1) * sizeof *figures);
    state_latency_figures(s, STATE_LATENCY_LOCK, 0, state_latencies(s, STATE_LATENCY_LOCK), figures);
    for (size_t k = 0; k < names; k++) {
        struct use of = {.row = {.name = state_latency_name(s, STATE_LATENCY_LOCK, k), .number = NONE}};
        size_t first = search_first(i, 0, n, by_futex(&uses[i], &of) >= 0);
        for (size_t i = first; i < n && !strcmp(uses[i].row.name, of.row.name); i++)
            uses[i].waits = figures[k];
    }
    free(figures);
}

static int by_thread(const void *pa, const void *pb, void *states)
{
    struct state_row a, b;
    state_row(states, STATE_FUTEX_USER, (size_t) * (const int64_t *)pa, &a);
    state_row(states, STATE_FUTEX_USER, (size_t) * (const int64_t *)pb, &b);
    return a.thread != b.thread ? (a.thread < b.thread ? -1 : 1) : (a.number > b.number) - (a.number < b.number);
}

static void add_user(
    struct view_rows *rows, const struct state_row *r, size_t host, const struct view_host *h, int64_t futex)
{
    struct graph_row thread = {.tid = -1};
    if (r->thread >= 0 && r->thread < h->threads)
        graph_row(h->index->graph, r->thread, &thread);
    const char *name = thread.tid < 0 || !*thread.name ? "?" : thread.name,
               *tid = thread.tid < 0 ? NULL : arena_printf(&rows->arena, "%d", thread.tid);
    view_add_row(rows,
        (struct view_row){
            futex, host, name, STATE_FUTEX_USER, (size_t)r->number, thread.tid, tid, view_key_thread(h, r->thread)});
}

static void add(const struct view *self, const struct views *x, size_t host, struct view_rows *rows)
{
    const struct view_host *h = &x->hosts[host];
    size_t n = users_of(h);
    if (!rows->own)
        rows->own = arena_new(&rows->arena, struct users, x->n_hosts);
    if (!n)
        return;
    struct users *of = &((struct users *)rows->own)[host];
    struct use *uses = mem_zalloc((n + 1) * sizeof *uses);
    of->rows_of = arena_new(&rows->arena, int64_t, n);
    of->by_thread = arena_new(&rows->arena, int64_t, n);
    of->waits = arena_new(&rows->arena, struct figures, n);
    for (size_t i = 0; i < n; i++) {
        state_row(h->states, STATE_FUTEX_USER, i, &uses[i].row);
        of->rows_of[i] = NONE;
        of->by_thread[i] = (int64_t)i;
    }
    qsort(uses, n, sizeof *uses, by_futex);
    add_figures(h->states, uses, n);
    qsort(uses, n, sizeof *uses, by_time_waited);
    qsort_r(of->by_thread, n, sizeof *of->by_thread, by_thread, (void *)(uintptr_t)h->states);
    int64_t root = NONE, futex = NONE;
    for (size_t i = 0; i < n; i++) {
        const struct use *u = &uses[i];
        if (!i || strcmp(u->row.name, u[-1].row.name)) {
            if (root == NONE && u->row.waits)
                root = view_add_group(rows, VIEW_NO_PARENT, host, h->index->name);
            of->waits[i] = u->waits;
            futex = u->row.waits
                ? view_add_row(rows, (struct view_row){root, host, u->row.name, VIEW_NO_STATES, i, -1, NULL})
                : NONE;
        }
        if (futex == NONE)
            continue;
        of->rows_of[u->row.number] = (int64_t)rows->v.n;
        add_user(rows, &u->row, host, h, futex);
    }
    free(uses);
}
static const char *futex_name(const struct view_host *h, const struct view_row *row)
{
    struct state_row r;
    if (row->kind == VIEW_NO_STATES)
        return row->label;
    state_row(h->states, STATE_FUTEX_USER, row->row, &r);
    return r.name;
}

static void describe(const struct views *x, const struct view_rows *rows, const struct view_row *row, struct arena *a,
    struct view_row_entry *e)
{
    const struct users *of = &((const struct users *)rows->own)[row->host];
    if (row->parent == VIEW_NO_PARENT)
        return;
    e->meta[0] = (struct tsp_meta){.key = "futex", .text = futex_name(&x->hosts[row->host], row)};
    e->entry.n_meta = 1;
    if (row->kind == VIEW_NO_STATES) {
        e->labels[2] = arena_printf(a, "%llu", (unsigned long long)of->waits[row->row].n);
        e->labels[3] = arena_duration(a, of->waits[row->row].sum);
        e->meta[1] = (struct tsp_meta){.key = "count", .number = (int64_t)of->waits[row->row].n};
        e->meta[2] = (struct tsp_meta){.key = "total", .number = of->waits[row->row].sum};
        e->entry.n_meta = 3;
    } else if (row->number >= 0) {
        e->entry.has_tid = true;
        e->entry.tid = (int32_t)row->number;
    }
}

static void show(
    const struct view_sampler *s, const struct view_row *row, const struct state_interval *iv, struct view_shown *out)
{
    futex_show(s, &s->x->hosts[row->host], row->row, iv, out);
}

static bool tooltip(const struct view_pointed *p)
{
    tsp_write_tip(p->answer, "Host", p->host->index->name);
    if (p->row->kind != VIEW_NO_STATES)
        futex_write_call(p->answer, p->host, p->row->row, p->t);
    return true;
}

/* ---- arrows: from waker to waiter ---- */

/* Limits of arrows: a range with few waits shows all, others the waits at so many sample times. */
enum { MOST_WAITS = 20000, MOST_SAMPLES = 1 << 17, LEAST_SAMPLES = 16 };

struct waking {
    const struct views *x;
    const struct view_rows *rows;
    const struct tsp_query *q;
    struct tsp_answer *answer;
    const struct view_host *h;
    const struct users *of;
    int64_t begin, end; /* host's clock */
};

/* Returns whether the row's thread is in a wake call at t, or left it at t. */
static bool wakes_at(const struct state_store *s, size_t user, int64_t t)
{
    struct state_interval iv;
    if (state_at(s, STATE_FUTEX_USER, user, t, &iv) && iv.value == STATE_FUTEX_WAKE)
        return true;
    return t > INT64_MIN && state_at(s, STATE_FUTEX_USER, user, t - 1, &iv) && iv.value == STATE_FUTEX_WAKE &&
        iv.end == t;
}

static struct state_row user_of(const struct waking *w, size_t by_thread)
{
    struct state_row r;
    state_row(w->h->states, STATE_FUTEX_USER, (size_t)w->of->by_thread[by_thread], &r);
    return r;
}

/* Row of the thread's wake call, or NONE: not shown. Starts with the thread's row of that futex, since waits seldom
 * move to another futex. */
static int64_t waker_row(const struct waking *w, const struct futex_wake *wake, const char *futex)
{
    size_t n = users_of(w->h), first = search_first(i, 0, n, user_of(w, i).thread >= wake->thread);
    for (int others = 0; others < 2; others++)
        for (size_t i = first; i < n; i++) {
            size_t user = (size_t)w->of->by_thread[i];
            struct state_row r = user_of(w, i);
            if (r.thread != wake->thread)
                break;
            if (w->of->rows_of[user] != NONE && (strcmp(r.name, futex) != 0) == others &&
                wakes_at(w->h->states, user, wake->at))
                return w->of->rows_of[user];
        }
    return NONE;
}

static void write_wake(const struct waking *w, size_t row, const struct state_interval *iv)
{
    struct futex_wake wake;
    if (!futex_woken_by(w->h, iv, &wake) || wake.at > w->end || iv->end < w->begin)
        return;
    int64_t from = waker_row(w, &wake, futex_name(w->h, &w->rows->v.v[row]));
    int64_t begin = view_to_reference(w->h, wake.at), end = view_to_reference(w->h, iv->end);
    if (from != NONE && begin <= w->q->end && end >= w->q->begin)
        tsp_write_arrow(w->answer, begin, end, view_id(w->x, (size_t)from), view_id(w->x, row), "Futex hand-over");
}

static void write_all(const struct waking *w, size_t row)
{
    enum { BATCH = 256 };
    struct state_interval batch[BATCH];
    int64_t at = w->begin;
    for (size_t n = BATCH; n == BATCH && view_goes_on(w->q, w->answer); at = batch[n - 1].end) {
        n = state_range(w->h->states, STATE_FUTEX_USER, w->rows->v.v[row].row, at, w->end, batch, BATCH);
        for (size_t i = 0; i < n; i++)
            write_wake(w, row, &batch[i]);
        if (!n || batch[n - 1].end <= at)
            break;
    }
}

static double share_of(const struct waking *w)
{
    int64_t first, last;
    state_span(w->h->states, &first, &last);
    return last > first ? (double)((uint64_t)w->end - (uint64_t)w->begin) / (double)((uint64_t)last - (uint64_t)first)
                        : 1;
}

static void write_host_arrows(struct waking *w, size_t host)
{
    double stored = 0;
    size_t rows = 0;
    for (size_t i = 0; i < users_of(w->h); i++) {
        struct state_row r;
        state_row(w->h->states, STATE_FUTEX_USER, i, &r);
        stored += (double)r.intervals;
        rows += r.waits;
    }
    bool all = stored * share_of(w) <= MOST_WAITS;
    size_t n = all ? 0 : MOST_SAMPLES / (rows + 1), most = w->q->n_times > 2000 ? w->q->n_times : 2000;
    n = n < LEAST_SAMPLES ? LEAST_SAMPLES : n > most ? most : n;
    int64_t *times = arena_new(w->q->http->arena, int64_t, n);
    struct state_interval *room = arena_new(w->q->http->arena, struct state_interval, n);
    for (size_t i = 0; i < n; i++)
        times[i] = (int64_t)((uint64_t)w->begin + ((uint64_t)w->end - (uint64_t)w->begin) / (n - 1) * i);
    for (size_t i = 0; i < w->rows->v.n && view_goes_on(w->q, w->answer); i++) {
        const struct view_row *row = &w->rows->v.v[i];
        if (row->host != host || row->kind == VIEW_NO_STATES)
            continue;
        if (all) {
            write_all(w, i);
            continue;
        }
        size_t found = state_sample(w->h->states, STATE_FUTEX_USER, row->row, times, n, room);
        for (size_t k = 0; k < found; k++)
            write_wake(w, i, &room[k]);
    }
}

static void arrows(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    const struct view_rows *rows = view_rows_of(x, self);
    tsp_begin_arrows(answer);
    for (size_t i = 0; i < x->n_hosts; i++) {
        const struct view_host *h = &x->hosts[i];
        struct waking w = {.x = x, .rows = rows, .q = q, .answer = answer, .h = h};
        if (!users_of(h) || !h->index->graph)
            continue;
        w.of = &((const struct users *)rows->own)[i];
        if (view_range_on(h, q->begin, q->end, &w.begin, &w.end))
            write_host_arrows(&w, i);
    }
    tsp_end_arrows(answer);
}

static void style(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    tsp_begin_styles(answer);
    futex_write_styles(answer);
    tsp_write_style(answer, "Futex hand-over", NULL, LOOK_RUNNING, 0.1, -1, "Futex hand-over");
    tsp_end_styles(answer);
}

static const struct view_row_graph graph = {.add = add, .describe = describe, .show = show, .tooltip = tooltip};

const struct view view_futexes = {
    .provider = {.id = "lttng2.kernel.core.futex.uaddrvswaiter",
        .name = "Futex Contention Analysis: Uaddr vs Waiter",
        .description = "Which threads wait for which futex, and who wakes them",
        .type = "TIME_GRAPH"},
    .host_has_data = has_data,
    VIEW_HEADERS({"Futex", "Process and address; below it the threads that wait for it or wake others", "STRING"},
        {"TID", "Number of the thread", "STRING", "tid", TSP_FIRST},
        {"Waits", "How many were seen from their begin to their end", "NUMBER", "count", TSP_SUM},
        {"Waited", "How long in all", "DURATION", "total", TSP_SUM}),
    VIEW_ROWS(graph),
    .arrows = arrows,
    .style = style,
};

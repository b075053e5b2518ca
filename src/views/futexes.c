/* Uaddr vs Waiter: which thread waits for which futex, and who wakes it. Rows: hosts; the futexes that somebody waits
 * for, those first that took most of the threads' time; the threads that use them. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "views/futex_calls.h"
#include "views/list.h"

enum { NONE = -1 };

/* ---- entries ---- */

/* user NONE: a host or a futex. parent: index of the entry, NONE. */
struct row {
    int64_t parent, user;
    size_t host;
    const char *futex;
    struct figures waits; /* of all threads */
};
struct of_host {
    int64_t *entry_of;  /* by FUTEX_USER row: index of its entry, NONE */
    int64_t *by_thread; /* FUTEX_USER rows in order of their threads */
};
/* The entry with index i has the id first + i. */
struct rows {
    VEC(struct row) v;
    int64_t first;
    struct of_host *hosts;
};

static size_t users_of(const struct view_host *h)
{
    return h->states ? state_rows(h->states, STATE_FUTEX_USER) : 0;
}

static bool has_data(const struct view *self, struct views *x)
{
    struct state_row r;
    for (size_t i = 0; i < x->n_hosts; i++)
        for (size_t k = 0; k < users_of(&x->hosts[i]); k++) {
            state_row(x->hosts[i].states, STATE_FUTEX_USER, k, &r);
            if (r.waits)
                return true;
        }
    return false;
}

/* A FUTEX_USER row on its way to its place, with the figures of its futex. */
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

/* Who waits comes before who only wakes. */
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

/* uses: by futex. */
static void add_figures(const struct state_store *s, struct use *uses, size_t n)
{
    size_t names = state_latency_names(s, STATE_LATENCY_LOCK);
    struct figures *figures = mem_zalloc((names + 1) * sizeof *figures);
    state_latency_figures(s, STATE_LATENCY_LOCK, 0, state_latencies(s, STATE_LATENCY_LOCK), figures);
    for (size_t k = 0; k < names; k++) {
        struct use of = {.row = {.name = state_latency_name(s, STATE_LATENCY_LOCK, k), .number = NONE}};
        size_t lo = 0, hi = n;
        while (lo < hi) {
            size_t mid = lo + (hi - lo) / 2;
            if (by_futex(&uses[mid], &of) < 0)
                lo = mid + 1;
            else
                hi = mid;
        }
        for (; lo < n && !strcmp(uses[lo].row.name, of.row.name); lo++)
            uses[lo].waits = figures[k];
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

static int64_t add(struct rows *t, struct row row)
{
    vec_push(&t->v, row);
    return (int64_t)t->v.n - 1;
}

static void add_host(struct rows *t, const struct views *x, size_t host)
{
    const struct state_store *s = x->hosts[host].states;
    struct of_host *of = &t->hosts[host];
    size_t n = users_of(&x->hosts[host]);
    struct use *uses = mem_zalloc((n + 1) * sizeof *uses);
    of->entry_of = mem_alloc((n + 1) * sizeof *of->entry_of);
    of->by_thread = mem_alloc((n + 1) * sizeof *of->by_thread);
    for (size_t i = 0; i < n; i++) {
        state_row(s, STATE_FUTEX_USER, i, &uses[i].row);
        of->entry_of[i] = NONE;
        of->by_thread[i] = (int64_t)i;
    }
    qsort(uses, n, sizeof *uses, by_futex);
    add_figures(s, uses, n);
    qsort(uses, n, sizeof *uses, by_time_waited);
    qsort_r(of->by_thread, n, sizeof *of->by_thread, by_thread, (void *)s);
    int64_t root = NONE, futex = NONE;
    for (size_t i = 0; i < n; i++) {
        const struct use *u = &uses[i];
        if (!i || strcmp(u->row.name, u[-1].row.name)) {
            if (root == NONE && u->row.waits)
                root = add(t, (struct row){NONE, NONE, host, NULL, {0}});
            futex = u->row.waits ? add(t, (struct row){root, NONE, host, u->row.name, u->waits}) : NONE;
        }
        if (futex != NONE)
            of->entry_of[u->row.number] = add(t, (struct row){futex, u->row.number, host, u->row.name, {0}});
    }
    free(uses);
}

static void *find_rows(struct views *x)
{
    struct rows *t = mem_zalloc(sizeof *t);
    t->first = x->last_thread + 1;
    t->hosts = mem_zalloc((x->n_hosts + 1) * sizeof *t->hosts);
    for (size_t i = 0; i < x->n_hosts; i++)
        if (users_of(&x->hosts[i]))
            add_host(t, x, i);
    return t;
}

static void close_rows(struct views *x, void *cache)
{
    struct rows *t = cache;
    for (size_t i = 0; i < x->n_hosts; i++) {
        free(t->hosts[i].entry_of);
        free(t->hosts[i].by_thread);
    }
    free(t->hosts);
    vec_free(&t->v);
    free(t);
}

static const struct rows *rows_of(struct views *x)
{
    return view_cache(x, &view_futexes, find_rows);
}

static const struct row *row_of(const struct rows *t, int64_t id)
{
    return id >= t->first && id - t->first < (int64_t)t->v.n ? &t->v.v[id - t->first] : NULL;
}

/* ---- tree ---- */

static const char *duration(struct arena *a, int64_t ns)
{
    struct text t = {.fd = -1};
    text_duration(&t, ns);
    const char *kept = arena_strdup(a, text_cstr(&t));
    text_fini(&t);
    return kept;
}

static void write_row(const struct views *x, const struct rows *t, size_t i, struct arena *a, struct tsp_answer *answer)
{
    const struct row *r = &t->v.v[i];
    const struct view_host *h = &x->hosts[r->host];
    const char *labels[4] = {r->futex ? r->futex : h->index->name, "", "", ""};
    struct tsp_meta meta = {"futex", r->futex, 0};
    struct graph_row thread = {.tid = -1};
    int64_t begin, end;
    state_span(h->states, &begin, &end);
    if (r->user >= 0) {
        struct state_row of;
        state_row(h->states, STATE_FUTEX_USER, (size_t)r->user, &of);
        if (of.thread >= 0 && of.thread < h->threads)
            graph_row(h->index->graph, of.thread, &thread);
        labels[0] = thread.tid < 0 || !*thread.name ? "?" : thread.name;
        labels[1] = thread.tid < 0 ? "" : arena_printf(a, "%d", thread.tid);
    } else if (r->futex) {
        labels[2] = arena_printf(a, "%llu", (unsigned long long)r->waits.n);
        labels[3] = duration(a, r->waits.sum);
    }
    tsp_write_entry(answer,
        &(struct tsp_entry){.id = t->first + (int64_t)i,
            .parent = r->parent == NONE ? -1 : t->first + r->parent,
            .labels = labels,
            .n_labels = 4,
            .time_graph = true,
            .start = i ? view_to_reference(h, begin) : x->data.begin, /* what clients count from */
            .end = view_to_reference(h, end),
            .has_data = r->user >= 0,
            .host_id = h->id,
            .has_tid = thread.tid >= 0,
            .tid = thread.tid,
            .meta = &meta,
            .n_meta = r->futex != NULL});
}

static void tree(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    static const struct tsp_header headers[] = {
        {"Futex", "Process and address; below it the threads that wait for it or wake others", "STRING"},
        {"TID", "Number of the thread", "STRING"},
        {"Waits", "How many were seen from their begin to their end", "STRING"},
        {"Waited", "How long in all", "STRING"}};
    const struct rows *t = rows_of(x);
    tsp_begin_tree(answer, headers, 4, -1);
    for (size_t i = 0; i < t->v.n && !tsp_full(answer); i++)
        write_row(x, t, i, q->http->arena, answer);
    tsp_end_tree(answer);
}

/* ---- states ---- */

static void show(struct views *x, const struct view_state_row *row, const struct state_interval *iv,
    bool with_properties, struct view_shown *out)
{
    futex_show(&x->hosts[row->host], row->row, iv, with_properties, out);
}

static void states(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    const struct rows *t = rows_of(x);
    struct view_sampler s = view_begin_sampling(x, q, answer, show);
    size_t n = q->has_items ? q->n_items : t->v.n;
    for (size_t i = 0; i < n; i++) {
        int64_t id = q->has_items ? q->items[i] : t->first + (int64_t)i;
        const struct row *r = row_of(t, id);
        if (r && r->user >= 0 &&
            !view_sample_row(&s, &(struct view_state_row){id, r->host, STATE_FUTEX_USER, (size_t)r->user}))
            break;
    }
    view_end_sampling(&s);
}

/* ---- arrows: from who wakes to who waited ---- */

/* Of a range all waits are looked at when there are few, else those at so many times. */
enum { MOST_WAITS = 20000, MOST_SAMPLES = 1 << 17, LEAST_SAMPLES = 16 };

struct waking {
    const struct rows *t;
    const struct tsp_query *q;
    struct tsp_answer *answer;
    const struct view_host *h;
    const struct of_host *of;
    int64_t begin, end; /* on the host's clock */
};

/* Is the thread of the row in a wake call at t, or was it up to then? */
static bool wakes_at(const struct state_store *s, size_t user, int64_t t)
{
    struct state_interval iv;
    if (state_at(s, STATE_FUTEX_USER, user, t, &iv) && iv.value == STATE_FUTEX_WAKE)
        return true;
    return t > INT64_MIN && state_at(s, STATE_FUTEX_USER, user, t - 1, &iv) && iv.value == STATE_FUTEX_WAKE &&
        iv.end == t;
}

/* The first of a thread's rows in by_thread. */
static size_t first_of_thread(const struct waking *w, int32_t thread)
{
    size_t lo = 0, hi = users_of(w->h);
    struct state_row r;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        state_row(w->h->states, STATE_FUTEX_USER, (size_t)w->of->by_thread[mid], &r);
        if (r.thread < thread)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* The entry of the wake call that the thread is in. First its row of that futex is looked at: a wait is seldom moved to
 * another one. NONE: none is shown. */
static int64_t waker_entry(const struct waking *w, const struct futex_wake *wake, const char *futex)
{
    size_t n = users_of(w->h), first = first_of_thread(w, wake->thread);
    struct state_row r;
    for (int others = 0; others < 2; others++)
        for (size_t i = first; i < n; i++) {
            size_t user = (size_t)w->of->by_thread[i];
            state_row(w->h->states, STATE_FUTEX_USER, user, &r);
            if (r.thread != wake->thread)
                break;
            if (w->of->entry_of[user] != NONE && (strcmp(r.name, futex) != 0) == others &&
                wakes_at(w->h->states, user, wake->at))
                return w->of->entry_of[user];
        }
    return NONE;
}

static void write_wake(const struct waking *w, const struct row *r, int64_t entry, const struct state_interval *iv)
{
    struct futex_wake wake;
    if (!futex_woken_by(w->h, iv, &wake) || wake.at > w->end || iv->end < w->begin)
        return;
    int64_t from = waker_entry(w, &wake, r->futex);
    int64_t begin = view_to_reference(w->h, wake.at), end = view_to_reference(w->h, iv->end);
    if (from != NONE && begin <= w->q->end && end >= w->q->begin)
        tsp_write_arrow(w->answer, begin, end, w->t->first + from, entry, "Futex hand-over");
}

static void write_all(const struct waking *w, const struct row *r, int64_t entry)
{
    enum { BATCH = 256 };
    struct state_interval batch[BATCH];
    int64_t at = w->begin;
    for (size_t n = BATCH; n == BATCH && !tsp_full(w->answer) && !http_gone(w->q->http); at = batch[n - 1].end) {
        n = state_range(w->h->states, STATE_FUTEX_USER, (size_t)r->user, at, w->end, batch, BATCH);
        for (size_t i = 0; i < n; i++)
            write_wake(w, r, entry, &batch[i]);
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
    const struct rows *t = w->t;
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
    for (size_t i = 0; i < t->v.n && !tsp_full(w->answer) && !http_gone(w->q->http); i++) {
        const struct row *r = &t->v.v[i];
        if (r->host != host || r->user < 0)
            continue;
        if (all) {
            write_all(w, r, t->first + (int64_t)i);
            continue;
        }
        size_t found = state_sample(w->h->states, STATE_FUTEX_USER, (size_t)r->user, times, n, room);
        for (size_t k = 0; k < found; k++)
            write_wake(w, r, t->first + (int64_t)i, &room[k]);
    }
}

static void arrows(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    const struct rows *t = rows_of(x);
    json_begin_array(&answer->json);
    for (size_t i = 0; i < x->n_hosts; i++) {
        struct waking w = {t, q, answer, &x->hosts[i], &t->hosts[i], view_to_host(&x->hosts[i], q->begin),
            view_to_host(&x->hosts[i], q->end)};
        int64_t first, last;
        if (!users_of(w.h) || !w.h->index->graph)
            continue;
        state_span(w.h->states, &first, &last);
        w.begin = w.begin < first ? first : w.begin;
        w.end = w.end > last ? last : w.end;
        if (w.begin <= w.end)
            write_host_arrows(&w, i);
    }
    json_end_array(&answer->json);
}

/* ---- tooltip, style ---- */

static void tooltip(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    int64_t entry, t;
    const struct row *r = view_tooltip_target(q, &entry, &t) ? row_of(rows_of(x), entry) : NULL;
    json_begin_object(&answer->json);
    if (r) {
        const struct view_host *h = &x->hosts[r->host];
        tsp_write_tip(answer, "Host", h->index->name);
        if (r->user >= 0)
            futex_write_call(answer, h, (size_t)r->user, view_sample_time(h, t));
        view_write_clock_error(answer, h, t);
    }
    json_end_object(&answer->json);
}

static void style(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    tsp_begin_styles(answer);
    futex_write_styles(answer);
    tsp_write_style(answer, "Futex hand-over", NULL, LOOK_RUNNING, 0.1, -1, "Futex hand-over");
    tsp_end_styles(answer);
}

const struct view view_futexes = {
    .provider = {.id = "lttng2.kernel.core.futex.uaddrvswaiter",
        .name = "Futex Contention Analysis: Uaddr vs Waiter",
        .description = "Which threads wait for which futex, and who wakes them",
        .type = "TIME_GRAPH"},
    .has_data = has_data,
    .tree = tree,
    .states = states,
    .arrows = arrows,
    .tooltip = tooltip,
    .style = style,
    .close = close_rows,
};

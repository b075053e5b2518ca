/* Files: which threads work with which, from their system calls. By file (each with its threads), and by thread (each
 * with its files, reading and writing only). */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "views/state_rows.h"
#include "views/list.h"

/* ---- entries ---- */

/* Per host: its root; groups, each of several rows of the store; a row for each use below its group. */
struct group {
    size_t first, n; /* in `uses` of its host */
    int64_t id;      /* its uses' ids follow */
};
struct place {
    const struct view_host *host;
    size_t number;
    int64_t root;
    size_t *uses; /* rows of the store, in the order of groups */
    size_t n_uses;
    VEC(struct group) groups;
};
struct places {
    struct place *v;
    size_t n;
    bool by_thread;
};

static int by_thread(const void *a, const void *b, void *states)
{
    struct state_file x, y;
    size_t i = *(const size_t *)a, k = *(const size_t *)b;
    state_file(states, i, &x);
    state_file(states, k, &y);
    if (x.thread != y.thread)
        return x.thread < y.thread ? -1 : 1;
    return i < k ? -1 : i > k;
}

static bool same_group(const struct state_store *s, size_t i, size_t k, bool of_thread)
{
    struct state_file x, y;
    state_file(s, i, &x);
    state_file(s, k, &y);
    return of_thread ? x.thread == y.thread : !strcmp(x.name, y.name);
}

static bool is_shown(const struct place *p, size_t use, bool of_thread)
{
    struct state_file f;
    state_file(p->host->states, use, &f);
    return f.thread < p->host->threads && (!of_thread || f.read || f.written);
}

static int64_t fill(struct place *p, int64_t id, bool of_thread)
{
    const struct state_store *s = p->host->states;
    size_t n = s ? state_files(s) : 0;
    p->root = id++;
    p->uses = mem_alloc(sizeof *p->uses * (n + 1));
    for (size_t i = 0; i < n; i++)
        if (is_shown(p, i, of_thread))
            p->uses[p->n_uses++] = i;
    if (of_thread && p->n_uses)
        qsort_r(p->uses, p->n_uses, sizeof *p->uses, by_thread, (void *)(uintptr_t)s);
    for (size_t i = 0; i < p->n_uses; i++) {
        if (!i || !same_group(s, p->uses[i - 1], p->uses[i], of_thread))
            vec_push(&p->groups, ((struct group){.first = i, .id = id++}));
        p->groups.v[p->groups.n - 1].n++;
        id++;
    }
    return id;
}

static struct places *make(struct views *x, bool of_thread)
{
    struct places *all = mem_zalloc(sizeof *all);
    int64_t id = x->last_thread + 1;
    all->by_thread = of_thread;
    all->n = x->n_hosts;
    all->v = mem_zalloc(sizeof *all->v * (x->n_hosts + 1));
    for (size_t i = 0; i < x->n_hosts; i++) {
        all->v[i] = (struct place){.host = &x->hosts[i], .number = i};
        id = fill(&all->v[i], id, of_thread);
    }
    return all;
}

static void *make_by_file(struct views *x)
{
    return make(x, false);
}
static void *make_by_thread(struct views *x)
{
    return make(x, true);
}

static void close_places(struct views *x, void *cache)
{
    struct places *all = cache;
    for (size_t i = 0; i < all->n; i++) {
        free(all->v[i].uses);
        vec_free(&all->v[i].groups);
    }
    free(all->v);
    free(all);
}

static bool has_data(const struct view *self, struct views *x)
{
    for (size_t i = 0; i < x->n_hosts; i++)
        if (x->hosts[i].states && state_files(x->hosts[i].states))
            return true;
    return false;
}

static bool has_moved(const struct view *self, struct views *x)
{
    struct state_file f;
    for (size_t i = 0; i < x->n_hosts; i++)
        for (size_t k = 0; x->hosts[i].states && k < state_files(x->hosts[i].states); k++) {
            state_file(x->hosts[i].states, k, &f);
            if (f.read || f.written)
                return true;
        }
    return false;
}

/* The use whose entry it is; false: a root's, a group's or nobody's. */
static bool use_of(const struct places *all, int64_t id, const struct place **place, size_t *use)
{
    for (size_t i = 0; i < all->n; i++) {
        const struct place *p = &all->v[i];
        size_t lo = 0, hi = p->groups.n;
        while (lo < hi) {
            size_t mid = lo + (hi - lo) / 2;
            if (p->groups.v[mid].id <= id)
                lo = mid + 1;
            else
                hi = mid;
        }
        const struct group *g = lo ? &p->groups.v[lo - 1] : NULL;
        if (g && id > g->id && id <= g->id + (int64_t)g->n) {
            *place = p;
            *use = p->uses[g->first + (size_t)(id - g->id) - 1];
            return true;
        }
    }
    return false;
}

/* ---- the tree ---- */

struct writing {
    struct tsp_answer *answer;
    const struct tsp_query *q;
    const struct place *place;
    int64_t begin, end;
    bool first;
};

static void write_entry(
    struct writing *w, struct tsp_entry e, const char *name, const char *tid, int64_t read, int64_t written)
{
    struct arena *a = w->q->http->arena;
    const char *labels[4] = {
        name, tid, arena_printf(a, "%lld", (long long)read), arena_printf(a, "%lld", (long long)written)};
    e.labels = labels;
    e.n_labels = 4;
    e.time_graph = true;
    e.start = w->begin;
    e.end = w->end;
    e.host_id = w->place->host->id;
    tsp_write_entry(w->answer, &e);
}

static const char *thread_name(const struct place *p, int32_t row, struct arena *a, const char **tid)
{
    struct graph_row t;
    graph_row(p->host->index->graph, row, &t);
    *tid = arena_printf(a, "%d", t.tid);
    return t.name;
}

static void write_group(struct writing *w, const struct group *g, bool of_thread)
{
    struct arena *a = w->q->http->arena;
    const struct place *p = w->place;
    const struct state_store *s = p->host->states;
    struct state_file f;
    struct graph_row t;
    int64_t read = 0, written = 0;
    for (size_t i = 0; i < g->n; i++) {
        state_file(s, p->uses[g->first + i], &f);
        read += f.read;
        written += f.written;
    }
    const char *tid = "", *name = of_thread ? thread_name(p, f.thread, a, &tid) : f.name;
    write_entry(w, (struct tsp_entry){.id = g->id, .parent = p->root}, name, tid, read, written);
    for (size_t i = 0; i < g->n && !tsp_full(w->answer); i++) {
        state_file(s, p->uses[g->first + i], &f);
        graph_row(p->host->index->graph, f.thread, &t);
        name = thread_name(p, f.thread, a, &tid);
        write_entry(w,
            (struct tsp_entry){
                .id = g->id + 1 + (int64_t)i, .parent = g->id, .has_data = true, .has_tid = true, .tid = t.tid},
            of_thread ? f.name : name, of_thread ? "" : tid, f.read, f.written);
    }
}

static void tree(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer,
    const struct places *all)
{
    static const struct tsp_header headers[] = {{"Name", "File or thread", "STRING"},
        {"TID", "Number of the thread", "STRING"}, {"Read", "Bytes read in all", "BINARY_NUMBER"},
        {"Written", "Bytes written in all", "BINARY_NUMBER"}};
    tsp_begin_tree(answer, headers, 4, -1);
    for (size_t i = 0; i < all->n && !tsp_full(answer) && !http_gone(q->http); i++) {
        const struct place *p = &all->v[i];
        struct writing w = {.answer = answer, .q = q, .place = p, .begin = x->data.begin, .end = x->data.end};
        struct state_file f;
        int64_t read = 0, written = 0;
        for (size_t k = 0; k < p->n_uses; k++) {
            state_file(p->host->states, p->uses[k], &f);
            read += f.read;
            written += f.written;
        }
        if (!p->host->states)
            continue;
        write_entry(&w, (struct tsp_entry){.id = p->root, .parent = -1}, p->host->index->name, "", read, written);
        for (size_t k = 0; k < p->groups.n && !tsp_full(answer); k++)
            write_group(&w, &p->groups.v[k], all->by_thread);
    }
    tsp_end_tree(answer);
    tsp_end(answer, q);
}

/* ---- states ---- */

static const struct look {
    const char *key, *color;
    double height;
} looks[] = {[STATE_FILE_OPEN] = {"Open", LOOK_IDLE, 0.3},
    [STATE_FILE_READ] = {"Read", LOOK_SYSCALL, 1},
    [STATE_FILE_WRITE] = {"Write", LOOK_BLOCKED, 1},
    [STATE_FILE_SYNC] = {"Sync", LOOK_BLOCK_DEVICE, 1},
    [STATE_FILE_OTHER] = {"Other", LOOK_TIMER, 0.6}};
enum { LOOKS = sizeof looks / sizeof *looks };

/* NULL for what is not shown. */
static const char *key_of(const struct state_interval *iv, bool moving_only)
{
    int use = iv->value == STATE_NONE ? STATE_FILE_NOTHING : (int)(iv->amount & ((1 << STATE_FILE_USE_BITS) - 1));
    if (use == STATE_FILE_NOTHING || use >= LOOKS || (moving_only && use != STATE_FILE_READ && use != STATE_FILE_WRITE))
        return NULL;
    return looks[use].key;
}

static int64_t bytes_of(const struct state_interval *iv)
{
    return iv->amount >> STATE_FILE_USE_BITS;
}

static void show(struct views *x, const struct view_state_row *row, const struct state_interval *iv,
    bool with_properties, struct view_shown *out)
{
    const struct view_host *h = &x->hosts[row->host];
    out->label = out->style_key = key_of(iv, row->view);
    if (!with_properties || !out->style_key)
        return;
    struct state_file f;
    struct graph_row t;
    state_file(h->states, row->row, &f);
    graph_row(h->index->graph, f.thread, &t);
    view_add_property(out, "file", f.name);
    view_add_property(out, "thread", t.name);
    view_add_number(out, "tid", t.tid);
    view_add_number(out, "bytes", bytes_of(iv));
    view_add_property(out, "host", h->index->name);
}

static void add_all(const struct places *all, struct view_sampler *s)
{
    for (size_t i = 0; i < all->n; i++)
        for (size_t k = 0; k < all->v[i].groups.n; k++) {
            const struct group *g = &all->v[i].groups.v[k];
            for (size_t n = 0; n < g->n; n++)
                if (!view_sample_row(s,
                        &(struct view_state_row){
                            g->id + 1 + (int64_t)n, i, STATE_FILE_ROWS, all->v[i].uses[g->first + n], all->by_thread}))
                    return;
        }
}

static void states(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer,
    const struct places *all)
{
    struct view_sampler s = view_begin_sampling(x, q, answer, show);
    if (!q->has_items)
        add_all(all, &s);
    for (size_t i = 0; q->has_items && i < q->n_items; i++) {
        const struct place *p;
        size_t use;
        if (use_of(all, q->items[i], &p, &use) &&
            !view_sample_row(
                &s, &(struct view_state_row){q->items[i], p->number, STATE_FILE_ROWS, use, all->by_thread}))
            break;
    }
    view_end_sampling(&s);
}

/* ---- tooltip, style ---- */

static void tooltip(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer,
    const struct places *all)
{
    int64_t entry, t;
    const struct place *p;
    size_t use;
    json_begin_object(&answer->json);
    if (view_tooltip_target(q, &entry, &t) && use_of(all, entry, &p, &use)) {
        const struct view_host *h = p->host;
        struct state_file f;
        struct graph_row thread;
        struct state_interval iv;
        state_file(h->states, use, &f);
        graph_row(h->index->graph, f.thread, &thread);
        tsp_write_tip(answer, "File", f.name);
        tsp_write_tip(answer, "Thread", arena_printf(q->http->arena, "%s (%d)", thread.name, thread.tid));
        if (state_at(h->states, STATE_FILE_ROWS, use, view_sample_time(h, t), &iv) && key_of(&iv, all->by_thread)) {
            tsp_write_tip(answer, "State", key_of(&iv, all->by_thread));
            if (bytes_of(&iv))
                tsp_write_tip(answer, "Bytes", arena_printf(q->http->arena, "%lld", (long long)bytes_of(&iv)));
            view_write_span(answer, view_to_reference(h, iv.begin), view_to_reference(h, iv.end));
        }
        view_write_clock_error(answer, h, t);
    }
    json_end_object(&answer->json);
}

static void style(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    tsp_begin_styles(answer);
    for (int i = 0; i < LOOKS; i++)
        if (looks[i].key)
            tsp_write_style(answer, looks[i].key, NULL, looks[i].color, looks[i].height, -1, looks[i].key);
    tsp_end_styles(answer);
}

/* ---- both views ---- */

static const struct places *files_of(struct views *x)
{
    return view_cache(x, &view_file_access, make_by_file);
}
static void files_tree(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    tree(self, x, q, answer, files_of(x));
}
static void files_states(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    states(self, x, q, answer, files_of(x));
}
static void files_tooltip(
    const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    tooltip(self, x, q, answer, files_of(x));
}

static const struct places *threads_of(struct views *x)
{
    return view_cache(x, &view_io_access, make_by_thread);
}
static void threads_tree(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    tree(self, x, q, answer, threads_of(x));
}
static void threads_states(
    const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    states(self, x, q, answer, threads_of(x));
}
static void threads_tooltip(
    const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    tooltip(self, x, q, answer, threads_of(x));
}

const struct view view_file_access = {
    .provider = {.id = "org.eclipse.tracecompass.incubator.kernel.core.file.access.dataprovider",
        .name = "File Access By File",
        .description = "Files, and what threads do with them: hold open, read, write",
        .type = "TIME_GRAPH"},
    .has_data = has_data,
    .tree = files_tree,
    .states = files_states,
    .arrows = view_no_arrows,
    .tooltip = files_tooltip,
    .style = style,
    .close = close_places,
};
const struct view view_io_access = {
    .provider = {.id = "org.eclipse.tracecompass.incubator.kernel.core.io.access.dataprovider",
        .name = "IO Access",
        .description = "Threads, and the files that they read and write",
        .type = "TIME_GRAPH"},
    .has_data = has_moved,
    .tree = threads_tree,
    .states = threads_states,
    .arrows = view_no_arrows,
    .tooltip = threads_tooltip,
    .style = style,
    .close = close_places,
};

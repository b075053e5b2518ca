/* SPDX-License-Identifier: MIT */
#include "views/stacks.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/search.h"
#include "views/looks.h"
#include "views/list.h"

/* ---- traces, entry ids ---- */

int64_t stacks_root(const struct views *x, size_t host)
{
    return view_id(x, host);
}

/* Makes a repeated key unique. Equal keys differ by their order, which is that of time. */
static uint64_t unlike(struct map *seen, uint64_t key)
{
    uint64_t *times = map_put(seen, key, NULL);
    return (*times)++ ? view_key("again", (int64_t)(key + *times)) : key;
}

/* Sets the keys of processes and threads. Names, which change, are used only for processes without a PID. */
static void set_keys(struct stacks_trace *p, uint64_t trace)
{
    struct map processes = {0}, threads = {0};
    p->process_keys = mem_alloc((stack_processes(p->s) + 1) * sizeof *p->process_keys);
    p->thread_keys = mem_alloc((stack_threads(p->s) + 1) * sizeof *p->thread_keys);
    for (size_t i = 0; i < stack_processes(p->s); i++) {
        struct stack_process d;
        stack_process(p->s, i, &d);
        p->process_keys[i] = unlike(&processes, view_key(d.pid < 0 ? d.name : "", (int64_t)(trace + (uint64_t)d.pid)));
    }
    for (size_t i = 0; i < stack_threads(p->s); i++) {
        struct stack_thread t;
        stack_thread(p->s, i, &t);
        uint64_t own = view_key(t.tid < 0 ? "CPU" : "", t.tid < 0 ? t.cpu : t.tid);
        p->thread_keys[i] = unlike(&threads, view_key("thread", (int64_t)(p->process_keys[t.process] + own)));
    }
    map_fini(&processes);
    map_fini(&threads);
}

uint64_t stacks_function_key(const struct stack_function *f)
{
    return view_key_number((int64_t)f->address);
}

static void *find_stacks(struct views *x)
{
    struct stacks *all = mem_zalloc(sizeof *all);
    int64_t id = stacks_root(x, x->n_hosts);
    all->v = mem_zalloc(sizeof *all->v * (x->n_sources + 1));
    all->lives = mem_zalloc(sizeof *all->lives * (x->n_hosts + 1));
    for (size_t i = 0; i < x->n_sources; i++) {
        const struct stack_store *s = x->traces[i].stacks;
        if (!s)
            continue;
        struct stacks_trace *p = &all->v[all->n++];
        *p = (struct stacks_trace){.s = s, .host = (size_t)x->traces[i].host, .first_process = id};
        p->lives = &all->lives[p->host];
        p->first_thread = p->first_process + (int64_t)stack_processes(s);
        p->first_row = p->first_thread + (int64_t)stack_threads(s);
        id = p->first_row + (int64_t)stack_rows(s);
        set_keys(p, x->traces[i].key);
        p->row_threads = mem_alloc(sizeof *p->row_threads * (stack_rows(s) + 1));
        for (size_t t = 0; t < stack_threads(s); t++) {
            struct stack_thread thread;
            stack_thread(s, t, &thread);
            for (uint32_t r = 0; r < thread.rows; r++)
                p->row_threads[thread.first_row + r] = (uint32_t)t;
        }
    }
    for (size_t i = 0; i < x->n_hosts; i++)
        if (x->hosts[i].index->graph)
            stacks_find_lives(all, i, x->hosts[i].index->graph);
    return all;
}

static void close_stacks(struct views *x, void *cache)
{
    struct stacks *all = cache;
    for (size_t i = 0; i < all->n; i++) {
        free(all->v[i].row_threads);
        free(all->v[i].process_keys);
        free(all->v[i].thread_keys);
    }
    for (size_t i = 0; i < x->n_hosts; i++)
        vec_free(&all->lives[i].of);
    free(all->lives);
    free(all->v);
    free(all);
}

/* Condition of a view that is never listed. It holds the cache of stacks, which all views share. */
static bool never(const struct view *self, struct views *x)
{
    return false;
}
const struct view view_stacks = {
    .provider = {.id = "weft.stacks", .name = "", .type = "NONE"}, .has_data = never, .close = close_stacks};

const struct stacks *stacks_of(struct views *x)
{
    return view_cache(x, &view_stacks, find_stacks);
}

/* Last trace whose ids begin at or before the id. */
static const struct stacks_trace *trace_of(const struct stacks *all, int64_t id)
{
    size_t behind = search_first(i, 0, all->n, all->v[i].first_process > id);
    return behind ? &all->v[behind - 1] : NULL;
}

const struct stacks_trace *stacks_row(const struct stacks *all, int64_t id, size_t *row)
{
    const struct stacks_trace *p = trace_of(all, id);
    if (!p || id < p->first_row || id - p->first_row >= (int64_t)stack_rows(p->s))
        return NULL;
    *row = (size_t)(id - p->first_row);
    return p;
}

const struct stacks_trace *stacks_thread(const struct stacks *all, int64_t id, size_t *thread)
{
    const struct stacks_trace *p = trace_of(all, id);
    if (!p || id < p->first_thread || id >= p->first_row)
        return NULL;
    *thread = (size_t)(id - p->first_thread);
    return p;
}

const struct stacks_trace *stacks_process(const struct stacks *all, int64_t id, size_t *process)
{
    const struct stacks_trace *p = trace_of(all, id);
    if (!p || id >= p->first_thread)
        return NULL;
    *process = (size_t)(id - p->first_process);
    return p;
}

/* Corrects the number for calls near t, since conversion there and back may round differently. */
size_t stacks_begun(const struct views *x, const struct stacks_trace *p, size_t row, size_t from, int64_t t)
{
    const struct view_host *h = &x->hosts[p->host];
    size_t i = stack_begun(p->s, row, from, view_to_host(h, t));
    struct stack_call c;
    if (!h->map)
        return i;
    for (; i > 0 && (stack_call(p->s, row, i - 1, &c), view_to_reference(h, c.begin) >= t); i--)
        ;
    for (; i < stack_calls(p->s, row) && (stack_call(p->s, row, i, &c), view_to_reference(h, c.begin) < t); i++)
        ;
    return i;
}

struct stacks_range stacks_range(
    const struct views *x, const struct stacks_trace *p, size_t row, int64_t begin, int64_t end)
{
    size_t first = stacks_begun(x, p, row, 0, begin),
           last = end == INT64_MAX ? stack_calls(p->s, row) : stacks_begun(x, p, row, 0, end + 1);
    return (struct stacks_range){first, last > first ? last : first};
}

/* ---- available data ---- */

bool stacks_calls_shown(const struct stack_thread *t)
{
    return t->rows > 0;
}
bool stacks_memory_shown(const struct stack_thread *t)
{
    return t->has_memory;
}

bool stacks_trace_shown(const struct stacks_trace *p, stacks_shown *shown)
{
    for (size_t i = 0; i < stack_threads(p->s); i++) {
        struct stack_thread t;
        stack_thread(p->s, i, &t);
        if (shown(&t))
            return true;
    }
    return false;
}

static bool any(struct views *x, stacks_shown *shown)
{
    const struct stacks *all = stacks_of(x);
    for (size_t i = 0; i < all->n; i++)
        if (stacks_trace_shown(&all->v[i], shown))
            return true;
    return false;
}

bool stacks_have_calls(const struct view *self, struct views *x)
{
    return any(x, stacks_calls_shown);
}
bool stacks_have_memory(const struct view *self, struct views *x)
{
    return any(x, stacks_memory_shown);
}

/* ---- trees ---- */

const struct tsp_header stacks_headers[3] = {{"Name", "Process, thread, depth", "STRING"},
    {"PID", "Number of the process", "NUMBER", "pid", TSP_FIRST},
    {"TID", "Number of the thread", "NUMBER", "tid", TSP_FIRST}};

static const char *number(struct arena *a, int32_t n)
{
    return n >= 0 ? arena_printf(a, "%d", n) : "";
}

const char *stacks_process_label(struct arena *a, const struct stacks_trace *p, size_t process)
{
    struct stack_process d;
    stack_process(p->s, process, &d);
    if (d.pid < 0)
        return *d.name ? d.name : "unknown process";
    return *d.name ? arena_printf(a, "%s (%d)", d.name, d.pid) : arena_printf(a, "process %d", d.pid);
}

const char *stacks_thread_label(struct arena *a, const struct stack_thread *t)
{
    if (t->tid < 0)
        return t->cpu >= 0 ? arena_printf(a, "CPU %d", t->cpu) : "unknown thread";
    return *t->name ? t->name : arena_printf(a, "thread %d", t->tid);
}

static bool is_shown(const struct stacks_tree *w, const struct stacks_trace *p, size_t thread)
{
    struct stack_thread t;
    stack_thread(p->s, thread, &t);
    return w->shown(&t);
}

/* Common members of entries of hosts, processes and threads; begin and end: on the reference clock. */
static struct tsp_entry entry_of(const struct stacks_tree *w, const struct view_host *h, int64_t begin, int64_t end)
{
    struct tsp_entry e = {.parent = -1, .n_labels = 3, .time_graph = w->time_graph, .xy = w->xy, .host_id = h->id};
    e.start = w->amounts ? 0 : begin;
    e.end = w->amounts ? w->most : end;
    e.has_data = w->have_data;
    return e;
}

static void write_host(const struct stacks_tree *w, size_t host)
{
    const struct view_host *h = &w->x->hosts[host];
    struct tsp_entry e = entry_of(w, h, w->x->data.begin, w->x->data.end);
    e.id = stacks_root(w->x, host);
    e.key = h->index->user_key;
    e.labels = (const char *const[]){h->index->name, "", ""};
    e.is_default = w->have_data;
    tsp_write_entry(w->answer, &e);
}

static void write_process(const struct stacks_tree *w, const struct stacks_trace *p, size_t process)
{
    struct arena *a = w->q->http->arena;
    struct tsp_entry e = entry_of(w, &w->x->hosts[p->host], w->x->data.begin, w->x->data.end);
    struct stack_process d;
    stack_process(p->s, process, &d);
    e.id = p->first_process + (int64_t)process;
    e.parent = stacks_root(w->x, p->host);
    e.key = p->process_keys[process];
    e.labels = (const char *const[]){*d.name ? d.name : stacks_process_label(a, p, process), number(a, d.pid), ""};
    e.meta = &(struct tsp_meta){.key = "PID", .number = d.pid};
    e.n_meta = d.pid >= 0;
    tsp_write_entry(w->answer, &e);
}

static void write_thread(const struct stacks_tree *w, const struct stacks_trace *p, size_t thread)
{
    const struct view_host *h = &w->x->hosts[p->host];
    struct arena *a = w->q->http->arena;
    struct stack_thread t;
    struct stack_process d;
    stack_thread(p->s, thread, &t);
    stack_process(p->s, t.process, &d);
    struct tsp_entry e = entry_of(w, h, view_to_reference(h, t.begin), view_to_reference(h, t.end));
    e.id = p->first_thread + (int64_t)thread;
    e.parent = p->first_process + t.process;
    e.key = p->thread_keys[thread];
    e.labels = (const char *const[]){stacks_thread_label(a, &t), number(a, d.pid), number(a, t.tid)};
    e.has_tid = t.tid >= 0;
    e.tid = t.tid;
    e.meta = &(struct tsp_meta){.key = "PID", .number = d.pid};
    e.n_meta = d.pid >= 0;
    tsp_write_entry(w->answer, &e);
}

static void write_trace(const struct stacks_tree *w, const struct stacks_trace *p)
{
    for (size_t i = 0; i < stack_processes(p->s) && !tsp_full(w->answer) && !http_gone(w->q->http); i++) {
        struct stack_process d;
        bool begun = false;
        stack_process(p->s, i, &d);
        for (size_t t = d.first_thread; t < (size_t)d.first_thread + d.threads && !tsp_full(w->answer); t++) {
            if (!is_shown(w, p, t))
                continue;
            if (!begun)
                write_process(w, p, i);
            begun = true;
            write_thread(w, p, t);
            if (w->below)
                w->below(w, p, t);
        }
    }
}

void stacks_write_tree(const struct stacks_tree *w)
{
    const struct stacks *all = stacks_of(w->x);
    bool *begun = arena_new(w->q->http->arena, bool, w->x->n_hosts + 1);
    for (size_t i = 0; i < all->n; i++) {
        const struct stacks_trace *p = &all->v[i];
        bool some = stacks_trace_shown(p, w->shown);
        if (some && !begun[p->host])
            write_host(w, p->host);
        begun[p->host] |= some;
        write_trace(w, p);
    }
}

/* ---- looks ---- */

/* Colours by name, warm to cool; text on them stays legible. */
static const char *const colors[STACKS_COLORS] = {"#e07a5f", "#e8a15a", "#d9b44a", "#b5b85b", "#8fb56b", "#6fb08a",
    "#5aa9a3", "#5a9fbf", "#6f93cf", "#8a88d1", "#a882c9", "#c17fb5", "#d07f98", "#d98c84", "#cf9f7a", "#bfae82",
    "#a3ad86", "#88b09c", "#7faab0", "#8aa5c2", "#a09ec6", "#b69abc", "#c69aa8", "#c9a798"};
static const char *const keys[STACKS_COLORS] = {"Function 1", "Function 2", "Function 3", "Function 4", "Function 5",
    "Function 6", "Function 7", "Function 8", "Function 9", "Function 10", "Function 11", "Function 12", "Function 13",
    "Function 14", "Function 15", "Function 16", "Function 17", "Function 18", "Function 19", "Function 20",
    "Function 21", "Function 22", "Function 23", "Function 24"};

const char *stacks_style(const char *function)
{
    return keys[map_hash(function, strlen(function)) % STACKS_COLORS];
}

void stacks_write_styles(struct tsp_answer *answer)
{
    for (int i = 0; i < STACKS_COLORS; i++)
        tsp_write_style(answer, keys[i], NULL, colors[i], 1, -1, NULL);
    tsp_write_style(answer, "Unknown", NULL, LOOK_UNKNOWN, 0.33, -1, "Unknown: events were lost");
}

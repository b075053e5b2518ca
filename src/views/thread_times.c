/* Thread Times: how long each thread was in each state, within the range. The same as `weft threads` tells. */
#include <stdlib.h>

#include "base/mem.h"
#include "base/order.h"
#include "views/view.h"

/* The columns behind name and number; what is in none of them is "Other". */
static const int shown[] = {
    GRAPH_RUNNING, GRAPH_PREEMPTED, GRAPH_BLOCKED, GRAPH_TIMER, GRAPH_NETWORK, GRAPH_BLOCK_DEVICE};
enum { SHOWN = sizeof shown / sizeof *shown, LABELS = 2 + SHOWN + 1 };

static bool has_data(const struct view *self, const struct view_host *h)
{
    return h->index->graph && h->threads;
}

struct line {
    size_t host;
    int32_t row;
    bool chosen;
    struct graph_time is;
};
struct lines {
    VEC(struct line) v;
};

/* ---- which threads ---- */

static void collect(const struct views *x, const struct tsp_query *q, struct lines *out)
{
    for (size_t i = 0; i < x->n_hosts; i++) {
        const struct view_host *h = &x->hosts[i];
        struct graph_choice choice = {0};
        if (!has_data(NULL, h))
            continue;
        choice.begin = view_to_host(h, q->begin);
        choice.end = view_to_host(h, q->end);
        for (int32_t row = 0; row < h->threads && (row % 1024 || !http_gone(q->http)); row++) {
            struct line l = {.host = i, .row = row, .chosen = true};
            if (graph_row_time(h->index->graph, row, &choice, &l.is))
                vec_push(&out->v, l);
        }
    }
}

/* Time of a line, and which it is. */
struct place {
    int64_t time;
    size_t line;
};
static int most_first(const void *pa, const void *pb)
{
    const struct place *a = pa, *b = pb;
    return order_of(b->time, a->time) ?: order_of(a->line, b->line);
}

/* Leaves those that are among the `most` with the most time in some state. */
static void choose(struct lines *lines, size_t most)
{
    struct place *places = mem_alloc((lines->v.n + 1) * sizeof *places);
    for (size_t i = 0; i < lines->v.n; i++)
        lines->v.v[i].chosen = false;
    for (size_t k = 0; k < SHOWN; k++) {
        size_t n = 0;
        for (size_t i = 0; i < lines->v.n; i++)
            if (lines->v.v[i].is.totals[shown[k]] > 0)
                places[n++] = (struct place){lines->v.v[i].is.totals[shown[k]], i};
        if (n)
            qsort(places, n, sizeof *places, most_first);
        for (size_t i = 0; i < n && i < most; i++)
            lines->v.v[places[i].line].chosen = true;
    }
    free(places);
}

/* Parameter `most`; 0: all. */
static size_t most_of(const struct tsp_query *q)
{
    json_t *v = json_object_get(q->parameters, "most");
    return json_is_integer(v) && json_integer_value(v) > 0 ? (size_t)json_integer_value(v) : 0;
}

/* ---- tree ---- */

static void write_thread(
    struct tsp_answer *answer, const struct views *x, const struct tsp_query *q, const struct line *l)
{
    struct arena *a = q->http->arena;
    const struct view_host *h = &x->hosts[l->host];
    const char *labels[LABELS] = {l->is.row.name, arena_printf(a, "%d", l->is.row.tid)};
    struct tsp_meta meta[GRAPH_STATE_COUNT];
    size_t n = 0;
    int64_t other = l->is.end - l->is.begin;
    for (int s = 0; s < GRAPH_STATE_COUNT; s++)
        if (l->is.totals[s])
            meta[n++] = (struct tsp_meta){.key = graph_state_name(s), .number = l->is.totals[s]};
    for (size_t k = 0; k < SHOWN; k++) {
        labels[2 + k] = arena_duration(a, l->is.totals[shown[k]]);
        other -= l->is.totals[shown[k]];
    }
    labels[2 + SHOWN] = arena_duration(a, other);
    tsp_write_entry(answer,
        &(struct tsp_entry){.id = h->first_thread + l->row,
            .parent = view_id(x, l->host),
            .labels = labels,
            .n_labels = LABELS,
            .has_data = true,
            .host_id = h->id,
            .has_tid = true,
            .tid = l->is.row.tid,
            .meta = meta,
            .n_meta = n});
}

static void write_host(struct tsp_answer *answer, const struct views *x, size_t host)
{
    const char *labels[LABELS] = {x->hosts[host].index->name, "", "", "", "", "", "", "", ""};
    tsp_write_entry(answer,
        &(struct tsp_entry){.id = view_id(x, host),
            .parent = -1,
            .key = x->hosts[host].index->key,
            .labels = labels,
            .n_labels = LABELS,
            .host_id = x->hosts[host].id});
}

static void tree(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    struct lines lines = {0};
    size_t most = most_of(q), before = SIZE_MAX;
    collect(x, q, &lines);
    if (most)
        choose(&lines, most);
    for (size_t i = 0; i < lines.v.n && (i % 1024 ? !tsp_full(answer) : view_goes_on(q, answer)); i++) {
        const struct line *l = &lines.v.v[i];
        if (!l->chosen)
            continue;
        if (l->host != before)
            write_host(answer, x, l->host);
        before = l->host;
        write_thread(answer, x, q, l);
    }
    vec_free(&lines.v);
}

const struct view view_thread_times = {
    .provider = {.id = "weft.threads",
        .name = "Thread Times",
        .description = "How long each thread ran, and waited for what, within the range",
        .type = "DATA_TREE"},
    .host_has_data = has_data,
    VIEW_HEADERS({"Thread", "Machine, name of the thread", "STRING"}, {"TID", "Number of the thread", "NUMBER"},
        {"Running", "Time on a CPU", "DURATION"}, {"Preempted", "Ready, without a CPU", "DURATION"},
        {"Blocked", "Waited for another thread", "DURATION"}, {"Timer", "Slept until a time", "DURATION"},
        {"Network", "Waited for a message", "DURATION"}, {"Block device", "Waited for a disk", "DURATION"},
        {"Other", "In other states, or not known", "DURATION"}),
    .expand = 2,
    .tree = tree,
};

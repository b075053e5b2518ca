/* SPDX-License-Identifier: MIT */
/* Composition of the paths of each group of similar requests, over all machines: in all, in a fast request, in a slow
 * one. It uses the paths that define the groups; no path is walked for it. */
#include "graph/graph.h"
#include "show/show.h"
#include "views/list.h"
#include "views/served_list.h"

static bool has_data(const struct view *self, const struct view_host *h)
{
    return h->index->flows && h->index->graph && flow_count(h->index->flows);
}

struct writing {
    struct views *x;
    struct tsp_answer *answer;
    struct arena *arena;
    struct request_groups *groups;
    size_t next; /* number of the next entry */
};

static const char *name_of(const struct writing *w, const struct request_part *part)
{
    struct text t = {.fd = -1};
    show_request_part(w->groups, part, &t);
    const char *name = arena_strdup(w->arena, text_cstr(&t));
    text_fini(&t);
    return name;
}

static const char *time_text(const struct writing *w, int64_t ns)
{
    return ns ? arena_duration(w->arena, ns) : "";
}

enum { TOTAL, MEAN, TYPICAL, SLOW, FIGURES, OF_GROUP = 3 };
enum { LABELS = 3 + FIGURES + 2 };

/* Writes a group (share 1), or a part of it. names: element, group, state. */
static int64_t write_entry(struct writing *w, const struct request_group *g, const struct request_sum *s,
    const char *const names[3], struct tsp_entry e)
{
    const int64_t mean = s->total / (int64_t)g->count, grew = s->slow - s->typical;
    const double share = g->whole.total > 0 ? 100 * (double)s->total / (double)g->whole.total : 0;
    const char *labels[LABELS] = {names[0], names[1], names[2], time_text(w, s->total),
        arena_printf(w->arena, "%.1f %%", share), time_text(w, mean), time_text(w, s->typical), time_text(w, s->slow),
        arena_printf(w->arena, "%s%s", grew > 0 ? "+" : "", time_text(w, grew))};
    struct tsp_meta meta[FIGURES + OF_GROUP] = {[TOTAL] = {.key = "total", .number = s->total},
        [MEAN] = {.key = "mean", .number = mean},
        [TYPICAL] = {.key = "typical", .number = s->typical},
        [SLOW] = {.key = "slow", .number = s->slow}};
    for (size_t i = 0; i < e.n_meta; i++)
        meta[FIGURES + i] = e.meta[i];
    e.id = view_id(w->x, w->next++);
    e.labels = labels;
    e.n_labels = LABELS;
    e.has_data = true;
    e.meta = meta;
    e.n_meta += FIGURES;
    tsp_write_entry(w->answer, &e);
    return e.id;
}

static void write_part(struct writing *w, const struct request_group *g, const struct request_sum *s, int64_t parent)
{
    const struct view_host *h = served_host(w->x, s->part.host);
    const char *names[] = {name_of(w, &s->part), "", graph_state_name(s->part.state)};
    write_entry(w, g, s, names,
        (struct tsp_entry){.parent = parent, .key = view_key(names[0], s->part.state), .host_id = h ? h->id : NULL});
}

static void write_group(struct writing *w, size_t number)
{
    const struct request_group *g = path_request_groups_get(w->groups, number);
    const struct view_host *h = served_host(w->x, g->server.host);
    const struct tsp_meta of_group[OF_GROUP] = {{.key = "group", .number = (int64_t)number + 1},
        {.key = "count", .number = (int64_t)g->count}, {.key = "first", .number = g->first}};
    const char *names[] = {name_of(w, &g->server), arena_printf(w->arena, "%zu", number + 1), ""};
    struct text shape = {.fd = -1};
    text_printf(&shape, "%s ", g->server.comm);
    show_request_shape(w->groups, g, &shape);
    int64_t id = write_entry(w, g, &g->whole, names,
        (struct tsp_entry){.parent = -1,
            .key = view_key(text_cstr(&shape), (int64_t)h->index->key),
            .host_id = h->id,
            .meta = of_group,
            .n_meta = OF_GROUP});
    text_fini(&shape);
    for (size_t i = 0; i < g->n_sums; i++)
        write_part(w, g, &g->sums[i], id);
}

static void write_groups(const struct view *self, struct views *x, const struct tsp_query *q, const struct served *list,
    struct tsp_answer *answer)
{
    struct writing w = {x, answer, q->http->arena, list->groups, 0};
    for (size_t i = 0; i < path_request_groups_count(list->groups) && view_goes_on(q, answer); i++)
        write_group(&w, i);
}

static void tree(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    served_with(self, x, q, answer, write_groups);
}

const struct view view_served_paths = {
    .provider = {.id = "weft.requests.paths",
        .name = "Request Group Paths",
        .description =
            "What the critical paths of like requests consist of together, over all machines, and what of it "
            "took longer in slow ones",
        .type = "DATA_TREE"},
    .host_has_data = has_data,
    VIEW_HEADERS(
        {"Element", "Machine and threads: those that replied, and below, those that the paths are on", "STRING"},
        {"Group", "Its number among the Request Groups", "NUMBER", "group", TSP_FIRST},
        {"State", "What they did", "STRING", "state", TSP_FIRST},
        {"Total", "In all requests of the group", "DURATION", "total", TSP_SUM},
        {"Share", "Of the time of all of them", "NUMBER", "share"},
        {"Mean", "Of a request", "DURATION", "mean", TSP_MEAN, "total", "count"},
        {"Typical", "Median of the faster half", "DURATION", "typical"},
        {"Slow", "Mean of the slow ones, from the 90th percentile on", "DURATION", "slow"},
        {"Growth", "From typical to slow", "DURATION", "growth"}),
    .tree = tree,
};

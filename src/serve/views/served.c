/* SPDX-License-Identifier: MIT */
/* Requests of server threads, slowest first; groups of similar ones; counts by duration. Same content as `weft
 * requests`. */
#include <stdlib.h>

#include "base/figures.h"
#include "base/mem.h"
#include "show/show.h"
#include "views/durations.h"
#include "views/list.h"
#include "views/served_list.h"

static bool has_data(const struct view *self, const struct view_host *h)
{
    return h->index->flows && h->index->graph && flow_count(h->index->flows);
}

/* ---- the table ---- */

enum {
    DURATION,
    BEGIN,
    SERVER,
    TID,
    THREAD,
    CLIENT,
    CLIENT_TID,
    CLIENT_THREAD,
    CLIENT_BEGIN,
    CLIENT_END,
    BYTES_IN,
    BYTES_OUT,
    GROUP,
    MACHINES,
    TRAIL
};
/* Columns of the table, which is sorted by the first. */
static const struct tsp_column columns[] = {
    {DURATION, "Duration", "To the last byte out", "DURATION", .descending = true},
    {BEGIN, "Begin", "First byte in", "TIMESTAMP"}, {SERVER, "Server", "Machine that replied", "STRING"},
    {TID, "TID", "Thread that replied", "NUMBER"}, {THREAD, "Thread", "Its name", "STRING"},
    {CLIENT, "Client", "Machine that asked, or its address", "STRING", .found_by = TRAIL},
    {CLIENT_TID, "Client TID", "Thread that asked, where it was recorded", "NUMBER", .found_by = TRAIL},
    {CLIENT_THREAD, "Client thread", "Its name", "STRING", .found_by = TRAIL},
    {CLIENT_BEGIN, "Client begin", "First byte that the client sent", "TIMESTAMP", .found_by = TRAIL},
    {CLIENT_END, "Client end", "Last byte of the reply that the client got", "TIMESTAMP", .found_by = TRAIL},
    {BYTES_IN, "Bytes in", "Payload that came", "NUMBER"}, {BYTES_OUT, "Bytes out", "Payload that went", "NUMBER"},
    {GROUP, "Group", "Requests like it: Request Groups", "NUMBER", .numbers_of = "weft.requests.groups"},
    {MACHINES, "Machines", "In the order in which the critical path comes to them", "STRING"},
    {TRAIL, "Trail", "What tells other servers who asked", "STRING"}};
enum { COLUMNS = TRAIL, ALL_COLUMNS, MOST_TRAILS = 20000 }; /* the last column is written only on request */

/* Cache of the last requested line, whose next cell is usually requested next: expensive values are computed once. */
struct lines {
    const struct served *list; /* NULL: lines are clients of requests that others served */
    const struct path_source *source;
    size_t row;
    const struct served_request *is;
    bool has_client, has_told;
    struct request_client client;
    struct request_told told;
};

static const char *host_of(const struct lines *l, int32_t host)
{
    return l->source->host_name(l->source->arg, host);
}

static void turn_to(struct lines *l, size_t row)
{
    if (l->is && l->row == row)
        return;
    l->row = row;
    l->is = path_requests_get(l->list->found, row);
    l->has_client = l->has_told = false;
    free(l->told.machines);
    l->told.machines = NULL;
}

static void name_at(const struct lines *l, struct path_row row, int64_t ts, int32_t *tid, const char **comm)
{
    l->source->row_name(l->source->arg, row, ts, ts, tid, comm);
}

static void server_cell(const struct lines *l, size_t column, struct text *out)
{
    int32_t tid;
    const char *comm;
    name_at(l, l->is->thread, l->is->end, &tid, &comm);
    if (column == TID)
        text_i64(out, tid);
    else
        text_puts(out, comm);
}

static void client_cell(struct lines *l, size_t column, struct text *out)
{
    const struct request_client *c = &l->client;
    int32_t tid = -1;
    const char *comm = "";
    if (!l->has_client)
        path_requests_client(l->list->found, l->row, &l->client);
    l->has_client = true;
    if (c->recorded)
        name_at(l, c->thread, c->begin, &tid, &comm);
    if (column == CLIENT)
        text_puts(out, c->recorded ? host_of(l, c->thread.host) : c->address);
    else if (column == CLIENT_TID && tid >= 0)
        text_i64(out, tid);
    else if (column == CLIENT_THREAD && tid >= 0)
        text_puts(out, comm);
    else if (column == CLIENT_BEGIN && c->recorded)
        text_i64(out, c->begin);
    else if (column == CLIENT_END && c->recorded && c->end != INT64_MIN)
        text_i64(out, c->end);
    else if (column == TRAIL && !c->recorded)
        path_requests_trail(l->list->found, l->row, out);
}

static void told_cell(struct lines *l, size_t column, struct text *out)
{
    if (!l->has_told)
        path_request_groups_tell(l->list->groups, l->row, &l->told);
    l->has_told = true;
    if (column == GROUP && l->told.group >= 0)
        text_i64(out, l->told.group + 1);
    for (size_t i = 0; column == MACHINES && i < l->told.n_machines; i++) {
        text_puts(out, i ? " " : "");
        text_puts(out, path_request_groups_host(l->list->groups, l->told.machines[i]));
    }
}

static void cell(void *arg, size_t row, size_t column, struct text *out)
{
    struct lines *l = arg;
    turn_to(l, row);
    switch (column) {
    case BEGIN: text_i64(out, l->is->begin); break;
    case DURATION: text_i64(out, request_duration(l->is)); break;
    case SERVER: text_puts(out, host_of(l, l->is->thread.host)); break;
    case TID:
    case THREAD: server_cell(l, column, out); break;
    case BYTES_IN: text_u64(out, l->is->bytes_in); break;
    case BYTES_OUT: text_u64(out, l->is->bytes_out); break;
    case GROUP:
    case MACHINES: told_cell(l, column, out); break;
    default: client_cell(l, column, out);
    }
}

static int64_t value(void *arg, size_t row)
{
    const struct lines *l = arg;
    return request_duration(path_requests_get(l->list->found, row));
}

static void write_lines(const struct view *self, struct views *x, const struct tsp_query *q, const struct served *list,
    struct tsp_answer *answer)
{
    struct lines l = {.list = list, .source = list->source};
    size_t n = q->has_columns ? ALL_COLUMNS : COLUMNS;
    struct tsp_table t = {columns, n, path_requests_count(list->found), &l, cell, NULL, value};
    tsp_table_lines(answer, &t, q);
    free(l.told.machines);
}

/* ---- clients of requests that others served ---- */

static void asked_cell(void *arg, size_t row, size_t column, struct text *out)
{
    if (column >= CLIENT && column <= CLIENT_END)
        client_cell(arg, column, out);
}

/* Writes the clients. Lines have the numbers of the trails; trails without a client here have no line. */
static void write_asked(struct views *x, const struct tsp_query *q, json_t *trails, struct tsp_answer *answer)
{
    json_t *times = json_object_get(q->parameters, "requested_times");
    struct lines l = {.source = path_local_source(x->paths), .has_client = true};
    size_t n = json_array_size(trails) < MOST_TRAILS ? json_array_size(trails) : MOST_TRAILS;
    struct tsp_lines lines = tsp_begin_lines(answer, q, columns, COLUMNS, 0, n);
    for (size_t i = 0; i < n && view_goes_on(q, answer); i++) {
        const char *trail = json_string_value(json_array_get(trails, i));
        const json_t *at = json_array_get(times, i);
        if (trail &&
            path_requests_asked(x->paths, trail, json_is_integer(at) ? json_integer_value(at) : INT64_MIN, &l.client))
            tsp_write_line(&lines, i, false, asked_cell, &l, i);
    }
    tsp_end_lines(&lines);
}

static void lines(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    json_t *trails = json_object_get(q->parameters, "requested_trails");
    if (json_is_array(trails) && x->paths)
        write_asked(x, q, trails, answer);
    else
        served_with(self, x, q, answer, write_lines);
}

/* ---- groups ---- */

static const char *words_of(struct arena *a, const struct served *list, const struct request_group *g,
    void (*show)(struct request_groups *, const struct request_group *, struct text *))
{
    struct text t = {.fd = -1};
    show(list->groups, g, &t);
    const char *words = arena_strdup(a, text_cstr(&t));
    text_fini(&t);
    return words;
}

static void write_group(
    struct tsp_answer *answer, const struct views *x, struct arena *a, const struct served *list, size_t number)
{
    const struct request_group *g = path_request_groups_get(list->groups, number);
    const struct view_host *h = served_host(x, g->server.host);
    const char *shape = words_of(a, list, g, show_request_shape),
               *labels[] = {arena_printf(a, "%zu", number + 1),
                   arena_printf(a, "%s %s", h->index->name, g->server.comm),
                   arena_printf(a, "%llu", (unsigned long long)g->count), arena_duration(a, g->p50),
                   arena_duration(a, g->p90), arena_duration(a, g->p99), arena_duration(a, g->max), shape,
                   words_of(a, list, g, show_request_growth)};
    const struct tsp_meta meta[] = {{.key = "group", .number = (int64_t)number + 1},
        {.key = "count", .number = (int64_t)g->count}, {.key = "p50", .number = g->p50},
        {.key = "p90", .number = g->p90}, {.key = "p99", .number = g->p99}, {.key = "maximum", .number = g->max},
        {.key = "first", .number = g->first}};
    tsp_write_entry(answer,
        &(struct tsp_entry){.id = view_id(x, number),
            .parent = -1,
            .key = view_key(arena_printf(a, "%s %s", g->server.comm, shape), (int64_t)h->index->key),
            .labels = labels,
            .n_labels = sizeof labels / sizeof *labels,
            .has_data = true,
            .host_id = h->id,
            .meta = meta,
            .n_meta = sizeof meta / sizeof *meta});
}

static void write_groups(const struct view *self, struct views *x, const struct tsp_query *q, const struct served *list,
    struct tsp_answer *answer)
{
    for (size_t i = 0; i < path_request_groups_count(list->groups) && view_goes_on(q, answer); i++)
        write_group(answer, x, q->http->arena, list, i);
}

static void groups_tree(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    served_with(self, x, q, answer, write_groups);
}

/* ---- counts by duration ---- */

static void write_bars(struct views *x, const struct tsp_query *q, struct tsp_answer *answer, const uint64_t *counts,
    size_t first, size_t past)
{
    struct arena *a = q->http->arena;
    size_t n = past - first;
    int64_t(*ranges)[2] = arena_alloc(a, sizeof *ranges * (n + 1));
    double *y = arena_new(a, double, n + 1);
    for (size_t i = 0; i < n; i++) {
        ranges[i][0] = figures_eighth(first + i);
        ranges[i][1] = figures_eighth(first + i + 1);
        y[i] = (double)counts[first + i];
    }
    struct tsp_series s = {.id = view_id(x, 0), .name = "Total", .type = "bar", .y = y, .n = n, .y_label = "Count"};
    s.ranges = (const int64_t(*)[2])ranges;
    s.x_label = "Duration";
    s.x_unit = "ns";
    s.x_type = "DURATION";
    tsp_write_series(answer, &s);
}

/* Counts requests that overlap the query's range. */
static void write_durations(const struct view *self, struct views *x, const struct tsp_query *q,
    const struct served *list, struct tsp_answer *answer)
{
    uint64_t counts[FIGURES_EIGHTHS] = {0};
    size_t first = FIGURES_EIGHTHS, past = 0, n = path_requests_count(list->found);
    for (size_t i = 0; i < n; i++) {
        const struct served_request *r = path_requests_get(list->found, i);
        if (r->end < q->begin || r->begin > q->end)
            continue;
        size_t range = figures_eighth_of(request_duration(r));
        counts[range]++;
        first = range < first ? range : first;
        past = range >= past ? range + 1 : past;
    }
    if (first < past && (!q->has_items || tsp_wants(q, view_id(x, 0))))
        write_bars(x, q, answer, counts, first, past);
}

static void durations_xy(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    served_with(self, x, q, answer, write_durations);
}

/* Tree of one series. Coordinators sum the counts of all servers, range by range. */
static void durations_tree(
    const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    view_write_merged(answer, NULL, view_id(x, 0), -1, "Total", VIEW_DATA | VIEW_DEFAULT, "total", TSP_COUNTS);
}

const struct view view_served_requests = {
    .provider = {.id = "weft.requests",
        .name = "Requests",
        .description = "What clients asked of server threads, the slowest first",
        .type = "TABLE"},
    .host_has_data = has_data,
    .table_columns = columns,
    .n_table_columns = COLUMNS,
    .lines = lines,
    .give_memory = served_forget,
    .close = served_close,
};
const struct view view_served_groups = {
    .provider = {.id = "weft.requests.groups",
        .name = "Request Groups",
        .description = "Requests whose critical paths are alike: how long they took, and what took longer in slow ones",
        .type = "DATA_TREE"},
    .host_has_data = has_data,
    VIEW_HEADERS({"Group", "The largest first", "NUMBER", "group", TSP_FIRST},
        {"Server", "Machine and threads that replied", "STRING", "server", TSP_FIRST},
        {"Count", "How many requests", "NUMBER", "count", TSP_SUM},
        {"p50", "Half of them took so long at most", "DURATION", "p50"},
        {"p90", "90 of 100 took so long at most", "DURATION", "p90"},
        {"p99", "99 of 100 took so long at most", "DURATION", "p99"},
        {"Maximum", "Longest", "DURATION", "maximum", TSP_MAX},
        {"Path", "What takes most of the critical paths, the most time first", "STRING", "path"},
        {"Grew in the slow ones", "What took longer than in the faster half, and by how much", "STRING", "grew"}),
    .tree = groups_tree,
};
const struct view view_served_durations = {
    .provider = {.id = "weft.requests.durations",
        .name = "Request Durations",
        .description = "How many requests took how long, on a logarithmic scale",
        .type = "TREE_GENERIC_XY"},
    .host_has_data = has_data,
    VIEW_HEADERS({"Name", "All requests of the range", "STRING"}),
    .tree = durations_tree,
    .title = "Request Durations",
    .xy = durations_xy,
};

/* SPDX-License-Identifier: MIT */
/* Clock synchronisation: origin of each machine's clock map, and its error over time. */
#include <stdlib.h>

#include "base/mem.h"
#include "views/list.h"
#include "views/view.h"

static bool synchronised(const struct view *self, struct views *x)
{
    return x->clocks != NULL;
}

static const struct tsp_column columns[] = {{0, "Host", "Machine", "STRING"},
    {1, "Reference", "Machine whose clock is used", "STRING"},
    {2, "By way of", "Machine whose messages tie this one", "STRING"},
    {3, "Category", "How well the two clocks are tied", "STRING"},
    {4, "Drift (ppm)", "Rate of this clock against the reference", "NUMBER"},
    {5, "Offset (ns)", "Reference minus this clock at the trace's begin", "NUMBER"},
    {6, "Error at begin (ns)", "The truth is within this distance", "NUMBER"},
    {7, "Error in the middle (ns)", "The truth is within this distance", "NUMBER"},
    {8, "Error at end (ns)", "The truth is within this distance", "NUMBER"}};

static const struct clock_map *map_of(const struct views *x, size_t row)
{
    return clock_net_map(x->clocks, row);
}

static void cell(void *arg, size_t row, size_t column, struct text *out)
{
    const struct views *x = arg;
    const struct view_host *h = &x->hosts[row];
    const struct clock_map *m = map_of(x, row);
    int64_t begin = h->index->begin, end = h->index->end;
    switch (column) {
    case 0: text_puts(out, h->index->name); break;
    case 1: text_puts(out, x->hosts[m->reference].index->name); break;
    case 2: text_puts(out, m->predecessor < 0 ? "" : x->hosts[m->predecessor].index->name); break;
    case 3: text_puts(out, clock_category_name(m->category)); break;
    case 4:
        if (m->n && end > begin)
            text_printf(out, "%.3f",
                ((double)(clock_to_reference(m, end) - clock_to_reference(m, begin) - (end - begin))) /
                    (double)(end - begin) * 1e6);
        break;
    case 5:
        if (m->n)
            text_i64(out, clock_to_reference(m, begin) - begin);
        break;
    default:
        if (m->n)
            text_i64(out, clock_error_at(m, column == 6 ? begin : column == 8 ? end : begin + (end - begin) / 2));
    }
}

static void table(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_table *t)
{
    t->rows = x->n_hosts;
    t->cell = cell;
}

/* ---- the maps ---- */

static const struct tsp_column map_columns[] = {{0, "Host", "Machine", "STRING"},
    {1, "From (ns)", "By the machine's own clock", "NUMBER"}, {2, "Until (ns)", "By the machine's own clock", "NUMBER"},
    {3, "Reference from (ns)", "The same instant by the reference clock", "NUMBER"},
    {4, "Reference until (ns)", "The same instant by the reference clock; in between it is linear", "NUMBER"},
    {5, "Error from (ns)", "The truth is within this distance", "NUMBER"},
    {6, "Error until (ns)", "The truth is within this distance", "NUMBER"}};

/* Number of the first piece by host, followed by the number of all pieces. */
static void *count_pieces(struct views *x)
{
    size_t *first = mem_zalloc(sizeof *first * (x->n_hosts + 1));
    for (size_t i = 0; i < x->n_hosts; i++)
        first[i + 1] = first[i] + map_of(x, i)->n;
    return first;
}

static void close_pieces(struct views *x, void *first)
{
    free(first);
}

/* Last host that has pieces and whose first piece is not after `row`. */
static size_t host_of_piece(const size_t *first, size_t n_hosts, size_t row)
{
    size_t low = 0, high = n_hosts;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        *(first[middle] <= row ? &low : &high) = middle;
    }
    return low;
}

static void map_cell(void *arg, size_t row, size_t column, struct text *out)
{
    struct views *x = arg;
    const size_t *first = view_cache(x, &view_clock_maps, count_pieces);
    size_t host = host_of_piece(first, x->n_hosts, row);
    const struct clock_map *m = map_of(x, host);
    const struct clock_piece *p = &m->pieces[row - first[host]];
    switch (column) {
    case 0: text_puts(out, x->hosts[host].index->clock_name); break;
    case 1: text_i64(out, p->begin); break;
    case 2: text_i64(out, p->end); break;
    case 3: text_i64(out, clock_to_reference(m, p->begin)); break;
    case 4: text_i64(out, clock_to_reference(m, p->end)); break;
    case 5: text_i64(out, p->error_begin); break;
    default: text_i64(out, p->error_end);
    }
}

static void map_table(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_table *t)
{
    const size_t *first = view_cache(x, self, count_pieces);
    t->rows = first[x->n_hosts];
    t->arg = x;
    t->cell = map_cell;
}

/* ---- the corridor over time ---- */

static void tree(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    for (size_t i = 0; i < x->n_hosts; i++)
        view_write_entry(answer, &x->hosts[i], view_id(x, i), -1, x->hosts[i].index->name,
            VIEW_DEFAULT | (map_of(x, i)->n ? VIEW_DATA : 0));
}

static void xy(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    for (size_t i = 0; i < x->n_hosts && !tsp_full(answer); i++) {
        const struct clock_map *m = map_of(x, i);
        if (!m->n || !tsp_wants(q, view_id(x, i)))
            continue;
        double *y = arena_new(q->http->arena, double, q->n_times);
        for (size_t k = 0; k < q->n_times; k++)
            y[k] = (double)clock_error_at(m, view_to_host(&x->hosts[i], q->times[k]));
        view_write_series(self, q, answer, view_id(x, i), x->hosts[i].index->name, y);
    }
}

const struct view view_clock_table = {
    .provider = {.id = "weft.clocks",
        .name = "Clock Synchronisation",
        .description = "Clock maps of the machines and their errors",
        .type = "TABLE"},
    .has_data = synchronised,
    VIEW_COLUMNS(columns),
    .table = table,
};
const struct view view_clock_maps = {
    .provider = {.id = "weft.clocks.maps",
        .name = "Clock Maps",
        .description = "How the clock of each machine becomes that of the reference, piece by piece",
        .type = "TABLE"},
    .has_data = synchronised,
    VIEW_COLUMNS(map_columns),
    .table = map_table,
    .close = close_pieces,
};
const struct view view_clock_error = {
    .provider = {.id = "weft.clocks.error",
        .name = "Clock Error",
        .description = "Distance within which the true clock lies, over time",
        .type = "TREE_TIME_XY"},
    .has_data = synchronised,
    VIEW_HEADERS({"Host", "Half width of the corridor that holds the true clock", "STRING"}),
    .tree = tree,
    .title = "Clock error",
    .series = {.type = "line", .y_label = "Error", .y_unit = "ns", .y_type = "DURATION", .merge = TSP_LEVEL},
    .xy = xy,
};

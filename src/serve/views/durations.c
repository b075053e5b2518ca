/* SPDX-License-Identifier: MIT */
#include "views/durations.h"

#include <math.h>

const char *durations_text(struct arena *a, double ns)
{
    struct text t = {.fd = -1};
    text_duration(&t, (int64_t)ns);
    const char *s = arena_strdup(a, text_cstr(&t));
    text_fini(&t);
    return s;
}

/* ---- figures ---- */

const struct tsp_header durations_headers[] = {{"Label", "Name", "STRING"},
    {"Minimum", "Shortest", "DURATION", "minimum", TSP_MIN}, {"Maximum", "Longest", "DURATION", "maximum", TSP_MAX},
    {"Average", "Mean", "DURATION", "average", TSP_MEAN, "total", "count"},
    {"Std Dev", "Standard deviation", "DURATION", "deviation", TSP_DEVIATION, "spread", "count"},
    {"Count", "How many", "NUMBER", "count", TSP_SUM}, {"Total", "Sum", "DURATION", "total", TSP_SUM},
    {"Min Time Range", "Where the shortest is", "TIME_RANGE", "minimumRange", TSP_MIN, "minimum"},
    {"Max Time Range", "Where the longest is", "TIME_RANGE", "maximumRange", TSP_MAX, "maximum"},
    {"Self Time", "Sum without the calls that they made", "DURATION", "self", TSP_SUM}};

void durations_write_figures(struct tsp_answer *answer, struct arena *a, int64_t id, int64_t parent, uint64_t key,
    const char *label, const char *row, const struct figures *f, const int64_t *self)
{
    if (!f->n)
        return;
    double n = (double)f->n;
    const char *labels[DURATIONS_SELF_HEADERS] = {label, durations_text(a, (double)f->least),
        durations_text(a, (double)f->most), durations_text(a, (double)f->sum / n),
        f->n > 2 ? durations_text(a, sqrt(f->spread / (n - 1))) : "---",
        arena_printf(a, "%llu", (unsigned long long)f->n), durations_text(a, (double)f->sum),
        arena_printf(a, "[%lld,%lld]", (long long)f->least_begin, (long long)(f->least_begin + f->least)),
        arena_printf(a, "[%lld,%lld]", (long long)f->most_begin, (long long)(f->most_begin + f->most)),
        self ? durations_text(a, (double)*self) : NULL};
    const struct tsp_meta meta[] = {{.key = "minimum", .number = f->least}, {.key = "maximum", .number = f->most},
        {.key = "minimumBegin", .number = f->least_begin}, {.key = "maximumBegin", .number = f->most_begin},
        {.key = "count", .number = (int64_t)f->n}, {.key = "total", .number = f->sum},
        {.key = "spread", .is_real = true, .real = f->spread}, {.key = "self", .number = self ? *self : 0}};
    const size_t n_meta = sizeof meta / sizeof *meta;
    tsp_write_entry(answer,
        &(struct tsp_entry){.id = id,
            .parent = parent,
            .key = key,
            .labels = labels,
            .n_labels = self ? DURATIONS_SELF_HEADERS : DURATIONS_HEADERS,
            .has_data = true,
            .meta = meta,
            .n_meta = n_meta - !self,
            .row = row,
            .merge = row ? TSP_SUM : TSP_MERGE_NONE});
}

static void write_name(const struct views *x, struct tsp_answer *answer, struct arena *a,
    const struct durations_statistics *s, size_t name, int64_t root, const struct figures *f)
{
    size_t host;
    const char *label = s->label(s->arg, name, &host);
    const struct index_host *h = x->hosts[host].index;
    uint64_t key = view_key(label, (int64_t)h->key);
    if (x->n_hosts > 1)
        label = arena_printf(a, "%s/%s", h->name, label);
    durations_write_figures(answer, a, root + 1 + (int64_t)name, root, key, label, NULL, f, NULL);
}

void durations_write_statistics(
    const struct views *x, const struct tsp_query *q, struct tsp_answer *answer, const struct durations_statistics *s)
{
    struct arena *a = q->http->arena;
    for (int selection = 0; selection < 1 + view_has_selection(x, q); selection++) {
        struct figures all = {0}, *of = arena_new(a, struct figures, s->n + 1);
        int64_t root = view_id(x, selection ? 1 + s->n : 0);
        s->find(s->arg, selection, of);
        for (size_t i = 0; i < s->n; i++)
            figures_join(&all, &of[i]);
        durations_write_figures(
            answer, a, root, -1, 0, selection ? "Selection" : "Total", selection ? "selection" : "total", &all, NULL);
        for (size_t i = 0; i < s->n && !tsp_full(answer); i++)
            if (of[i].n)
                write_name(x, answer, a, s, i, root, &of[i]);
    }
}

/* ---- points ---- */

size_t durations_gaps(const struct tsp_query *q)
{
    return q->n_times > 1 ? q->n_times - 1 : 1;
}

int64_t durations_gap_end(const struct tsp_query *q, size_t gap)
{
    return gap + 1 < durations_gaps(q) ? q->times[gap + 1] : time_after(q->end);
}

static void add_point(struct durations_points *p, const struct view_host *h, int64_t begin, int64_t duration)
{
    vec_push(&p->x, view_to_reference(h, begin));
    vec_push(&p->y, (double)duration);
}

void durations_add_points(struct durations_points *p, const struct view_host *h, const struct figures *f)
{
    if (!f->n)
        return;
    bool least_first = f->least_begin < f->most_begin;
    add_point(p, h, least_first ? f->least_begin : f->most_begin, least_first ? f->least : f->most);
    if (f->least_begin != f->most_begin)
        add_point(p, h, least_first ? f->most_begin : f->least_begin, least_first ? f->most : f->least);
}

void durations_write_points(struct tsp_answer *answer, int64_t id, const char *name, const struct durations_points *p)
{
    struct tsp_series s = {
        .type = "scatter", .y_label = "Duration", .y_unit = "ns", .y_type = "DURATION", .merge = TSP_CONCATENATE};
    s.id = id;
    s.name = name;
    s.x = p->x.v;
    s.y = p->y.v;
    s.n = p->x.n;
    tsp_write_series(answer, &s);
}

void durations_free_points(struct durations_points *p)
{
    vec_free(&p->x);
    vec_free(&p->y);
}

/* ---- bars ---- */

struct durations_bars durations_bars(const struct tsp_query *q, int64_t longest, size_t n)
{
    const char *scale = json_string_value(json_object_get(q->parameters, "x_scale"));
    struct durations_bars b = {.width = longest / (int64_t)n + 1, .n = n};
    int64_t wanted = json_integer_value(json_object_get(q->parameters, "x_width"));
    b.width = wanted > b.width ? wanted : b.width;
    if (scale && !strcmp(scale, "logarithmic"))
        b = (struct durations_bars){.width = FIGURES_BY_RATIO, .n = FIGURES_RATIO_RANGES};
    b.counts = arena_new(q->http->arena, uint64_t, b.n);
    return b;
}

void durations_write_bars(
    const struct tsp_query *q, struct tsp_answer *answer, struct tsp_series s, const struct durations_bars *b)
{
    size_t first = 0, end = b->n;
    if (b->width == FIGURES_BY_RATIO) {
        while (end && !b->counts[end - 1])
            end--;
        while (first < end && !b->counts[first])
            first++;
    }
    int64_t(*ranges)[2] = arena_alloc(q->http->arena, sizeof *ranges * (end - first + 1));
    double *y = arena_alloc(q->http->arena, sizeof *y * (end - first + 1));
    for (size_t i = 0; i < end - first; i++) {
        ranges[i][0] = figures_range_begin(b->width, first + i);
        ranges[i][1] = figures_range_begin(b->width, first + i + 1);
        y[i] = (double)b->counts[first + i];
    }
    s.ranges = (const int64_t(*)[2])ranges;
    s.y = y;
    s.n = end - first;
    tsp_write_series(answer, &s);
}

void durations_total_tree(
    const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    view_write_merged(answer, NULL, view_id(x, 0), -1, "Total", VIEW_DATA | VIEW_DEFAULT, "total", TSP_SUM);
}

void durations_write_total(
    const struct views *x, const struct tsp_query *q, struct tsp_answer *answer, const struct durations_bars *b)
{
    struct tsp_series s = {.id = view_id(x, 0), .name = "Total", .type = "bar", .y_label = "Count"};
    s.x_label = "Duration";
    s.x_unit = "ns";
    s.x_type = "DURATION";
    if (!q->has_items || tsp_wants(q, s.id))
        durations_write_bars(q, answer, s, b);
}

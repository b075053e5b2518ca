#include "views/figures.h"

#include <math.h>

const struct tsp_header figures_headers[FIGURES_HEADERS] = {{"Label", "Name", "STRING"},
    {"Minimum", "Shortest", "DURATION"}, {"Maximum", "Longest", "DURATION"}, {"Average", "Mean", "DURATION"},
    {"Std Dev", "Standard deviation", "DURATION"}, {"Count", "How many", "NUMBER"}, {"Total", "Sum", "DURATION"},
    {"Min Time Range", "Where the shortest is", "TIME_RANGE"},
    {"Max Time Range", "Where the longest is", "TIME_RANGE"}};

const char *durations_text(struct arena *a, double ns)
{
    struct text t = {.fd = -1};
    text_duration(&t, (int64_t)ns);
    const char *s = arena_strdup(a, text_cstr(&t));
    text_fini(&t);
    return s;
}

void figures_write(struct tsp_answer *answer, struct arena *a, int64_t id, int64_t parent, const char *label,
    const struct figures *f, const char *const *more, size_t n_more)
{
    if (!f->n)
        return;
    double n = (double)f->n;
    const char **labels = arena_new(a, const char *, FIGURES_HEADERS + n_more);
    labels[0] = label;
    labels[1] = durations_text(a, (double)f->least);
    labels[2] = durations_text(a, (double)f->most);
    labels[3] = durations_text(a, (double)f->sum / n);
    labels[4] = f->n > 2 ? durations_text(a, sqrt(f->spread / (n - 1))) : "---";
    labels[5] = arena_printf(a, "%llu", (unsigned long long)f->n);
    labels[6] = durations_text(a, (double)f->sum);
    labels[7] = arena_printf(a, "[%lld,%lld]", (long long)f->least_begin, (long long)(f->least_begin + f->least));
    labels[8] = arena_printf(a, "[%lld,%lld]", (long long)f->most_begin, (long long)(f->most_begin + f->most));
    for (size_t i = 0; i < n_more; i++)
        labels[FIGURES_HEADERS + i] = more[i];
    tsp_write_entry(answer,
        &(struct tsp_entry){
            .id = id, .parent = parent, .labels = labels, .n_labels = FIGURES_HEADERS + n_more, .has_data = true});
}

static void add_point(struct figures_points *p, const struct view_host *h, int64_t begin, int64_t duration)
{
    vec_push(&p->x, view_to_reference(h, begin));
    vec_push(&p->y, (double)duration);
}

void figures_add_points(struct figures_points *p, const struct view_host *h, const struct figures *f)
{
    if (!f->n)
        return;
    bool least_first = f->least_begin < f->most_begin;
    add_point(p, h, least_first ? f->least_begin : f->most_begin, least_first ? f->least : f->most);
    if (f->least_begin != f->most_begin)
        add_point(p, h, least_first ? f->most_begin : f->least_begin, least_first ? f->most : f->least);
}

void figures_write_points(struct tsp_answer *answer, int64_t id, const char *name, const struct figures_points *p)
{
    tsp_write_series(answer,
        &(struct tsp_series){.id = id,
            .name = name,
            .type = "scatter",
            .x = p->x.v,
            .y = p->y.v,
            .n = p->x.n,
            .y_label = "Duration",
            .y_unit = "ns",
            .y_type = "DURATION"});
}

void figures_free_points(struct figures_points *p)
{
    vec_free(&p->x);
    vec_free(&p->y);
}

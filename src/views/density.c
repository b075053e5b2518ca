#include "views/density.h"

int64_t density_width(int64_t longest, size_t n)
{
    return longest / (int64_t)n + 1;
}

const int64_t (*density_ranges(struct arena *a, int64_t width, size_t n))[2]
{
    int64_t(*ranges)[2] = arena_alloc(a, sizeof *ranges * n);
    for (size_t i = 0; i < n; i++) {
        ranges[i][0] = width * (int64_t)i;
        ranges[i][1] = i + 1 < n || width < INT64_MAX / (int64_t)n ? width * (int64_t)(i + 1) : INT64_MAX;
    }
    return (const int64_t(*)[2])ranges;
}

static int64_t total(const struct views *x)
{
    return x->last_thread + 1;
}

void density_write_tree(const struct views *x, struct tsp_answer *answer, const char *tooltip)
{
    const char *label = "Total";
    tsp_begin_tree(answer, &(struct tsp_header){"Name", tooltip, "STRING"}, 1, -1);
    tsp_write_entry(answer,
        &(struct tsp_entry){.id = total(x),
            .parent = -1,
            .labels = &label,
            .n_labels = 1,
            .xy = true,
            .is_default = true,
            .has_data = true});
    tsp_end_tree(answer);
}

void density_write(const struct views *x, const struct tsp_query *q, struct tsp_answer *answer, int64_t width,
    const uint64_t *counts, size_t n)
{
    struct arena *a = q->http->arena;
    double *y = arena_alloc(a, sizeof *y * n);
    for (size_t i = 0; i < n; i++)
        y[i] = (double)counts[i];
    tsp_begin_xy(answer, "Latency Density");
    if (!q->has_items || tsp_wants(q, total(x)))
        tsp_write_series(answer,
            &(struct tsp_series){.id = total(x),
                .name = "Total",
                .type = "bar",
                .ranges = density_ranges(a, width, n),
                .y = y,
                .n = n,
                .x_label = "Duration",
                .x_unit = "ns",
                .x_type = "DURATION",
                .y_label = "Count"});
    tsp_end_xy(answer);
}

/* SPDX-License-Identifier: MIT */
/* Disk and network throughput in bytes per second: one line per host, device and direction. */
#include "views/rates.h"

/* Counters and names by the views' `kind`. */
static const struct {
    int counters[2];
    const char *labels[2];
} directions[] = {{{STATE_DISK_READ, STATE_DISK_WRITE}, {"read", "write"}},
    {{STATE_NET_SENT, STATE_NET_RECEIVED}, {"sent", "received"}}};
enum { DISK, NETWORK };

static bool has_data(const struct view *self, const struct view_host *h)
{
    const int *counters = directions[self->kind].counters;
    return h->states && (state_counters(h->states, counters[0]) || state_counters(h->states, counters[1]));
}

static size_t devices(const struct view *self, const struct view_host *h)
{
    return h->states ? state_counters(h->states, directions[self->kind].counters[0]) : 0;
}

/* Entry ids: per host its root, then per device the device and its two directions. */
static void tree(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    int64_t id = view_id(x, 0);
    for (size_t i = 0; i < x->n_hosts; i++) {
        const struct view_host *h = &x->hosts[i];
        int64_t root = id++;
        view_write_entry(answer, h, root, -1, h->index->name, VIEW_GROUP);
        for (size_t k = 0; k < devices(self, h); k++, id += 3) {
            struct state_counter device;
            state_counter(h->states, directions[self->kind].counters[0], k, &device);
            view_write_entry(answer, h, id, root, device.name, VIEW_GROUP);
            for (int d = 0; d < 2; d++)
                view_write_entry(answer, h, id + 1 + d, id, directions[self->kind].labels[d], VIEW_DATA);
        }
    }
}

static void write_series(const struct view *self, const struct view_host *h, const struct tsp_query *q,
    struct tsp_answer *answer, int64_t id, size_t device, int direction)
{
    struct arena *a = q->http->arena;
    struct state_counter c;
    int kind = directions[self->kind].counters[direction];
    double *y = arena_new(a, double, q->n_times);
    state_counter(h->states, directions[self->kind].counters[0], device, &c);
    rates_add(h, q, rates_times(h, q, view_to_host), kind, state_find_counter(h->states, kind, c.number), 1e9, y);
    view_write_series(self, q, answer, id,
        arena_printf(a, "%s/%s/%s", h->index->name, c.name, directions[self->kind].labels[direction]), y);
}

static void xy(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    int64_t id = view_id(x, 0);
    for (size_t i = 0; i < x->n_hosts; i++, id++)
        for (size_t k = 0; k < devices(self, &x->hosts[i]); k++, id += 3)
            for (int d = 0; d < 2; d++)
                if (q->has_items && tsp_wants(q, id + 2 + d) && view_goes_on(q, answer))
                    write_series(self, &x->hosts[i], q, answer, id + 2 + d, k, d);
}

const struct view view_disk_io = {
    .provider = {.id = "org.eclipse.tracecompass.analysis.os.linux.core.inputoutput.DisksIODataProvider",
        .name = "Disk I/O View",
        .description = "Bytes read and written per disk, when their requests complete",
        .type = "TREE_TIME_XY"},
    .kind = DISK,
    .host_has_data = has_data,
    VIEW_HEADERS({"Name", "Device and direction", "STRING"}),
    .tree = tree,
    .title = "Disk I/O",
    .series = {.type = "area", .y_label = "Throughput", .y_unit = "B/s", .y_type = "BINARY_NUMBER", .merge = TSP_SUM},
    .xy = xy,
};
const struct view view_network_io = {
    .provider = {.id = "weft.network.io",
        .name = "Network I/O",
        .description = "Bytes sent and received per network interface",
        .type = "TREE_TIME_XY"},
    .kind = NETWORK,
    .host_has_data = has_data,
    VIEW_HEADERS({"Name", "Device and direction", "STRING"}),
    .tree = tree,
    .title = "Network I/O",
    .series = {.type = "area", .y_label = "Throughput", .y_unit = "B/s", .y_type = "BINARY_NUMBER", .merge = TSP_SUM},
    .xy = xy,
};

/* Disk and network throughput: per host and device one line per direction, in bytes a second. */
#include "views/growth.h"

struct io {
    int kinds[2];
    const char *labels[2];
    const char *title;
};
static const struct io disk = {{STATE_DISK_READ, STATE_DISK_WRITE}, {"read", "write"}, "Disk I/O"};
static const struct io network = {{STATE_NET_SENT, STATE_NET_RECEIVED}, {"sent", "received"}, "Network I/O"};

static bool has_counters(const struct views *x, const struct io *io)
{
    for (size_t i = 0; i < x->n_hosts; i++)
        if (x->hosts[i].states &&
            (state_counters(x->hosts[i].states, io->kinds[0]) || state_counters(x->hosts[i].states, io->kinds[1])))
            return true;
    return false;
}

/* Entries in a fixed order: per host its root, then per device the device and its two directions. Calls f for each with
 * its id. */
struct place {
    const struct view_host *host;
    int64_t id, parent;
    int level, direction;
    struct state_counter counter;
};

static void each_entry(
    const struct views *x, const struct io *io, void (*f)(void *arg, const struct place *), void *arg)
{
    int64_t id = x->last_thread + 1;
    for (size_t i = 0; i < x->n_hosts; i++) {
        const struct view_host *h = &x->hosts[i];
        struct place p = {.host = h, .id = id++, .parent = -1};
        int64_t root = p.id;
        f(arg, &p);
        for (size_t k = 0; h->states && k < state_counters(h->states, io->kinds[0]); k++) {
            p = (struct place){.host = h, .id = id++, .parent = root, .level = 1};
            state_counter(h->states, io->kinds[0], k, &p.counter);
            int64_t device = p.id;
            f(arg, &p);
            for (int d = 0; d < 2; d++) {
                p = (struct place){
                    .host = h, .id = id++, .parent = device, .level = 2, .direction = d, .counter = p.counter};
                f(arg, &p);
            }
        }
    }
}

struct writing {
    const struct io *io;
    const struct tsp_query *q;
    struct tsp_answer *answer;
};

static void write_entry(void *arg, const struct place *p)
{
    const struct writing *w = arg;
    const char *label = p->level == 0 ? p->host->index->name
        : p->level == 1               ? p->counter.name
                                      : w->io->labels[p->direction];
    tsp_write_entry(w->answer,
        &(struct tsp_entry){.id = p->id,
            .parent = p->parent,
            .labels = &label,
            .n_labels = 1,
            .xy = true,
            .has_data = p->level == 2,
            .host_id = p->host->id});
}

static void write_series(void *arg, const struct place *p)
{
    const struct writing *w = arg;
    struct arena *a = w->q->http->arena;
    if (p->level < 2 || !w->q->has_items || !tsp_wants(w->q, p->id) || tsp_full(w->answer) || http_gone(w->q->http))
        return;
    struct tsp_samples s = tsp_samples_of(p->host, w->q);
    double *y = arena_new(a, double, w->q->n_times);
    int kind = w->io->kinds[p->direction];
    tsp_add_rates(p->host, kind, state_find_counter(p->host->states, kind, p->counter.number), &s, 1e9, y, a);
    tsp_write_series(w->answer,
        &(struct tsp_series){.id = p->id,
            .name = arena_printf(a, "%s/%s/%s", p->host->index->name, p->counter.name, w->io->labels[p->direction]),
            .type = "area",
            .x = w->q->times,
            .y = y,
            .n = w->q->n_times,
            .y_label = "Throughput",
            .y_unit = "B/s",
            .y_type = "BINARY_NUMBER"});
}

static void write_tree(
    const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer, const struct io *io)
{
    static const struct tsp_header headers[] = {{"Name", "Device and direction", "STRING"}};
    struct writing w = {io, q, answer};
    tsp_begin_tree(answer, headers, 1, -1);
    each_entry(x, io, write_entry, &w);
    tsp_end_tree(answer);
}

static void write_xy(
    const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer, const struct io *io)
{
    struct writing w = {io, q, answer};
    tsp_begin_xy(answer, io->title);
    each_entry(x, io, write_series, &w);
    tsp_end_xy(answer);
}

static bool has_disks(const struct view *self, struct views *x)
{
    return has_counters(x, &disk);
}
static void disk_tree(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    write_tree(self, x, q, answer, &disk);
}
static void disk_xy(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    write_xy(self, x, q, answer, &disk);
}
static bool has_network(const struct view *self, struct views *x)
{
    return has_counters(x, &network);
}
static void network_tree(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    write_tree(self, x, q, answer, &network);
}
static void network_xy(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    write_xy(self, x, q, answer, &network);
}

const struct view view_disk_io = {
    .provider = {.id = "org.eclipse.tracecompass.analysis.os.linux.core.inputoutput.DisksIODataProvider",
        .name = "Disk I/O View",
        .description = "Bytes read and written per disk, when their requests complete",
        .type = "TREE_TIME_XY"},
    .has_data = has_disks,
    .tree = disk_tree,
    .xy = disk_xy,
};
const struct view view_network_io = {
    .provider = {.id = "weft.network.io",
        .name = "Network I/O",
        .description = "Bytes sent and received per network interface",
        .type = "TREE_TIME_XY"},
    .has_data = has_network,
    .tree = network_tree,
    .xy = network_xy,
};

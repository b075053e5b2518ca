/* Disk Requests: per disk those that wait in the queue and those that the driver has, each in the first free place. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "views/state_rows.h"
#include "views/list.h"

/* Entries in order, ids from the first on; row -1: a group. */
struct entry {
    int64_t parent;
    const struct view_host *host;
    size_t number; /* of the host */
    int64_t row;
    const char *label;
};
struct entries {
    VEC(struct entry) v;
    struct arena texts;
};

static int64_t first_id(const struct views *x)
{
    return x->last_thread + 1;
}

static int64_t add(struct entries *all, struct entry e)
{
    vec_push(&all->v, e);
    return (int64_t)all->v.n - 1;
}

static void add_host(struct entries *all, const struct view_host *h, size_t number)
{
    static const char *const queues[] = {"Waiting Queue", "Driver Queue"};
    int64_t root = add(all, (struct entry){-1, h, number, -1, h->index->name}), disk = -1, queue = -1;
    int32_t before = -1;
    for (size_t i = 0; i < state_rows(h->states, STATE_REQUEST_ROWS); i++) {
        struct state_row r;
        state_row(h->states, STATE_REQUEST_ROWS, i, &r);
        if (before < 0 || r.number >> STATE_REQUEST_DISK_SHIFT != before >> STATE_REQUEST_DISK_SHIFT)
            disk = add(all, (struct entry){root, h, number, -1, r.name});
        if (before < 0 || r.number >> STATE_REQUEST_QUEUE_SHIFT != before >> STATE_REQUEST_QUEUE_SHIFT)
            queue = add(all, (struct entry){disk, h, number, -1, queues[r.number >> STATE_REQUEST_QUEUE_SHIFT & 1]});
        before = r.number;
        int place = r.number & ((1 << STATE_REQUEST_QUEUE_SHIFT) - 1);
        add(all, (struct entry){queue, h, number, (int64_t)i, arena_printf(&all->texts, "%d", place)});
    }
}

static void *make(struct views *x)
{
    struct entries *all = mem_zalloc(sizeof *all);
    for (size_t i = 0; i < x->n_hosts; i++)
        if (x->hosts[i].states)
            add_host(all, &x->hosts[i], i);
    return all;
}

static void close_entries(struct views *x, void *cache)
{
    struct entries *all = cache;
    vec_free(&all->v);
    arena_fini(&all->texts);
    free(all);
}

static const struct entries *entries_of(struct views *x)
{
    return view_cache(x, &view_disk_requests, make);
}

static const struct entry *entry_of(struct views *x, int64_t id)
{
    const struct entries *all = entries_of(x);
    int64_t i = id - first_id(x);
    return i >= 0 && i < (int64_t)all->v.n ? &all->v.v[i] : NULL;
}

static bool has_data(const struct view *self, struct views *x)
{
    for (size_t i = 0; i < x->n_hosts; i++)
        if (x->hosts[i].states && state_rows(x->hosts[i].states, STATE_REQUEST_ROWS))
            return true;
    return false;
}

static void tree(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    static const struct tsp_header headers[] = {{"Name", "Disk, queue, place in it", "STRING"}};
    const struct entries *all = entries_of(x);
    tsp_begin_tree(answer, headers, 1, -1);
    for (size_t i = 0; i < all->v.n && !tsp_full(answer); i++) {
        const struct entry *e = &all->v.v[i];
        tsp_write_entry(answer,
            &(struct tsp_entry){.id = first_id(x) + (int64_t)i,
                .parent = e->parent < 0 ? -1 : first_id(x) + e->parent,
                .labels = &e->label,
                .n_labels = 1,
                .time_graph = true,
                .start = x->data.begin,
                .end = x->data.end,
                .has_data = e->row >= 0,
                .host_id = e->host->id});
    }
    tsp_end_tree(answer);
}

/* ---- states ---- */

enum { SECTOR_BYTES = 512 };
static const char *const colors[STATE_REQUESTS] = {[STATE_REQUEST_READ] = LOOK_SYSCALL,
    [STATE_REQUEST_WRITE] = LOOK_BLOCKED,
    [STATE_REQUEST_FLUSH] = LOOK_HYPERVISOR,
    [STATE_REQUEST_OTHER] = LOOK_TIMER};

/* NULL: there is none. */
static const char *key_of(const struct state_interval *iv)
{
    return iv->value == STATE_NONE ? NULL
                                   : state_request_name((unsigned)iv->amount & ((1 << STATE_REQUEST_TYPE_BITS) - 1));
}

static int64_t sector_of(const struct state_interval *iv)
{
    return (int64_t)((uint64_t)iv->amount >> STATE_REQUEST_SECTOR_SHIFT);
}

static int64_t bytes_of(const struct state_interval *iv)
{
    return (iv->amount >> STATE_REQUEST_TYPE_BITS & STATE_REQUEST_MOST_SECTORS) * SECTOR_BYTES;
}

static void show(struct views *x, const struct view_state_row *row, const struct state_interval *iv,
    bool with_properties, struct view_shown *out)
{
    const char *key = key_of(iv);
    if (!key)
        return;
    snprintf(out->text, sizeof out->text, "%s %lld KiB", key, (long long)bytes_of(iv) / 1024);
    out->label = bytes_of(iv) ? out->text : key;
    out->style_key = key;
    if (!with_properties)
        return;
    struct state_row r;
    state_row(x->hosts[row->host].states, STATE_REQUEST_ROWS, row->row, &r);
    view_add_property(out, "disk", r.name);
    view_add_property(out, "type", key);
    view_add_number(out, "sector", sector_of(iv));
    view_add_number(out, "bytes", bytes_of(iv));
    view_add_property(out, "host", x->hosts[row->host].index->name);
}

static void states(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    struct view_sampler s = view_begin_sampling(x, q, answer, show);
    size_t n = q->has_items ? q->n_items : entries_of(x)->v.n;
    for (size_t i = 0; i < n; i++) {
        int64_t id = q->has_items ? q->items[i] : first_id(x) + (int64_t)i;
        const struct entry *e = entry_of(x, id);
        if (e && e->row >= 0 &&
            !view_sample_row(&s, &(struct view_state_row){id, e->number, STATE_REQUEST_ROWS, (size_t)e->row, 0}))
            break;
    }
    view_end_sampling(&s);
}

static void tooltip(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    int64_t id, t;
    const struct entry *e = view_tooltip_target(q, &id, &t) ? entry_of(x, id) : NULL;
    struct state_interval iv;
    json_begin_object(&answer->json);
    if (e && e->row >= 0 &&
        state_at(e->host->states, STATE_REQUEST_ROWS, (size_t)e->row, view_sample_time(e->host, t), &iv) &&
        key_of(&iv)) {
        struct state_row r;
        state_row(e->host->states, STATE_REQUEST_ROWS, (size_t)e->row, &r);
        tsp_write_tip(answer, "Disk", r.name);
        tsp_write_tip(answer, "Type", key_of(&iv));
        tsp_write_tip(answer, "Sector", arena_printf(q->http->arena, "%lld", (long long)sector_of(&iv)));
        tsp_write_tip(answer, "Bytes", arena_printf(q->http->arena, "%lld", (long long)bytes_of(&iv)));
        view_write_span(answer, view_to_reference(e->host, iv.begin), view_to_reference(e->host, iv.end));
        view_write_clock_error(answer, e->host, t);
    }
    json_end_object(&answer->json);
}

static void style(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    tsp_begin_styles(answer);
    for (unsigned i = STATE_REQUEST_READ; i < STATE_REQUESTS; i++) {
        const char *key = state_request_name(i);
        tsp_write_style(
            answer, key, NULL, colors[i], i == STATE_REQUEST_FLUSH || i == STATE_REQUEST_OTHER ? 0.6 : 1, -1, key);
    }
    tsp_end_styles(answer);
}

const struct view view_disk_requests = {
    .provider = {.id = "org.eclipse.tracecompass.incubator.kernel.core.inputoutput.DiskRequestDataProvider",
        .name = "Disk Requests",
        .description = "Requests of each disk that wait in its queue, and those that its driver has",
        .type = "TIME_GRAPH"},
    .has_data = has_data,
    .tree = tree,
    .states = states,
    .arrows = view_no_arrows,
    .tooltip = tooltip,
    .style = style,
    .close = close_entries,
};

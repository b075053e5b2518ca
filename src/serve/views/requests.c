/* SPDX-License-Identifier: MIT */
/* Disk Requests: requests of each disk in the queue and in the driver, each in the first free slot. */
#include <stdio.h>

#include "views/list.h"
#include "views/rows.h"

enum { SECTOR_BYTES = 512 };
static const struct view_look looks[STATE_REQUESTS] = {[STATE_REQUEST_READ] = {"read", LOOK_SYSCALL, 1},
    [STATE_REQUEST_WRITE] = {"write", LOOK_BLOCKED, 1},
    [STATE_REQUEST_FLUSH] = {"flush", LOOK_HYPERVISOR, 0.6},
    [STATE_REQUEST_OTHER] = {"other", LOOK_TIMER, 0.6}};

static bool has_data(const struct view *self, const struct view_host *h)
{
    return h->states && state_rows(h->states, STATE_REQUEST_ROWS);
}

/* ---- rows: host, disks, queues, slots ---- */

static void add(const struct view *self, const struct views *x, size_t host, struct view_rows *rows)
{
    static const char *const queues[] = {"Waiting Queue", "Driver Queue"};
    const struct state_store *s = x->hosts[host].states;
    int64_t root = s ? view_add_group(rows, VIEW_NO_PARENT, host, x->hosts[host].index->name) : -1, disk = -1,
            queue = -1;
    int32_t before = -1;
    for (size_t i = 0; s && i < state_rows(s, STATE_REQUEST_ROWS); i++) {
        struct state_row r;
        state_row(s, STATE_REQUEST_ROWS, i, &r);
        if (before < 0 || r.number >> STATE_REQUEST_DISK_SHIFT != before >> STATE_REQUEST_DISK_SHIFT)
            disk = view_add_group(rows, root, host, r.name);
        if (before < 0 || r.number >> STATE_REQUEST_QUEUE_SHIFT != before >> STATE_REQUEST_QUEUE_SHIFT)
            queue = view_add_group(rows, disk, host, queues[r.number >> STATE_REQUEST_QUEUE_SHIFT & 1]);
        before = r.number;
        const char *slot = arena_printf(&rows->arena, "%d", r.number & ((1 << STATE_REQUEST_QUEUE_SHIFT) - 1));
        view_add_row(rows, (struct view_row){queue, host, slot, STATE_REQUEST_ROWS, i, 0});
    }
}

/* ---- requests ---- */

/* type NULL: no request. */
struct request {
    const char *type, *disk;
    int64_t sector, bytes;
};

static struct request request_of(const struct view_host *h, size_t row, const struct state_interval *iv)
{
    struct state_row r;
    state_row(h->states, STATE_REQUEST_ROWS, row, &r);
    int type = iv->value == STATE_NONE ? STATE_REQUEST_NONE : (int)(iv->amount & ((1 << STATE_REQUEST_TYPE_BITS) - 1));
    return (struct request){.type = type < STATE_REQUESTS ? looks[type].key : NULL,
        .disk = r.name,
        .sector = (int64_t)((uint64_t)iv->amount >> STATE_REQUEST_SECTOR_SHIFT),
        .bytes = (iv->amount >> STATE_REQUEST_TYPE_BITS & STATE_REQUEST_MOST_SECTORS) * SECTOR_BYTES};
}

static void show(
    const struct view_sampler *s, const struct view_row *row, const struct state_interval *iv, struct view_shown *out)
{
    const struct view_host *h = &s->x->hosts[row->host];
    struct request r = request_of(h, row->row, iv);
    if (!r.type)
        return;
    snprintf(out->text, sizeof out->text, "%s %lld KiB", r.type, (long long)r.bytes / 1024);
    out->label = r.bytes ? out->text : r.type;
    out->style_key = r.type;
    if (!s->q->filter)
        return;
    view_add_property(out, "disk", r.disk);
    view_add_property(out, "type", r.type);
    view_add_number(out, "sector", r.sector);
    view_add_number(out, "bytes", r.bytes);
    view_add_property(out, "host", h->index->name);
}

static bool tooltip(const struct view_pointed *p)
{
    struct request r = p->interval ? request_of(p->host, p->row->row, p->interval) : (struct request){0};
    if (!r.type)
        return false;
    tsp_write_tip(p->answer, "Disk", r.disk);
    tsp_write_tip(p->answer, "Type", r.type);
    view_write_number(p->answer, "Sector", r.sector);
    view_write_number(p->answer, "Bytes", r.bytes);
    view_write_interval(p->answer, p->host, p->interval);
    return true;
}

static const struct view_row_graph graph = {.add = add, .show = show, .tooltip = tooltip, .whole_time = true};

const struct view view_disk_requests = {
    .provider = {.id = "org.eclipse.tracecompass.incubator.kernel.core.inputoutput.DiskRequestDataProvider",
        .name = "Disk Requests",
        .description = "Requests of each disk that wait in its queue, and those that its driver has",
        .type = "TIME_GRAPH"},
    .host_has_data = has_data,
    VIEW_HEADERS({"Name", "Disk, queue, place in it", "STRING"}),
    VIEW_ROWS(graph),
    VIEW_LOOKS(looks),
};

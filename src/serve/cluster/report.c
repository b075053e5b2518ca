/* SPDX-License-Identifier: MIT */
#include "cluster/report.h"

#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/arena.h"
#include "base/wire.h"
#include "cluster/condition.h"

enum { VERSION = 1 };

void cluster_load_write(const struct cluster_load *l, struct text *out)
{
    wire_put_u(out, l->cpus);
    wire_put_u(out, l->load_percent);
    wire_put_u(out, l->questions);
    text_putc(out, (char)(l->receives | l->gives << 1 | l->taking << 2));
    wire_put_u(out, l->room_bytes);
}

int cluster_load_read(const void *bytes, size_t n, struct cluster_load *out, struct err *e)
{
    struct wire_in w = wire_of(bytes, n);
    uint8_t flags;
    out->cpus = (unsigned)wire_below(&w, 1 << 20);
    out->load_percent = (unsigned)wire_below(&w, 1 << 30);
    out->questions = wire_u(&w);
    wire_bytes(&w, &flags, 1);
    out->receives = flags & 1;
    out->gives = flags >> 1 & 1;
    out->taking = flags >> 2 & 1;
    out->room_bytes = wire_u(&w);
    out->answered = true;
    return w.damaged || w.at != w.end ? err_set(e, ERR_FORMAT, "its answer makes no sense") : 0;
}

void cluster_report_write(const struct report *r, struct text *out)
{
    struct text load = {.fd = -1};
    text_putc(out, VERSION);
    wire_put_u(out, (uint64_t)r->state);
    cluster_condition_put_text(out, r->text);
    cluster_condition_put_text(out, r->release);
    wire_put_i(out, r->now_ns);
    cluster_condition_put_text(out, r->disk.path);
    wire_put_u(out, r->disk.free_bytes);
    wire_put_u(out, r->disk.all_bytes);
    cluster_load_write(&r->load, &load);
    wire_put_u(out, load.n);
    wire_put_bytes(out, load.v, load.n);
    text_fini(&load);
}

int cluster_report_read(struct arena *a, const void *bytes, size_t n, struct report *out, struct err *e)
{
    struct wire_in w = wire_of(bytes, n);
    uint8_t version;
    *out = (struct report){0};
    wire_bytes(&w, &version, 1);
    out->state = (int)wire_below(&w, CLUSTER_NODE_FAILED + 1);
    out->text = cluster_condition_take_text(&w, a);
    out->release = cluster_condition_take_text(&w, a);
    out->now_ns = wire_i(&w);
    out->disk.path = cluster_condition_take_text(&w, a);
    out->disk.free_bytes = wire_u(&w);
    out->disk.all_bytes = wire_u(&w);
    size_t load = wire_count(&w, 1);
    bool good = !w.damaged && version == VERSION && out->state >= CLUSTER_NODE_OPENING &&
        !cluster_load_read(w.at, load, &out->load, NULL);
    return good ? 0 : err_set(e, ERR_FORMAT, "its answer makes no sense");
}

struct cluster_disk cluster_report_disk(const char *const *paths)
{
    struct cluster_disk least = {.path = ""};
    for (; *paths; paths++) {
        struct statvfs fs;
        uint64_t free_bytes;
        if (!**paths || statvfs(*paths, &fs))
            continue;
        free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
        if (!*least.path || free_bytes < least.free_bytes)
            least = (struct cluster_disk){*paths, free_bytes, (uint64_t)fs.f_blocks * fs.f_frsize};
    }
    return least;
}

/* SPDX-License-Identifier: MIT */
#include "fixture.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/time.h"

enum { BATCH = 512 };

static void on_record(void *arg, const struct kernel_record *r)
{
    struct state_builder **b = arg;
    if (*b)
        state_builder_add(*b, r);
}

/* Passes all events through the tracker; with states if *b is a builder. */
static int pass(struct fixture *f, struct state_builder **b, struct err *e)
{
    struct ctf_source source = {.trace = f->trace};
    struct ctf_merge *merge;
    int rc = ctf_merge_new(&source, 1, (struct ctf_window){INT64_MIN, INT64_MAX}, -1, &merge, e);
    if (rc)
        return rc;
    static struct ctf_event batch[BATCH];
    int64_t times[BATCH];
    f->begin = INT64_MAX;
    f->end = INT64_MIN;
    f->events = 0;
    for (size_t n; (n = ctf_merge_next(merge, batch, BATCH)) > 0;) {
        size_t events = 0;
        kernel_tracker_feed(f->tracker, batch, n);
        for (size_t i = 0; i < n; i++) {
            if (batch[i].cls->item != CTF_EVENT)
                continue;
            times[events++] = batch[i].ts;
            f->begin = batch[i].ts < f->begin ? batch[i].ts : f->begin;
            f->end = batch[i].ts > f->end ? batch[i].ts : f->end;
        }
        if (*b)
            state_builder_events(*b, times, events);
        f->events += events;
    }
    kernel_tracker_finish(f->tracker);
    ctf_merge_free(merge);
    return 0;
}

static int open_kernel_trace(struct fixture *f, const char *dir, struct err *e)
{
    int rc = ctf_discover(dir, &f->groups, &f->n_groups, e);
    f->schemas = ctf_schemas_new();
    for (size_t i = 0; i < f->n_groups && !rc; i++) {
        rc = ctf_trace_open(&f->groups[i], f->schemas, &f->trace, e);
        if (rc || kernel_is_kernel_trace(f->trace))
            return rc;
        ctf_trace_close(f->trace);
        f->trace = NULL;
    }
    return rc ? rc : err_set(e, ERR_NOTFOUND, "%s: no kernel trace", dir);
}

static int build(struct fixture *f, const char *path, struct err *e)
{
    struct state_builder *b = NULL;
    f->tracker = kernel_tracker_new(f->binding, on_record, &b);
    b = state_builder_new(f->tracker, store_file(path), 1);
    int64_t t0 = time_monotonic_ns();
    int rc = pass(f, &b, e);
    int64_t t1 = time_monotonic_ns();
    if (!rc)
        rc = state_builder_write(b, f->begin, f->end, e);
    int64_t t2 = time_monotonic_ns();
    state_builder_free(b);
    f->pass_ns = (double)(t1 - t0);
    f->write_ns = (double)(t2 - t1);
    return rc;
}

int fixture_open(struct fixture *f, const char *dir, const char *path, bool compare, struct err *e)
{
    memset(f, 0, sizeof *f);
    int rc = open_kernel_trace(f, dir, e);
    if (!rc)
        rc = kernel_bind(f->trace, &f->binding, e);
    if (!rc && compare) {
        struct state_builder *none = NULL;
        f->tracker = kernel_tracker_new(f->binding, on_record, &none);
        int64_t t0 = time_monotonic_ns();
        rc = pass(f, &none, e);
        f->tracker_ns = (double)(time_monotonic_ns() - t0);
        kernel_tracker_free(f->tracker);
        f->tracker = NULL;
    }
    if (!rc)
        rc = build(f, path, e);
    struct stat st;
    if (!rc)
        rc = state_check(path, NULL, e);
    int64_t t0 = time_monotonic_ns();
    if (!rc && !stat(path, &st)) {
        f->bytes = (uint64_t)st.st_size;
        rc = state_open(path, &f->store, e);
        f->open_ns = (double)(time_monotonic_ns() - t0);
    }
    return rc;
}

void fixture_close(struct fixture *f)
{
    state_close(f->store);
    kernel_tracker_free(f->tracker);
    kernel_binding_free(f->binding);
    if (f->trace)
        ctf_trace_close(f->trace);
    if (f->groups)
        ctf_groups_free(f->groups, f->n_groups);
    ctf_schemas_free(f->schemas);
}

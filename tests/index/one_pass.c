/* SPDX-License-Identifier: MIT */
#include "one_pass.h"

#include "../base/test.h"
#include "base/store.h"
#include "kernel/kernel.h"

enum { BATCH = 128 };

struct building {
    struct kernel_tracker *tracker;
    struct flow_builder *flows;
    struct graph_builder *graph;
    struct state_builder *states;
    struct stack_builder *stacks;
};

static void on_record(void *arg, const struct kernel_record *r)
{
    struct building *b = arg;
    graph_builder_add(b->graph, r, flow_builder_add(b->flows, r));
    state_builder_add(b->states, r);
}

static void feed(struct building *b, struct one_pass *p, const struct ctf_event *ev, size_t n)
{
    int64_t times[BATCH];
    size_t events = 0;
    for (size_t i = 0; i < n; i++) {
        if (ev[i].cls->item == CTF_LOST_EVENTS)
            p->lost_events += ((const struct ctf_loss *)(const void *)ev[i].data)->count;
        if (ev[i].cls->item != CTF_EVENT)
            continue;
        times[events++] = ev[i].ts;
        p->begin = ev[i].ts < p->begin ? ev[i].ts : p->begin;
        p->end = ev[i].ts > p->end ? ev[i].ts : p->end;
    }
    p->events += events;
    if (b->stacks) {
        stack_builder_feed(b->stacks, ev, n);
        return;
    }
    kernel_tracker_feed(b->tracker, ev, n);
    state_builder_events(b->states, times, events);
}

static void read_until(struct building *b, struct one_pass *p, struct ctf_trace *t, int64_t until)
{
    struct ctf_source source = {.trace = t};
    struct ctf_window window = {INT64_MIN, until == INT64_MAX ? INT64_MAX : until - 1};
    struct ctf_event ev[BATCH];
    struct ctf_merge *m;
    assert_int_equal(ctf_merge_new(&source, 1, window, -1, &m, NULL), 0);
    for (size_t n; (n = ctf_merge_next(m, ev, BATCH)) > 0;)
        feed(b, p, ev, n);
    ctf_merge_free(m);
}

static const char *new_path(char path[48])
{
    strcpy(path, access("/dev/shm", W_OK) ? "/tmp/weft-pass-XXXXXX" : "/dev/shm/weft-pass-XXXXXX");
    close(mkstemp(path));
    return path;
}

static void good(int rc, const struct err *e)
{
    if (rc)
        fail_msg("%s", e->text);
}

static void build_kernel(struct one_pass *p, struct ctf_trace *t, int64_t until)
{
    char paths[3][48];
    struct err e = {0};
    struct kernel_binding *binding;
    struct building b = {0};
    good(kernel_bind(t, &binding, &e), &e);
    b.tracker = kernel_tracker_new(binding, on_record, &b);
    b.flows = flow_builder_new(b.tracker);
    b.graph = graph_builder_new(b.tracker);
    b.states = state_builder_new(b.tracker, store_file(new_path(paths[0])), 1);
    read_until(&b, p, t, until);
    kernel_tracker_finish(b.tracker);
    if (p->events) {
        good(state_builder_write(b.states, p->begin, p->end, &e), &e);
        good(graph_builder_write(b.graph, p->end, store_file(new_path(paths[1])), 1, &e), &e);
        good(flow_builder_write(b.flows, store_file(new_path(paths[2])), 1, &e), &e);
        good(state_open(paths[0], &p->states, &e), &e);
        good(graph_open(paths[1], &p->graph, &e), &e);
        good(flow_open(paths[2], &p->flows, &e), &e);
    }
    state_builder_free(b.states);
    graph_builder_free(b.graph);
    flow_builder_free(b.flows);
    for (int i = 0; i < (p->events ? 3 : 1); i++)
        unlink(paths[i]);
    kernel_tracker_free(b.tracker);
    kernel_binding_free(binding);
}

static void build_user(struct one_pass *p, struct ctf_trace *t, int64_t until)
{
    char path[48];
    struct err e = {0};
    struct building b = {.stacks = stack_builder_new(t)};
    read_until(&b, p, t, until);
    good(stack_builder_write(b.stacks, store_file(new_path(path)), 1, &e), &e);
    stack_builder_free(b.stacks);
    good(stack_open(path, &p->stacks, &e), &e);
    unlink(path);
}

bool one_pass_build(struct one_pass *p, struct ctf_trace *t, int64_t until)
{
    *p = (struct one_pass){.begin = INT64_MAX, .end = INT64_MIN};
    if (until == INT64_MIN)
        return false;
    if (kernel_is_kernel_trace(t))
        build_kernel(p, t, until);
    else
        build_user(p, t, until);
    return p->events > 0;
}

void one_pass_free(struct one_pass *p)
{
    graph_close(p->graph);
    flow_close(p->flows);
    state_close(p->states);
    stack_close(p->stacks);
    *p = (struct one_pass){0};
}

/* What a pass over a trace feeds: graph, flows and states of a kernel trace, call stacks of a user-space trace. */
#include "index/stores.h"

/* ---- kernel traces ---- */

struct kernel_stores {
    struct kernel_tracker *tracker;
    struct flow_builder *flows;
    struct graph_builder *graph;
    struct state_builder *states;
};

static void on_record(void *arg, const struct kernel_record *r)
{
    struct kernel_stores *k = arg;
    graph_builder_add(k->graph, r, flow_builder_add(k->flows, r));
    state_builder_add(k->states, r);
}

static int feed_kernel(
    void *arg, const struct ctf_event *ev, size_t n, const int64_t *times, size_t n_times, struct err *e)
{
    struct kernel_stores *k = arg;
    kernel_tracker_feed(k->tracker, ev, n);
    state_builder_events(k->states, times, n_times);
    return state_builder_writing(k->states, e);
}

/* What a builder held serves those that come after it. */
static int write_kernel(void *arg, size_t i, const struct index_pass *p, struct err *e)
{
    struct kernel_stores *k = arg;
    const struct index_files *to = p->files;
    int rc;
    switch (i) {
    case 0:
        rc = state_builder_write(k->states, p->totals.begin, p->totals.end, e);
        state_builder_free(k->states);
        k->states = NULL;
        return rc;
    case 1:
        rc = graph_builder_write(k->graph, p->totals.end, to->path[INDEX_GRAPH], index_key(to->trace, INDEX_GRAPH), e);
        graph_builder_free(k->graph);
        k->graph = NULL;
        return rc;
    default:
        rc = flow_builder_write(k->flows, to->path[INDEX_FLOWS], index_key(to->trace, INDEX_FLOWS), e);
        flow_builder_free(k->flows);
        k->flows = NULL;
        return rc;
    }
}

int index_build_kernel(const struct index_files *to, const struct index_options *o, struct err *e)
{
    struct kernel_binding *binding;
    int rc = kernel_bind(to->trace, &binding, e);
    if (rc)
        return rc;
    struct kernel_stores k = {.tracker = kernel_tracker_new(binding, on_record, &k)};
    k.flows = flow_builder_new(k.tracker);
    k.graph = graph_builder_new(k.tracker);
    k.states = state_builder_new(k.tracker, to->path[INDEX_STATES], index_key(to->trace, INDEX_STATES));
    struct index_pass p = {
        .files = to, .options = o, .feed = feed_kernel, .batch = 128, .write = write_kernel, .n_stores = 3, .arg = &k};
    if (!(rc = index_pass_read(&p, e))) {
        kernel_tracker_finish(k.tracker);
        rc = index_pass_write(&p, e);
    }
    index_pass_fini(&p);
    state_builder_free(k.states);
    graph_builder_free(k.graph);
    flow_builder_free(k.flows);
    kernel_tracker_free(k.tracker);
    kernel_binding_free(binding);
    return rc;
}

/* ---- user-space traces ---- */

static int feed_stacks(
    void *stacks, const struct ctf_event *ev, size_t n, const int64_t *times, size_t n_times, struct err *e)
{
    stack_builder_feed(stacks, ev, n);
    return 0;
}

static int write_stacks(void *stacks, size_t i, const struct index_pass *p, struct err *e)
{
    return stack_builder_write(stacks, p->files->path[INDEX_STACKS], index_key(p->files->trace, INDEX_STACKS), e);
}

int index_build_user(const struct index_files *to, const struct index_options *o, struct err *e)
{
    struct stack_builder *b = stack_builder_new(to->trace);
    struct index_pass p = {
        .files = to, .options = o, .feed = feed_stacks, .batch = 512, .write = write_stacks, .n_stores = 1, .arg = b};
    int rc = index_pass_read(&p, e);
    rc = rc ? rc : index_pass_write(&p, e);
    index_pass_fini(&p);
    stack_builder_free(b);
    return rc;
}

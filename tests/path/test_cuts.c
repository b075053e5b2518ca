/* SPDX-License-Identifier: MIT */
/* The critical path of each thread over a list of chunks is the one over a store of one pass. */
#include "../base/test.h"

#include "../kernel/cuts.h"
#include "base/carry.h"
#include "base/mem.h"
#include "flow/flow.h"
#include "graph/graph.h"
#include "path/path.h"
#include "same.h"

enum { MOST_CHUNKS = 16 };

/* Run; messages are those of the first run, which has no cuts: wakes reported then are repeated. */
struct run {
    bool again;
    struct graph_builder *graph;
    struct flow_builder *flows;
    VEC(uint64_t) wakes;
    size_t n_wakes, n;
    struct cuts cuts;
    int64_t end;
    char paths[MOST_CHUNKS][40], flows_path[40];
};

static void new_path(char path[40])
{
    strcpy(path, access("/dev/shm", W_OK) ? "/tmp/weft-cut-XXXXXX" : "/dev/shm/weft-cut-XXXXXX");
    close(mkstemp(path));
}

static void begin(void *arg, const struct cuts_chunk *c)
{
    struct run *r = arg;
    r->graph = graph_builder_new(c->tracker);
    if (!r->again)
        r->flows = flow_builder_new(c->tracker);
}

static void carry(void *arg, const struct cuts_chunk *c, struct carry *to)
{
    graph_builder_carry(((struct run *)arg)->graph, to);
}

static void record(void *arg, const struct kernel_record *rec)
{
    struct run *r = arg;
    uint64_t wake = r->again ? 0 : flow_builder_add(r->flows, rec);
    if (rec->kind == KERNEL_WAKE) {
        if (r->again)
            wake = r->wakes.v[r->n_wakes++];
        else
            vec_push(&r->wakes, wake);
    }
    graph_builder_add(r->graph, rec, wake);
}

static void cut(void *arg, const struct cuts_chunk *c, int64_t at)
{
    struct run *r = arg;
    struct err e = {0};
    new_path(r->paths[r->n]);
    if (graph_builder_cut(r->graph, at, store_file(r->paths[r->n++]), 1, &e))
        fail_msg("%s", e.text);
    graph_builder_free(r->graph);
}

static void finish(void *arg, const struct cuts_chunk *c)
{
    struct run *r = arg;
    struct err e = {0};
    new_path(r->paths[r->n]);
    if (graph_builder_write(r->graph, r->end, store_file(r->paths[r->n++]), 1, &e))
        fail_msg("%s", e.text);
    graph_builder_free(r->graph);
    if (r->again)
        return;
    new_path(r->flows_path);
    if (flow_builder_write(r->flows, store_file(r->flows_path), 1, &e))
        fail_msg("%s", e.text);
    flow_builder_free(r->flows);
}

static const struct cuts_user user = {.begin = begin, .carry = carry, .record = record, .cut = cut, .finish = finish};

static struct graph *build(struct run *r, const struct cuts_trace *t, const int64_t *at, size_t n)
{
    struct chunk v[MOST_CHUNKS];
    struct err e = {0};
    struct graph *g;
    r->n = r->n_wakes = 0;
    r->end = t->times.n ? t->times.v[t->times.n - 1] : 0;
    cuts_run(t, at, n, &user, r, &r->cuts);
    for (size_t i = 0; i < r->n; i++) {
        v[i] = r->cuts.chunks[i].chunk;
        v[i].path = r->paths[i];
    }
    if (graph_open_list(v, r->n, &g, &e))
        fail_msg("%s", e.text);
    for (size_t i = 0; i < r->n; i++)
        unlink(r->paths[i]);
    cuts_free(&r->cuts);
    r->again = true;
    return g;
}

static void compare(const struct cuts_trace *t, const char *name, void *seed)
{
    struct run r = {.again = false};
    struct err e = {0};
    struct flow_store *flows;
    int64_t at[8];
    struct graph *one = build(&r, t, NULL, 0);
    if (flow_open(r.flows_path, &flows, &e))
        fail_msg("%s", e.text);
    size_t n = cuts_random(t, ++*(uint64_t *)seed, 8, at);
    struct graph *many = build(&r, t, at, n);
    same_paths(&(struct path_local_host){.name = "h", .graph = one, .flows = flows},
        &(struct path_local_host){.name = "h", .graph = many, .flows = flows}, 1);
    graph_close(one);
    graph_close(many);
    flow_close(flows);
    unlink(r.flows_path);
    vec_free(&r.wakes);
}

static void recorded(void **state)
{
    uint64_t seed = test_seed(0);
    cuts_each(compare, &seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(recorded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

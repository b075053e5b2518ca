/* SPDX-License-Identifier: MIT */
#include "live_world.h"

#include "../flow/same.h"
#include "../path/same.h"
#include "../stack/cut.h"
#include "../state/same.h"
#include "base/json.h"
#include "base/text.h"
#include "clock/clock.h"

/* ---- comparing ---- */

static const char *clocks_of(const struct clock_net *net, struct text *out)
{
    struct json j = JSON_TO(out);
    clock_net_write_json(net, &j);
    return text_cstr(out);
}

/* Maps of the hosts from these flows alone. */
static void solve(const struct flow_store *const *flows, const struct index_host *hosts, size_t n, struct text *out)
{
    struct clock_options o = clock_defaults();
    struct clock_net *net = clock_net_new(&o);
    struct index_sync_host all[MOST_TRACES] = {0};
    struct index_sync sync = {.hosts = all, .n = n, .prior_ppm = o.drift_prior_ppm};
    struct err e = {0};
    for (size_t i = 0; i < n; i++) {
        all[i].flows = flows[i];
        clock_net_host(net, hosts[i].clock_name, hosts[i].begin, hosts[i].end);
    }
    if (index_sync_flows(net, &sync, &e))
        fail_msg("%s", e.text);
    clocks_of(net, out);
    clock_net_free(net);
}

void live_same_states(const struct state_store *a, const struct state_store *b, const char *name)
{
    uint64_t dice = 1 + fed_roll(1000000);
    struct pair p = {.a = a, .b = b, .where = name, .dice = &dice};
    same_rows_all(&p);
    same_tables(&p);
}

void live_same(const struct live_world *w, const struct live_kept *k)
{
    struct path_local_host one[MOST_TRACES], many[MOST_TRACES];
    const struct flow_store *of_one[MOST_TRACES], *of_many[MOST_TRACES];
    struct index_host used[MOST_TRACES];
    const struct index_trace *traces;
    const struct index_host *hosts;
    size_t n = index_experiment_traces(k->x, &traces), n_kernel = 0;
    index_experiment_hosts(k->x, &hosts);
    assert_int_equal(n, w->n);
    for (size_t i = 0; i < n; i++) {
        const struct index_host *h = &hosts[traces[i].host];
        const struct one_pass *p = &k->passes[i];
        const char *name = ctf_trace_path(w->of[i].whole);
        if (!k->any[i])
            continue;
        if (!traces[i].is_kernel) {
            cut_same(p->stacks, traces[i].stacks);
            continue;
        }
        assert_int_equal(h->events, p->events);
        assert_int_equal(h->lost_events, p->lost_events);
        assert_true(h->begin == p->begin && h->end == p->end);
        live_same_states(p->states, h->states, name);
        same_stores(p->flows, h->flows, (int32_t)graph_rows(p->graph));
        one[n_kernel] = (struct path_local_host){.name = h->name, .graph = p->graph, .flows = p->flows};
        many[n_kernel] = (struct path_local_host){.name = h->name, .graph = h->graph, .flows = h->flows};
        of_one[n_kernel] = p->flows;
        of_many[n_kernel] = h->flows;
        used[n_kernel++] = *h;
    }
    struct text a = {.fd = -1}, b = {.fd = -1};
    same_paths(one, many, n_kernel);
    solve(of_one, used, n_kernel, &a);
    solve(of_many, used, n_kernel, &b);
    assert_string_equal(text_cstr(&a), text_cstr(&b));
    text_fini(&a);
    text_fini(&b);
}

/* ---- result at the end ---- */

static void same_ids(const struct index_host *a, const struct index_host *b)
{
    assert_int_equal(a->key, b->key);
    assert_int_equal(graph_rows(a->graph), graph_rows(b->graph));
    for (size_t row = 0; row < graph_rows(a->graph); row++) {
        struct graph_row x, y;
        graph_row(a->graph, (int32_t)row, &x);
        graph_row(b->graph, (int32_t)row, &y);
        assert_string_equal(x.name, y.name);
        assert_true(x.tid == y.tid && x.tgid == y.tgid && x.begin == y.begin && x.end == y.end);
        assert_int_equal(index_row_id(a, (int32_t)row), index_row_id(b, (int32_t)row));
        assert_int_equal(index_row_find(b, index_row_id(a, (int32_t)row)), row);
    }
}

static void same_types(const struct index_types *a, const struct index_types *b)
{
    uint64_t x, y, sum = 0, other = 0;
    size_t n = index_types(a);
    assert_int_equal(n, index_types(b));
    for (size_t i = 0; i < n; i++) { /* classes may be numbered in another order */
        const char *name = index_type(a, i, &x)->name;
        for (size_t k = 0; k < n; k++)
            if (!strcmp(index_type(b, k, &y)->name, name)) {
                sum += x == y;
                break;
            }
        other++;
    }
    assert_int_equal(sum, other);
}

/* Compares with the result of `weft index` on the directory. */
void live_same_whole(const struct live_world *w, struct experiment *x, const char *path)
{
    struct experiment *y;
    struct err e = {0};
    struct clock_options o = clock_defaults();
    const struct clock_net *one, *other;
    char store[700];
    snprintf(store, sizeof store, "%s/whole", live_stores);
    const struct index_options options = {.store = store, .stores = true, .states = true, .user_space = true};
    if (index_experiment_open(&path, 1, &options, &y, &e))
        fail_msg("%s", e.text);
    const struct index_trace *a, *b;
    const struct index_host *g, *h;
    size_t n = index_experiment_traces(x, &a), n_hosts = index_experiment_hosts(x, &g);
    assert_int_equal(n, index_experiment_traces(y, &b));
    assert_int_equal(n_hosts, index_experiment_hosts(y, &h));
    assert_int_equal(index_experiment_stored_events(x), index_experiment_stored_events(y));
    assert_int_equal(index_experiment_partial(x), index_experiment_partial(y));
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(a[i].is_kernel, b[i].is_kernel);
        same_types(a[i].types, b[i].types);
        if (a[i].is_kernel)
            same_ids(&h[b[i].host], &g[a[i].host]);
    }
    for (size_t i = 0; i < n_hosts; i++) {
        assert_string_equal(g[i].name, h[i].name);
        assert_true(g[i].begin == h[i].begin && g[i].end == h[i].end);
    }
    struct text p = {.fd = -1}, q = {.fd = -1};
    if (index_experiment_sync(x, &o, &one, &e) || index_experiment_sync(y, &o, &other, &e))
        fail_msg("%s", e.text);
    assert_string_equal(clocks_of(one, &p), clocks_of(other, &q));
    text_fini(&p);
    text_fini(&q);
    index_experiment_close(y);
    live_remove_tree(store);
}

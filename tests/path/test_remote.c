/* SPDX-License-Identifier: MIT */
/* Paths over graphs that lie elsewhere: each host of a recording is asked through requests and fragments, as bytes; the
 * answers are, byte for byte, those of all hosts in one place. Where nodes do not answer, the path is right as far back
 * as it says that something is missing. */
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/test.h"
#include "base/arena.h"
#include "base/json.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/text.h"
#include "clock/clock.h"
#include "graph/graph.h"
#include "index/index.h"
#include "path/path.h"
#include "path/remote.h"
#include "show/show.h"

static char store[] = "/tmp/weft-remote-XXXXXX";

/* Hosts in one place, and their remote copies. */
struct world {
    struct experiment *experiment;
    const struct index_host *hosts;
    size_t n;
    struct path_local_host *parts;
    struct path_local *local;
    struct path_far_host *far;
    struct routes {
        struct flow_route *v;
        size_t n;
        uint32_t *sent;
        size_t n_sent;
    } * routes; /* routes by host */
    uint64_t dice;
};

static bool may_have_sent(void *arg, int32_t host, const struct flow_message_key *m, bool owner)
{
    const struct world *w = arg;
    const struct routes *r = &w->routes[host];
    return (owner && flow_sent_hashes_have(r->sent, r->n_sent, &m->flow)) || flow_routes_lead(r->v, r->n, m);
}

static int drop(const char *file, const struct stat *st, int flag, struct FTW *at)
{
    (void)st;
    (void)flag;
    (void)at;
    return remove(file);
}

static int make_store(void **state)
{
    (void)state;
    return mkdtemp(store) ? 0 : -1;
}

static int drop_store(void **state)
{
    (void)state;
    return nftw(store, drop, 16, FTW_DEPTH | FTW_PHYS);
}

static struct world open_world(const char *name, bool in_data)
{
    char path[4096];
    const char *data = getenv("WEFT_DATA");
    if (in_data) {
        snprintf(path, sizeof path, "%s/traces/%s", data ? data : WEFT_SOURCE_ROOT "/../shared/data", name);
    } else {
        char unpack[16384];
        snprintf(path, sizeof path, "%s/unpacked-%s", store, name);
        snprintf(unpack, sizeof unpack, "mkdir -p '%s' && tar -xJf '%s/examples/%s.tar.xz' -C '%s'", path,
            WEFT_SOURCE_ROOT, name, path);
        assert_int_equal(system(unpack), 0);
    }
    if (access(path, R_OK))
        skip_without("no %s", path);
    struct world w = {.dice = test_seed(7)};
    struct err e = {0};
    struct index_options o = {.store = store, .stores = true};
    const char *args[] = {path};
    const struct clock_net *net;
    struct clock_options clocks = clock_defaults();
    if (index_experiment_open(args, 1, &o, &w.experiment, &e) || index_experiment_sync(w.experiment, &clocks, &net, &e))
        fail_msg("%s: %s", name, e.text);
    w.n = index_experiment_hosts(w.experiment, &w.hosts);
    w.parts = mem_zalloc(w.n * sizeof *w.parts);
    w.far = mem_zalloc(w.n * sizeof *w.far);
    w.routes = mem_zalloc(w.n * sizeof *w.routes);
    for (size_t i = 0; i < w.n; i++) {
        const struct index_host *h = &w.hosts[i];
        w.parts[i] = (struct path_local_host){h->name, h->graph, h->flows, clock_net_map(net, i)};
        w.far[i] = (struct path_far_host){
            .name = h->name, .id = h->clock_name, .map = clock_net_map(net, i), .has_packets = h->flows != NULL};
        if (h->flows) {
            w.far[i].n_own = flow_addresses(h->flows, &w.far[i].own);
            w.far[i].n_peers = flow_peers(h->flows, &w.far[i].peers);
            w.routes[i].n = flow_routes(h->flows, SIZE_MAX - 1, &w.routes[i].v);
            w.routes[i].n_sent = flow_sent_hashes(h->flows, SIZE_MAX - 1, &w.routes[i].sent);
        }
    }
    w.local = path_local_new(w.parts, w.n);
    return w;
}

static void close_world(struct world *w)
{
    path_local_free(w->local);
    for (size_t i = 0; i < w->n; i++) {
        free(w->routes[i].v);
        free(w->routes[i].sent);
    }
    free(w->routes);
    free(w->parts);
    free(w->far);
    index_experiment_close(w->experiment);
}

static uint64_t roll(struct world *w, uint64_t sides)
{
    w->dice = map_mix(w->dice);
    return w->dice % sides;
}

/* ---- a node ---- */

struct node {
    const struct world *world;
    int32_t *hosts; /* hosts by number in the request */
};

static uint64_t id_of(void *arg, int32_t host, int32_t row)
{
    const struct node *n = arg;
    return index_row_id(&n->world->hosts[n->hosts[host]], row);
}

static int32_t row_of(void *arg, int32_t host, uint64_t id)
{
    const struct node *n = arg;
    return index_row_find(&n->world->hosts[n->hosts[host]], id);
}

/* Answers as a node does that has read nothing but the bytes of the request. */
static void serve(const struct world *w, const struct text *question, uint64_t steps, struct text *answer)
{
    struct arena a = {0};
    struct err e = {0};
    struct path_request r;
    if (path_request_read(&a, question->v, question->n, &r, &e))
        fail_msg("%s", e.text);
    struct path_local_host *parts = mem_zalloc((r.n_hosts + 1) * sizeof *parts);
    int32_t *hosts = mem_zalloc((r.n_hosts + 1) * sizeof *hosts);
    for (size_t i = 0; i < r.n_hosts; i++) {
        size_t h = 0;
        while (strcmp(w->hosts[h].clock_name, r.hosts[i].id) != 0)
            h++;
        hosts[i] = (int32_t)h;
        parts[i] = (struct path_local_host){w->hosts[h].name, w->hosts[h].graph, w->hosts[h].flows, r.hosts[i].map};
    }
    struct path_local *local = path_local_new(parts, r.n_hosts);
    struct node node = {w, hosts};
    assert_int_equal(
        path_fragment_write(local, &(struct path_row_ids){&node, id_of, row_of}, &r, steps, INT64_MIN, answer, NULL),
        r.n_windows ? ERR_TIMEOUT : 0);
    answer->n = 0;
    assert_int_equal(
        path_fragment_write(local, &(struct path_row_ids){&node, id_of, row_of}, &r, steps, INT64_MAX, answer, &e), 0);
    path_local_free(local);
    free(parts);
    free(hosts);
    arena_fini(&a);
}

/* ---- client ---- */

struct cost {
    size_t rounds, messages, bytes, windows;
};

/* Asks the node of each host that something is wanted of; hosts [first, first + per_node) are one node's. One of
 * `losses` questions has no answer; 0: all have. */
static size_t ask_nodes(
    struct world *w, struct path_known *k, size_t per_node, uint64_t steps, uint64_t losses, struct cost *cost)
{
    const struct path_window *wanted;
    size_t n = path_known_take(k, &wanted), asked = 0;
    struct path_window *all = mem_alloc((n + 1) * sizeof *all);
    if (n)
        memcpy(all, wanted, n * sizeof *all);
    for (size_t first = 0; first < w->n; first += per_node) {
        int32_t hosts[64];
        struct path_window *windows = mem_alloc((n + 1) * sizeof *windows);
        struct path_ask ask = {.hosts = hosts, .windows = windows};
        for (size_t h = first; h < first + per_node && h < w->n; h++)
            hosts[ask.n_hosts++] = (int32_t)h;
        for (size_t i = 0; i < n; i++)
            if ((size_t)all[i].host >= first && (size_t)all[i].host < first + per_node)
                windows[ask.n_windows++] = all[i];
        if (ask.n_windows && losses && roll(w, losses) == 0) {
            for (size_t i = 0; i < ask.n_windows; i++)
                path_known_give_up(k, &windows[i], "lost");
            asked++;
        } else if (ask.n_windows) {
            struct text question = {.fd = -1}, answer = {.fd = -1};
            struct err e = {0};
            path_known_request(k, &ask, &question);
            serve(w, &question, steps, &answer);
            if (path_known_add(k, &ask, answer.v, answer.n, &e))
                fail_msg("%s", e.text);
            cost->messages += 2;
            cost->bytes += question.n + answer.n;
            cost->windows += ask.n_windows;
            asked++;
            text_fini(&question);
            text_fini(&answer);
        }
        free(windows);
    }
    free(all);
    cost->rounds++;
    return asked;
}

static char *shown(const struct path *p, const struct path_source *source)
{
    struct text t = {.fd = -1};
    struct json j = JSON_TO(&t);
    struct path copy = *p;
    copy.cost = (struct path_cost){0};
    show_json(&copy, source, "-", &j);
    char *s = mem_strdup(text_cstr(&t));
    text_fini(&t);
    return s;
}

/* Returns the maximum of rounds. Within one wait of the requested row, each change of host may take a round; all such
 * waits are queried at once. Further rounds go to candidates that turn out not to be part of the path. */
static size_t most_rounds(const struct path *p)
{
    size_t most = 0, changes = 0;
    for (size_t i = 0; i < p->n_segments; i++) {
        const struct path_row *row = &p->segments[i].row;
        if (row->host == p->start.host && row->row == p->start.row)
            changes = 0;
        else
            changes += !i || row->host != p->segments[i - 1].row.host;
        most = changes > most ? changes : most;
    }
    return 2 * most + 3;
}

static void check(struct world *w, struct path_row row, const struct path_options *o, bool assuming, bool everybody,
    size_t per_node, uint64_t steps, struct cost *cost)
{
    struct err e = {0};
    struct path *p;
    const struct path_source *here = assuming ? path_local_source_assuming(w->local) : path_local_source(w->local);
    int rc = path_walk(here, row, o, &p, &e);
    struct path_known_options options = {assuming, o->no_early_return, everybody, roll(w, 4) ? may_have_sent : NULL, w};
    struct path_known *k = path_known_new(w->far, w->n, &options);
    struct path_row far_row = path_known_row(k, row.host, index_row_id(&w->hosts[row.host], row.row));
    path_known_ask_open(k, far_row, o->end);
    struct path_query *q = path_query_new(path_known_source(k), far_row, o);
    int progress;
    struct cost one = {0};
    while ((progress = path_query_run(q, UINT64_MAX, &e)) == PATH_AWAITS)
        if (!ask_nodes(w, k, per_node, steps, 0, &one))
            fail_msg("row %d of %s: the walk waits for nothing", row.row, w->hosts[row.host].name);
    if (rc) {
        assert_int_equal(progress, rc);
    } else {
        struct path *far = path_query_answer(q);
        char *a = shown(p, here), *b = shown(far, path_known_source(k));
        size_t at = 0;
        while (a[at] && a[at] == b[at])
            at++;
        if (a[at] != b[at])
            fail_msg("row %d of %s from %" PRId64 ":\n%.400s\n%.400s", row.row, w->hosts[row.host].name, o->begin,
                a + (at > 200 ? at - 200 : 0), b + (at > 200 ? at - 200 : 0));
        free(a);
        free(b);
        if (steps == UINT64_MAX && o->begin == INT64_MIN && one.rounds > most_rounds(p))
            fail_msg("row %d of %s: %zu rounds where %zu are enough", row.row, w->hosts[row.host].name, one.rounds,
                most_rounds(p));
        path_free(far);
        path_free(p);
    }
    cost->rounds = one.rounds > cost->rounds ? one.rounds : cost->rounds;
    cost->messages += one.messages;
    cost->bytes += one.bytes;
    cost->windows += one.windows;
    path_query_free(q);
    path_known_free(k);
}

/* Checks that both agree from there on. */
static void same_from(const struct world *w, const struct path *a, const struct path *b, int64_t from)
{
    size_t i = a->n_segments, j = b->n_segments;
    for (; i && j && a->segments[i - 1].end > from; i--, j--) {
        const struct path_segment *s = &a->segments[i - 1], *t = &b->segments[j - 1];
        bool same = s->end == t->end && s->state == t->state && s->row.host == t->row.host &&
            (s->begin == t->begin || (s->begin <= from && t->begin <= from));
        if (!same)
            fail_msg("row %d of %s: from %" PRId64 " to %" PRId64 " it is %s, or %s from %" PRId64
                     " on; nothing is said to be missing from %" PRId64 " on",
                a->start.row, w->hosts[a->start.host].name, s->begin, s->end, graph_state_name(s->state),
                graph_state_name(t->state), t->begin, from);
    }
}

/* Checks a source that leaves some queries without an answer. */
static bool check_lost(struct world *w, struct path_row row, const struct path_options *o)
{
    struct path *p;
    if (path_walk(path_local_source(w->local), row, o, &p, NULL))
        return false;
    struct path_known *k = path_known_new(w->far, w->n, &(struct path_known_options){0});
    struct path_row far_row = path_known_row(k, row.host, index_row_id(&w->hosts[row.host], row.row));
    path_known_ask_open(k, far_row, o->end);
    struct path_query *q = path_query_new(path_known_source(k), far_row, o);
    struct cost cost = {0};
    struct err e = {0};
    int progress;
    while ((progress = path_query_run(q, UINT64_MAX, &e)) == PATH_AWAITS)
        assert_true(ask_nodes(w, k, 1, UINT64_MAX, 4, &cost));
    bool missing = false;
    if (progress == PATH_DONE) { /* existence of the thread is unknown otherwise */
        struct path *far = path_query_answer(q);
        int64_t from = far->begin;
        for (size_t i = 0; i < far->n_gaps; i++)
            if (far->gaps[i].reason == PATH_OFFLINE_NODE)
                from = far->gaps[i].end;
        missing = from > far->begin;
        same_from(w, far, p, from);
        path_free(far);
    }
    path_free(p);
    path_query_free(q);
    path_known_free(k);
    return missing;
}

/* Checks every thread over its life, and over a random part of it. */
static void check_world(const char *name, bool in_data, size_t per_node)
{
    struct world w = open_world(name, in_data);
    struct cost cost = {0};
    size_t asked = 0, missing = 0;
    for (size_t h = 0; h < w.n; h++)
        for (size_t r = 0; w.parts[h].graph && r < graph_rows(w.parts[h].graph); r++) {
            struct path_row row = {(int32_t)h, (int32_t)r};
            struct path_options o = {.begin = INT64_MIN, .end = INT64_MAX};
            check(&w, row, &o, false, false, per_node, UINT64_MAX, &cost);
            const struct path_source *s = path_local_source(w.local);
            int64_t begin, end;
            if (s->life(s->arg, row, &begin, &end) != PATH_REPLY_FOUND || end <= begin)
                continue;
            o.begin = begin + (int64_t)roll(&w, (uint64_t)(end - begin));
            o.end = o.begin + 1 + (int64_t)roll(&w, (uint64_t)(end - o.begin));
            o.no_early_return = roll(&w, 8) == 0;
            bool assuming = roll(&w, 4) == 0, everybody = roll(&w, 4) == 0;
            check(&w, row, &o, assuming, everybody, per_node, roll(&w, 4) ? UINT64_MAX : roll(&w, 5000), &cost);
            o.no_early_return = false;
            for (int i = 0; i < 4; i++)
                missing += check_lost(&w, row, &o);
            asked += 2;
        }
    print_message("%s: %zu paths, at most %zu rounds, %zu messages, %zu windows, %zu bytes; %zu lack something\n", name,
        asked, cost.rounds, cost.messages, cost.windows, cost.bytes, missing);
    assert_true(asked > 0);
    close_world(&w);
}

static void example(void **state)
{
    (void)state;
    check_world("three-tier", false, 1);
    check_world("three-tier", false, 2);
}

#define RECORDED(function, name) \
    static void function(void **state) \
    { \
        (void)state; \
        check_world(name, true, 1); \
    }
RECORDED(three_tier, "three-tier")
RECORDED(three_tier_disk, "three-tier-disk")
RECORDED(mpi, "mpi")
RECORDED(bsp, "bsp")
RECORDED(scp_net, "scp-net")
RECORDED(clocks, "clocks")
RECORDED(lost_events, "lost-events")

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(example),
        cmocka_unit_test(three_tier),
        cmocka_unit_test(three_tier_disk),
        cmocka_unit_test(mpi),
        cmocka_unit_test(bsp),
        cmocka_unit_test(scp_net),
        cmocka_unit_test(clocks),
        cmocka_unit_test(lost_events),
    };
    return cmocka_run_group_tests(tests, make_store, drop_store);
}

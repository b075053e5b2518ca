/* SPDX-License-Identifier: MIT */
#include "cluster/trace_set.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "clock/clock.h"
#include "cluster/extracts.h"
#include "cluster/metrics.h"
#include "path/requests.h"

enum {
    MOST_JOINED = 4,     /* sources that are kept, by the clocks they were asked for with */
    MOST_STEPS = 4000000 /* limit for the walks of one question: some seconds */
};

/* The hosts of a request, joined on its clocks. */
struct joined {
    atomic_uint refs;
    uint64_t hash, used; /* hash of the hosts' part of the request; time of last use */
    struct arena arena;
    struct path_request request; /* its hosts only */
    int32_t *hosts;              /* number here, by number in the request; -1: absent */
    struct path_local_host *parts;
    struct path_local *local;
    const struct cluster_trace_set *trace_set;
};

struct cluster_trace_set {
    atomic_uint refs;
    struct experiment *experiment;
    const struct index_host *hosts;
    size_t n;
    struct cluster_entry_host *entries;
    struct arena arena; /* holds what the entries point to */
    pthread_mutex_t lock;
    struct joined *joined[MOST_JOINED];
    uint64_t clock;
    struct extracts *extracts;
};

/* ---- description of hosts ---- */

static struct cluster_entry_host entry_of(const struct index_host *h)
{
    struct index_far_host far = index_far_host_of(h);
    struct cluster_entry_host c = {.key = h->key,
        .hash = index_host_hash(h),
        .name = h->name,
        .clock_name = h->clock_name,
        .begin = h->begin,
        .end = h->end,
        .sealed_until = far.sealed_until,
        .has_graph = h->graph != NULL,
        .has_packets = h->flows != NULL,
        .has_stacks = h->graph && graph_has_stacks(h->graph),
        .is_user_space = !h->is_kernel,
        .by_session = true,
        .clock = far.clock};
    if (h->flows) {
        c.n_own = flow_addresses(h->flows, &c.own);
        c.n_peers = flow_peers(h->flows, &c.peers);
    }
    return c;
}

/* The keys of machines with one boot were others once: what came here before is still known by them. */
static void rename_received(const struct cluster_trace_set *h, const struct cluster_moving *moving, const void *mover)
{
    for (size_t i = 0; i < h->n; i++) {
        const char *path = ctf_trace_path(h->hosts[i].trace);
        uint64_t key = moving->key(mover, path);
        bool is_known = !key;
        for (size_t k = 0; k < h->n && !is_known; k++)
            is_known = h->hosts[k].key == key;
        if (!is_known)
            moving->rename(mover, path, h->hosts[i].key);
    }
}

struct cluster_trace_set *cluster_trace_set_new(
    struct experiment *x, const struct cluster_moving *moving, const void *mover)
{
    struct cluster_trace_set *h = mem_zalloc(sizeof *h);
    h->refs = 1;
    h->experiment = x;
    h->extracts = cluster_extracts_new();
    h->n = x ? index_experiment_hosts(x, &h->hosts) : 0;
    h->entries = mem_zalloc((h->n + 1) * sizeof *h->entries);
    for (size_t i = 0; i < h->n; i++) {
        h->entries[i] = entry_of(&h->hosts[i]);
        if (mover) {
            h->entries[i].since = moving->since(mover, ctf_trace_path(h->hosts[i].trace));
            moving->excerpt(mover, h->hosts[i].trace, &h->arena, &h->entries[i].excerpt);
        }
        cluster_metrics_find(x, i, &h->arena, &h->entries[i]);
    }
    if (mover)
        rename_received(h, moving, mover);
    pthread_mutex_init(&h->lock, NULL);
    return h;
}

struct cluster_trace_set *cluster_trace_set_ref(struct cluster_trace_set *h)
{
    atomic_fetch_add(&h->refs, 1);
    return h;
}

static void joined_unref(struct joined *j)
{
    if (!j || atomic_fetch_sub(&j->refs, 1) > 1)
        return;
    path_local_free(j->local);
    free(j->parts);
    free(j->hosts);
    arena_fini(&j->arena);
    free(j);
}

void cluster_trace_set_unref(struct cluster_trace_set *h)
{
    if (!h || atomic_fetch_sub(&h->refs, 1) > 1)
        return;
    for (size_t i = 0; i < MOST_JOINED; i++)
        joined_unref(h->joined[i]);
    cluster_extracts_free(h->extracts);
    index_experiment_close(h->experiment);
    pthread_mutex_destroy(&h->lock);
    arena_fini(&h->arena);
    free(h->entries);
    free(h);
}

size_t cluster_trace_set_hosts(const struct cluster_trace_set *h, const struct cluster_entry_host **out)
{
    *out = h->entries;
    return h->n;
}

size_t cluster_trace_set_routes(const struct cluster_trace_set *h, size_t host, size_t most, struct flow_route **out)
{
    *out = NULL;
    return h->hosts[host].flows ? flow_routes(h->hosts[host].flows, most, out) : 0;
}

size_t cluster_trace_set_sent_hashes(const struct cluster_trace_set *h, size_t host, size_t most, uint32_t **out)
{
    *out = NULL;
    return h->hosts[host].flows ? flow_sent_hashes(h->hosts[host].flows, most, out) : 0;
}

const struct experiment *cluster_trace_set_experiment(const struct cluster_trace_set *h)
{
    return h->experiment;
}

int cluster_trace_set_intact(const struct cluster_trace_set *h, struct err *e)
{
    return h->experiment ? index_experiment_intact(h->experiment, e) : 0;
}

/* ---- hosts on the client's clocks ---- */

static int32_t host_with_id(const struct cluster_trace_set *h, const char *id)
{
    char own[CLUSTER_ID];
    for (size_t i = 0; i < h->n; i++) {
        cluster_id(h->hosts[i].key, own);
        if (!strcmp(own, id))
            return (int32_t)i;
    }
    return -1;
}

/* Takes the arena, in which the request lives. */
static struct joined *join(
    const struct cluster_trace_set *h, struct arena *a, const struct path_request *r, uint64_t hash)
{
    struct joined *j = mem_zalloc(sizeof *j);
    j->refs = 1;
    j->hash = hash;
    j->arena = *a;
    *a = (struct arena){0};
    j->request = *r;
    j->trace_set = h;
    j->hosts = mem_zalloc((r->n_hosts + 1) * sizeof *j->hosts);
    j->parts = mem_zalloc((r->n_hosts + 1) * sizeof *j->parts);
    for (size_t i = 0; i < r->n_hosts; i++) {
        j->hosts[i] = host_with_id(h, r->hosts[i].id);
        j->parts[i] = (struct path_local_host){.name = r->hosts[i].name, .map = r->hosts[i].map};
        if (j->hosts[i] >= 0) {
            j->parts[i].graph = h->hosts[j->hosts[i]].graph;
            j->parts[i].flows = h->hosts[j->hosts[i]].flows;
        }
    }
    j->local = path_local_new(j->parts, r->n_hosts);
    return j;
}

/* Returns the source for the hosts of a request: usually that of the question before, with all that it has computed. A
 * new one keeps a copy of the hosts alone: the request's own bytes may have many windows. */
static int joined_for(struct cluster_trace_set *h, const struct path_request *r, struct joined **out, struct err *e)
{
    struct path_request own = {.hosts = r->hosts, .n_hosts = r->n_hosts};
    struct text bytes = {.fd = -1};
    path_request_write(&own, &bytes);
    uint64_t hash = map_hash(bytes.v, bytes.n);
    size_t at = 0;
    struct joined *j = NULL;
    struct arena a = {0};
    int rc = 0;
    pthread_mutex_lock(&h->lock);
    for (size_t i = 0; i < MOST_JOINED && !j; i++) {
        if (h->joined[i] && h->joined[i]->hash == hash)
            j = h->joined[i];
        else if (!h->joined[i] || (h->joined[at] && h->joined[i]->used < h->joined[at]->used))
            at = i;
    }
    if (!j)
        rc = path_request_read(&a, bytes.v, bytes.n, &own, e);
    if (!j && !rc) {
        joined_unref(h->joined[at]);
        j = h->joined[at] = join(h, &a, &own, hash);
    }
    if (j) {
        j->used = ++h->clock;
        atomic_fetch_add(&j->refs, 1);
    }
    pthread_mutex_unlock(&h->lock);
    arena_fini(&a);
    text_fini(&bytes);
    *out = j;
    return rc;
}

static uint64_t id_of_row(void *arg, int32_t host, int32_t row)
{
    const struct joined *j = arg;
    return j->hosts[host] < 0 ? 0 : index_row_id(&j->trace_set->hosts[j->hosts[host]], row);
}

static int32_t row_with_id(void *arg, int32_t host, uint64_t id)
{
    const struct joined *j = arg;
    return j->hosts[host] < 0 ? -1 : index_row_find(&j->trace_set->hosts[j->hosts[host]], id);
}

/* ---- answers ---- */

/* Returns the state of the hosts of a request. */
static uint64_t state_of(const struct joined *j)
{
    uint64_t *hashes = mem_zalloc((j->request.n_hosts + 1) * sizeof *hashes);
    for (size_t i = 0; i < j->request.n_hosts; i++)
        hashes[i] = j->hosts[i] < 0 ? 0 : j->trace_set->entries[j->hosts[i]].hash;
    uint64_t state = cluster_state(hashes, j->request.n_hosts);
    free(hashes);
    return state;
}

static int answer_path(
    struct cluster_trace_set *h, const void *bytes, size_t n, int64_t deadline_ns, struct text *out, struct err *e)
{
    struct arena a = {0};
    struct path_request r;
    struct joined *j = NULL;
    int rc = path_request_read(&a, bytes, n, &r, e);
    if (!rc)
        rc = joined_for(h, &r, &j, e);
    if (!rc)
        cluster_path_answer_begin(out, state_of(j));
    if (!rc)
        rc = path_fragment_write(
            j->local, &(struct path_row_ids){j, id_of_row, row_with_id}, &r, MOST_STEPS, deadline_ns, out, e);
    joined_unref(j);
    arena_fini(&a);
    return rc;
}

static int answer_lives(struct cluster_trace_set *h, const void *bytes, size_t n, struct text *out, struct err *e)
{
    struct arena a = {0};
    struct lives_question q;
    struct path_lives found = {0};
    struct far_lives lives = {0};
    int rc = cluster_lives_question_read(&a, bytes, n, &q, e);
    if (!rc) {
        struct joined *j = join(h, &a, &q.hosts, 0);
        path_find_lives(j->local, q.thread, NULL, q.begin, q.end, &found);
        for (size_t i = 0; i < found.n; i++) {
            const struct path_life *l = &found.v[i];
            vec_push(&lives,
                ((struct far_life){
                    l->row.host, id_of_row(j, l->row.host, l->row.row), l->begin, l->end, l->tid, l->name}));
        }
        cluster_lives_write(&lives, out);
        joined_unref(j);
    }
    vec_free(&found);
    vec_free(&lives);
    arena_fini(&a);
    return rc;
}

/* Answers with the requests served by those hosts of the question that are here. */
static int answer_requests(struct cluster_trace_set *h, const void *bytes, size_t n, struct text *out, struct err *e)
{
    struct arena a = {0};
    struct path_requests_asked q;
    struct joined *j = NULL;
    int rc = cluster_requests_asked_read(&a, bytes, n, &q, e);
    if (!rc)
        rc = joined_for(h, &q.hosts, &j, e);
    struct requests *found = rc
        ? NULL
        : path_requests_find(j->local, &(struct requests_question){.begin = q.begin, .end = q.end});
    const struct path_source *source = rc ? NULL : path_local_source(j->local);
    for (size_t i = 0; !rc && i < path_requests_count(found); i++) {
        const struct served_request *r = path_requests_get(found, i);
        struct cluster_request told = {.host = r->thread.host,
            .row = id_of_row(j, r->thread.host, r->thread.row),
            .begin = r->begin,
            .end = r->end,
            .by_interrupt = r->by_interrupt};
        int32_t tid;
        source->row_name(source->arg, r->thread, r->end, r->end, &tid, &told.name);
        cluster_requests_write_one(&told, out);
    }
    path_requests_free(found);
    joined_unref(j);
    arena_fini(&a);
    return rc;
}

static const struct index_host *host_with_key(const struct cluster_trace_set *h, uint64_t key)
{
    size_t i = 0;
    while (i < h->n && h->hosts[i].key != key)
        i++;
    return i < h->n ? &h->hosts[i] : NULL;
}

static int answer_flows(struct cluster_trace_set *h, const void *bytes, size_t n, struct text *out, struct err *e)
{
    struct arena a = {0};
    struct flows_question q;
    int rc = cluster_flows_question_read(&a, bytes, n, &q, e);
    for (size_t i = 0; i < q.n && !rc; i++) {
        const struct index_host *host = host_with_key(h, q.keys[i]);
        uint64_t *hashes = NULL;
        struct flow_own_address *own = NULL;
        struct flow_other o = {0};
        if (host && host->flows) {
            o.n_hashes = flow_hashes(host->flows, &hashes);
            o.n_own = flow_own_addresses(host->flows, &own);
            o.hashes = hashes;
            o.own = own;
        }
        cluster_flows_write(&o, out);
        free(hashes);
        free(own);
    }
    arena_fini(&a);
    return rc;
}

static int answer_extract(struct cluster_trace_set *h, const void *bytes, size_t n, struct text *out, struct err *e)
{
    struct arena a = {0};
    struct extract_question q;
    int rc = cluster_extract_question_read(&a, bytes, n, &q, e);
    const struct index_host *host = rc ? NULL : host_with_key(h, q.key);
    if (!rc && (!host || !host->flows))
        rc = err_set(e, ERR_NOTFOUND, "no packets of that host are here");
    if (!rc)
        rc = cluster_extracts_answer(h->extracts, host->flows, &q, out, e);
    arena_fini(&a);
    return rc;
}

static int answer_threads(struct cluster_trace_set *h, const void *bytes, size_t n, struct text *out, struct err *e)
{
    struct arena a = {0};
    struct threads_question q;
    struct cluster_threads found = {0};
    int rc = cluster_threads_question_read(&a, bytes, n, &q, e);
    for (size_t i = 0; i < q.n && !rc; i++) {
        const struct index_host *host = host_with_key(h, q.keys[i]);
        struct cluster_thread t = {.host = (int32_t)i};
        for (size_t r = 0; host && host->graph && r < graph_rows(host->graph); r++)
            if (graph_row_time(host->graph, (int32_t)r, &q.is.choice, &t.is))
                vec_push(&found, t);
    }
    found.total = found.n;
    cluster_threads_limit(&found, q.is.sort, q.is.limit);
    if (!rc)
        cluster_threads_write(&found, out);
    vec_free(&found);
    arena_fini(&a);
    return rc;
}

/* Finds the containers of threads of one host. */
static int name_containers(
    const struct cluster_trace_set *h, const struct containers_question_host *q, const char **names, struct err *e)
{
    const struct index_host *host = host_with_key(h, q->key);
    if (!host || !host->graph)
        return err_set(e, ERR_NOTFOUND, "the trace of a host that is asked about is not here");
    const struct graph_container *containers;
    graph_containers(host->graph, &containers);
    for (size_t i = 0; i < q->n; i++) {
        int32_t number = index_row_find(host, q->rows[i]);
        struct graph_row row;
        if (number < 0 || (size_t)number >= graph_rows(host->graph))
            return err_set(e, ERR_NOTFOUND, "a thread of %s that is asked about is not known here", host->name);
        graph_row(host->graph, number, &row);
        names[i] = row.container == GRAPH_NO_CONTAINER ? "" : containers[row.container].name;
    }
    return 0;
}

static int answer_containers(struct cluster_trace_set *h, const void *bytes, size_t n, struct text *out, struct err *e)
{
    struct arena a = {0};
    struct containers_question q;
    int rc = cluster_containers_question_read(&a, bytes, n, &q, e);
    size_t all = 0, at = 0;
    for (size_t i = 0; i < q.n && !rc; i++)
        all += q.hosts[i].n;
    const char **names = arena_new(&a, const char *, all + 1);
    for (size_t i = 0; i < q.n && !rc; at += q.hosts[i++].n)
        rc = name_containers(h, &q.hosts[i], names + at, e);
    if (!rc)
        cluster_containers_write(names, all, out);
    arena_fini(&a);
    return rc;
}

static int answer_stacks(struct cluster_trace_set *h, const void *bytes, size_t n, struct text *out, struct err *e)
{
    struct arena a = {0};
    struct stacks_question q;
    struct joined *j = NULL;
    int rc = cluster_stacks_question_read(&a, bytes, n, &q, e);
    if (!rc)
        rc = joined_for(h, &q.hosts, &j, e);
    struct graph_stack *found = rc ? NULL : arena_new(&a, struct graph_stack, q.n + 1);
    const struct path_source *source = rc ? NULL : path_local_source(j->local);
    for (size_t i = 0; i < q.n && !rc; i++) {
        const struct stacks_question_item *v = &q.v[i];
        struct path_row row = {v->host, row_with_id(j, v->host, v->row)};
        if (row.row >= 0)
            source->stack(source->arg, row, v->begin, v->end, v->waits, &found[i]);
    }
    if (!rc)
        cluster_stacks_write(found, q.n, out);
    joined_unref(j);
    arena_fini(&a);
    return rc;
}

static int answer_talk(struct cluster_trace_set *h, const void *bytes, size_t n, struct text *out, struct err *e)
{
    struct arena a = {0};
    struct talk_question q;
    struct talk_reports told = {0};
    int rc = cluster_talk_question_read(&a, bytes, n, &q, e);
    for (size_t i = 0; i < q.n && !rc; i++) {
        const struct index_host *host = host_with_key(h, q.hosts[i].key);
        told.n = 0;
        if (host)
            path_talk_report(host->flows, q.hosts[i].begin, q.hosts[i].end, &told);
        cluster_talk_write(&told, out);
    }
    vec_free(&told);
    arena_fini(&a);
    return rc;
}

int cluster_trace_set_answer(struct cluster_trace_set *h, enum cluster_question kind, const void *bytes, size_t n,
    int64_t deadline_ns, struct text *out, struct err *e)
{
    switch (kind) {
    case CLUSTER_PATH: return answer_path(h, bytes, n, deadline_ns, out, e);
    case CLUSTER_LIVES: return answer_lives(h, bytes, n, out, e);
    case CLUSTER_FLOWS: return answer_flows(h, bytes, n, out, e);
    case CLUSTER_EXTRACT: return answer_extract(h, bytes, n, out, e);
    case CLUSTER_THREADS: return answer_threads(h, bytes, n, out, e);
    case CLUSTER_TALK: return answer_talk(h, bytes, n, out, e);
    case CLUSTER_REQUESTS: return answer_requests(h, bytes, n, out, e);
    case CLUSTER_CONTAINERS: return answer_containers(h, bytes, n, out, e);
    case CLUSTER_STACKS: return answer_stacks(h, bytes, n, out, e);
    case CLUSTER_HELLO:
    case CLUSTER_DELAYS:
    case CLUSTER_STATUS:
    case CLUSTER_LOAD:
    case CLUSTER_TAKE:
    case CLUSTER_FILES:
    case CLUSTER_READ:
    case CLUSTER_SUM:
    case CLUSTER_LEAVE: break; /* the node's own */
    }
    return err_set(e, ERR_UNSUPPORTED, "a question of a kind that is not known here");
}

#include "cluster/holding.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/map.h"
#include "base/mem.h"
#include "clock/clock.h"

enum {
    MOST_JOINED = 4,       /* sources that are kept, by the clocks they were asked for with */
    MOST_STEPS = 4000000,  /* of the walks of one question: some seconds */
    MOST_EXTRACT = 1 << 30 /* bytes */
};

/* The hosts of a request, joined on its clocks. */
struct joined {
    atomic_uint refs;
    uint64_t hash, used; /* of what the request says of hosts; when it was used last */
    struct arena arena;
    struct path_request request; /* its hosts */
    int32_t *hosts;              /* by number in the request: number here, -1: it is not here */
    struct path_local_host *parts;
    struct path_local *local;
    const struct holding *holding;
};

struct holding {
    atomic_uint refs;
    struct experiment *experiment;
    const struct index_host *hosts;
    size_t n;
    struct card_host *cards;
    pthread_mutex_t lock;
    struct joined *joined[MOST_JOINED];
    uint64_t clock;
};

/* ---- what is said ---- */

static struct card_host card_of(const struct index_host *h)
{
    struct index_far_host far = index_far_host_of(h);
    struct card_host c = {.key = h->key,
        .hash = index_host_hash(h),
        .name = h->name,
        .clock_name = h->clock_name,
        .begin = h->begin,
        .end = h->end,
        .sealed_until = far.sealed_until,
        .has_graph = h->graph != NULL,
        .has_packets = h->flows != NULL,
        .clock = far.clock};
    if (h->flows) {
        c.n_own = flow_addresses(h->flows, &c.own);
        c.n_peers = flow_peers(h->flows, &c.peers);
    }
    return c;
}

struct holding *holding_new(struct experiment *x)
{
    struct holding *h = mem_zalloc(sizeof *h);
    h->refs = 1;
    h->experiment = x;
    h->n = experiment_hosts(x, &h->hosts);
    h->cards = mem_zalloc((h->n + 1) * sizeof *h->cards);
    for (size_t i = 0; i < h->n; i++)
        h->cards[i] = card_of(&h->hosts[i]);
    pthread_mutex_init(&h->lock, NULL);
    return h;
}

struct holding *holding_ref(struct holding *h)
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

void holding_unref(struct holding *h)
{
    if (!h || atomic_fetch_sub(&h->refs, 1) > 1)
        return;
    for (size_t i = 0; i < MOST_JOINED; i++)
        joined_unref(h->joined[i]);
    experiment_close(h->experiment);
    pthread_mutex_destroy(&h->lock);
    free(h->cards);
    free(h);
}

size_t holding_hosts(const struct holding *h, const struct card_host **out)
{
    *out = h->cards;
    return h->n;
}

int holding_intact(const struct holding *h, struct err *e)
{
    return experiment_intact(h->experiment, e);
}

/* ---- hosts on the clocks of who asks ---- */

static int32_t host_with_id(const struct holding *h, const char *id)
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
static struct joined *join(const struct holding *h, struct arena *a, const struct path_request *r, uint64_t hash)
{
    struct joined *j = mem_zalloc(sizeof *j);
    j->refs = 1;
    j->hash = hash;
    j->arena = *a;
    *a = (struct arena){0};
    j->request = *r;
    j->holding = h;
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

static uint64_t hash_of_hosts(const struct path_request *r)
{
    struct path_request hosts = {.hosts = r->hosts, .n_hosts = r->n_hosts};
    struct text t = {.fd = -1};
    path_request_write(&hosts, &t);
    uint64_t hash = map_hash(t.v, t.n);
    text_fini(&t);
    return hash;
}

/* The source for these hosts: the same as for the question before, as a rule, with all that was found out for it. */
static struct joined *joined_for(struct holding *h, struct arena *a, const struct path_request *r)
{
    uint64_t hash = hash_of_hosts(r);
    size_t at = 0;
    struct joined *j = NULL;
    pthread_mutex_lock(&h->lock);
    for (size_t i = 0; i < MOST_JOINED && !j; i++) {
        if (h->joined[i] && h->joined[i]->hash == hash)
            j = h->joined[i];
        else if (!h->joined[i] || (h->joined[at] && h->joined[i]->used < h->joined[at]->used))
            at = i;
    }
    if (!j) {
        joined_unref(h->joined[at]);
        j = h->joined[at] = join(h, a, r, hash);
    }
    j->used = ++h->clock;
    atomic_fetch_add(&j->refs, 1);
    pthread_mutex_unlock(&h->lock);
    return j;
}

static uint64_t id_of_row(void *arg, int32_t host, int32_t row)
{
    const struct joined *j = arg;
    return j->hosts[host] < 0 ? 0 : index_row_id(&j->holding->hosts[j->hosts[host]], row);
}

static int32_t row_with_id(void *arg, int32_t host, uint64_t id)
{
    const struct joined *j = arg;
    return j->hosts[host] < 0 ? -1 : index_row_find(&j->holding->hosts[j->hosts[host]], id);
}

/* ---- answers ---- */

static int answer_path(struct holding *h, const void *bytes, size_t n, struct text *out, struct err *e)
{
    struct arena a = {0};
    struct path_request r;
    int rc = path_request_read(&a, bytes, n, &r, e);
    if (!rc) {
        struct arena hosts = {0};
        struct path_request again;
        rc = path_request_read(&hosts, bytes, n, &again, e);
        struct joined *j = rc ? NULL : joined_for(h, &hosts, &again);
        if (j)
            path_fragment_write(j->local, &(struct path_row_ids){j, id_of_row, row_with_id}, &r, MOST_STEPS, out);
        joined_unref(j);
        arena_fini(&hosts);
    }
    arena_fini(&a);
    return rc;
}

static int answer_lives(struct holding *h, const void *bytes, size_t n, struct text *out, struct err *e)
{
    struct arena a = {0};
    struct lives_question q;
    struct path_lives found = {0};
    struct far_lives lives = {0};
    int rc = lives_question_read(&a, bytes, n, &q, e);
    if (!rc) {
        struct joined *j = join(h, &a, &q.hosts, 0);
        path_find_lives(j->local, q.thread, NULL, q.begin, q.end, &found);
        for (size_t i = 0; i < found.n; i++) {
            const struct path_life *l = &found.v[i];
            vec_push(&lives,
                ((struct far_life){
                    l->row.host, id_of_row(j, l->row.host, l->row.row), l->begin, l->end, l->tid, l->name}));
        }
        lives_write(&lives, out);
        joined_unref(j);
    }
    vec_free(&found);
    vec_free(&lives);
    arena_fini(&a);
    return rc;
}

static const struct index_host *host_with_key(const struct holding *h, uint64_t key)
{
    size_t i = 0;
    while (i < h->n && h->hosts[i].key != key)
        i++;
    return i < h->n ? &h->hosts[i] : NULL;
}

static int answer_flows(struct holding *h, const void *bytes, size_t n, struct text *out, struct err *e)
{
    struct arena a = {0};
    struct flows_question q;
    int rc = flows_question_read(&a, bytes, n, &q, e);
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
        flows_write(&o, out);
        free(hashes);
        free(own);
    }
    arena_fini(&a);
    return rc;
}

static int read_extract(const struct index_host *host, const struct flow_other *others, struct text *out, struct err *e)
{
    uint32_t *flows = NULL;
    char *path, *bytes = NULL;
    size_t n = flow_needed(host->flows, others, 1, &flows), size;
    int rc = file_temporary("extract", &path, e);
    if (!rc) {
        rc = flow_extract(host->flows, flows, n, path, e);
        if (!rc)
            rc = file_read(path, MOST_EXTRACT, &bytes, &size, e);
        if (!rc)
            text_put(out, bytes, size);
        unlink(path);
        free(path);
    }
    free(bytes);
    free(flows);
    return rc;
}

static int answer_extract(struct holding *h, const void *bytes, size_t n, struct text *out, struct err *e)
{
    struct arena a = {0};
    struct extract_question q;
    int rc = extract_question_read(&a, bytes, n, &q, e);
    const struct index_host *host = rc ? NULL : host_with_key(h, q.key);
    if (!rc && (!host || !host->flows))
        rc = err_set(e, ERR_NOTFOUND, "no packets of that host are here");
    if (!rc)
        rc = read_extract(host, &q.others, out, e);
    arena_fini(&a);
    return rc;
}

static void add_thread(
    struct cluster_threads *out, const struct threads_question *q, const struct index_host *h, size_t host, int32_t row)
{
    struct graph_row r;
    graph_row(h->graph, row, &r);
    struct cluster_thread t = {.host = (int32_t)host, .tid = r.tid, .tgid = r.tgid, .name = r.name, .born = r.begin};
    t.begin = r.begin > q->is.begin ? r.begin : q->is.begin;
    t.end = r.end < q->is.end ? r.end : q->is.end;
    if (t.begin > t.end || (r.idle_cpu >= 0 && !q->is.idle) ||
        (q->is.thread && !graph_row_is(h->graph, row, q->is.thread)))
        return;
    graph_row_totals(h->graph, row, t.begin, t.end, t.totals);
    vec_push(out, t);
}

static int answer_threads(struct holding *h, const void *bytes, size_t n, struct text *out, struct err *e)
{
    struct arena a = {0};
    struct threads_question q;
    struct cluster_threads found = {0};
    int rc = threads_question_read(&a, bytes, n, &q, e);
    for (size_t i = 0; i < q.n && !rc; i++) {
        const struct index_host *host = host_with_key(h, q.keys[i]);
        for (size_t r = 0; host && host->graph && r < graph_rows(host->graph); r++)
            add_thread(&found, &q, host, i, (int32_t)r);
    }
    threads_sort(&found, q.is.sort);
    found.n = found.n < q.is.limit ? found.n : q.is.limit;
    if (!rc)
        threads_write(&found, out);
    vec_free(&found);
    arena_fini(&a);
    return rc;
}

int holding_answer(
    struct holding *h, enum cluster_question kind, const void *bytes, size_t n, struct text *out, struct err *e)
{
    switch (kind) {
    case CLUSTER_PATH: return answer_path(h, bytes, n, out, e);
    case CLUSTER_LIVES: return answer_lives(h, bytes, n, out, e);
    case CLUSTER_FLOWS: return answer_flows(h, bytes, n, out, e);
    case CLUSTER_EXTRACT: return answer_extract(h, bytes, n, out, e);
    case CLUSTER_THREADS: return answer_threads(h, bytes, n, out, e);
    case CLUSTER_HELLO: break;
    }
    return err_set(e, ERR_UNSUPPORTED, "a question of a kind that is not known here");
}

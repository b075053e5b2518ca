/* SPDX-License-Identifier: MIT */
/* Fuzz: what nodes of a cluster tell each other of paths. The first byte says what follows: a request, which is
 * answered from the stores of the bundled trace; a fragment, from which a path is then walked, as if every question got
 * it for an answer; an entry, a condition; where a server is; questions and answers about threads, their containers,
 * flows and moves, and about who talks to whom; and what servers tell of who asked for a request. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/text.h"
#include "cluster/condition.h"
#include "cluster/extracts.h"
#include "cluster/protocol.h"
#include "cluster/report.h"
#include "cluster/routes.h"
#include "cluster/servers.h"
#include "index/index.h"
#include "path/fragment.h"
#include "path/path.h"
#include "path/requests.h"
#include "place/moves.h"
#include "share/shared.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { HOSTS = 3, STEPS = 20000, ROUNDS = 20 };

static const struct index_host *hosts;
static size_t n_hosts;

static void remove_directory(void)
{
    if (system("rm -rf /tmp/weft-fuzz-remote-$PPID"))
        abort();
}

/* The stores of the bundled trace. */
static void open_hosts(void)
{
    static struct arena lasting;
    static struct experiment *x; /* for good */
    struct err e;
    struct index_options o = {.stores = true};
    const char *dir = arena_printf(&lasting, "/tmp/weft-fuzz-remote-%d", (int)getpid());
    if (system(arena_printf(
            &lasting, "mkdir -p '%s' && tar -xJf '%s/three-tier.tar.xz' -C '%s'", dir, WEFT_EXAMPLES, dir)))
        abort();
    atexit(remove_directory);
    if (index_experiment_open(&dir, 1, &o, &x, &e))
        abort();
    n_hosts = index_experiment_hosts(x, &hosts);
}

static uint64_t id_of(void *arg, int32_t host, int32_t row)
{
    (void)arg;
    return index_row_id(&hosts[(size_t)host % n_hosts], row);
}

static int32_t row_of(void *arg, int32_t host, uint64_t id)
{
    (void)arg;
    return index_row_find(&hosts[(size_t)host % n_hosts], id);
}

static void answer_request(const uint8_t *data, size_t n)
{
    struct arena a = {0};
    struct path_request r;
    if (!path_request_read(&a, data, n, &r, NULL) && r.n_hosts < 64) {
        struct path_local_host parts[64];
        struct text out = {.fd = -1};
        struct fragment f;
        for (size_t i = 0; i < r.n_hosts; i++)
            parts[i] = (struct path_local_host){
                r.hosts[i].name, hosts[i % n_hosts].graph, hosts[i % n_hosts].flows, r.hosts[i].map};
        struct path_local *local = path_local_new(parts, r.n_hosts);
        path_fragment_write(local, &(struct path_row_ids){NULL, id_of, row_of}, &r, STEPS, INT64_MAX, &out, NULL);
        bool mapped = false;
        for (size_t i = 0; i < r.n_hosts; i++)
            mapped |= r.hosts[i].map != NULL;
        /* What was asked may be anything; what is answered makes sense, unless times are told by a senseless clock. */
        if (path_fragment_unpack(&f, out.v, out.n, r.n_hosts, r.n_windows, NULL) && !mapped)
            abort();
        path_fragment_fini(&f);
        path_local_free(local);
        text_fini(&out);
    }
    arena_fini(&a);
}

static void walk_fragment(const uint8_t *data, size_t n)
{
    static const struct path_far_host far[HOSTS] = {{.name = "a", .id = "a", .has_packets = true},
        {.name = "b", .id = "b", .has_packets = true}, {.name = "c", .id = "c", .has_packets = true}};
    static const int32_t all[HOSTS] = {0, 1, 2};
    struct path_known *k = path_known_new(far, HOSTS, &(struct path_known_options){.everybody = n % 2});
    uint64_t id = 1;
    if (n > 8)
        memcpy(&id, data + n - 8, sizeof id);
    struct path_row row = path_known_row(k, 0, id >> 12);
    struct path_options o = {.begin = INT64_MIN, .end = INT64_MAX};
    struct path_query *q = path_query_new(path_known_source(k), row, &o);
    int rc = PATH_AWAITS;
    for (int i = 0; i < ROUNDS && (rc == PATH_AWAITS || rc == PATH_MORE); i++) {
        const struct path_window *wanted;
        struct text t = {.fd = -1};
        rc = path_query_run(q, STEPS, NULL);
        size_t windows = path_known_take(k, &wanted);
        struct path_window *copy = mem_alloc((windows + 1) * sizeof *copy);
        if (windows)
            memcpy(copy, wanted, windows * sizeof *copy);
        struct path_ask ask = {all, HOSTS, copy, windows};
        path_known_request(k, &ask, &t);
        if (path_known_add(k, &ask, data, n, NULL))
            for (size_t w = 0; w < windows; w++)
                path_known_give_up(k, &copy[w], "away");
        text_fini(&t);
        free(copy);
    }
    path_free(path_query_answer(q)); /* which asserts that it covers all */
    path_query_free(q);
    path_known_free(k);
}

/* What was asked is answered, and the answer makes sense. */
static void answer_talk(const uint8_t *data, size_t n)
{
    struct arena a = {0};
    struct talk_question q;
    if (!cluster_talk_question_read(&a, data, n, &q, NULL) && q.n < 64) {
        struct talk_reports told = {0}, *again = arena_new(&a, struct talk_reports, q.n + 1);
        struct text out = {.fd = -1};
        for (size_t i = 0; i < q.n; i++) {
            told.n = 0;
            path_talk_report(hosts[i % n_hosts].flows, q.hosts[i].begin, q.hosts[i].end, &told);
            cluster_talk_write(&told, &out);
        }
        if (cluster_talk_read(out.v, out.n, q.n, again, NULL))
            abort();
        for (size_t i = 0; i < q.n; i++)
            vec_free(&again[i]);
        vec_free(&told);
        text_fini(&out);
    }
    arena_fini(&a);
}

static void answer_delays(const uint8_t *data, size_t n)
{
    struct arena a = {0};
    struct delays_question q;
    if (!cluster_delays_question_read(&a, data, n, &q, NULL) && q.hosts.n_hosts < 64) {
        struct talk_host *talk = arena_new(&a, struct talk_host, q.hosts.n_hosts + 1);
        bool *known = arena_new(&a, bool, q.hosts.n_hosts + 1);
        struct talk_delays found = {0}, again = {0};
        struct text out = {.fd = -1};
        for (size_t i = 0; i < q.hosts.n_hosts; i++)
            talk[i] = (struct talk_host){i < n_hosts ? hosts[i].flows : NULL, q.hosts.hosts[i].map};
        path_talk_find_delays(talk, q.hosts.n_hosts, q.begin, q.end, q.by_flow, &found);
        cluster_delays_write(&found, known, q.hosts.n_hosts, q.by_flow, &out);
        if (cluster_delays_read(out.v, out.n, q.hosts.n_hosts, q.by_flow, &again, known, NULL))
            abort();
        vec_free(&found);
        vec_free(&again);
        text_fini(&out);
    }
    arena_fini(&a);
}

/* Whatever nodes tell, its ends are put together. */
static void join_talk(const uint8_t *data, size_t n)
{
    struct talk_told told[HOSTS] = {0};
    struct talk_reports got[HOSTS] = {0};
    struct talk_lines lines = {0};
    if (!cluster_talk_read(data, n, HOSTS, got, NULL)) {
        for (size_t i = 0; i < HOSTS; i++) {
            told[i].flows = got[i];
            told[i].n_own = flow_addresses(hosts[i % n_hosts].flows, &told[i].own);
        }
        path_talk_join(told, HOSTS, &lines);
    }
    for (size_t i = 0; i < HOSTS; i++)
        vec_free(&got[i]);
    vec_free(&lines);
}

/* What is read is written as the same. */
static void read_shared(const uint8_t *data, size_t n)
{
    struct arena a = {0};
    struct shared_trace t, again;
    struct text out = {.fd = -1};
    if (!share_entry_read(&a, data, n, &t, NULL)) {
        share_entry_write(&t, &out);
        if (share_entry_read(&a, out.v, out.n, &again, NULL) || strcmp(t.work.path, again.work.path) != 0 ||
            strstr(t.work.path, "../") == t.work.path)
            abort();
    }
    text_fini(&out);
    arena_fini(&a);
}

/* What servers tell each other, by a coordinator, of who asked. */
static void follow_trail(const uint8_t *data, size_t n)
{
    struct path_local_host here[HOSTS];
    struct request_client client;
    struct text trail = {.fd = -1};
    for (size_t i = 0; i < HOSTS; i++)
        here[i] = (struct path_local_host){
            .name = hosts[i % n_hosts].name, .graph = hosts[i % n_hosts].graph, .flows = hosts[i % n_hosts].flows};
    struct path_local *local = path_local_new(here, HOSTS);
    text_put(&trail, (const char *)data, n);
    path_requests_asked(local, text_cstr(&trail), INT64_MIN, &client);
    path_requests_asked(local, text_cstr(&trail), hosts[0].begin, &client);
    text_fini(&trail);
    path_local_free(local);
}

static void read_rest(int kind, const uint8_t *data, size_t n)
{
    struct arena a = {0};
    struct cluster_entry entry;
    struct lives_question lives;
    struct far_lives found = {0};
    struct flow_other others[HOSTS];
    struct flows_question flows;
    struct extract_question extract;
    struct threads_question threads;
    struct cluster_threads lines = {0};
    struct routes routes;
    struct flow_message_key key = {.flow = {.protocol = 6}, .bytes = 1};
    struct talk_delays delays = {0};
    bool known[HOSTS];
    struct move_files files;
    struct move_piece piece;
    struct move_question move;
    struct place_move_progress progress;
    struct cluster_load load;
    struct server_entry server;
    struct path_requests_asked asked;
    struct cluster_requests served = {0};
    struct containers_question containers;
    struct condition condition;
    struct report report;
    const char *names[HOSTS];
    switch (kind) {
    case 2: cluster_entry_read(&a, data, n, &entry, NULL); break;
    case 3: cluster_lives_question_read(&a, data, n, &lives, NULL); break;
    case 4: cluster_lives_read(&a, data, n, HOSTS, &found, NULL); break;
    case 5: cluster_flows_read(&a, data, n, HOSTS, others, NULL); break;
    case 6: cluster_flows_question_read(&a, data, n, &flows, NULL); break;
    case 8: cluster_threads_question_read(&a, data, n, &threads, NULL); break;
    case 9: cluster_threads_read(&a, data, n, HOSTS, &lines, NULL); break;
    case 10:
        if (!cluster_routes_read(&a, data, n, &routes))
            flow_routes_lead(routes.v, routes.n, &key), flow_sent_hashes_have(routes.sent, routes.n_sent, &key.flow);
        break;
    case 11: answer_talk(data, n); break;
    case 12: join_talk(data, n); break;
    case 13: answer_delays(data, n); break;
    case 14: cluster_delays_read(data, n, HOSTS, n && data[0] & 2, &delays, known, NULL); break;
    case 15: {
        struct coming c = {0};
        struct flow_store *s;
        if (!cluster_incoming_take(&c, data, n, NULL) && !cluster_incoming_open(&c, &s, NULL))
            flow_close(s);
        cluster_incoming_fini(&c);
        break;
    }
    case 16: place_move_files_read(&a, data, n, &files, NULL); break;
    case 17: place_move_piece_read(data, n, &piece, NULL); break;
    case 18: place_move_question_read(&a, data, n, &move, NULL); break;
    case 19: place_move_progress_read(&a, data, n, &progress, NULL); break;
    case 20: cluster_load_read(data, n, &load, NULL); break;
    case 21: read_shared(data, n); break;
    case 22:
        if (!cluster_server_entry_read(&a, data, n, &server, NULL) && cluster_url_problem(server.is.url))
            abort();
        break;
    case 23: follow_trail(data, n); break;
    case 24: cluster_requests_asked_read(&a, data, n, &asked, NULL); break;
    case 25: cluster_requests_read(&a, data, n, HOSTS, &served, NULL); break;
    case 26: cluster_containers_question_read(&a, data, n, &containers, NULL); break;
    case 27: cluster_containers_read(&a, data, n, names, HOSTS, NULL); break;
    case 28: cluster_condition_read(&a, data, n, &condition, NULL); break;
    case 29: cluster_report_read(&a, data, n, &report, NULL); break;
    default:
        if (!cluster_extract_question_read(&a, data, n, &extract, NULL) && hosts[0].flows) {
            uint32_t *needed;
            flow_needed(hosts[0].flows, &extract.others, 1, &needed);
            free(needed);
        }
    }
    vec_free(&found);
    vec_free(&lines);
    vec_free(&served);
    vec_free(&delays);
    arena_fini(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (!n_hosts)
        open_hosts();
    if (!n)
        return 0;
    int kind = data[0] % 30;
    if (kind == 0)
        answer_request(data + 1, n - 1);
    else if (kind == 1)
        walk_fragment(data + 1, n - 1);
    else
        read_rest(kind, data + 1, n - 1);
    return 0;
}

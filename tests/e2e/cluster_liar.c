/* SPDX-License-Identifier: MIT */
/* A node that lies: cluster_liar URL TRUE_CLUSTER TRUE_NODE CLUSTER NAME HOW SEED
 * Joins CLUSTER as NAME, says that it has what TRUE_NODE of another cluster has, and hands that node every question;
 * what it says of paths it makes of the true answers as HOW says ("older": as they are, but it knows no
 * containers). HOW "first": NAME is an honest node, whose entry stays: it answers each question at once with nothing.
 * Says "ready", and ends by SIGTERM. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/time.h"
#include "bus/bus.h"
#include "cluster/protocol.h"
#include "path/fragment.h"

enum { PATIENCE_MS = 5000, VAST = 60 << 20 };

struct liar {
    struct bus *bus;
    const char *true_cluster, *true_node, *cluster, *name, *how;
    char truth[CLUSTER_SUBJECT];
    uint64_t dice;
    struct text before; /* the answer of the question before */
};

static void fail(const char *what, const struct err *e)
{
    fprintf(stderr, "cluster_liar: %s: %s\n", what, e->text);
    exit(1);
}

static uint64_t throw(struct liar * l, uint64_t below)
{
    l->dice = l->dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return below ? (l->dice >> 24) % below : 0;
}

static bool is(const struct liar *l, const char *how)
{
    return !strcmp(l->how, how);
}

/* ---- wrong queries ---- */

static void pervert_hosts(struct liar *l, struct path_remote_host *hosts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t k = (size_t) throw(l, n);
        const char *id = hosts[i].id;
        hosts[i].id = hosts[k].id;
        hosts[k].id = id;
    }
}

static void pervert_windows(struct liar *l, struct path_window *w, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        w[i].row += throw(l, 2) ? throw(l, 5) : 0;
        w[i].t += throw(l, 2) ? (int64_t) throw(l, 2 * NS_PER_S) - NS_PER_S : 0;
        w[i].bound -= throw(l, 2) ? (int64_t) throw(l, NS_PER_S) : 0;
        w[i].open ^= throw(l, 2);
    }
}

static void pervert_question(struct liar *l, const struct bus_question *asked, struct text *out)
{
    struct arena a = {0};
    struct path_request r;
    struct err e = {0};
    if (path_request_read(&a, (const char *)asked->data + QUESTION_BYTES, asked->n - QUESTION_BYTES, &r, &e))
        fail("a question", &e);
    struct path_remote_host *hosts = arena_new(&a, struct path_remote_host, r.n_hosts + 1);
    struct path_window *windows = arena_new(&a, struct path_window, r.n_windows + 1);
    memcpy(hosts, r.hosts, r.n_hosts * sizeof *hosts);
    if (r.n_windows)
        memcpy(windows, r.windows, r.n_windows * sizeof *windows);
    if (is(l, "hosts"))
        pervert_hosts(l, hosts, r.n_hosts);
    if (is(l, "rows"))
        pervert_windows(l, windows, r.n_windows);
    r.hosts = hosts;
    r.windows = windows;
    r.n_windows = is(l, "nothing") ? 0 : r.n_windows;
    cluster_question_begin(out, CLUSTER_PATH);
    path_request_write(&r, out);
    arena_fini(&a);
}

/* ---- wrong answers ---- */

static void pervert_bytes(struct liar *l, struct text *t)
{
    static const char most[] = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
    size_t times = 1 + (size_t) throw(l, 4);
    if (is(l, "garbage")) {
        t->n = 0;
        for (size_t n = (size_t) throw(l, 5000); n; n--)
            text_putc(t, (char) throw(l, 256));
    }
    if (is(l, "cut") && t->n)
        t->n = (size_t) throw(l, t->n);
    for (size_t i = 0; is(l, "flips") && i < times && t->n; i++)
        t->v[throw(l, t->n)] = (char) throw(l, 256);
    for (size_t i = 0; is(l, "huge") && i < times && t->n > sizeof most; i++)
        memcpy(t->v + throw(l, t->n - sizeof most), most, sizeof most - 1);
    if (is(l, "vast"))
        for (size_t n = 0; n < VAST; n++)
            text_putc(t, 0);
}

/* Makes endless loops: each thread is made, woken and written to by another one, at about the same time. */
static void make_loops(struct liar *l, struct fragment *f)
{
    for (size_t i = 0; i < f->causes.n; i++) {
        struct fragment_cause *c = &f->causes.v[i];
        int64_t ts = c->message ? c->ts : c->ts + (int64_t) throw(l, 3) - 1;
        *c = (struct fragment_cause){.kind = PATH_CAUSE_WAKEUP, .from = 1 + (uint32_t) throw(l, f->rows.n), .ts = ts};
    }
    for (size_t i = 0; i < f->rows.n && f->causes.n; i++)
        f->rows.v[i].origin = 1 + (uint32_t) throw(l, f->causes.n);
    for (size_t i = 0; i < f->intervals.n && f->causes.n; i++)
        f->intervals.v[i].cause = 1 + (uint32_t) throw(l, f->causes.n);
    for (size_t i = 0; i < f->results.n && f->rows.n; i++)
        if (f->results.v[i].from)
            f->results.v[i].from = 1 + (uint32_t) throw(l, f->rows.n);
}

/* Makes an endless chain: each row has only the information that another, yet unknown row made it, at the same time. */
static void make_endless(struct liar *l, const struct path_request *r, struct fragment *f)
{
    for (size_t i = 0; i < r->n_windows; i++) {
        const struct path_window *w = &r->windows[i];
        bool message = w->kind == PATH_WINDOW_MESSAGE;
        uint32_t row = (uint32_t)f->rows.n;
        vec_push(&f->causes, ((struct fragment_cause){.kind = PATH_CAUSE_FORK, .from = row + 2, .ts = w->t}));
        uint64_t id = message || path_is_remote_cpu(w->row) ? throw(l, 1 << 30) : w->row;
        vec_push(&f->rows, ((struct fragment_row){.host = w->host, .id = id, .origin = (uint32_t)f->causes.n}));
        vec_push(&f->rows, ((struct fragment_row){.host = w->host, .id = throw(l, 1 << 30)}));
        vec_push(&f->nones, ((struct fragment_none){row, w->t}));
        vec_push(&f->results,
            ((struct fragment_answer){.host = message ? w->host : -1,
                .answer = message ? FLOW_SENT : FLOW_NOT_SENT,
                .from = message ? row + 1 : 0,
                .ts = message ? w->t : 0}));
    }
}

static void pervert_fragment(struct liar *l, const struct bus_question *asked, struct text *t)
{
    struct arena a = {0};
    struct path_request r;
    struct fragment f = {0};
    struct path_answer told;
    struct err e = {0};
    if (path_request_read(&a, (const char *)asked->data + QUESTION_BYTES, asked->n - QUESTION_BYTES, &r, &e) ||
        cluster_path_answer_read(t->v, t->n, &told, &e) ||
        path_fragment_unpack(&f, told.fragment, told.n, r.n_hosts, r.n_windows, &e))
        fail("a true answer", &e);
    if (is(l, "loops"))
        make_loops(l, &f);
    if (is(l, "endless")) {
        path_fragment_fini(&f);
        f = (struct fragment){0};
        make_endless(l, &r, &f);
    }
    t->n = 0;
    cluster_path_answer_begin(t, told.state);
    path_fragment_pack(&f, t);
    path_fragment_fini(&f);
    arena_fini(&a);
}

static void lie(struct liar *l, struct bus_question *asked, struct text *truth)
{
    struct err e = {0};
    if (is(l, "loops") || is(l, "endless"))
        pervert_fragment(l, asked, truth);
    if (is(l, "refuses")) {
        bus_refuse(asked, throw(l, 2) ? -4711 : 99, "\x1b[31m no \xff\xfe");
        return;
    }
    if (is(l, "before")) {
        struct text now = *truth;
        *truth = l->before;
        l->before = now;
    }
    pervert_bytes(l, truth);
    bus_answer(asked, truth->v, truth->n, &e);
}

static void on_question(void *arg, struct bus_question *asked)
{
    struct liar *l = arg;
    struct err e = {0};
    struct bus_reply r;
    struct text question = {.fd = -1}, truth = {.fd = -1};
    enum cluster_question kind;
    if (is(l, "first")) {
        bus_answer(asked, NULL, 0, &e);
        return;
    }
    bool known = !cluster_question_kind(asked->data, asked->n, &kind, &e), path = known && kind == CLUSTER_PATH;
    if (known && kind == CLUSTER_CONTAINERS && is(l, "older")) {
        bus_refuse(asked, ERR_UNSUPPORTED, "not known here");
        return;
    }
    if (path)
        pervert_question(l, asked, &question);
    else
        text_put(&question, asked->data, asked->n);
    int rc = bus_ask(l->bus, l->truth, question.v, question.n, time_monotonic_ns() + PATIENCE_MS * 1000000LL, &r);
    text_put(&truth, r.data, r.n);
    if (path && is(l, "silent"))
        usleep(PATIENCE_MS * 1000);
    if (path && !rc)
        lie(l, asked, &truth);
    else if (rc)
        bus_refuse(asked, rc, r.text);
    else
        bus_answer(asked, truth.v, truth.n, &e);
    bus_reply_free(&r);
    text_fini(&truth);
    text_fini(&question);
}

/* ---- joining ---- */

static struct bus_table *open_table(struct liar *l, const char *cluster)
{
    char name[CLUSTER_SUBJECT];
    struct bus_table *table = NULL;
    struct err e = {0};
    if (cluster_table_name(cluster, "nodes", name, &e) || bus_table_open(l->bus, name, NULL, &table, &e))
        fail("table", &e);
    return table;
}

/* "claims": all whom the hosts talked to are theirs, too; "hash": what they have is not what it is. */
static void pervert_card(const struct liar *l, struct arena *a, struct cluster_entry *entry)
{
    struct cluster_entry_host *hosts = arena_new(a, struct cluster_entry_host, entry->n_hosts + 1);
    for (size_t i = 0; i < entry->n_hosts; i++) {
        struct cluster_entry_host *h = &hosts[i];
        *h = entry->hosts[i];
        struct flow_address *own = arena_new(a, struct flow_address, h->n_own + h->n_peers + 1);
        memcpy(own, h->own, h->n_own * sizeof *own);
        memcpy(own + h->n_own, h->peers, h->n_peers * sizeof *own);
        h->own = own;
        h->n_own += is(l, "claims") ? h->n_peers : 0;
        h->hash ^= is(l, "hash") ? 0x5555555555555555 : 0;
    }
    entry->hosts = hosts;
}

static void put_card(struct liar *l, struct bus_table *to, const char *key)
{
    struct bus_table *from = open_table(l, l->true_cluster);
    char true_key[CLUSTER_SUBJECT];
    struct arena a = {0};
    struct cluster_entry entry;
    struct text t = {.fd = -1};
    struct err e = {0};
    void *bytes = NULL;
    size_t n = 0;
    if (bus_token(l->true_node, true_key, sizeof true_key) || bus_table_get(from, true_key, &bytes, &n, NULL, &e) ||
        cluster_entry_read(&a, bytes, n, &entry, &e))
        fail("card", &e);
    entry.node = l->name;
    entry.instance = "liar";
    pervert_card(l, &a, &entry);
    cluster_entry_write(&entry, &t);
    if (bus_table_put(to, key, t.v, t.n, NULL, &e))
        fail("card", &e);
    free(bytes);
    text_fini(&t);
    arena_fini(&a);
    bus_table_close(from);
}

int main(int argc, char **argv)
{
    sigset_t end;
    int signal_number;
    if (argc != 8)
        return 2;
    struct liar l = {.true_cluster = argv[2],
        .true_node = argv[3],
        .cluster = argv[4],
        .name = argv[5],
        .how = argv[6],
        .dice = strtoull(argv[7], NULL, 10),
        .before = {.fd = -1}};
    char subject[CLUSTER_SUBJECT], key[CLUSTER_SUBJECT];
    struct bus_service *service = NULL;
    struct err e = {0};
    sigemptyset(&end);
    sigaddset(&end, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &end, NULL);
    if (bus_open(&(struct bus_options){.url = argv[1]}, &l.bus, &e) || bus_token(l.name, key, sizeof key) ||
        cluster_subject_of(l.true_cluster, l.true_node, l.truth, &e) ||
        cluster_subject_of(l.cluster, l.name, subject, &e) ||
        (!is(&l, "first") && cluster_bind(l.bus, l.cluster, &e)) ||
        bus_serve(l.bus, subject, NULL, on_question, &l, &service, &e))
        fail("joining", &e);
    struct bus_table *nodes = open_table(&l, l.cluster);
    if (!is(&l, "first"))
        put_card(&l, nodes, key);
    puts("ready");
    fflush(stdout);
    sigwait(&end, &signal_number);
    if (!is(&l, "first"))
        bus_table_remove(nodes, key, NULL);
    bus_stop(service);
    bus_table_close(nodes);
    bus_close(l.bus);
    text_fini(&l.before);
    return 0;
}

/* SPDX-License-Identifier: MIT */
/* A recording through the live interface: bench_live TRACE STORES [QUESTIONS]. Its packets are fed in the order of
 * their times and read at once: without questions, and with so many (100) in even steps, one behind a packet at most.
 * Beside it the same is indexed as files are. All in processor time, with stores below STORES, which are left. Prints
 * one JSON object; the ratios are how many times as long as indexing files it takes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/order.h"
#include "ctf/feed.h"
#include "ctf/trace.h"
#include "index/index.h"
#include "index/live.h"

static double cpu_seconds(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static void check(int rc, const struct err *e)
{
    if (!rc)
        return;
    fprintf(stderr, "bench_live: %s\n", e->text);
    exit(1);
}

/* ---- what is fed ---- */

struct packet {
    int64_t begin;
    uint32_t file;
    const uint8_t *bytes;
    size_t n;
};

struct recording {
    const char *name;
    char *metadata;
    size_t metadata_n;
    VEC(struct packet) packets;
    VEC(const char *) files;
};

static int compare_places(const void *a, const void *b)
{
    const struct packet *p = a, *q = b;
    int order = order_of(p->file, q->file);
    return order ? order : order_of(p->bytes, q->bytes);
}

static int compare_times(const void *a, const void *b)
{
    const struct packet *p = a, *q = b;
    int order = order_of(p->begin, q->begin);
    return order ? order : compare_places(a, b);
}

/* A packet goes on to where the next one of its file begins. */
static void set_sizes(struct recording *r, uint8_t *const *ends)
{
    qsort(r->packets.v, r->packets.n, sizeof *r->packets.v, compare_places);
    for (size_t i = 0; i < r->packets.n; i++) {
        struct packet *p = &r->packets.v[i];
        bool last = i + 1 == r->packets.n || p[1].file != p->file;
        p->n = (size_t)((last ? ends[p->file] : p[1].bytes) - p->bytes);
    }
}

static void load(struct recording *r, const struct ctf_group *g, struct err *e)
{
    struct ctf_trace *t;
    check(ctf_trace_open(g, NULL, &t, e), e);
    char *metadata = mem_printf("%s/metadata", g->dirs[g->n - 1]);
    check(file_read(metadata, SIZE_MAX, &r->metadata, &r->metadata_n, e), e);
    free(metadata);
    r->name = mem_strdup(ctf_trace_path(t));
    uint8_t **bytes = mem_zalloc((t->files.n + 1) * sizeof *bytes),
            **ends = mem_zalloc((t->files.n + 1) * sizeof *ends);
    for (size_t i = 0; i < t->files.n; i++) {
        size_t n;
        check(file_read(t->files.v[i].path, SIZE_MAX, (char **)&bytes[i], &n, e), e);
        ends[i] = bytes[i] + n;
        vec_push(&r->files, (const char *)mem_strdup(t->files.v[i].name));
    }
    for (size_t i = 0; i < t->streams.n; i++)
        for (size_t k = 0; k < t->streams.v[i].packets.n; k++) {
            const struct ctf_packet *p = &t->streams.v[i].packets.v[k];
            vec_push(&r->packets, ((struct packet){p->begin, p->file, bytes[p->file] + p->offset, 0}));
        }
    set_sizes(r, ends);
    qsort(r->packets.v, r->packets.n, sizeof *r->packets.v, compare_times);
    free(bytes); /* the files stay */
    free(ends);
    ctf_trace_close(t);
}

/* ---- what is measured ---- */

struct cost {
    double seconds;
    uint64_t events, questions;
};

static uint64_t events_of(struct experiment *x)
{
    uint64_t n = index_experiment_stored_events(x);
    index_experiment_close(x);
    return n;
}

static struct cost index_files(const char *trace, const char *store)
{
    const struct index_options o = {.store = store, .stores = true, .user_space = true, .force = true};
    struct experiment *x;
    struct err e = {0};
    double begin = cpu_seconds();
    check(index_experiment_open(&trace, 1, &o, &x, &e), &e);
    double seconds = cpu_seconds() - begin;
    return (struct cost){.seconds = seconds, .events = events_of(x)};
}

static struct cost index_live(const struct recording *r, const char *store, size_t questions)
{
    const struct index_options o = {.force = true};
    struct ctf_feed *feed = ctf_feed_new(r->name, NULL);
    struct index_live *live;
    struct experiment *x;
    struct err e = {0};
    struct cost cost = {0};
    bool more;
    double begin = cpu_seconds();
    check(ctf_feed_metadata(feed, r->metadata, r->metadata_n, &e), &e);
    check(index_live_new(ctf_feed_trace(feed), store, &o, &live, &e), &e);
    for (size_t i = 0; i < r->files.n; i++)
        ctf_feed_line(feed, r->files.v[i]);
    for (size_t i = 0; i < r->packets.n; i++) {
        const struct packet *p = &r->packets.v[i];
        check(ctf_feed_packet(feed, p->file, p->bytes, p->n, &e), &e);
        check(index_live_read(live, SIZE_MAX, &more, &e), &e);
        if (i * questions / r->packets.n == (i + 1) * questions / r->packets.n)
            continue;
        check(index_live_ask(&live, NULL, 1, &x, &e), &e);
        index_experiment_close(x);
        cost.questions++;
    }
    ctf_feed_end(feed);
    check(index_live_end(live, &e), &e);
    cost.seconds = cpu_seconds() - begin;
    check(index_live_ask(&live, NULL, 1, &x, &e), &e);
    cost.events = events_of(x);
    index_live_free(live);
    ctf_feed_free(feed);
    return cost;
}

static double rate(struct cost c)
{
    return (double)c.events / c.seconds / 1e6;
}

int main(int argc, char **argv)
{
    struct ctf_group *groups;
    struct err e = {0};
    size_t n, questions = argc > 3 ? strtoull(argv[3], NULL, 10) : 100;
    if (argc < 3) {
        fprintf(stderr, "bench_live TRACE STORES [QUESTIONS]\n");
        return 2;
    }
    check(ctf_discover(argv[1], &groups, &n, &e), &e);
    if (n != 1) {
        fprintf(stderr, "bench_live: %s has %zu traces; give one\n", argv[1], n);
        return 2;
    }
    struct recording r = {0};
    load(&r, &groups[0], &e);
    char *alone = mem_printf("%s/live", argv[2]), *asked = mem_printf("%s/asked", argv[2]);
    struct cost files = index_files(argv[1], argv[2]), live = index_live(&r, alone, 0),
                with = index_live(&r, asked, questions);
    if (live.events != files.events || with.events != files.events) {
        fprintf(stderr, "bench_live: %llu, %llu, %llu events\n", (unsigned long long)files.events,
            (unsigned long long)live.events, (unsigned long long)with.events);
        return 1;
    }
    printf("{\"bench\":\"live\",\"events\":%llu,\"packets\":%zu,\"index_mevents_s\":%.3f,\"live_mevents_s\":%.3f,"
           "\"live_ratio\":%.2f,\"questions\":%llu,\"asked_mevents_s\":%.3f,\"asked_ratio\":%.2f}\n",
        (unsigned long long)files.events, r.packets.n, rate(files), rate(live), live.seconds / files.seconds,
        (unsigned long long)with.questions, rate(with), with.seconds / files.seconds);
    ctf_groups_free(groups, n);
    return 0;
}

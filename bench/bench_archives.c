/* SPDX-License-Identifier: MIT */
/* Traces of many rotation archives: bench_archives DIR [ARCHIVES [STREAMS [HOSTS]]]. Makes them below DIR (1 s each,
 * one packet of 8 events a stream) unless they are there; then prints as JSON what it takes to find and open them:
 * afresh (when DIR has no catalogues), with catalogues, and when each host has one archive more; to follow one host by
 * one more, and to read a window of one archive in the middle. CPU times, and wall times where many threads open. */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/pool.h"
#include "base/time.h"
#include "ctf/catalogue.h"
#include "ctf/feed.h"
#include "ctf_writer.h"

static double cpu_ms(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e3 +
        (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e3;
}

/* Memory that is the process's own: what is mapped of files is the system's. */
static long memory_kb(void)
{
    FILE *f = fopen("/proc/self/status", "r");
    char line[200];
    long kb = 0;
    while (f && fgets(line, sizeof line, f))
        if (!kb)
            sscanf(line, "RssAnon: %ld", &kb);
    if (f)
        fclose(f);
    return kb;
}

static const int64_t first_ns = 1700000000000000000;

/* As old as what is in it, as archives are. */
static void make_old(const char *dir, uint32_t archive)
{
    struct timespec at = {.tv_sec = first_ns / NS_PER_S + archive};
    DIR *list = opendir(dir);
    for (const struct dirent *d; list && (d = readdir(list));)
        utimensat(dirfd(list), d->d_name, (struct timespec[2]){at, at}, 0);
    if (list)
        closedir(list);
}

static char *host_dir(const char *root, uint32_t host)
{
    return mem_printf("%s/archives/host%02u", root, host);
}

static int make(const char *root, uint32_t host, uint32_t archive, uint32_t streams, struct err *e)
{
    static const char *const env[] = {"domain=kernel", NULL};
    struct ctf_writer_options o = {.hostname = "week",
        .tsdl = "event { name = tick; id = 0; stream_id = 0; fields := struct { uint64_t n; }; };\n",
        .env = env,
        .freq = 1000000000,
        .packet_bytes = 4096,
        .cpus = streams,
        .index_files = true,
        .uuid = {1, 2, 3, (uint8_t)host}};
    struct ctf_writer *w;
    char *of_host = host_dir(root, host), *dir = mem_printf("%s/a%06u", of_host, archive),
         *kernel = mem_printf("%s/kernel", dir);
    int rc = file_make_dirs(dir, e);
    rc = rc ? rc : ctf_writer_open(kernel, &o, &w, e);
    for (uint32_t cpu = 0; cpu < streams && !rc; cpu++)
        for (uint64_t i = 0; i < 8 && !rc; i++)
            rc = ctf_writer_event(
                w, cpu, 0, first_ns + (int64_t)archive * 1000000000 + (int64_t)(i * 120000000 + cpu), &i, 8, e);
    rc = rc ? rc : ctf_writer_close(w, e);
    make_old(kernel, archive);
    free(of_host);
    free(dir);
    free(kernel);
    return rc;
}

static void check(int rc, const struct err *e)
{
    if (!rc)
        return;
    fprintf(stderr, "bench_archives: %s\n", e->text);
    exit(1);
}

static uint64_t read_window(struct ctf_trace *t, int64_t begin, int64_t end)
{
    struct ctf_source source = {.trace = t};
    struct ctf_merge *m;
    struct ctf_event ev[64];
    uint64_t n = 0;
    if (ctf_merge_new(&source, 1, (struct ctf_window){begin, end - 1}, -1, &m, NULL))
        return 0;
    for (size_t k; (k = ctf_merge_next(m, ev, 64)) > 0;)
        n += k;
    ctf_merge_free(m);
    return n;
}

/* ---- all hosts, with a catalogue of each ---- */

struct opening {
    struct ctf_group *groups;
    struct ctf_trace **traces;
    struct err *errors;
};

static void open_one(void *arg, size_t i)
{
    struct opening *o = arg;
    check(ctf_trace_open(&o->groups[i], NULL, &o->traces[i], &o->errors[i]), &o->errors[i]);
}

struct cost {
    double wall_ms, cpu_ms, save_ms;
    size_t read;
    long memory_kb;
};

static char *catalogue_path(const char *root, uint32_t host)
{
    return mem_printf("%s/catalogue%02u", root, host);
}

static struct cost open_all(const char *root, uint32_t hosts, bool known)
{
    struct ctf_root *roots = mem_zalloc(sizeof *roots * hosts);
    struct opening o = {0};
    struct cost cost = {0};
    struct err e = {0};
    size_t n;
    long before = memory_kb();
    double cpu = cpu_ms();
    int64_t wall = time_monotonic_ns();
    for (uint32_t i = 0; i < hosts; i++) {
        char *path = catalogue_path(root, i);
        roots[i] = (struct ctf_root){.path = host_dir(root, i)};
        if (known)
            check(ctf_catalogue_load(path, &roots[i].catalogue, &e), &e);
        else
            roots[i].catalogue = ctf_catalogue_new();
        free(path);
    }
    check(ctf_discover_all(roots, hosts, &o.groups, &n, &e), &e);
    o.traces = mem_zalloc(sizeof *o.traces * n);
    o.errors = mem_zalloc(sizeof *o.errors * n);
    pool_run(n, 0, open_one, &o);
    cost.wall_ms = (double)(time_monotonic_ns() - wall) / 1e6;
    cost.cpu_ms = cpu_ms() - cpu;
    cpu = cpu_ms();
    for (uint32_t i = 0; i < hosts; i++) {
        char *path = catalogue_path(root, i);
        size_t read;
        ctf_catalogue_dirs(roots[i].catalogue, &read);
        cost.read += read;
        if (read)
            check(ctf_catalogue_save(roots[i].catalogue, path, &e), &e);
        ctf_catalogue_free(roots[i].catalogue);
        free((char *)(uintptr_t)roots[i].path);
        free(path);
    }
    cost.save_ms = cpu_ms() - cpu;
    cost.memory_kb = memory_kb() - before;
    for (size_t i = 0; i < n; i++)
        ctf_trace_close(o.traces[i]);
    ctf_groups_free(o.groups, n);
    free(o.traces);
    free(o.errors);
    free(roots);
    return cost;
}

static bool has_catalogues(const char *root, uint32_t hosts)
{
    bool all = true;
    for (uint32_t i = 0; i < hosts; i++) {
        char *path = catalogue_path(root, i);
        all &= !access(path, R_OK);
        free(path);
    }
    return all;
}

static uint32_t first_free(const char *root, uint32_t host, uint32_t from)
{
    for (;; from++) {
        char *dir = mem_printf("%s/archives/host%02u/a%06u", root, host, from);
        bool free_one = access(dir, F_OK) != 0;
        free(dir);
        if (free_one)
            return from;
    }
}

static void print_cost(const char *name, struct cost c)
{
    printf("\"%s\": {\"wall_ms\": %.1f, \"cpu_ms\": %.1f, \"save_ms\": %.1f, \"read\": %zu, \"memory_mb\": %.1f}, ",
        name, c.wall_ms, c.cpu_ms, c.save_ms, c.read, (double)c.memory_kb / 1024);
}

/* ---- one host ---- */

static void follow_one(const char *root, uint32_t archives)
{
    struct err e = {0};
    struct ctf_group *groups;
    struct ctf_trace *t;
    struct ctf_trace_news news;
    size_t n;
    char *dir = host_dir(root, 0);
    check(ctf_discover(dir, &groups, &n, &e), &e);
    groups[0].n--;
    check(ctf_trace_follow(&groups[0], NULL, &t, &e), &e);
    groups[0].n++;
    double at = cpu_ms();
    check(ctf_trace_refresh(t, &groups[0], &news, &e), &e);
    double refreshed = cpu_ms() - at;
    int64_t middle = first_ns + (int64_t)(archives / 2) * NS_PER_S;
    uint64_t items = read_window(t, middle, middle + NS_PER_S);
    at = cpu_ms();
    for (int i = 0; i < 1000; i++)
        items += read_window(t, middle, middle + NS_PER_S);
    printf("\"refresh_ms\": %.2f, \"refresh_packets\": %zu, \"window_us\": %.1f, \"window_items\": %" PRIu64 "}\n",
        refreshed, news.packets, cpu_ms() - at, items / 1001);
    ctf_trace_close(t);
    ctf_groups_free(groups, n);
    free(dir);
}

int main(int argc, char **argv)
{
    struct err e = {0};
    uint32_t archives = argc > 2 ? (uint32_t)atoi(argv[2]) : 10080, streams = argc > 3 ? (uint32_t)atoi(argv[3]) : 2,
             hosts = argc > 4 ? (uint32_t)atoi(argv[4]) : 1;
    if (argc < 2 || archives < 2 || !hosts || hosts > 99) {
        fprintf(stderr, "bench_archives DIR [ARCHIVES [STREAMS [HOSTS]]]\n");
        return 1;
    }
    for (uint32_t h = 0; h < hosts; h++) {
        char *last = mem_printf("%s/archives/host%02u/a%06u", argv[1], h, archives - 1);
        for (uint32_t i = 0; i < archives && access(last, R_OK); i++)
            check(make(argv[1], h, i, streams, &e), &e);
        free(last);
    }
    printf("{\"archives\": %u, \"streams\": %u, \"hosts\": %u, ", archives, streams, hosts);
    if (!has_catalogues(argv[1], hosts))
        print_cost("afresh", open_all(argv[1], hosts, false));
    print_cost("known", open_all(argv[1], hosts, true));
    for (uint32_t h = 0; h < hosts; h++)
        check(make(argv[1], h, first_free(argv[1], h, archives), streams, &e), &e);
    print_cost("one_more", open_all(argv[1], hosts, true));
    follow_one(argv[1], archives);
    return 0;
}

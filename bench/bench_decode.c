/* SPDX-License-Identifier: MIT */
/* bench_decode TRACE [BATCH]: events per second of decoding one stream (alone; with the fields that kernel analyses
 * read of the commonest events) and of all streams merged. Processor time, warm page cache, best of several runs;
 * opening and metadata are reported apart. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/mem.h"
#include "base/time.h"
#include "ctf/ctf.h"

enum { ROUNDS = 7, FIELDS = 4, BATCH_MAX = 65536 };

/* What a kernel analysis reads of its most frequent events. */
static const struct {
    const char *name;
    const char *fields[FIELDS];
} wanted[] = {
    {"sched_switch", {"prev_tid", "next_tid", "prev_state", "next_prio"}},
    {"sched_waking", {"tid", "target_cpu"}},
    {"sched_wakeup", {"tid", "target_cpu"}},
    {"irq_handler_entry", {"irq"}},
    {"irq_handler_exit", {"irq", "ret"}},
    {"irq_softirq_entry", {"vec"}},
    {"irq_softirq_exit", {"vec"}},
    {"irq_softirq_raise", {"vec"}},
    {"timer_hrtimer_expire_entry", {"hrtimer", "now"}},
};

struct plan {
    uint8_t n;
    struct ctf_access field[FIELDS];
};

static bool starts_with(const char *s, const char *with)
{
    return !strncmp(s, with, strlen(with));
}

static struct plan *make_plans(const struct ctf_trace *t)
{
    const struct ctf_event_class *const *classes;
    size_t n = ctf_trace_classes(t, &classes);
    struct plan *plans = mem_zalloc(sizeof *plans * n);
    for (size_t i = 0; i < n; i++) {
        for (size_t w = 0; w < sizeof wanted / sizeof wanted[0]; w++)
            for (int f = 0; f < FIELDS && !strcmp(classes[i]->name, wanted[w].name) && wanted[w].fields[f]; f++)
                plans[i].n += ctf_access_find(
                    classes[i], CTF_PAYLOAD, wanted[w].fields[f], &plans[i].field[plans[i].n]);
        if (starts_with(classes[i]->name, "syscall_exit_"))
            plans[i].n += ctf_access_find(classes[i], CTF_PAYLOAD, "ret", &plans[i].field[0]);
    }
    return plans;
}

struct result {
    uint64_t events, sum;
    int64_t ns;
};

static int64_t processor_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static struct result run(struct ctf_trace *t, int stream, const struct plan *plans, struct ctf_event *ev, size_t batch)
{
    struct ctf_source source = {.trace = t};
    struct ctf_window all = {INT64_MIN, INT64_MAX};
    struct ctf_merge *m;
    struct err e = {0};
    struct result r = {0};
    size_t n;
    int64_t begin = processor_ns();
    if (ctf_merge_new(&source, 1, all, stream, &m, &e)) {
        fprintf(stderr, "bench_decode: %s\n", e.text);
        exit(1);
    }
    while ((n = ctf_merge_next(m, ev, batch)) > 0) {
        r.events += n;
        for (size_t i = 0; plans && i < n; i++) {
            const struct plan *p = &plans[ev[i].cls->index];
            for (unsigned f = 0; f < p->n; f++)
                r.sum += (uint64_t)ctf_read_int(&ev[i], &p->field[f]);
        }
        r.sum += (uint64_t)ev[n - 1].ts;
    }
    ctf_merge_free(m);
    r.ns = processor_ns() - begin;
    return r;
}

static void measure(
    const char *what, struct ctf_trace *t, int stream, const struct plan *plans, struct ctf_event *ev, size_t batch)
{
    struct result best = {0};
    for (int i = 0; i < ROUNDS; i++) {
        struct result r = run(t, stream, plans, ev, batch);
        if (i == 0 || r.ns < best.ns)
            best = r;
    }
    printf("%-28s %10" PRIu64 " events %8.2f ms %8.1f M events/s  (check %016" PRIx64 ")\n", what, best.events,
        (double)best.ns / 1e6, (double)best.events * 1e3 / (double)best.ns, best.sum);
}

int main(int argc, char **argv)
{
    struct ctf_group *groups;
    struct ctf_trace *t;
    struct err e = {0};
    size_t n, batch = argc > 2 ? strtoul(argv[2], NULL, 10) : 256;
    if (argc < 2 || batch == 0 || batch > BATCH_MAX) {
        fprintf(stderr, "usage: bench_decode TRACE [BATCH]\n");
        return 2;
    }
    int64_t begin = time_monotonic_ns();
    if (ctf_discover(argv[1], &groups, &n, &e) || ctf_trace_open(&groups[0], NULL, &t, &e)) {
        fprintf(stderr, "bench_decode: %s\n", e.text);
        return 1;
    }
    printf("opened in %.2f ms, %zu streams\n", (double)(time_monotonic_ns() - begin) / 1e6, ctf_trace_streams(t));
    struct plan *plans = make_plans(t);
    struct ctf_event *ev = mem_alloc(sizeof *ev * batch);
    measure("one stream", t, 0, NULL, ev, batch);
    measure("one stream, fields", t, 0, plans, ev, batch);
    measure("merged", t, -1, NULL, ev, batch);
    measure("merged, fields", t, -1, plans, ev, batch);
    free(ev);
    free(plans);
    ctf_trace_close(t);
    ctf_groups_free(groups, n);
    return 0;
}

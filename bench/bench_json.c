/* SPDX-License-Identifier: MIT */
/* Writing answers: bench_json
 * The JSON of a states answer (30 rows of 1000 states) and of an XY answer (30 series of 1000 points), written into
 * memory as the trace server does, beside memcpy of the same bytes. Prints JSON lines; the fastest of several runs
 * counts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/time.h"
#include "tsp/answer.h"

enum { ROWS = 30, STATES = 1000, RUNS = 200 };

static uint64_t below(uint64_t n)
{
    static uint64_t x = 0x9e3779b97f4a7c15;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return (x >> 11) % n;
}

/* ---- what is written ---- */

static struct tsp_state states[ROWS][STATES];
static int64_t times[STATES];
static double values[ROWS][STATES];

static void make(void)
{
    static const char *const keys[5] = {"Usermode", "System call", "Wait blocked", "Wait for CPU", NULL};
    static const char *const calls[] = {"read", "futex", "epoll_wait", "clock_nanosleep"};
    for (size_t r = 0; r < ROWS; r++) {
        int64_t t = 1795225075368285001 + (int64_t)below(1000000);
        for (size_t i = 0; i < STATES; i++) {
            int64_t end = t + 1 + (int64_t)below(5000000);
            const char *key = keys[below(5)];
            states[r][i] = (struct tsp_state){t, end, key == keys[1] ? calls[below(4)] : NULL, key, 0};
            t = end;
            values[r][i] = (double)below(100000000);
        }
    }
    for (int64_t i = 0; i < STATES; i++)
        times[i] = 1795225075368285001 + i * 12345678;
}

static void write_states(struct tsp_answer *answer)
{
    tsp_begin_rows(answer);
    for (int r = 0; r < ROWS; r++) {
        tsp_begin_row(answer, r + 1);
        for (int i = 0; i < STATES; i++)
            tsp_write_state(answer, &states[r][i]);
        tsp_end_row(answer);
    }
    tsp_end_rows(answer);
}

static void write_xy(struct tsp_answer *answer)
{
    tsp_begin_xy(answer, "Disks");
    for (int r = 0; r < ROWS; r++)
        tsp_write_series(answer,
            &(struct tsp_series){.id = r + 1,
                .name = "made/nvme0n1/read",
                .x = times,
                .y = values[r],
                .n = STATES,
                .y_label = "Throughput",
                .y_unit = "B/s"});
    tsp_end_xy(answer);
}

/* ---- measuring ---- */

static void measure(const char *what, void (*write)(struct tsp_answer *))
{
    int64_t best = INT64_MAX, copy = INT64_MAX;
    size_t bytes = 0;
    for (int run = 0; run < RUNS; run++) {
        struct text t = {.fd = -1}; /* a fresh buffer, as every request has */
        struct tsp_answer a = {.json = JSON_TO(&t)};
        int64_t begin = time_monotonic_ns();
        write(&a);
        int64_t ns = time_monotonic_ns() - begin;
        best = ns < best ? ns : best;
        bytes = t.n;
        char *other = mem_alloc(t.n);
        begin = time_monotonic_ns();
        memcpy(other, t.v, t.n);
        ns = time_monotonic_ns() - begin;
        copy = ns < copy ? ns : copy;
        __asm__ volatile("" : : "r"(other) : "memory");
        free(other);
        text_fini(&t);
    }
    printf("{\"bench\":\"json %s\",\"bytes\":%zu,\"ms\":%.3f,\"gb_per_second\":%.3f,\"memcpy_gb_per_second\":%.3f}\n",
        what, bytes, (double)best / 1e6, (double)bytes / (double)best, (double)bytes / (double)copy);
}

int main(void)
{
    make();
    measure("states", write_states);
    measure("xy", write_xy);
    return 0;
}

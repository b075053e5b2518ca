/* SPDX-License-Identifier: MIT */
#include "base/pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { MOST_THREADS = 256 };

struct pool {
    size_t n;
    atomic_size_t next;
    void (*job)(void *arg, size_t i);
    void *arg;
};

unsigned pool_cpus(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1;
    int n = CPU_COUNT(&set);
    return n > 0 ? (unsigned)n : 1;
}

static void *worker(void *arg)
{
    struct pool *p = arg;
    for (;;) {
        size_t i = atomic_fetch_add_explicit(&p->next, 1, memory_order_relaxed);
        if (i >= p->n)
            return NULL;
        p->job(p->arg, i);
    }
}

void pool_run(size_t n, unsigned threads, void (*job)(void *arg, size_t i), void *arg)
{
    if (!threads)
        threads = pool_cpus();
    if (threads > n)
        threads = (unsigned)n;
    if (threads > MOST_THREADS)
        threads = MOST_THREADS;
    struct pool p = {.n = n, .job = job, .arg = arg};
    atomic_init(&p.next, 0);
    pthread_t helpers[MOST_THREADS];
    unsigned started = 0;
    /* The caller is one of the workers, so a system that refuses more threads costs time, not the work. */
    while (started + 1 < threads && pthread_create(&helpers[started], NULL, worker, &p) == 0)
        started++;
    worker(&p);
    while (started)
        pthread_join(helpers[--started], NULL);
}

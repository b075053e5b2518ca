/* SPDX-License-Identifier: MIT */
#include "base/wait.h"

#include <time.h>

void wait_init(pthread_cond_t *c)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(c, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

bool wait_until(pthread_cond_t *c, pthread_mutex_t *lock, int64_t monotonic_ns)
{
    return !pthread_cond_timedwait(c, lock, &(struct timespec){monotonic_ns / 1000000000, monotonic_ns % 1000000000});
}

/* SPDX-License-Identifier: MIT */
/* Waiting for a condition until a time of the monotonic clock, which cannot be set. */
#ifndef WEFT_BASE_WAIT_H
#define WEFT_BASE_WAIT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Initialises a condition for wait_until; pthread_cond_destroy ends it. */
void wait_init(pthread_cond_t *);
bool wait_until(pthread_cond_t *, pthread_mutex_t *, int64_t monotonic_ns);    /* false: timeout */

#endif

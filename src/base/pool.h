/* SPDX-License-Identifier: MIT */
/* Runs n independent jobs on a few threads. */
#ifndef WEFT_BASE_POOL_H
#define WEFT_BASE_POOL_H

#include <stddef.h>

/* Calls job(arg, i) for every i < n, at most `threads` at once (0: as many as CPUs); returns when all are done. n <= 1
 * or threads == 1 runs in the caller. */
void pool_run(size_t n, unsigned threads, void (*job)(void *arg, size_t i), void *arg);
unsigned pool_cpus(void);

#endif

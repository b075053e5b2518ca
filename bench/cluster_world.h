/* SPDX-License-Identifier: MIT */
/* A made cluster: hosts with clocks of their own; threads that compute, read disks, send, receive and wake each other,
 * each always on the same CPU. What happens is written as kernel traces, one a host, and as the history of the threads:
 * their states with what ended them, by which a critical path can be told without looking at traces.
 * How it works: what is to happen lies in a heap by time; CPUs run ahead by the few events that one step emits. */
#ifndef WEFT_BENCH_CLUSTER_WORLD_H
#define WEFT_BENCH_CLUSTER_WORLD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

/* What a thread does next. */
enum made_kind { MADE_COMPUTE, MADE_SEND, MADE_RECEIVE, MADE_DISK, MADE_POST, MADE_WAIT, MADE_EXIT };
struct made_step {
    enum made_kind kind;
    int64_t ns;      /* COMPUTE, DISK */
    uint32_t which;  /* SEND, RECEIVE: its end of the connection; POST: the thread that gets a token */
    uint32_t bytes;  /* SEND, RECEIVE */
};

struct made_host {
    const char *name;
    uint32_t cpus;
    int64_t offset_ns; /* its clock shows so much more than the true time, */
    double drift_ppm;  /* and runs so much faster */
};

struct made_world;
struct made_world *made_world_new(uint64_t seed);
void made_world_free(struct made_world *);
uint64_t made_world_draw(struct made_world *, uint64_t below);

uint32_t made_host_add(struct made_world *, const struct made_host *);
/* Sleeps until `starts_ns`; negative: until it gets a token. */
uint32_t made_thread_add(struct made_world *, uint32_t host, uint32_t cpu, const char *name, int64_t starts_ns);
/* A connection over TCP; of threads of one host through memory. */
void made_connect(struct made_world *, uint32_t a, uint32_t b, uint32_t ends[2]);

/* Idle CPUs run a timer and a kernel thread each `every_ns`, running ones make a system call; 0: never. */
void made_world_fill(struct made_world *, int64_t every_ns);
/* Runs until nothing is to happen any more. dir NULL: events are only counted. history NULL: none is told. */
int made_world_run(struct made_world *, void (*next)(void *arg, uint32_t thread, struct made_step *), void *arg,
    const char *dir, FILE *history, struct err *e);

uint64_t made_world_events(const struct made_world *);
int64_t made_world_end(const struct made_world *);
/* When the thread first ran, and when it ended; its id. */
int32_t made_thread_life(const struct made_world *, uint32_t thread, int64_t *begin, int64_t *end);

#endif

/* SPDX-License-Identifier: MIT */
/* Data providers over traces on this machine: what the Trace Server Protocol's outputs show. */
#ifndef WEFT_VIEWS_VIEWS_H
#define WEFT_VIEWS_VIEWS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "path/path.h"

struct tsp_backend;
struct clock_options;
struct err;

/* A path that goes on to machines whose traces are not open here. */
struct views_far_host { const char *name; uint64_t key; /* struct index_host */ };
struct views_far_path {
    const struct path *path;
    const struct path_source *source;
    const struct views_far_host *hosts; size_t n_hosts; /* by the numbers of the path */
    uint64_t (*row_id)(const struct views_far_path *, struct path_row); /* index_row_id, of threads */
    void *handle;                        /* whose all that is */
};
/* Keys of the host and of the one whose clock times are told by, id of the thread. */
struct views_far_question { uint64_t host, reference, row; int64_t begin, end; bool assume_polling, request; };
/* A thread of a machine whose traces need not be open here. */
struct views_far_thread { uint64_t host, row; };
/* The same of requests (struct request_walk). from: id of the thread, or path_remote_cpu. */
struct views_far_request { uint64_t host, from, thread; int64_t begin, end; };
struct request_paths;
/* Told by the thread that calls find. */
struct views_far_progress {
    void *arg;
    /* There is something to look at, which stays as it is until it moves on. serial: another one when there is more. */
    void (*known)(void *arg, void *finding, uint64_t serial);
    void (*moves_on)(void *arg);
};
/* Handed in by who knows a cluster. Any number of threads. */
struct views_far {
    void *arg;
    /* May take long; ends soon after *stop is set. What is not known by then, or by a deadline, are gaps. */
    int (*find)(void *arg, const struct views_far_question *, const struct views_far_progress *,
        const atomic_bool *stop, struct views_far_path *out, struct err *e);
    /* What is known while it is being found, between `known` and `moves_on`: the path is the caller's to free, all else
     * is lent until then. */
    void (*look)(void *arg, void *finding, struct views_far_path *out);
    void (*release)(void *arg, struct views_far_path *);
    /* Of "HOST:TID", "HOST:NAME": one life that touches [begin, end]. Takes some seconds at most. */
    int (*whose)(void *arg, uint64_t reference, const char *thread, int64_t begin, int64_t end,
        struct views_far_thread *out, struct err *e);
    /* As struct requests_far; times of all are by the clock of one host. */
    int (*requests)(void *arg, uint64_t reference, const struct views_far_request *, size_t n, const atomic_bool *stop,
        struct request_paths *out, struct err *e);
    void (*release_requests)(void *arg, struct request_paths *);
};

struct views_options {
    const char *store;                   /* index stores, as --store */
    const struct clock_options *clocks;  /* how experiments of several traces are synchronised; NULL: the defaults */
    const char *spans;                   /* a store or file of spans, by its real path, that may be opened; or NULL */
    const char *spans_url;               /* the store that the path stands for, if it is a database's; or NULL */
    const struct views_far *far;         /* or NULL: paths end where the traces that are open do */
};
/* The options are borrowed as long as the backend is used. */
struct tsp_backend views_backend(const struct views_options *);

#endif

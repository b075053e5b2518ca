/* SPDX-License-Identifier: MIT */
/* Data providers for traces on this machine: the outputs of the Trace Server Protocol. */
#ifndef WEFT_VIEWS_VIEWS_H
#define WEFT_VIEWS_VIEWS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "path/path.h"

struct tsp_backend;
struct clock_options;
struct err;

/* Path that continues on machines whose traces are not open here. */
struct views_far_host { const char *name; uint64_t key; /* struct index_host */ };
struct views_far_path {
    const struct path *path;
    const struct path_source *source;
    const struct views_far_host *hosts; size_t n_hosts; /* hosts by host number of the path */
    uint64_t (*row_id)(const struct views_far_path *, struct path_row); /* index_row_id, for threads */
    void *handle;                        /* owner of all these members */
};
/* Keys of the host and of the host whose clock the times use; id of the thread. */
struct views_far_question { uint64_t host, reference, row; int64_t begin, end; bool assume_polling, request; };
/* Thread of a machine whose traces need not be open here. */
struct views_far_thread { uint64_t host, row; };
/* Thread, for requests (struct request_walk). from: id of the thread, or path_remote_cpu. */
struct views_far_request { uint64_t host, from, thread; int64_t begin, end; };
struct request_paths;
/* Callbacks, called by the thread that calls find. */
struct views_far_progress {
    void *arg;
    /* A partial path exists, and stays unchanged until moves_on. serial: differs for each new partial path. */
    void (*known)(void *arg, void *finding, uint64_t serial);
    void (*moves_on)(void *arg);
};
/* Provided by a caller that knows a cluster. Thread-safe. */
struct views_far {
    void *arg;
    /* Finds a path; may take long. Ends soon after *stop is set. Parts unknown by then, or by a deadline, are gaps. */
    int (*find)(void *arg, const struct views_far_question *, const struct views_far_progress *,
        const atomic_bool *stop, struct views_far_path *out, struct err *e);
    /* Partial path while find runs, between `known` and `moves_on`. The caller frees the path; all else is borrowed
     * until `moves_on`. */
    void (*look)(void *arg, void *finding, struct views_far_path *out);
    void (*release)(void *arg, struct views_far_path *);
    /* Finds the thread "HOST:TID" or "HOST:NAME": one life that touches [begin, end]. Takes at most a few seconds. */
    int (*whose)(void *arg, uint64_t reference, const char *thread, int64_t begin, int64_t end,
        struct views_far_thread *out, struct err *e);
    /* Finds paths as struct requests_far does; all times use the clock of one host. */
    int (*requests)(void *arg, uint64_t reference, const struct views_far_request *, size_t n, const atomic_bool *stop,
        struct request_paths *out, struct err *e);
    void (*release_requests)(void *arg, struct request_paths *);
};

struct views_options {
    const char *store;                   /* index stores, as --store */
    const struct clock_options *clocks;  /* synchronisation of experiments of several traces; NULL: the defaults */
    const char *spans;                   /* real path of a store or file of spans that may be opened; or NULL */
    const char *spans_url;               /* store that the path stands for, if it is in a database; or NULL */
    const struct views_far *far;         /* NULL: paths end where the open traces end */
};
/* Borrows the options as long as the backend is used. */
struct tsp_backend views_backend(const struct views_options *);

#endif

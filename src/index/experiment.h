/* Private to index: the experiment and the steps that make it. */
#ifndef WEFT_INDEX_EXPERIMENT_H
#define WEFT_INDEX_EXPERIMENT_H

#include <pthread.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/progress.h"
#include "clock/clock.h"
#include "flow/flow.h"
#include "graph/graph.h"
#include "index/index.h"
#include "kernel/kernel.h"
#include "state/state.h"

struct experiment {
    struct arena arena;
    struct ctf_schemas *schemas;
    VEC(struct index_host) hosts;
    VEC(struct ctf_source) sources;
    VEC(struct ctf_problem) problems;
    struct clock_net *clocks;
    const char *store;           /* --store, or NULL */
    pthread_mutex_t lock;        /* guards arena and problems while hosts are indexed side by side */
};

/* Adds a line to the problems: "HOST: text". Thread-safe. */
void experiment_problem(struct experiment *, const char *host, const char *text, uint64_t count);

/* Directory of a trace's stores: below `store` when given, else `.weft` in the trace, else the user's cache. NULL with an error when none can be had
 * and `create` is set. Memory from the arena. */
const char *index_store_dir(struct arena *, const char *trace_path, const char *store, bool create, struct err *e);
/* The key that stores of this trace must carry: the files' fingerprint and the version of the builders. */
uint64_t index_key(const struct ctf_trace *);
/* Opens the stores of a host, building them first when they are missing, stale or damaged (or force). */
int index_host_stores(struct experiment *, struct index_host *, bool force, struct progress *, struct err *e);

#endif

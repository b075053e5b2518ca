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
#include "stack/stack.h"
#include "state/state.h"

struct experiment {
    struct arena arena;
    struct ctf_schemas *schemas;
    VEC(struct index_host) hosts;
    VEC(struct ctf_source) sources;
    VEC(struct index_trace) traces; /* by source */
    VEC(struct index_note) notes;
    struct clock_net *clocks;
    const char *store;           /* --store, or NULL */
    pthread_mutex_t lock;        /* guards arena and notes while hosts are indexed side by side */
};

/* Opens the traces that the arguments name: hosts, sources, notes. After a failure the experiment has none. */
int experiment_open_traces(struct experiment *, const char *const *args, size_t n, struct err *e);
/* "NAME=PATH" names the hosts below PATH (NULL: no name); a path may itself contain '=', then it must contain a '/'
 * before it. */
const char *index_split_name(struct arena *, const char *arg, const char **path);
/* The arguments as places to look below. */
struct ctf_root *index_places(struct arena *, const char *const *args, size_t n);

/* notes.c: adds one; `text` may begin with a file, "FILE: …". Thread-safe. */
void experiment_note(struct experiment *, int kind, const char *host, const char *text, uint64_t count);
void experiment_note_losses(struct experiment *);
/* failed: why there are no clock maps, or NULL. Those of an earlier synchronisation are forgotten. */
void experiment_note_clocks(struct experiment *, const char *failed);
void experiment_sort_notes(struct experiment *);

/* Directory of a trace's stores: below `store` when given, else `.weft` in the trace, else the user's cache. NULL with
 * an error when none can be had and `create` is set. Memory from the arena. */
const char *index_store_dir(struct arena *, const char *trace_path, const char *store, bool create, struct err *e);
/* The key that stores of this trace must carry: the files' fingerprint and the version of the builders. */
uint64_t index_key(const struct ctf_trace *);
/* Bytes of all its streams: what a pass reads. */
uint64_t index_stream_bytes(const struct ctf_trace *);
/* Notes a store that was found damaged, and was built again. */
void index_note_damage(struct experiment *, const char *host, const struct err *found);
/* Waits until nobody else builds in the directory. Returns a descriptor to close, or a negative error. */
int index_lock_dir(const char *dir, struct err *);
/* The packets store of a trace (counts.c): written of what the pass counted; given back to the trace. */
struct types_builder;
int index_counts_write(const struct ctf_trace *, struct types_builder *, const char *path, uint64_t key, struct err *);
int index_counts_open(const struct ctf_trace *, const char *path, uint64_t key, struct index_types **types,
    struct err *);
/* Notes lines of "COUNT TEXT", as a manifest keeps them. */
void index_tell_problems(struct experiment *, const char *host, const char *lines, size_t n);
/* Opens the stores of a host, building them first when they are missing, stale or damaged (or force). */
int index_host_stores(struct experiment *, struct index_host *, const struct index_options *, struct err *e);
/* The same for a user-space trace. */
int index_user_stores(struct experiment *, struct index_trace *, const struct index_options *, struct err *e);

#endif

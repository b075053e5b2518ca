/* Private to index: the stores of one trace: where they are, what they are made from, how they are opened and built. */
#ifndef WEFT_INDEX_STORES_H
#define WEFT_INDEX_STORES_H

#include "base/text.h"
#include "index/experiment.h"
#include "index/types.h"

/* ---- files.c ---- */

/* In the order in which they are verified. Graph, flows and states are of kernel traces only, stacks of user-space
 * traces only. */
enum index_file { INDEX_MANIFEST, INDEX_GRAPH, INDEX_FLOWS, INDEX_STATES, INDEX_STACKS, INDEX_PACKETS, INDEX_FILES };

struct index_files {
    const struct ctf_trace *trace;
    bool is_kernel;
    const char *path[INDEX_FILES]; /* NULL: a trace of that kind has no such store */
};

/* Directory of a trace's stores: below `store` when given, else `.weft` in the trace, else the user's cache. NULL with
 * an error when none can be had and `create` is set. Memory from the arena. */
const char *index_store_dir(struct arena *, const char *trace_path, const char *store, bool create, struct err *e);
/* The stores of a trace in that directory. Memory from the arena. */
struct index_files index_files_in(struct arena *, const char *dir, const struct index_trace *);
/* The key that a store must carry: the fingerprint of the trace's files and the rules that the store depends on. */
uint64_t index_key(const struct ctf_trace *, enum index_file);
/* Waits until nobody else builds in the directory, and removes what a killed build left. Returns a descriptor to close,
 * or a negative error. */
int index_lock_dir(const char *dir, struct err *);

/* ---- manifest.c ---- */

struct index_totals {                /* in the file as it is */
    uint64_t events, lost_events;
    int64_t begin, end;
};
struct index_manifest {
    struct index_totals totals;      /* of kernel traces */
    const char *problems;            /* lines of "COUNT TEXT": what could not be read of the input */
    size_t n_problems;               /* bytes */
    struct store *store;             /* to be closed by whoever opened the manifest; `problems` lives as long */
};
int index_manifest_write(const struct index_files *, const struct index_manifest *, struct err *);
/* ERR_STALE also when a store was touched since the manifest sealed it, unless the caller holds the lock of the
 * directory (`locked`): then the checksums of such a store are compared. */
int index_manifest_open(const struct index_files *, bool locked, struct index_manifest *, struct err *);

/* ---- pass.c ---- */

/* One pass over a trace, from its first event to its last. */
struct index_pass {
    const struct index_files *files;
    const struct index_options *options;
    /* Gets all items of the trace in order, at most `batch` at once (at most INDEX_MOST_BATCH), and the times of those
     * that are events. Not 0: the pass ends with that error. */
    int (*feed)(void *arg, const struct ctf_event *, size_t n, const int64_t *times, size_t n_times, struct err *);
    size_t batch;
    /* Writes store number i of those that `feed` was for; called by several threads. */
    int (*write)(void *arg, size_t i, const struct index_pass *, struct err *);
    size_t n_stores;                 /* at most INDEX_MOST_STORES */
    void *arg;
    struct index_totals totals;      /* so far; begin > end: no event */
    struct text problems;
    struct types_builder *types;
};
enum { INDEX_MOST_BATCH = 512, INDEX_MOST_STORES = 3 };
int index_pass_read(struct index_pass *, struct err *);
/* Writes the stores, that of packets and the manifest. */
int index_pass_write(struct index_pass *, struct err *);
void index_pass_fini(struct index_pass *);
/* Bytes of all streams of a trace: what a pass reads. */
uint64_t index_stream_bytes(const struct ctf_trace *);

/* ---- build.c: a pass that feeds all stores of a trace ---- */
int index_build_kernel(const struct index_files *, const struct index_options *, struct err *);
int index_build_user(const struct index_files *, const struct index_options *, struct err *);

/* ---- counts.c: the store of packets, written of what the pass counted; given back to the trace ---- */
int index_counts_write(const struct index_files *, struct types_builder *, struct err *);
int index_counts_open(const struct index_files *, struct index_types **, struct err *);

#endif

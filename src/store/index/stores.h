/* SPDX-License-Identifier: MIT */
/* Private to index: the stores of one trace: where they are, what they are made from, how they are opened and built.
 * docs/formats/manifest.md, chunk.md */
#ifndef WEFT_INDEX_STORES_H
#define WEFT_INDEX_STORES_H

#include "base/carry.h"
#include "base/chunks.h"
#include "base/file.h"
#include "base/store.h"
#include "base/text.h"
#include "index/experiment.h"
#include "index/types.h"

/* ---- files.c ---- */

/* Files: INDEX_CHUNK once per chunk, INDEX_MANIFEST once per trace. */
enum index_file { INDEX_CHUNK, INDEX_MANIFEST };
/* Stores in the file of a chunk, in the order in which they are verified. Graph, flows and states exist for kernel
 * traces only, stacks for user-space traces only. */
enum index_part { INDEX_GRAPH, INDEX_FLOWS, INDEX_STATES, INDEX_STACKS, INDEX_PACKETS, INDEX_PARTS };

struct index_files {
    const struct ctf_trace *trace;
    bool is_kernel;
    int64_t from, until;           /* from the trace */
    const char *dir;
    int lock;                      /* descriptor of the builder's lock; -1: nobody builds */
    struct arena *names;
};

/* Directories of a trace's stores, real paths in the arena. */
struct index_dirs {
    /* Directory below `store` if given; else `.weft` in the trace, or above the directories of a trace that has
     * several; else one in the user's cache. NULL with an error if none is available. */
    const char *dir;
    const char *theirs;            /* `.weft`, if it may only be read; or NULL */
    const char *link;              /* `.weft`, if it is a symbolic link, which is not followed; or NULL */
};
/* create: `dir` is made. */
struct index_dirs index_store_dirs(struct arena *, const struct ctf_trace *, const char *store, bool create,
    struct err *e);
/* Returns the directory for what is stored of a tree of traces; found like index_dirs.dir. */
const char *index_tree_dir(struct arena *, const char *path, const char *store, bool create, struct err *e);
/* Returns the stores of a trace in that directory. The arena must live as long as they are used. */
struct index_files index_files_in(struct arena *, const char *dir, const struct index_trace *);
/* Returns the kind of such a store; NULL: a trace of that kind has none. */
const char *index_part_kind(bool is_kernel, enum index_part);
/* Returns the path of a file. chunk: its number; 0 for files that exist once per trace. */
const char *index_path(const struct index_files *, enum index_file, uint32_t chunk);
/* Returns a hash of the rules that all stores of such a trace follow. */
uint64_t index_rules(bool is_kernel);
/* Like index_rules, plus the time range that counts of this trace. */
uint64_t index_rules_of(const struct index_files *);
/* Like index_rules, plus the trace's files: all inputs of its stores. */
uint64_t index_key(const struct ctf_trace *, bool is_kernel);
/* Waits until nobody else builds in the directory, and removes what a killed build left. Returns a descriptor to close,
 * or a negative error: locks are unavailable there, or the lock's holder gave no sign of life for `patience_ns`.
 * ERR_CANCELLED: somebody holds it, and patience_ns is 0. */
int index_lock_dir(const char *dir, int64_t patience_ns, struct err *);
/* Gives a sign of life to processes that wait for the lock; to be called every few seconds. */
void index_lock_alive(int fd);
/* Removes the files of all chunks but these numbers, and remains of earlier builds. */
void index_remove_chunks(const char *dir, const uint32_t *but, size_t n);

/* ---- far.c ---- */

/* Returns the shift, in ns, from times of the first to times of the second. Both are one clock, whose distance to the
 * epoch each session measured anew. */
__int128 index_clock_shift(const struct index_far_clock *, const struct index_far_clock *);

/* ---- manifest.c ---- */

struct index_totals {
    uint64_t events, lost_events;
    int64_t begin, end;              /* times of the first and the last event; begin > end: none */
};

/* Entry of a chunk in the manifest; layout of the file. */
struct index_chunk {
    int64_t begin, end;              /* the cuts; the first chunk may begin at INT64_MIN, the last ends at INT64_MAX */
    uint64_t packets;                /* fingerprint of what is read of the trace in [begin, end) */
    uint64_t before, after;          /* hashes of what was carried into it and out of it; 0: nothing */
    uint64_t key;                    /* key of its file */
    struct index_totals totals;
    uint32_t number;                 /* number in its file name; from 1 */
    uint32_t began;                  /* rows of threads that were not carried into it */
    struct file_stamp seal;
};
/* Memory for building a chunk, counted in events; a row counts as INDEX_ROW_EVENTS. */
enum { INDEX_ROW_EVENTS = 32 };
static inline uint64_t index_chunk_held(const struct index_chunk *c)
{
    return c->totals.events + (uint64_t)c->began * INDEX_ROW_EVENTS;
}

/* The chunks of a trace's stores, in order of time, each beginning where the one before ends. */
struct index_history {
    VEC(struct index_chunk) chunks;
    uint64_t rows;                   /* index_rows_stamp of when it was written */
    bool disorder;                   /* times step back somewhere in the trace: no chunk can be built again alone */
};
/* Writes the manifest, which seals the files of all chunks: a file with an unchanged stamp is intact. */
int index_history_write(const struct index_files *, struct index_history *, struct err *);
/* ERR_NOTFOUND, ERR_STALE (other rules), ERR_FORMAT. The caller frees it in any case. */
int index_history_read(const struct index_files *, struct index_history *, struct err *);
/* Returns whether the chunk was made from the trace's present data. The chunk is as index_history_read found it. */
bool index_chunk_current(const struct index_files *, const struct index_chunk *);
/* Returns 0 if the chunk's file is as the manifest has sealed it. */
int index_chunk_sealed(const struct index_files *, const struct index_chunk *, struct err *);
/* Returns the same for a file that was touched, by the checksums of its contents. */
int index_chunk_check(const struct index_files *, const struct index_chunk *, struct err *);
struct index_totals index_history_totals(const struct index_history *);
void index_history_free(struct index_history *);

/* ---- chunk.c: the file of a chunk: its stores, and facts beside them ---- */

/* Result of building a chunk. */
struct index_outcome {
    VEC(int32_t) rows;               /* kernel traces: the host's row by row of the chunk */
    VEC(int32_t) leaving;            /* the host's row by row that is carried into the next chunk */
    struct text carry;               /* carried state; empty for the last chunk */
    uint64_t after;                  /* hash of both; 0 for the last chunk */
    bool rows_ended;                 /* rows of later chunks turned out to be other lives */
};
void index_outcome_free(struct index_outcome *);

/* Creates the file of the chunk, whose number and key are known, for its stores. */
struct store_writer *index_chunk_create(const struct index_files *, const struct index_chunk *);
/* Adds the facts beside the stores, and completes the file; frees the writer in any case. */
int index_chunk_write(struct store_writer *, const struct index_outcome *, const struct text *problems,
    struct types_builder *, struct err *);
/* Opens the file for its parts; facts beside the stores are not read. */
int index_chunk_open(const char *path, uint64_t key, struct store **, struct err *);
struct index_known {                 /* borrowed from the store, which its opener closes */
    struct store *store;
    const int32_t *rows, *leaving;
    const uint8_t *carry;            /* NULL: not read yet */
    const char *problems;            /* lines of "COUNT TEXT": what could not be read of the input */
    size_t n_rows, n_leaving, n_carry, n_problems;
};
int index_chunk_read(const struct index_files *, const struct index_chunk *, struct index_known *, struct err *);
/* Reads the carried state, too. */
int index_chunk_carry(const struct index_files *, const struct index_chunk *, struct index_known *, struct err *);

/* ---- build.c: the stores of one chunk after another ---- */

/* Builder for a kind of trace. Failures are reported where the result is asked for. */
struct index_kind {
    size_t batch;                    /* events per feed, at most INDEX_MOST_BATCH */
    /* with: another builder of the same files, whose binding and rows it shares; it must not outlive that builder.
     * NULL: it has its own. */
    int (*open)(const struct index_files *, void *with, void **out, struct err *);
    void (*close)(void *);
    /* Begins the chunk, whose number and key are known, and whose stores go into that place. `before`: state that
     * continues, or NULL. Frees the rest of an earlier chunk that failed. */
    int (*begin)(void *, const struct index_chunk *, struct store_place, const struct index_known *before,
        struct err *);
    int (*feed)(void *, const struct ctf_event *, size_t n, const int64_t *times, size_t n_times, struct err *);
    uint32_t (*began)(const void *); /* rows of the chunk that were not carried into it, so far */
    /* Writes the stores of the chunk, whose end and totals are known, and frees what made them. */
    int (*cut)(void *, const struct index_chunk *, struct index_outcome *, struct err *);
    int (*finish)(void *, const struct index_chunk *, struct index_outcome *, struct err *);
    /* Takes new classes or streams of the trace. To be called for all builders of its files, the one with its own rows
     * first. */
    int (*extend)(void *, struct err *);
    /* Saves the rows. To be called before the manifest names the chunk. */
    int (*save)(void *, struct err *);
};
extern const struct index_kind index_kernel, index_user;
enum { INDEX_MOST_BATCH = 512 };

/* ---- pass.c: reads a stretch of a trace and builds its chunks ---- */

struct index_range {
    int64_t begin, end;              /* INT64_MIN, INT64_MAX: all; with the latter the trace is finished there */
    int64_t cut;                     /* a cut inside; end: none */
    size_t most_events;              /* limit per chunk (index_chunk_held), but for events of one time */
};
struct index_pass {
    const struct index_files *files;
    const struct index_options *options;
    const struct index_kind *kind;
    void *made;                      /* builder from kind->open */
    struct index_history *history;   /* all chunks before the range; chunks of the range are appended */
    const struct index_history *old; /* old chunks, whose numbers are in use where `taken` says so: */
    const bool *taken;
    uint32_t above;                  /* highest number that is in use in any case */
    uint64_t events;                 /* events of all chunks so far, for options->tell; times of the first and the
                                      * last */
    int64_t first, last;
    struct index_share { int64_t begin; double span; uint64_t bytes, reported; } share; /* share of the trace that is
                                                                                         * done */
    bool rows_ended;                 /* chunks behind the range must be built again */
    bool not_carried;                /* failure caused by the state that the chunk before it left */
};
/* Builds the chunks of a range. In the last range the manifest is written after each chunk but the last, so that a
 * killed process loses only one. */
int index_pass_run(struct index_pass *, const struct index_range *, struct err *);
/* Takes a batch: times of its events, which are counted, and losses. */
size_t index_take_times(const struct ctf_event *, size_t n, int64_t *times, struct index_totals *, bool *disorder);
/* Drops losses that began before the range, which a merge repeats at its begin. Returns the number of items left. */
size_t index_drop_earlier(struct ctf_event *, size_t n, int64_t begin);
/* Bytes of all streams of a trace: what a pass over it reads. */
uint64_t index_stream_bytes(const struct ctf_trace *);

/* ---- rows.c: the rows of a host ---- */

/* Rows of an opening are those that its chunks speak of, numbered from 0. */
struct index_rows {
    struct kernel_rows *registry;
    VEC(int32_t) of_host;            /* the host's row, by row */
    VEC(int32_t) by_host;            /* row by the host's row; -1: in no chunk */
};
void index_rows_free(struct index_rows *);

/* Returns a hash of the host's identity by the trace's contents, wherever it lies. */
uint64_t index_host_key(const struct ctf_trace *);
/* Changes whenever a file of the registry is written to or replaced; 0: there is none. */
uint64_t index_rows_stamp(const char *dir);
/* Forgets all rows: those of a damaged registry. Their ids come back when their lives are seen again. */
void index_rows_forget(const char *dir);

/* ---- update.c: which chunks are current, and building the others ---- */

/* Returns whether there is nothing to build. */
bool index_history_fits(const struct index_files *, const struct index_history *);
/* Returns whether there is, in addition, nothing to drop or to join. */
bool index_history_settled(const struct index_files *, const struct index_history *, const struct index_options *);
/* Returns ERR_FORMAT if the registry lacks rows that chunks name. */
int index_has_rows(const struct index_files *, const struct index_history *, struct err *);
/* Returns the limit of events that builders may hold at once, from the memory allowed. */
size_t index_most_events(const struct index_files *, const struct index_options *);
/* Builds what is missing, stale or damaged (or force: all). The lock is held. *built: something was built, and it did
 * not fail because of the stores' contents. *found: damage found. */
int index_update(const struct index_files *, struct index_history *, const struct index_options *, bool *built,
    struct err *found, struct err *);

/* Makes the next join only. The lock is held; all chunks fit, are as they were sealed, and so is the registry. */
int index_join(const struct index_files *, struct index_history *, const struct index_options *, bool *joined,
    struct err *);

/* ---- joins.c ---- */
/* Returns the number of next chunks to be rebuilt as one, of at most `most_events`, from *first on; 0: none. */
size_t index_joins_next(const struct index_history *, size_t most_events, size_t *first);

/* ---- stores.c ---- */

/* Returns 0 if it fits, and its files and the registry are as written. */
int index_history_intact(const struct index_files *, const struct index_history *, struct err *);
/* Opens the parts of the chunks as the stores of the trace, and notes the problems of their input. */
int index_open_history(struct experiment *, struct index_trace *, const struct index_files *,
    const struct index_history *, struct err *);

/* ---- far.c ---- */
/* Returns the end of the part that is final; INT64_MIN: none. */
int64_t index_sealed_until(const struct index_host *);
/* Solves the net of these hosts; `s` has their flows and stored results. A wider prior of the options becomes its own.
 * *out is for clock_net_free in any case. */
int index_solve(const struct index_far_host *, const struct clock_options *, const struct clock_net *before,
    struct index_sync *s, struct clock_net **out, struct err *);

/* ---- counts.c: the stores of packets, returned to the trace ---- */
/* Writes the counts of the packets that the merge, which counts, read to their end since the chunk before. */
int index_counts_write(struct store_place, const struct index_chunk *, struct ctf_merge *, struct err *);
int index_counts_check(const char *path, const struct store *file, struct err *);
/* Tells the trace where its counts are, while nobody else uses it. Takes over the stores in `known`. */
void index_counts_remember(const struct index_files *, const struct index_history *, struct index_known *);

/* ---- catalogues.c: findings of earlier openings in trees of many directories ---- */
/* Loads the catalogue of each root before the search (believe; else nothing); index_catalogues_save takes it back. */
void index_catalogues_load(struct experiment *, struct ctf_root *, size_t n, bool believe);
/* Drops what is known of the groups if all trees are small. Call after the search, before the groups are opened. */
void index_catalogues_found(const struct ctf_root *, size_t n, struct ctf_group *, size_t n_groups);
/* Frees the catalogues after the groups were opened. write: saves them if there is much news. */
void index_catalogues_save(struct experiment *, struct ctf_root *, size_t n, bool write);
/* Removes wrong catalogues, so that everything is read the next time. */
void index_catalogues_remove(const struct experiment *);
/* Removes them when a trace was misled by them. */
void index_catalogues_check(const struct experiment *);

#endif

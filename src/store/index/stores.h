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

/* One of each chunk, one of each trace. */
enum index_file { INDEX_CHUNK, INDEX_MANIFEST };
/* The stores in the file of a chunk, in the order in which they are verified. Graph, flows and states are of kernel
 * traces only, stacks of user-space traces only. */
enum index_part { INDEX_GRAPH, INDEX_FLOWS, INDEX_STATES, INDEX_STACKS, INDEX_PACKETS, INDEX_PARTS };

struct index_files {
    const struct ctf_trace *trace;
    bool is_kernel;
    int64_t from, until;           /* as of the trace */
    const char *dir;
    int lock;                      /* of who builds them; -1: nobody does */
    struct arena *names;
};

/* Directories of a trace's stores, real paths in the arena. */
struct index_dirs {
    /* Below `store` when given, else `.weft` in the trace, or above the directories of a trace that has several, else
     * the user's cache. NULL with an error when none can be had. */
    const char *dir;
    const char *theirs;            /* `.weft`, where it may be read only; or NULL */
    const char *link;              /* `.weft`, where it is a symbolic link, which is not followed; or NULL */
};
/* create: `dir` is made. */
struct index_dirs index_store_dirs(struct arena *, const struct ctf_trace *, const char *store, bool create,
    struct err *e);
/* Likewise the directory for what is kept of a tree of traces. */
const char *index_tree_dir(struct arena *, const char *path, const char *store, bool create, struct err *e);
/* The stores of a trace in that directory. The arena must live as long as they are used. */
struct index_files index_files_in(struct arena *, const char *dir, const struct index_trace *);
/* The kind of such a store; NULL: a trace of that kind has none. */
const char *index_part_kind(bool is_kernel, enum index_part);
/* Where one is. chunk: its number; 0 for those that are one of each trace. */
const char *index_path(const struct index_files *, enum index_file, uint32_t chunk);
/* A hash of the rules that all stores of such a trace follow. */
uint64_t index_rules(bool is_kernel);
/* The same, and of the time that counts of this trace. */
uint64_t index_rules_of(const struct index_files *);
/* As index_rules, and of the trace's files: of what all its stores together are made. */
uint64_t index_key(const struct ctf_trace *, bool is_kernel);
/* Waits until nobody else builds in the directory, and removes what a killed build left. Returns a descriptor to close,
 * or a negative error: no locks are to be had there, or who holds the lock has shown no sign of life for that long;
 * ERR_CANCELLED: somebody holds it, and there is no patience at all (0). */
int index_lock_dir(const char *dir, int64_t patience_ns, struct err *);
/* A sign of life of who holds the lock, for who waits for it; to be given every few seconds. */
void index_lock_alive(int fd);
/* Removes the files of chunks but those with these numbers, and what builds of before left of theirs. */
void index_remove_chunks(const char *dir, const uint32_t *but, size_t n);

/* ---- far.c ---- */

/* What a time by the first is later by the other, ns: of one clock, whose distance to the epoch each session measured
 * anew. */
__int128 index_clock_shift(const struct index_far_clock *, const struct index_far_clock *);

/* ---- manifest.c ---- */

struct index_totals {
    uint64_t events, lost_events;
    int64_t begin, end;              /* of the first and the last event; begin > end: none */
};

/* What the manifest says of a chunk, in the file as it is. */
struct index_chunk {
    int64_t begin, end;              /* the cuts; the first chunk may begin at INT64_MIN, the last ends at INT64_MAX */
    uint64_t packets;                /* fingerprint of what is read of the trace in [begin, end) */
    uint64_t before, after;          /* hashes of what was carried into it and out of it; 0: nothing */
    uint64_t key;                    /* of its file */
    struct index_totals totals;
    uint32_t number;                 /* in the name of its file; from 1 */
    uint32_t began;                  /* rows of threads that were not carried into it */
    struct file_stamp seal;
};
/* What building it holds in memory, in events: a row takes what so many of them take. */
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
/* Writes the manifest, which seals the files of all chunks: one that nobody touches from then on is as it was. */
int index_history_write(const struct index_files *, struct index_history *, struct err *);
/* ERR_NOTFOUND, ERR_STALE (other rules), ERR_FORMAT. The caller frees it in any case. */
int index_history_read(const struct index_files *, struct index_history *, struct err *);
/* Was it made of what the trace has? As index_history_read found it. */
bool index_chunk_current(const struct index_files *, const struct index_chunk *);
/* 0: the file of the chunk is as the manifest has sealed it. */
int index_chunk_sealed(const struct index_files *, const struct index_chunk *, struct err *);
/* The same for a file that was touched: are its contents, by their checksums, what was written? */
int index_chunk_check(const struct index_files *, const struct index_chunk *, struct err *);
struct index_totals index_history_totals(const struct index_history *);
void index_history_free(struct index_history *);

/* ---- chunk.c: the file of a chunk: its stores, and what is known beside them ---- */

/* What comes of building a chunk. */
struct index_outcome {
    VEC(int32_t) rows;               /* of kernel traces: by row of the chunk the row of the host */
    VEC(int32_t) leaving;            /* by row that is carried into the next chunk the row of the host */
    struct text carry;               /* what is carried, but for the last chunk */
    uint64_t after;                  /* a hash of both; 0: of the last chunk */
    bool rows_ended;                 /* rows of chunks behind it are other lives, it turned out */
};
void index_outcome_free(struct index_outcome *);

/* Begins the file of the chunk, whose number and key are known, for its stores. */
struct store_writer *index_chunk_create(const struct index_files *, const struct index_chunk *);
/* Adds what is known beside them, and completes the file; frees the writer in any case. */
int index_chunk_write(struct store_writer *, const struct index_outcome *, const struct text *problems,
    struct types_builder *, struct err *);
/* The file, for its parts; what is known beside them is not read. */
int index_chunk_open(const char *path, uint64_t key, struct store **, struct err *);
struct index_known {                 /* borrowed from the store, which its opener closes */
    struct store *store;
    const int32_t *rows, *leaving;
    const uint8_t *carry;            /* NULL: not read yet */
    const char *problems;            /* lines of "COUNT TEXT": what could not be read of the input */
    size_t n_rows, n_leaving, n_carry, n_problems;
};
int index_chunk_read(const struct index_files *, const struct index_chunk *, struct index_known *, struct err *);
/* Reads what is carried, too. */
int index_chunk_carry(const struct index_files *, const struct index_chunk *, struct index_known *, struct err *);

/* ---- build.c: the stores of one chunk after another ---- */

/* What is built for a kind of trace. All that can fail says so where it is asked for the result. */
struct index_kind {
    size_t batch;                    /* events to be fed at once, at most INDEX_MOST_BATCH */
    /* with: another one of the same files, whose binding and rows it uses and must not outlive; NULL: its own. */
    int (*open)(const struct index_files *, void *with, void **out, struct err *);
    void (*close)(void *);
    /* Begins the chunk, whose number and key are known, and whose stores go into that place; `before`: what goes on in
     * it, or NULL. Frees what is left of one before that failed. */
    int (*begin)(void *, const struct index_chunk *, struct store_place, const struct index_known *before,
        struct err *);
    int (*feed)(void *, const struct ctf_event *, size_t n, const int64_t *times, size_t n_times, struct err *);
    uint32_t (*began)(const void *); /* rows of the chunk that were not carried into it, so far */
    /* Writes the stores of the chunk, whose end and totals are known, and frees what made them. */
    int (*cut)(void *, const struct index_chunk *, struct index_outcome *, struct err *);
    int (*finish)(void *, const struct index_chunk *, struct index_outcome *, struct err *);
    /* The trace has new classes or streams. All of its files are to be told, the one with its own first. */
    int (*extend)(void *, struct err *);
    /* To be called before the manifest names the chunk. */
    int (*save)(void *, struct err *);
};
extern const struct index_kind index_kernel, index_user;
enum { INDEX_MOST_BATCH = 512 };

/* ---- pass.c: reads a stretch of a trace and builds its chunks ---- */

struct index_range {
    int64_t begin, end;              /* INT64_MIN, INT64_MAX: all; the latter: it is finished there */
    int64_t cut;                     /* a cut inside; end: none */
    size_t most_events;              /* a chunk holds (index_chunk_held), but for the share of events of one time */
};
struct index_pass {
    const struct index_files *files;
    const struct index_options *options;
    const struct index_kind *kind;
    void *made;                      /* by kind->open */
    struct index_history *history;   /* all chunks before the range; those of the range are appended */
    const struct index_history *old; /* of which may still be used, with its number: */
    const bool *taken;
    uint32_t above;                  /* nor numbers up to this one */
    uint64_t events;                 /* of all chunks so far, for options->tell; and times of the first and the last */
    int64_t first, last;
    struct index_share { int64_t begin; double span; uint64_t bytes, reported; } share; /* of the trace, that is done */
    bool rows_ended;                 /* what is behind the range is to be built again */
    bool not_carried;                /* it failed for what the chunk before it left */
};
/* Of the last range the manifest is written after each chunk but the last: whoever is killed has lost one only. */
int index_pass_run(struct index_pass *, const struct index_range *, struct err *);
/* Of a batch: times of its events, which are counted, and losses. */
size_t index_take_times(const struct ctf_event *, size_t n, int64_t *times, struct index_totals *, bool *disorder);
/* Without losses that began before the range, which a merge gives again at its begin: how many are left. */
size_t index_drop_earlier(struct ctf_event *, size_t n, int64_t begin);
/* Bytes of all streams of a trace: what a pass over it reads. */
uint64_t index_stream_bytes(const struct ctf_trace *);

/* ---- rows.c: the rows of a host ---- */

/* Rows of an opening are those that its chunks speak of, numbered from 0. */
struct index_rows {
    struct kernel_rows *registry;
    VEC(int32_t) of_host;            /* by row: the row of the host */
    VEC(int32_t) by_host;            /* the other way; -1: no chunk speaks of it */
};
void index_rows_free(struct index_rows *);

/* A hash of who the host is: by what the trace says, wherever it lies. */
uint64_t index_host_key(const struct ctf_trace *);
/* Changes whenever a file of the registry is written to or replaced; 0: there is none. */
uint64_t index_rows_stamp(const char *dir);
/* Forgets all rows: those of a damaged registry. Their ids come back when their lives are seen again. */
void index_rows_forget(const char *dir);

/* ---- update.c: which chunks are as they should be, and building the others ---- */

/* Is there nothing to build? */
bool index_history_fits(const struct index_files *, const struct index_history *);
/* And nothing to forget or to join? */
bool index_history_settled(const struct index_history *, const struct index_options *);
/* Has the registry all rows that chunks speak of? ERR_FORMAT */
int index_has_rows(const struct index_files *, const struct index_history *, struct err *);
/* How many events builders may hold at once, as memory is allowed. */
size_t index_most_events(const struct index_options *);
/* Builds what is missing, stale or damaged (or force: all). The lock is held. *built: was anything, and did it not
 * fail for what the stores had? *found: what was damaged. */
int index_update(const struct index_files *, struct index_history *, const struct index_options *, bool *built,
    struct err *found, struct err *);

/* Makes the next join only. The lock is held; all chunks fit, are as they were sealed, and so is the registry. */
int index_join(const struct index_files *, struct index_history *, const struct index_options *, bool *joined,
    struct err *);

/* ---- joins.c ---- */
/* The next chunks that are to be built again as one, of at most so many events: how many, from *first on; 0: none. */
size_t index_joins_next(const struct index_history *, size_t most_events, size_t *first);

/* ---- stores.c ---- */

/* 0: it fits, and its files and the registry are as they were written. */
int index_history_intact(const struct index_files *, const struct index_history *, struct err *);
/* Opens what the chunks have as the stores of the trace, and notes what was wrong with their input. */
int index_open_history(struct experiment *, struct index_trace *, const struct index_files *,
    const struct index_history *, struct err *);

/* ---- far.c ---- */
/* What was recorded before stays as it is; INT64_MIN: nothing does. */
int64_t index_sealed_until(const struct index_host *);
/* The net of these hosts, of whom `s` has the flows and what is kept; a wider prior of the options becomes its own.
 * *out is for clock_net_free in any case. */
int index_solve(const struct index_far_host *, const struct clock_options *, const struct clock_net *before,
    struct index_sync *s, struct clock_net **out, struct err *);

/* ---- counts.c: the stores of packets, given back to the trace ---- */
/* Those that the merge, which counts, has read to their end since the chunk before. */
int index_counts_write(struct store_place, const struct index_chunk *, struct ctf_merge *, struct err *);
int index_counts_check(const char *path, const struct store *file, struct err *);
/* Lets the trace know where its counts are, while nobody else uses it. Takes the stores of what is known. */
void index_counts_remember(const struct index_files *, const struct index_history *, struct index_known *);

/* ---- catalogues.c: what opening found in trees of many directories ---- */
/* Before the roots are searched: what is known of each (believe; else nothing), which index_catalogues_save takes back.
 */
void index_catalogues_load(struct experiment *, struct ctf_root *, size_t n, bool believe);
/* After that, and before the groups are opened: nothing is kept of small trees. */
void index_catalogues_found(const struct ctf_root *, size_t n, struct ctf_group *, size_t n_groups);
/* After the groups were opened. write: what is new is kept, if it is much. */
void index_catalogues_save(struct experiment *, struct ctf_root *, size_t n, bool write);
/* What they said was wrong: all is read the next time. */
void index_catalogues_remove(const struct experiment *);
/* Removes them when a trace was misled by them. */
void index_catalogues_check(const struct experiment *);

#endif

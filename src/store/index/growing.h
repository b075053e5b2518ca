/* SPDX-License-Identifier: MIT */
/* Private to index: chunks of a recording that grows.
 *
 * A query needs all that was read in files. So each query ends a chunk, and the next chunk begins with the state
 * carried out of it. A tail, made from the same state but without events, closes what is open then. That alone would
 * give as many chunks as queries, and fed data cannot be read again to join them. So all items are given to several
 * builders at once, the *levels*, which begin anew less and less often. When level k ends a chunk, it replaces those of
 * the levels below since it began, and their files are removed. Chunks of the highest level stay; the manifest names
 * only these. */
#ifndef WEFT_INDEX_GROWING_H
#define WEFT_INDEX_GROWING_H

#include "index/live.h"
#include "index/stores.h"

/* A level ends a chunk with every LEVEL_FAN-th of the level below. One level is enough without queries, or if the data
 * between two queries is a chunk worth keeping (MANY_EVENTS). */
enum { LEVELS = 4, LEVEL_FAN = 8, MANY_EVENTS = 1 << 16 };

struct index_level {
    void *made;                    /* builder from kind->open */
    char *path;                    /* path of the chunk's file */
    struct store_writer *file;     /* writer of that file; NULL: none */
    struct index_chunk chunk;
    struct types_builder *types;
    VEC(uint64_t) told;            /* count of each problem of the merge when the chunk began */
    uint64_t left_out, sum;  /* values of the live index when it began */
    uint64_t items;
    unsigned cuts;                 /* chunks that the level below ended since this one began */
};

struct index_live {
    struct arena lasting, names;   /* names: file names, while one is written */
    struct index_files files;
    const struct index_kind *kind;
    void *shared;                  /* builder from kind->open; its binding and rows serve all levels */
    bool fed, ended;
    struct ctf_merge *merge;
    struct index_level levels[LEVELS];
    size_t n_levels, most_events;
    struct index_history sealed;   /* chunks that the manifest names */
    VEC(struct index_chunk) small; /* chunks behind these */
    struct index_chunk tail;       /* chunk behind these, without events; number 0: none */
    struct index_outcome left;     /* state for all levels that begin where level 0 begins */
    uint64_t left_hash;            /* 0: nothing */
    uint32_t last_number;          /* number of the latest chunk */
    int64_t until, greatest;       /* greatest: latest time of an item so far */
    int64_t last;                  /* time of the last event; INT64_MIN: none */
    uint64_t left_out, sum;        /* sum: a hash of the events so far, in any order */
    size_t n_classes, n_streams;   /* numbers that the levels know */
    int64_t begin;                 /* begin of the part to index, behind the chunks of an earlier run */
    struct again {                 /* position in data that are fed again */
        size_t chunk, n;           /* next sealed chunk to compare; number of these chunks */
        uint64_t sum;              /* sum of its events so far */
    } again;
    struct err failed;
};

/* ---- live_chunks.c ---- */

/* Begins all levels where level 0 is to begin, with the state carried there. */
int index_levels_begin(struct index_live *, int64_t begin, struct err *);
int index_levels_feed(struct index_live *, const struct ctf_event *, size_t n, struct err *);
/* The trace has new classes or streams. */
int index_levels_extend(struct index_live *, struct err *);
void index_levels_drop(struct index_live *);
/* Ends chunks at a time between fed and unfed data: as many levels as are due, or all. */
int index_levels_cut(struct index_live *, int64_t at, bool all, struct err *);
/* Makes the tail that closes what is open, if there is none. */
int index_tail_make(struct index_live *, struct err *);
/* The highest level's chunk is the recording's last one. */
int index_levels_finish(struct index_live *, struct err *);

/* ---- live.c ---- */

/* Reads all that is certain into files, and closes what is open behind it. */
int index_live_settle(struct index_live *, struct err *);

/* ---- live_again.c ---- */

/* Finds the chunks that can be continued, and drops all others. */
int index_again_find(struct index_live *, const struct index_options *, struct err *);
/* Compares items that are fed again and lie before the last sealed chunk's end. Returns the number of those behind it,
 * moved to the front; or a negative error. */
int64_t index_again_skip(struct index_live *, struct ctf_event *, size_t n, struct err *);
/* Reports that nothing before that time comes any more. */
int index_again_until(struct index_live *, int64_t until, struct err *);
/* Hash of an item; their sum identifies the contents of a chunk of fed data. */
static inline uint64_t index_item_hash(const struct ctf_event *ev)
{
    uint64_t hash = ((uint64_t)ev->ts + (uint64_t)(uint32_t)ev->cpu) * 0x9e3779b97f4a7c15u;
    return ev->cls->item == CTF_EVENT ? (hash ^ hash >> 29) * 0xbf58476d1ce4e5b9u : 0;
}

#endif

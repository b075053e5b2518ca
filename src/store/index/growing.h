/* SPDX-License-Identifier: MIT */
/* Private to index: chunks of a recording that grows.
 *
 * A question needs all that was read in files: so each one ends a chunk, and the next one begins with what was carried
 * out of it. A piece without events behind it, made of the same, closes what is open then. There would be as many
 * chunks as questions, and what was fed cannot be read again to join them; so all items are given to several builders
 * at once, the *levels*, which begin anew less and less often. When level k ends a chunk, this one stands for those of
 * the levels below it since it began, whose files go. Chunks of the highest level stay; the manifest names only these.
 */
#ifndef WEFT_INDEX_GROWING_H
#define WEFT_INDEX_GROWING_H

#include "index/live.h"
#include "index/stores.h"

/* A level ends a chunk with every LEVEL_FAN-th of the level below. Where nobody asks, or what came between two
 * questions is a chunk worth keeping (MANY_EVENTS), one level is enough. */
enum { LEVELS = 4, LEVEL_FAN = 8, MANY_EVENTS = 1 << 16 };

struct index_level {
    void *made;                    /* by kind->open */
    char *path;                    /* of the chunk's file */
    struct store_writer *file;     /* while it is written */
    struct index_chunk chunk;
    struct types_builder *types;
    VEC(uint64_t) told;            /* by problem of the merge: how many times it was there before */
    uint64_t left_out, sum;  /* of the live index, when it began */
    uint64_t items;
    unsigned cuts;                 /* of the level below, since it began */
};

struct index_live {
    struct arena lasting, names;   /* names: of files, while one is written */
    struct index_files files;
    const struct index_kind *kind;
    void *shared;                  /* by kind->open: its binding and rows are those of all levels */
    bool fed, ended;
    struct ctf_merge *merge;
    struct index_level levels[LEVELS];
    size_t n_levels, most_events;
    struct index_history sealed;   /* what the manifest names */
    VEC(struct index_chunk) small; /* behind these */
    struct index_chunk tail;       /* behind these, without events; number 0: there is none */
    struct index_outcome left;     /* carried into all that begin where level 0 begins */
    uint64_t left_hash;            /* 0: nothing */
    uint32_t last_number;          /* of a chunk */
    int64_t until, greatest;       /* greatest: time of an item so far */
    int64_t last;                  /* event; INT64_MIN: none */
    uint64_t left_out, sum;        /* sum: a hash of the events so far, in any order */
    size_t n_classes, n_streams;   /* that levels know */
    int64_t begin;                 /* from where on what comes is indexed, behind what a run before has */
    struct again {                 /* what is fed again */
        size_t chunk, n;           /* of the sealed ones: to be compared next, and how many are */
        uint64_t sum;              /* of its events so far */
    } again;
    struct err failed;
};

/* ---- live_chunks.c ---- */

/* Begins all levels where level 0 is to begin, with what was carried there. */
int index_levels_begin(struct index_live *, int64_t begin, struct err *);
int index_levels_feed(struct index_live *, const struct ctf_event *, size_t n, struct err *);
/* The trace has new classes or streams. */
int index_levels_extend(struct index_live *, struct err *);
void index_levels_drop(struct index_live *);
/* Ends chunks at a time before which all was fed, and nothing at or after it: as many levels as are due, or all. */
int index_levels_cut(struct index_live *, int64_t at, bool all, struct err *);
/* Makes the piece that closes what is open, if there is none. */
int index_tail_make(struct index_live *, struct err *);
/* The highest level's chunk is the recording's last one. */
int index_levels_finish(struct index_live *, struct err *);

/* ---- live.c ---- */

/* All that is certain is read and in files, and what is open is closed behind it. */
int index_live_settle(struct index_live *, struct err *);

/* ---- live_again.c ---- */

/* Finds the chunks that can be gone on from, and forgets all others. */
int index_again_find(struct index_live *, const struct index_options *, struct err *);
/* Of items that are fed again: compares those before the last sealed chunk's end, and returns how many lie behind it,
 * which come first then; or a negative error. */
int64_t index_again_skip(struct index_live *, struct ctf_event *, size_t n, struct err *);
/* Nothing before that time comes any more. */
int index_again_until(struct index_live *, int64_t until, struct err *);
/* What chunks of what is fed are compared by. */
static inline uint64_t index_item_hash(const struct ctf_event *ev)
{
    uint64_t hash = ((uint64_t)ev->ts + (uint64_t)(uint32_t)ev->cpu) * 0x9e3779b97f4a7c15u;
    return ev->cls->item == CTF_EVENT ? (hash ^ hash >> 29) * 0xbf58476d1ce4e5b9u : 0;
}

#endif

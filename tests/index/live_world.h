/* SPDX-License-Identifier: MIT */
/* World of fed recordings, queries to it, and their expected answers: those of one pass over all earlier data. Shared
 * by the tests of recordings that are indexed while they grow. Any failure fails the test. */
#ifndef WEFT_TESTS_INDEX_LIVE_WORLD_H
#define WEFT_TESTS_INDEX_LIVE_WORLD_H

#include "../ctf/fed.h"

#include "index/index.h"
#include "index/live.h"
#include "one_pass.h"

enum { MOST_TRACES = 8, MOST_KEPT = 2 };

/* Directory of the stores. */
extern char live_stores[512];
int live_make_places(void **state);
int live_remove_places(void **state);
void live_remove_tree(const char *path);

/* ---- a recording ---- */

struct live_recording {
    struct ctf_trace *whole;
    struct fed_trace files;
    struct ctf_feed *feed;
    struct index_live *live;
    char store[700];
    bool done, losses;
};

/* Answer, with its expected value, which must never change. */
struct live_kept {
    struct experiment *x;
    struct one_pass passes[MOST_TRACES];
    bool any[MOST_TRACES];
};

struct live_world {
    struct ctf_schemas *schemas;
    struct ctf_group *groups;
    struct live_recording of[MOST_TRACES];
    size_t n;
    bool beacons;
    struct index_options options;
    struct live_kept kept[MOST_KEPT];
    size_t n_kept;
    size_t asked, answered; /* answered: queries with a non-empty answer */
};

/* Opens all recordings below the path and begins to feed them. head: as fed_load. */
void live_open(struct live_world *, const char *path, size_t head, const struct index_options *);
void live_close(struct live_world *);
void live_begin(struct live_recording *, const struct index_options *);
void live_end(struct live_recording *);
/* Restarts a recording on the files left, as if it had been killed. */
void live_restart(struct live_world *, struct live_recording *);

/* ---- feeding ---- */

/* Opens the lines of all files at once, so that none is unknown. */
void live_open_lines(struct live_recording *);
/* Feeds packets of each file from number `from` up to `to`. */
void live_feed_all(struct live_recording *, size_t from, size_t to);
void live_read_some(struct live_recording *);
/* Feeds all in a random order, with about the given numbers of queries and restarts, and finishes. */
void live_run(struct live_world *, const char *path, int asks, int restarts);
/* Ends the feed, after all was fed, and checks the result. */
void live_finish(struct live_world *, const char *path);

/* ---- queries ---- */

struct experiment *live_ask(const struct live_world *);
/* Queries and compares; may keep the answer, to be compared again at the end. */
void live_ask_and_compare(struct live_world *);
void live_keep_none(struct live_world *);

/* ---- live_same.c ---- */

void live_same_states(const struct state_store *, const struct state_store *, const char *name);
void live_same(const struct live_world *, const struct live_kept *);
/* Compares with the result of `weft index` on the directory. */
void live_same_whole(const struct live_world *, struct experiment *, const char *path);

#endif

/* SPDX-License-Identifier: MIT */
/* Shared by the tests of recordings that are indexed while they grow: a world of recordings that are fed, questions to
 * it, and what the answers must be: what one pass says of what happened before. Whatever goes wrong fails the test. */
#ifndef WEFT_TESTS_INDEX_LIVE_WORLD_H
#define WEFT_TESTS_INDEX_LIVE_WORLD_H

#include "../ctf/fed.h"

#include "index/index.h"
#include "index/live.h"
#include "one_pass.h"

enum { MOST_TRACES = 8, MOST_KEPT = 2 };

/* Where stores are written. */
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

/* An answer, and what it must be for ever. */
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
    size_t asked, answered; /* answered: with something in it */
};

/* All recordings below the path, whose feeding begins. head: as fed_load. */
void live_open(struct live_world *, const char *path, size_t head, const struct index_options *);
void live_close(struct live_world *);
void live_begin(struct live_recording *, const struct index_options *);
void live_end(struct live_recording *);
/* Killed, so to speak, and begun anew on what it left. */
void live_restart(struct live_world *, struct live_recording *);

/* ---- the way to its end ---- */

/* Of all files at once, without any that is still unknown. */
void live_open_lines(struct live_recording *);
/* Packets of each file from number `from` up to `to`. */
void live_feed_all(struct live_recording *, size_t from, size_t to);
void live_read_some(struct live_recording *);
/* Feeds all in a random order, with about so many questions and restarts, and finishes. */
void live_run(struct live_world *, const char *path, int asks, int restarts);
/* All has been fed: the end, and what is then. */
void live_finish(struct live_world *, const char *path);

/* ---- asking ---- */

struct experiment *live_ask(const struct live_world *);
/* May keep the answer, to be compared once more at the end. */
void live_ask_and_compare(struct live_world *);
void live_keep_none(struct live_world *);

/* ---- live_same.c ---- */

void live_same_states(const struct state_store *, const struct state_store *, const char *name);
void live_same(const struct live_world *, const struct live_kept *);
/* As what `weft index` makes of the directory. */
void live_same_whole(const struct live_world *, struct experiment *, const char *path);

#endif

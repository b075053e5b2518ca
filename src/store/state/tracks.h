/* SPDX-License-Identifier: MIT */
/* Private to state: tracks, that is rows for what goes on at once. */
#ifndef WEFT_STATE_TRACKS_H
#define WEFT_STATE_TRACKS_H

#include "state/series.h"

struct state_builder;

/* Whatever begins takes the lowest track that is free. */
struct builder_tracks {
    VEC(struct series) v;
    VEC(uint64_t) free;      /* a bit per track */
};

uint32_t builder_track_take(struct builder_tracks *, int64_t since);
/* What had the track since then is over. */
void builder_track_leave(struct state_builder *, struct builder_tracks *, uint32_t track, int64_t since, int64_t end,
    int64_t number);
void builder_tracks_fini(struct builder_tracks *);

#endif

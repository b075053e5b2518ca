/* SPDX-License-Identifier: MIT */
/* Private to state: tracks, which are rows for simultaneous things. */
#ifndef WEFT_STATE_TRACKS_H
#define WEFT_STATE_TRACKS_H

#include "state/series.h"

struct state_builder;

/* Each beginning takes the lowest free track. */
struct builder_tracks {
    VEC(struct series) v;
    VEC(uint64_t) free;      /* bit per track */
};

uint32_t state_builder_track_take(struct builder_tracks *, int64_t since);
/* Ends the use of the track since then. */
void state_builder_track_leave(struct state_builder *, struct builder_tracks *, uint32_t track, int64_t since,
    int64_t end, int64_t number);
void state_builder_tracks_fini(struct builder_tracks *);

#endif

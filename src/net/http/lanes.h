/* SPDX-License-Identifier: MIT */
/* Places for handlers. Handlers of one lane wait for each other only. */
#ifndef WEFT_HTTP_LANES_H
#define WEFT_HTTP_LANES_H

#include <pthread.h>
#include <stdbool.h>

/* Uploads have a lane of their own with few places, since each may keep the disk busy for minutes. Few may wait, since
 * each already has its archive on the disk. */
enum lane { LANE_LARGE, LANE_SMALL, LANE_UPLOADS, LANES };

struct lanes {
    pthread_mutex_t lock; /* guards all below */
    bool stopping;
    struct {
        unsigned running, most, waiting, most_waiting;
        pthread_cond_t free_place;
    } of[LANES];
};

/* Initialises the lanes. `most`: places of LANE_LARGE; those of the others follow from it. */
void http_lanes_init(struct lanes *, unsigned most);
void http_lanes_fini(struct lanes *);
/* LEFT: has_left returned true; only waiting uploads call it, since handlers of other lanes have little to do for a
 * client that left. FULL: too many wait already. */
enum lane_entry { LANE_ENTERED, LANE_STOPS, LANE_LEFT, LANE_FULL };
/* Waits for a place. */
enum lane_entry http_lanes_take(struct lanes *, enum lane, bool (*has_left)(void *arg), void *arg);
void http_lanes_leave(struct lanes *, enum lane);
/* Number of running handlers, in all lanes. */
unsigned http_lanes_running(struct lanes *);
/* Ends all waiting. */
void http_lanes_stop(struct lanes *);

#endif

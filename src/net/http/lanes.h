/* SPDX-License-Identifier: MIT */
/* Places for handlers. Handlers of one lane wait for each other only. */
#ifndef WEFT_HTTP_LANES_H
#define WEFT_HTTP_LANES_H

#include <pthread.h>
#include <stdbool.h>

/* Uploads have a lane of their own, and few places: each may keep the disk busy for minutes. */
enum lane { LANE_LARGE, LANE_SMALL, LANE_UPLOADS, LANES };

struct lanes {
    pthread_mutex_t lock; /* guards all below */
    bool stopping;
    struct {
        unsigned running, most;
        pthread_cond_t free_place;
    } of[LANES];
};

/* most: places of the first lane; the others follow from it. */
void lanes_init(struct lanes *, unsigned most);
void lanes_fini(struct lanes *);
/* Waits for a place; false: the server stops. */
bool lanes_take(struct lanes *, enum lane);
void lanes_leave(struct lanes *, enum lane);
/* Handlers that run, in all lanes. */
unsigned lanes_running(struct lanes *);
/* Ends all waiting. */
void lanes_stop(struct lanes *);

#endif

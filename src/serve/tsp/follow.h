/* SPDX-License-Identifier: MIT */
/* Private to tsp: watches of the directories of open experiments, and the thread that looks at them. */
#ifndef WEFT_TSP_FOLLOW_H
#define WEFT_TSP_FOLLOW_H

#include "base/watch.h"
#include "tsp/model.h"

/* Watch of an experiment. The follower owns `watch`; the server's lock guards all else. */
struct tsp_follow {
    unsigned refs;                   /* references of the experiment, and of the follower while it looks */
    struct watch *watch;
    int64_t first_ns, last_ns;       /* changes that were not opened yet; 0: none */
    int64_t not_before_ns;           /* limits opening to half of the time */
    unsigned failures;               /* failed openings in a row */
};

/* follow.c. Wakes the follower. */
void tsp_follower_wake(struct tsp_server *);
void tsp_follow_unref(struct tsp_follow *); /* with the lock held */
/* Begins to watch the traces of an opening that is about to be made, unless they are watched already. Without the
 * lock. */
void tsp_follow_begin(struct tsp_server *, struct tsp_opening *);
/* Ends watching: the experiment is removed or closed. With the lock held. */
void tsp_follow_end(struct tsp_server *, struct tsp_experiment *);
/* Reports that an opening of the experiment has ended, successfully or not, and its duration. With the lock held. */
void tsp_follow_opened(struct tsp_server *, struct tsp_experiment *, bool well, int64_t took_ns);
/* True: there are changes for which no opening has begun. With the lock held. */
bool tsp_follow_waits(const struct tsp_experiment *);

/* follower.c: one thread that watches the directories of open experiments, and has the next version opened after a
 * change. */
int tsp_follower_start(struct tsp_server *, struct err *);
void tsp_follower_stop(struct tsp_server *); /* called once `stopping` is set, without the lock */

#endif

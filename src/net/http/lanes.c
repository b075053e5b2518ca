/* SPDX-License-Identifier: MIT */
#include "http/lanes.h"

#include <limits.h>

#include "base/time.h"
#include "base/wait.h"

enum { SMALL_PER_PLACE = 8, UPLOADS_AT_ONCE = 2, UPLOADS_WAITING = 16, LOOK_EVERY_MS = 500 };

void http_lanes_init(struct lanes *l, unsigned most)
{
    *l = (struct lanes){0};
    l->of[LANE_LARGE].most = most;
    l->of[LANE_SMALL].most = most * SMALL_PER_PLACE;
    l->of[LANE_UPLOADS].most = UPLOADS_AT_ONCE;
    pthread_mutex_init(&l->lock, NULL);
    for (int i = 0; i < LANES; i++) {
        l->of[i].most_waiting = i == LANE_UPLOADS ? UPLOADS_WAITING : UINT_MAX; /* connections are limited */
        wait_init(&l->of[i].free_place);
    }
}

void http_lanes_fini(struct lanes *l)
{
    pthread_mutex_destroy(&l->lock);
    for (int i = 0; i < LANES; i++)
        pthread_cond_destroy(&l->of[i].free_place);
}

/* Called with the lock held. */
static bool is_taken(const struct lanes *l, enum lane lane)
{
    return l->of[lane].running >= l->of[lane].most && !l->stopping;
}

/* Called with the lock held. */
static enum lane_entry await_place(struct lanes *l, enum lane lane, bool (*has_left)(void *), void *arg)
{
    bool left = false;
    if (l->of[lane].waiting >= l->of[lane].most_waiting)
        return LANE_FULL;
    l->of[lane].waiting++;
    while (is_taken(l, lane) && !(left = lane == LANE_UPLOADS && has_left(arg)))
        wait_until(&l->of[lane].free_place, &l->lock, time_monotonic_ns() + LOOK_EVERY_MS * 1000000L);
    l->of[lane].waiting--;
    return left ? LANE_LEFT : LANE_ENTERED;
}

enum lane_entry http_lanes_take(struct lanes *l, enum lane lane, bool (*has_left)(void *), void *arg)
{
    pthread_mutex_lock(&l->lock);
    enum lane_entry entry = is_taken(l, lane) ? await_place(l, lane, has_left, arg) : LANE_ENTERED;
    if (l->stopping)
        entry = LANE_STOPS;
    l->of[lane].running += entry == LANE_ENTERED;
    pthread_mutex_unlock(&l->lock);
    return entry;
}

void http_lanes_leave(struct lanes *l, enum lane lane)
{
    pthread_mutex_lock(&l->lock);
    l->of[lane].running--;
    pthread_cond_signal(&l->of[lane].free_place);
    pthread_mutex_unlock(&l->lock);
}

unsigned http_lanes_running(struct lanes *l)
{
    unsigned n = 0;
    pthread_mutex_lock(&l->lock);
    for (int i = 0; i < LANES; i++)
        n += l->of[i].running;
    pthread_mutex_unlock(&l->lock);
    return n;
}

void http_lanes_stop(struct lanes *l)
{
    pthread_mutex_lock(&l->lock);
    l->stopping = true;
    for (int i = 0; i < LANES; i++)
        pthread_cond_broadcast(&l->of[i].free_place);
    pthread_mutex_unlock(&l->lock);
}

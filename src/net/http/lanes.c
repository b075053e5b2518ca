/* SPDX-License-Identifier: MIT */
#include "http/lanes.h"

enum { SMALL_PER_PLACE = 8, UPLOADS_AT_ONCE = 2 };

void lanes_init(struct lanes *l, unsigned most)
{
    *l = (struct lanes){0};
    l->of[LANE_LARGE].most = most;
    l->of[LANE_SMALL].most = most * SMALL_PER_PLACE;
    l->of[LANE_UPLOADS].most = UPLOADS_AT_ONCE;
    pthread_mutex_init(&l->lock, NULL);
    for (int i = 0; i < LANES; i++)
        pthread_cond_init(&l->of[i].free_place, NULL);
}

void lanes_fini(struct lanes *l)
{
    pthread_mutex_destroy(&l->lock);
    for (int i = 0; i < LANES; i++)
        pthread_cond_destroy(&l->of[i].free_place);
}

bool lanes_take(struct lanes *l, enum lane lane)
{
    pthread_mutex_lock(&l->lock);
    while (l->of[lane].running >= l->of[lane].most && !l->stopping)
        pthread_cond_wait(&l->of[lane].free_place, &l->lock);
    bool go = !l->stopping;
    l->of[lane].running += go;
    pthread_mutex_unlock(&l->lock);
    return go;
}

void lanes_leave(struct lanes *l, enum lane lane)
{
    pthread_mutex_lock(&l->lock);
    l->of[lane].running--;
    pthread_cond_signal(&l->of[lane].free_place);
    pthread_mutex_unlock(&l->lock);
}

unsigned lanes_running(struct lanes *l)
{
    unsigned n = 0;
    pthread_mutex_lock(&l->lock);
    for (int i = 0; i < LANES; i++)
        n += l->of[i].running;
    pthread_mutex_unlock(&l->lock);
    return n;
}

void lanes_stop(struct lanes *l)
{
    pthread_mutex_lock(&l->lock);
    l->stopping = true;
    for (int i = 0; i < LANES; i++)
        pthread_cond_broadcast(&l->of[i].free_place);
    pthread_mutex_unlock(&l->lock);
}

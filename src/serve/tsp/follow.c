/* SPDX-License-Identifier: MIT */
/* Watches of the directories of open experiments. */
#include "tsp/follow.h"

#include <unistd.h>

#include "base/time.h"

enum {
    RETRY_NS = 1000000000, /* wait after a failed opening, doubled after each further one */
    FAILURES_MAX = 6
};

void tsp_follow_unref(struct tsp_follow *f)
{
    if (--f->refs)
        return;
    watch_close(f->watch);
    free(f);
}

void tsp_follower_wake(struct tsp_server *s)
{
    if (s->follow_wake >= 0 && write(s->follow_wake, &(uint64_t){1}, sizeof(uint64_t)) < 0)
        return; /* counter is full: the follower is about to wake */
}

void tsp_follow_begin(struct tsp_server *s, struct tsp_opening *o)
{
    bool known = s->follow_wake < 0;
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->experiments.n && !known; i++)
        known = (s->experiments.v[i]->open == o || s->experiments.v[i]->next == o) && s->experiments.v[i]->follow;
    pthread_mutex_unlock(&s->lock);
    if (known)
        return;
    struct watch_limits limits = watch_limits_usual();
    struct tsp_follow *f = mem_zalloc(sizeof *f);
    f->refs = 1;
    f->watch = watch_open(o->request.paths, o->request.n, "metadata", &limits);
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->experiments.n && f; i++)
        if (s->experiments.v[i]->open == o && !s->experiments.v[i]->follow) {
            s->experiments.v[i]->follow = f;
            f = NULL;
        }
    if (f)
        tsp_follow_unref(f);
    pthread_mutex_unlock(&s->lock);
    tsp_follower_wake(s); /* wakes the follower, which walks the trees */
}

void tsp_follow_end(struct tsp_server *s, struct tsp_experiment *x)
{
    if (x->follow)
        tsp_follow_unref(x->follow);
    x->follow = NULL;
}

void tsp_follow_opened(struct tsp_server *s, struct tsp_experiment *x, bool well, int64_t took_ns)
{
    struct tsp_follow *f = x->follow;
    if (!f)
        return;
    int64_t now = time_monotonic_ns();
    f->not_before_ns = now + took_ns;
    f->failures = well ? 0 : f->failures + (f->failures < FAILURES_MAX);
    if (!well) {
        int64_t pause = (int64_t)RETRY_NS << (f->failures - 1);
        f->not_before_ns = now + (pause > took_ns ? pause : took_ns);
        f->first_ns = f->last_ns = now;
    }
    tsp_follower_wake(s);
}

bool tsp_follow_waits(const struct tsp_experiment *x)
{
    return x->follow && x->follow->first_ns;
}

/* SPDX-License-Identifier: MIT */
/* Tidies the files of a version once it answers; otherwise every opening would add files forever. It works piece by
 * piece, while no newer version waits; a newer version stops a piece. If versions arrive faster than a piece takes, one
 * is completed nevertheless, at every second version at the latest. */
#include "base/time.h"
#include "base/wait.h"
#include "tsp/follow.h"
#include "tsp/open.h"

/* Pause between two pieces. Others that want to write the same files, and poll for their turn, get it then. */
static const int64_t PAUSE_NS = 100000000;

struct tidying {
    struct tsp_server *s;
    const struct tsp_opening *o;
    bool owed; /* newer versions wait until the piece is done */
};

/* Returns the experiment whose newest version it is; NULL: none, or the server ends. With the lock held. */
static struct tsp_experiment *newest_of(struct tsp_server *s, const struct tsp_opening *o)
{
    for (size_t i = 0; i < s->experiments.n && !s->stopping; i++)
        if (s->experiments.v[i]->open == o)
            return s->experiments.v[i];
    return NULL;
}

static bool is_newer_waiting(const struct tsp_experiment *x)
{
    return x->next || tsp_follow_waits(x);
}

static bool is_to_stop(void *arg)
{
    const struct tidying *t = arg;
    pthread_mutex_lock(&t->s->lock);
    const struct tsp_experiment *x = newest_of(t->s, t->o);
    bool stop = !x || (!t->owed && is_newer_waiting(x));
    pthread_mutex_unlock(&t->s->lock);
    return stop;
}

/* True: the next piece may begin. Otherwise it is owed. With the lock held. */
static bool begin_piece(struct tidying *t)
{
    int64_t end = time_monotonic_ns() + PAUSE_NS;
    while (newest_of(t->s, t->o) && wait_until(&t->s->changed, &t->s->lock, end))
        ;
    struct tsp_experiment *x = newest_of(t->s, t->o);
    if (!x)
        return false;
    t->owed = x->tidying_owed;
    x->tidying_owed = !t->owed && is_newer_waiting(x);
    return !x->tidying_owed;
}

/* True: the piece was the last one. With the lock held. */
static bool end_piece(const struct tidying *t, enum tsp_tidied tidied)
{
    struct tsp_experiment *x = newest_of(t->s, t->o);
    if (x && tidied == TSP_TIDY_STOPPED)
        x->tidying_owed = true;
    return tidied != TSP_TIDY_SOME;
}

void tsp_tidy_run(struct tsp_server *s, struct tsp_opening *o)
{
    struct tidying t = {.s = s, .o = o};
    bool done = false;
    pthread_mutex_lock(&s->lock);
    while (!done && begin_piece(&t)) {
        pthread_mutex_unlock(&s->lock);
        enum tsp_tidied tidied = s->o.backend.tidy(o->data, is_to_stop, &t);
        pthread_mutex_lock(&s->lock);
        done = end_piece(&t, tidied);
    }
    pthread_mutex_unlock(&s->lock);
}

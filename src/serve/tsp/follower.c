/* SPDX-License-Identifier: MIT */
/* Follower: opens the next version of experiments whose traces changed, once they have been quiet for a moment. One
 * thread serves all experiments. */
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/time.h"
#include "tsp/follow.h"
#include "tsp/open.h"

enum {
    QUIET_NS = 200000000,  /* wait after a change */
    LATEST_NS = 800000000, /* limit of that wait, from the first of continuous changes */
    NS_PER_MS = 1000000,
    BREATH_MS = 40 /* pause between two looks at what is written continuously */
};

/* Time at which the changes are due to be opened; INT64_MAX: none. */
static int64_t due_at(const struct tsp_follow *f)
{
    if (!f->first_ns)
        return INT64_MAX;
    int64_t at = f->last_ns + QUIET_NS;
    at = at < f->first_ns + LATEST_NS ? at : f->first_ns + LATEST_NS;
    return at > f->not_before_ns ? at : f->not_before_ns;
}

/* Opens what is due; returns the time at which the next is due. With the lock held, which may be released for a
 * moment. */
static int64_t open_due(struct tsp_server *s, int64_t now)
{
    int64_t next = INT64_MAX;
    for (size_t i = 0; i < s->experiments.n; i++) {
        struct tsp_opening *left = tsp_held_release(s->experiments.v[i], false);
        if (left)
            tsp_opening_unref_locked(s, left);
        if (i >= s->experiments.n)
            break;
        struct tsp_experiment *x = s->experiments.v[i];
        int64_t at = x->follow ? due_at(x->follow) : INT64_MAX;
        if (at == INT64_MAX || !x->open || x->open->stage == STAGE_OPENING || x->next)
            continue; /* end of the opening wakes this thread */
        if (x->open->stage == STAGE_FAILED) {
            x->follow->first_ns = x->follow->last_ns = 0; /* next request opens it again */
        } else if (at <= now) {
            x->follow->first_ns = x->follow->last_ns = 0;
            tsp_open_next(s, x);
        } else if (at < next) {
            next = at;
        }
    }
    return next;
}

struct watched {
    VEC(struct tsp_follow *) list;
    VEC(struct pollfd) files;
};

/* Collects all watches, referenced until let_go. With the lock held. */
static void collect(struct tsp_server *s, struct watched *w)
{
    w->list.n = w->files.n = 0;
    vec_push(&w->files, ((struct pollfd){.fd = s->follow_wake, .events = POLLIN}));
    for (size_t i = 0; i < s->experiments.n; i++) {
        struct tsp_follow *f = s->experiments.v[i]->follow;
        if (!f)
            continue;
        f->refs++;
        vec_push(&w->list, f);
        if (watch_descriptor(f->watch) >= 0)
            vec_push(&w->files, ((struct pollfd){.fd = watch_descriptor(f->watch), .events = POLLIN}));
    }
}

static void let_go(struct watched *w)
{
    for (size_t i = 0; i < w->list.n; i++)
        tsp_follow_unref(w->list.v[i]);
}

/* Checks all watches; returns the time of the next check. */
static int64_t look(struct tsp_server *s, struct watched *w)
{
    int64_t next = INT64_MAX;
    for (size_t i = 0; i < w->list.n; i++) {
        struct tsp_follow *f = w->list.v[i];
        int64_t again;
        bool changed = watch_look(f->watch, &again);
        next = again < next ? again : next;
        if (!changed)
            continue;
        pthread_mutex_lock(&s->lock);
        f->last_ns = time_monotonic_ns();
        if (!f->first_ns)
            f->first_ns = f->last_ns;
        pthread_mutex_unlock(&s->lock);
    }
    return next;
}

static void sleep_until(struct watched *w, int64_t until)
{
    int64_t left = until - time_monotonic_ns();
    uint64_t woken;
    left = left < 0 ? 0 : left / NS_PER_MS + 1;
    if (poll(w->files.v, w->files.n, left > 60000 ? 60000 : (int)left) > 0 && !(w->files.v[0].revents & POLLIN))
        poll(w->files.v, 1, BREATH_MS); /* further changes are likely */
    if (w->files.v[0].revents & POLLIN && read(w->files.v[0].fd, &woken, sizeof woken) < 0)
        return;
}

static void *run_follower(void *server)
{
    struct tsp_server *s = server;
    struct watched w = {0};
    pthread_mutex_lock(&s->lock);
    while (!s->stopping) {
        collect(s, &w);
        pthread_mutex_unlock(&s->lock);
        int64_t again = look(s, &w);
        pthread_mutex_lock(&s->lock);
        int64_t due = open_due(s, time_monotonic_ns());
        pthread_mutex_unlock(&s->lock);
        sleep_until(&w, due < again ? due : again);
        pthread_mutex_lock(&s->lock);
        let_go(&w);
    }
    pthread_mutex_unlock(&s->lock);
    vec_free(&w.list);
    vec_free(&w.files);
    return NULL;
}

int tsp_follower_start(struct tsp_server *s, struct err *e)
{
    s->follow_wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (s->follow_wake < 0)
        return err_sys(e, "no descriptor to follow traces with");
    if (!pthread_create(&s->follower, NULL, run_follower, s))
        return 0;
    close(s->follow_wake);
    s->follow_wake = -1;
    return err_set(e, ERR_NOMEM, "no thread can be started to follow traces");
}

void tsp_follower_stop(struct tsp_server *s)
{
    if (s->follow_wake < 0)
        return;
    tsp_follower_wake(s);
    pthread_join(s->follower, NULL);
}

/* SPDX-License-Identifier: MIT */
#include "bus/loop.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/wait.h"

struct loop {
    pthread_mutex_t lock; /* guards the flags */
    pthread_cond_t wake;
    pthread_t thread;
    bool kicked, stops, orphan; /* orphan: nobody joins the thread; it frees the loop */
    loop_turn *turn;
    void (*ended)(void *);
    void *arg;
};

static void loop_free(struct loop *l)
{
    l->ended(l->arg);
    pthread_cond_destroy(&l->wake);
    pthread_mutex_destroy(&l->lock);
    free(l);
}

static void *run(void *arg)
{
    struct loop *l = arg;
    pthread_mutex_lock(&l->lock);
    while (!l->stops) {
        l->kicked = false;
        pthread_mutex_unlock(&l->lock);
        int64_t due = l->turn(l->arg);
        pthread_mutex_lock(&l->lock);
        while (!l->stops && !l->kicked)
            if (due == INT64_MAX)
                pthread_cond_wait(&l->wake, &l->lock);
            else if (!wait_until(&l->wake, &l->lock, due))
                break;
    }
    bool orphan = l->orphan;
    pthread_mutex_unlock(&l->lock);
    if (orphan)
        loop_free(l);
    return NULL;
}

int bus_loop_start(loop_turn *turn, void (*ended)(void *), void *arg, struct loop **out, struct err *e)
{
    struct loop *l = mem_zalloc(sizeof *l);
    pthread_mutex_init(&l->lock, NULL);
    wait_init(&l->wake);
    l->turn = turn;
    l->ended = ended;
    l->arg = arg;
    *out = l;
    pthread_mutex_lock(&l->lock); /* the thread sees what is written here */
    int rc = pthread_create(&l->thread, NULL, run, l);
    pthread_mutex_unlock(&l->lock);
    if (!rc)
        return 0;
    *out = NULL;
    pthread_cond_destroy(&l->wake);
    pthread_mutex_destroy(&l->lock);
    free(l);
    return err_set(e, ERR_IO, "no thread could be started: %s; raise `ulimit -u`", strerror(rc));
}

void bus_loop_kick(struct loop *l)
{
    pthread_mutex_lock(&l->lock);
    l->kicked = true;
    pthread_cond_signal(&l->wake);
    pthread_mutex_unlock(&l->lock);
}

bool bus_loop_stops(struct loop *l)
{
    pthread_mutex_lock(&l->lock);
    bool stops = l->stops;
    pthread_mutex_unlock(&l->lock);
    return stops;
}

void bus_loop_stop(struct loop *l)
{
    bool own = pthread_equal(pthread_self(), l->thread);
    pthread_mutex_lock(&l->lock);
    l->stops = true;
    l->orphan = own;
    pthread_cond_signal(&l->wake);
    pthread_mutex_unlock(&l->lock);
    if (own) {
        pthread_detach(l->thread);
        return;
    }
    pthread_join(l->thread, NULL);
    loop_free(l);
}

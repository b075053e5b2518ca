/* SPDX-License-Identifier: MIT */
#include "http/peers.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/large.h"
#include "base/mem.h"
#include "base/time.h"
#include "base/wait.h"

enum { LOOK_EVERY_MS = 500 };

struct peer {
    struct peer *next, *previous;
    int fd;
    int64_t deadline_ns; /* monotonic; INT64_MAX: none */
};

struct peers {
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t stop;
    pthread_t thread;
    bool runs, stopping;
    int64_t patience_ns;
    uint64_t slowest_bytes_per_s;
    struct peer all; /* ring */
};

/* The descriptor stays the connection's own: it is closed only after peers_remove, which needs the lock. */
static void end_overdue(struct peers *p)
{
    int64_t now = time_monotonic_ns();
    for (struct peer *i = p->all.next; i != &p->all; i = i->next)
        if (i->deadline_ns < now) {
            i->deadline_ns = INT64_MAX;
            /* What the kernel still holds for the client is thrown away too. */
            setsockopt(i->fd, SOL_SOCKET, SO_LINGER, &(struct linger){.l_onoff = 1}, sizeof(struct linger));
            shutdown(i->fd, SHUT_RDWR);
        }
}

static void *look(void *arg)
{
    struct peers *p = arg;
    pthread_mutex_lock(&p->lock);
    while (!p->stopping) {
        wait_until(&p->stop, &p->lock, time_monotonic_ns() + LOOK_EVERY_MS * 1000000L);
        end_overdue(p);
        large_cool();
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

struct peers *peers_new(unsigned patience_s, unsigned slowest_bytes_per_s)
{
    struct peers *p = mem_zalloc(sizeof *p);
    wait_init(&p->stop);
    pthread_mutex_init(&p->lock, NULL);
    p->all.next = p->all.previous = &p->all;
    p->patience_ns = (int64_t)patience_s * 1000000000;
    p->slowest_bytes_per_s = slowest_bytes_per_s;
    p->runs = !pthread_create(&p->thread, NULL, look, p); /* else only silence ends a connection */
    return p;
}

void peers_free(struct peers *p)
{
    pthread_mutex_lock(&p->lock);
    p->stopping = true;
    pthread_cond_signal(&p->stop);
    pthread_mutex_unlock(&p->lock);
    if (p->runs)
        pthread_join(p->thread, NULL);
    pthread_cond_destroy(&p->stop);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

static void set_deadline(struct peers *p, struct peer *i, int64_t deadline_ns)
{
    pthread_mutex_lock(&p->lock);
    i->deadline_ns = deadline_ns;
    pthread_mutex_unlock(&p->lock);
}

struct peer *peers_add(struct peers *p, int fd)
{
    struct peer *i = mem_zalloc(sizeof *i);
    i->fd = fd;
    i->deadline_ns = time_monotonic_ns() + p->patience_ns;
    pthread_mutex_lock(&p->lock);
    i->next = &p->all;
    i->previous = p->all.previous;
    i->previous->next = i->next->previous = i;
    pthread_mutex_unlock(&p->lock);
    return i;
}

void peers_remove(struct peers *p, struct peer *i)
{
    pthread_mutex_lock(&p->lock);
    i->previous->next = i->next;
    i->next->previous = i->previous;
    pthread_mutex_unlock(&p->lock);
    free(i);
}

void peer_awaits(struct peers *p, struct peer *i, uint64_t bytes)
{
    uint64_t seconds = bytes / p->slowest_bytes_per_s;
    set_deadline(
        p, i, time_monotonic_ns() + p->patience_ns + (int64_t)(seconds < 1 << 20 ? seconds : 1 << 20) * 1000000000);
}

void peer_rests(struct peers *p, struct peer *i)
{
    set_deadline(p, i, INT64_MAX);
}

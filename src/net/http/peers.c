/* SPDX-License-Identifier: MIT */
#include "http/peers.h"

#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/large.h"
#include "base/mem.h"
#include "base/time.h"
#include "base/wait.h"

enum { LOOK_EVERY_MS = 500, DOOR_PATIENCE_S = 5 };

struct peer {
    struct peer *next, *previous;
    int fd;
    bool is_in;
    int64_t deadline_ns; /* monotonic; INT64_MAX: none */
};

struct peers {
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t stop, free_place;
    pthread_t thread;
    bool runs, stopping;        /* state of the thread */
    bool is_shut;               /* door closed: no connection is admitted any more */
    unsigned in, most, waiting; /* admitted connections, their limit, and others with a request */
    int64_t patience_ns;
    uint64_t slowest_bytes_per_s;
    struct peer all; /* ring */
};

/* Closes overdue connections. Their descriptors stay valid: they are closed only after http_peers_remove, which needs
 * the lock. */
static void end_overdue(struct peers *p)
{
    int64_t now = time_monotonic_ns();
    for (struct peer *i = p->all.next; i != &p->all; i = i->next)
        if (i->deadline_ns < now) {
            i->deadline_ns = INT64_MAX;
            /* Data that the kernel still holds for the client are dropped, too. */
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

struct peers *http_peers_new(unsigned most, unsigned patience_s, unsigned slowest_bytes_per_s)
{
    struct peers *p = mem_zalloc(sizeof *p);
    p->most = most;
    wait_init(&p->stop);
    wait_init(&p->free_place);
    pthread_mutex_init(&p->lock, NULL);
    p->all.next = p->all.previous = &p->all;
    p->patience_ns = (int64_t)patience_s * 1000000000;
    p->slowest_bytes_per_s = slowest_bytes_per_s;
    p->runs = !pthread_create(&p->thread, NULL, look, p); /* failed: only the inactivity timeout ends a connection */
    return p;
}

void http_peers_stop(struct peers *p)
{
    pthread_mutex_lock(&p->lock);
    p->is_shut = true;
    pthread_cond_broadcast(&p->free_place);
    pthread_mutex_unlock(&p->lock);
}

void http_peers_free(struct peers *p)
{
    pthread_mutex_lock(&p->lock);
    p->stopping = true;
    pthread_cond_signal(&p->stop);
    pthread_mutex_unlock(&p->lock);
    if (p->runs)
        pthread_join(p->thread, NULL);
    pthread_cond_destroy(&p->stop);
    pthread_cond_destroy(&p->free_place);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

/* Sets the deadline of an admitted connection. Nothing extends that of a connection at the door. */
static void set_deadline(struct peers *p, struct peer *i, int64_t deadline_ns)
{
    pthread_mutex_lock(&p->lock);
    if (i->is_in)
        i->deadline_ns = deadline_ns;
    pthread_mutex_unlock(&p->lock);
}

static int64_t door_deadline(const struct peers *p)
{
    int64_t patience_ns = DOOR_PATIENCE_S * NS_PER_S;
    return time_monotonic_ns() + (p->patience_ns < patience_ns ? p->patience_ns : patience_ns);
}

struct peer *http_peers_add(struct peers *p, int fd)
{
    struct peer *i = mem_zalloc(sizeof *i);
    i->fd = fd;
    pthread_mutex_lock(&p->lock);
    i->is_in = p->in < p->most && !p->waiting;
    p->in += i->is_in;
    i->deadline_ns = i->is_in ? time_monotonic_ns() + p->patience_ns : door_deadline(p);
    i->next = &p->all;
    i->previous = p->all.previous;
    i->previous->next = i->next->previous = i;
    pthread_mutex_unlock(&p->lock);
    return i;
}

void http_peers_remove(struct peers *p, struct peer *i)
{
    pthread_mutex_lock(&p->lock);
    i->previous->next = i->next;
    i->next->previous = i->previous;
    p->in -= i->is_in;
    pthread_cond_signal(&p->free_place);
    pthread_mutex_unlock(&p->lock);
    free(i);
}

bool http_peer_hung_up(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLRDHUP};
    return poll(&p, 1, 0) > 0 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR));
}

/* Called with the lock held. */
static void await_place(struct peers *p, const struct peer *i)
{
    int64_t now = time_monotonic_ns(), end = now + p->patience_ns / 2;
    while (p->in >= p->most && !p->is_shut && now < end && !http_peer_hung_up(i->fd)) {
        int64_t look = now + LOOK_EVERY_MS * 1000000L;
        wait_until(&p->free_place, &p->lock, look < end ? look : end);
        now = time_monotonic_ns();
    }
}

bool http_peer_enter(struct peers *p, struct peer *i)
{
    pthread_mutex_lock(&p->lock);
    if (!i->is_in && p->waiting < PEERS_WAITING) {
        i->deadline_ns = INT64_MAX;
        p->waiting++;
        await_place(p, i);
        p->waiting--;
        i->is_in = p->in < p->most && !p->is_shut;
        p->in += i->is_in;
        i->deadline_ns = i->is_in ? INT64_MAX : door_deadline(p);
    }
    bool is_in = i->is_in;
    pthread_mutex_unlock(&p->lock);
    return is_in;
}

bool http_peer_is_in(struct peers *p, const struct peer *i)
{
    pthread_mutex_lock(&p->lock);
    bool is_in = i->is_in;
    pthread_mutex_unlock(&p->lock);
    return is_in;
}

void http_peer_awaits(struct peers *p, struct peer *i, uint64_t bytes)
{
    uint64_t seconds = bytes / p->slowest_bytes_per_s;
    set_deadline(
        p, i, time_monotonic_ns() + p->patience_ns + (int64_t)(seconds < 1 << 20 ? seconds : 1 << 20) * 1000000000);
}

void http_peer_rests(struct peers *p, struct peer *i)
{
    set_deadline(p, i, INT64_MAX);
}

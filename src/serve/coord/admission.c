/* SPDX-License-Identifier: MIT */
#include "coord/admission.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/time.h"
#include "base/wait.h"

/* Fractions of all bytes. SMALL: limit of a small answer; 256 of them fit in the half that is not shared
 * out. UNKNOWN: estimate for a new kind. */
enum { KINDS = 1024, SMALL_PART = 512, UNKNOWN_PART = 64 };
#define LOOK_NS INT64_C(100000000)
#define PATIENCE_NS INT64_C(30000000000) /* usual limit of a server's time for an answer */

struct waiting {
    struct waiting *next;
    pthread_cond_t called;
};

struct admission {
    uint64_t most, small, unknown;
    atomic_uint_least64_t usual[KINDS]; /* bytes; 0: unknown. Kinds with one index are one kind */
    pthread_mutex_t lock;               /* guards all below */
    uint64_t given;
    struct waiting *first, **end; /* waiting questions, by arrival */
};

struct admission *coord_admission_new(uint64_t answers_bytes)
{
    struct admission *t = mem_zalloc(sizeof *t);
    t->most = answers_bytes / 2;
    t->small = answers_bytes / SMALL_PART;
    t->unknown = answers_bytes / UNKNOWN_PART;
    t->end = &t->first;
    pthread_mutex_init(&t->lock, NULL);
    return t;
}

void coord_admission_free(struct admission *t)
{
    if (!t)
        return;
    pthread_mutex_destroy(&t->lock);
    free(t);
}

/* ---- queue: call with the lock held ---- */

static bool fits(const struct admission *t, uint64_t bytes)
{
    return !t->given || t->given + bytes <= t->most;
}

static void call_first(struct admission *t)
{
    if (t->first)
        pthread_cond_signal(&t->first->called);
}

static void leave(struct admission *t, const struct waiting *w)
{
    struct waiting **at = &t->first;
    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    if (t->end == &w->next)
        t->end = at;
}

static bool wait_for_room(struct admission *t, const struct http_request *q, uint64_t bytes)
{
    struct waiting w = {0};
    int64_t until = time_monotonic_ns() + PATIENCE_NS, now;
    bool gone = false;
    wait_init(&w.called);
    *t->end = &w;
    t->end = &w.next;
    while (!(t->first == &w && fits(t, bytes)) && (now = time_monotonic_ns()) < until && !gone) {
        wait_until(&w.called, &t->lock, now + LOOK_NS);
        pthread_mutex_unlock(&t->lock);
        gone = http_gone(q);
        pthread_mutex_lock(&t->lock);
    }
    leave(t, &w);
    pthread_cond_destroy(&w.called);
    return !gone;
}

/* ---- single questions ---- */

bool coord_admission_begin(
    struct admission *t, const struct http_request *q, uint64_t kind, struct coord_admitted *admitted)
{
    admitted->kind = kind % KINDS;
    admitted->bytes = atomic_load(&t->usual[admitted->kind]);
    if (!admitted->bytes)
        admitted->bytes = t->unknown;
    if (admitted->bytes <= t->small) {
        admitted->bytes = 0;
        return true;
    }
    pthread_mutex_lock(&t->lock);
    bool stays = (!t->first && fits(t, admitted->bytes)) || wait_for_room(t, q, admitted->bytes);
    t->given += admitted->bytes;
    call_first(t); /* room may suffice for several */
    pthread_mutex_unlock(&t->lock);
    return stays;
}

void coord_admission_end(struct admission *t, const struct coord_admitted *admitted, uint64_t held, bool whole)
{
    uint64_t usual = atomic_load(&t->usual[admitted->kind]);
    if (held > usual)
        atomic_store(&t->usual[admitted->kind], held);
    else if (whole) /* large and small questions may be of one kind: it decreases gradually; 1: known, nothing */
        atomic_store(&t->usual[admitted->kind], usual - held > 4 ? usual - (usual - held) / 4 : held + !held);
    if (!admitted->bytes)
        return;
    pthread_mutex_lock(&t->lock);
    t->given -= admitted->bytes;
    call_first(t);
    pthread_mutex_unlock(&t->lock);
}

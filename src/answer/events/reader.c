/* SPDX-License-Identifier: MIT */
#include "events/reader.h"

#include <pthread.h>

enum { READERS = 8, SHORT_WAY = 20000 };

struct event_reader {
    struct ctf_merge *merge;
    struct event_threads *threads;
    uint64_t next;
    bool busy;
    uint64_t used;
    uint64_t batch_at; /* index of the batch read by events_reader_at */
    size_t batch_n;
    struct ctf_event batch[EVENT_BATCH];
};
struct event_readers {
    const struct event_table *table;
    pthread_mutex_t lock; /* guards the fields of readers, except busy ones */
    pthread_cond_t free_reader;
    struct event_reader v[READERS];
    uint64_t clock;
};

struct ctf_merge *events_merge_new(const struct event_table *t, struct err *e)
{
    struct ctf_merge *m;
    return ctf_merge_new(t->sources, t->n, (struct ctf_window){INT64_MIN, INT64_MAX}, -1, &m, e) ? NULL : m;
}

struct event_readers *events_readers_new(const struct event_table *table)
{
    struct event_readers *t = mem_zalloc(sizeof *t);
    t->table = table;
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->free_reader, NULL);
    return t;
}

void events_readers_free(struct event_readers *t)
{
    for (int i = 0; i < READERS; i++) {
        ctf_merge_free(t->v[i].merge);
        events_threads_free(t->v[i].threads);
    }
    pthread_mutex_destroy(&t->lock);
    pthread_cond_destroy(&t->free_reader);
    free(t);
}

static bool at_hand(const struct event_reader *r, uint64_t index)
{
    return index - r->batch_at < r->batch_n;
}

/* Chooses the free reader that has `index` in its batch; else the nearest before it; else a new one; else the least
 * recently used. */
static struct event_reader *choose(struct event_readers *t, uint64_t index)
{
    struct event_reader *best = NULL, *fresh = NULL, *oldest = NULL;
    for (int i = 0; i < READERS; i++) {
        struct event_reader *r = &t->v[i];
        if (r->busy)
            continue;
        if (at_hand(r, index))
            return r;
        if (!r->merge)
            fresh = fresh ? fresh : r;
        else if (r->next <= index && index - r->next < SHORT_WAY && (!best || r->next > best->next))
            best = r;
        if (r->merge && (!oldest || r->used < oldest->used))
            oldest = r;
    }
    return best ? best : fresh ? fresh : oldest;
}

struct event_reader *events_reader_take(struct event_readers *t, uint64_t index)
{
    struct event_reader *r;
    pthread_mutex_lock(&t->lock);
    while (!(r = choose(t, index)))
        pthread_cond_wait(&t->free_reader, &t->lock);
    r->busy = true;
    r->used = ++t->clock;
    pthread_mutex_unlock(&t->lock);
    if (!r->merge && (r->merge = events_merge_new(t->table, NULL))) {
        r->threads = events_threads_new(t->table);
        r->next = 0;
    }
    return r;
}

void events_reader_leave(struct event_readers *t, struct event_reader *r)
{
    pthread_mutex_lock(&t->lock);
    r->busy = false;
    pthread_cond_signal(&t->free_reader);
    pthread_mutex_unlock(&t->lock);
}

const struct ctf_merge *events_reader_merge(const struct event_reader *r)
{
    return r->merge;
}

struct event_threads *events_reader_threads(struct event_reader *r)
{
    return r->threads;
}

/* Reads the next items, at most `max`; 0 at the end. They stay valid until the next read. */
static size_t event_reader_read(struct event_reader *r, struct ctf_event *out, size_t max)
{
    size_t n = r->merge ? ctf_merge_next(r->merge, out, max) : 0;
    r->next += n;
    r->batch_n = 0;
    return n;
}

/* Makes `index` the next item. False: none. */
static bool event_reader_go(struct event_reader *r, uint64_t index)
{
    struct ctf_event skipped[EVENT_BATCH];
    struct err e = {0};
    if (!r->merge)
        return false;
    if (index < r->next || index - r->next >= SHORT_WAY) {
        r->batch_n = 0;
        if (ctf_merge_seek(r->merge, index, &e)) {
            r->next = UINT64_MAX; /* undefined position: the next use seeks */
            return false;
        }
        r->next = index;
    }
    while (r->next < index)
        if (!event_reader_read(r, skipped, index - r->next < EVENT_BATCH ? (size_t)(index - r->next) : EVENT_BATCH))
            return false;
    return true;
}

const struct ctf_event *events_reader_at(struct event_reader *r, uint64_t index, uint64_t last)
{
    if (at_hand(r, index))
        return &r->batch[index - r->batch_at];
    if (!event_reader_go(r, index))
        return NULL;
    uint64_t wanted = last >= index ? last - index + 1 : 1;
    size_t n = event_reader_read(r, r->batch, wanted < EVENT_BATCH ? (size_t)wanted : EVENT_BATCH);
    r->batch_at = index;
    r->batch_n = n;
    return n ? r->batch : NULL;
}

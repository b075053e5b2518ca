/* SPDX-License-Identifier: MIT */
#include "events/scan.h"

#include <pthread.h>

#include "base/arena.h"
#include "base/expr.h"
#include "base/order.h"
#include "base/time.h"
#include "base/wait.h"
#include "events/match.h"
#include "events/reader.h"
#include "events/set.h"

enum { MAX_SCANS = 8, BATCH = 1024 };
static const int64_t unasked_ns = 8000000000; /* clients ask at least every 5 s */
static const size_t max_bytes = (size_t)64 << 20;

struct event_scan {
    const struct event_table *table;
    struct arena arena; /* memory of the two below */
    struct event_wanted wanted;
    const char *key;           /* equal for equal conditions */
    struct event_match *match; /* used by the thread only, as the merge */
    struct ctf_merge *merge;
    unsigned users; /* guarded by the scans' lock, as `used` */
    uint64_t used;
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t more;
    struct event_set set;
    uint64_t items;
    int64_t asked_ns;
    bool done, running, stop;
    bool has_thread; /* thread to be joined by whoever starts or frees the scan, under the scans' lock */
    pthread_t thread;
};

struct event_scans {
    const struct event_table *table;
    pthread_mutex_t lock;
    pthread_cond_t left;
    VEC(struct event_scan *) list;
    uint64_t clock;
};

/* ---- scanning ---- */

/* Publishes the result of a batch to waiting clients. False: the scan ends here. */
static bool publish(struct event_scan *s, const uint64_t *found, size_t n, size_t read)
{
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < n; i++)
        events_set_add(&s->set, found[i]);
    s->items += read;
    s->done = read == 0;
    bool goes_on = !s->done && !s->stop && !mem_short() && time_monotonic_ns() < s->asked_ns + unasked_ns;
    s->running = goes_on;
    pthread_cond_broadcast(&s->more);
    pthread_mutex_unlock(&s->lock);
    return goes_on;
}

/* Resets the scan after a lack of memory: it begins again at the next request. */
static void begin_anew(struct event_scan *s)
{
    ctf_merge_free(s->merge);
    events_match_free(s->match);
    s->merge = NULL;
    s->match = NULL;
    pthread_mutex_lock(&s->lock);
    events_set_fini(&s->set);
    s->set = (struct event_set){0};
    s->items = 0;
    s->running = false;
    pthread_cond_broadcast(&s->more);
    pthread_mutex_unlock(&s->lock);
}

/* Prepares in the scan's thread, since searching the threads running at the begin may take long. */
static bool prepare(struct event_scan *s, struct err *e)
{
    return (s->match || !events_match_new(s->table, &s->wanted, &s->match, e)) && !events_match_impossible(s->match) &&
        (s->merge || (s->merge = events_merge_new(s->table, e)));
}

static void *run_scan(void *arg)
{
    struct event_scan *s = arg;
    struct ctf_event batch[BATCH];
    uint64_t found[BATCH], at = s->items;
    size_t n, n_found;
    struct err e = {0};
    if (!prepare(s, &e)) {
        if (e.code == ERR_NOMEM)
            begin_anew(s);
        else
            publish(s, found, 0, 0);
        return NULL;
    }
    do {
        n_found = 0;
        n = ctf_merge_next(s->merge, batch, BATCH);
        if (!n && ctf_merge_intact(s->merge, &e) == ERR_NOMEM) {
            begin_anew(s);
            return NULL;
        }
        for (size_t i = 0; i < n; i++)
            if (events_match_fits(s->match, s->merge, &batch[i]))
                found[n_found++] = at + i;
        at += n;
    } while (publish(s, found, n_found, n));
    return NULL;
}

/* Starts the thread; the scans' lock is held. Without a thread it starts at the next request. */
static void go_on(struct event_scan *s)
{
    pthread_mutex_lock(&s->lock);
    s->asked_ns = time_monotonic_ns();
    bool starts = !s->done && !s->running;
    s->running |= starts;
    pthread_mutex_unlock(&s->lock);
    if (!starts)
        return;
    if (s->has_thread)
        pthread_join(s->thread, NULL);
    s->has_thread = !pthread_create(&s->thread, NULL, run_scan, s);
    if (s->has_thread)
        return;
    pthread_mutex_lock(&s->lock);
    s->running = false;
    pthread_mutex_unlock(&s->lock);
}

/* ---- scans ---- */

static void free_scan(struct event_scan *s)
{
    pthread_mutex_lock(&s->lock);
    s->stop = true;
    pthread_mutex_unlock(&s->lock);
    if (s->has_thread)
        pthread_join(s->thread, NULL);
    events_set_fini(&s->set);
    events_match_free(s->match);
    ctf_merge_free(s->merge);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->more);
    arena_fini(&s->arena);
    free(s);
}

static int compare_terms(const void *pa, const void *pb)
{
    const struct event_term *a = pa, *b = pb;
    return order_of(a->column, b->column) ?: strcmp(a->pattern, b->pattern);
}

static struct event_scan *new_scan(const struct event_table *table, const struct event_wanted *wanted)
{
    struct event_scan *s = mem_zalloc(sizeof *s);
    struct event_term *terms = arena_new(&s->arena, struct event_term, wanted->n_terms + 1);
    struct text key = {.fd = -1};
    pthread_mutex_init(&s->lock, NULL);
    wait_init(&s->more);
    s->table = table;
    for (size_t i = 0; i < wanted->n_terms; i++)
        terms[i] = (struct event_term){wanted->terms[i].column, arena_strdup(&s->arena, wanted->terms[i].pattern)};
    qsort(terms, wanted->n_terms, sizeof *terms, compare_terms);
    for (size_t i = 0; i < wanted->n_terms; i++)
        text_printf(&key, "%lld %zu %s\n", (long long)terms[i].column, strlen(terms[i].pattern), terms[i].pattern);
    text_puts(&key, wanted->where ? wanted->where : "");
    s->wanted = (struct event_wanted){
        terms, wanted->n_terms, wanted->where ? arena_strdup(&s->arena, wanted->where) : NULL};
    s->key = arena_strdup(&s->arena, text_cstr(&key));
    text_fini(&key);
    return s;
}

struct event_scans *events_scans_new(const struct event_table *table)
{
    struct event_scans *t = mem_zalloc(sizeof *t);
    t->table = table;
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->left, NULL);
    return t;
}

void events_scans_free(struct event_scans *t)
{
    for (size_t i = 0; i < t->list.n; i++)
        free_scan(t->list.v[i]);
    vec_free(&t->list);
    pthread_mutex_destroy(&t->lock);
    pthread_cond_destroy(&t->left);
    free(t);
}

/* Makes room for one more. False: all are in use. */
static bool make_room(struct event_scans *t)
{
    size_t bytes = 0, oldest = SIZE_MAX;
    for (size_t i = 0; i < t->list.n; i++) {
        pthread_mutex_lock(&t->list.v[i]->lock);
        bytes += t->list.v[i]->set.bytes;
        pthread_mutex_unlock(&t->list.v[i]->lock);
        if (!t->list.v[i]->users && (oldest == SIZE_MAX || t->list.v[i]->used < t->list.v[oldest]->used))
            oldest = i;
    }
    if (t->list.n < MAX_SCANS && bytes < max_bytes)
        return true;
    if (oldest == SIZE_MAX)
        return t->list.n < MAX_SCANS;
    free_scan(t->list.v[oldest]);
    t->list.v[oldest] = t->list.v[--t->list.n];
    return make_room(t);
}

static struct event_scan *find_scan(struct event_scans *t, const char *key)
{
    for (size_t i = 0; i < t->list.n; i++)
        if (!strcmp(t->list.v[i]->key, key))
            return t->list.v[i];
    return NULL;
}

int events_scan_take(struct event_scans *t, const struct event_wanted *wanted, struct event_scan **out, struct err *e)
{
    struct expr *checked = NULL;
    int rc = wanted->where ? expr_compile(wanted->where, &checked, e) : 0;
    expr_free(checked);
    if (rc)
        return rc;
    struct event_scan *s, *fresh = new_scan(t->table, wanted);
    pthread_mutex_lock(&t->lock);
    while (!(s = find_scan(t, fresh->key)) && !make_room(t))
        pthread_cond_wait(&t->left, &t->lock);
    if (!s) {
        s = fresh;
        fresh = NULL;
        vec_push(&t->list, s);
    }
    s->users++;
    s->used = ++t->clock;
    go_on(s);
    pthread_mutex_unlock(&t->lock);
    if (fresh)
        free_scan(fresh);
    *out = s;
    return 0;
}

void events_scan_leave(struct event_scans *t, struct event_scan *s)
{
    pthread_mutex_lock(&t->lock);
    s->users--;
    pthread_cond_signal(&t->left);
    pthread_mutex_unlock(&t->lock);
}

/* ---- results ---- */

struct event_found events_scan_wait(struct event_scan *s, uint64_t matches, int64_t wait_ns)
{
    int64_t now = time_monotonic_ns(), end = now + wait_ns;
    pthread_mutex_lock(&s->lock);
    s->asked_ns = now;
    while (s->running && !s->done && s->set.n <= matches && wait_until(&s->more, &s->lock, end))
        ;
    struct event_found found = {s->items, s->set.n, s->done, s->running};
    pthread_mutex_unlock(&s->lock);
    return found;
}

size_t events_scan_items(struct event_scan *s, uint64_t first, uint64_t *out, size_t max)
{
    pthread_mutex_lock(&s->lock);
    size_t n = events_set_get(&s->set, first, out, max);
    pthread_mutex_unlock(&s->lock);
    return n;
}

uint64_t events_scan_rank(struct event_scan *s, uint64_t item)
{
    pthread_mutex_lock(&s->lock);
    uint64_t rank = events_set_rank(&s->set, item);
    pthread_mutex_unlock(&s->lock);
    return rank;
}

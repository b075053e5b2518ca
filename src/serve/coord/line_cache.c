/* SPDX-License-Identifier: MIT */
/* Cache of servers' lines, for times when they are away. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "coord/experiments.h"
#include "coord/table.h"

/* Limits of lines: of one server in one table, unless there are very many servers; of all. */
enum { KNOWN_OF_ONE = 32768, KNOWN_OF_ALL = 4 << 20, KEPT_TABLES = 256 };

struct known_line {
    uint64_t index;
    int64_t time;
};
/* Lines in order of index and time. */
struct known_part {
    bool reported;
    unsigned epoch;
    uint64_t size;
    VEC(struct known_line) v;
};
struct known_table {
    uint64_t key, used;
    VEC(struct known_part) of; /* parts by number of the server */
};
struct line_cache {
    pthread_mutex_t lock;
    uint64_t uses;
    size_t lines; /* lines of all tables */
    VEC(struct known_table) v;
};

struct line_cache *coord_line_cache_new(void)
{
    struct line_cache *r = mem_zalloc(sizeof *r);
    pthread_mutex_init(&r->lock, NULL);
    return r;
}

static void forget_table(struct line_cache *r, size_t at)
{
    struct known_table *t = &r->v.v[at];
    for (size_t i = 0; i < t->of.n; i++) {
        r->lines -= t->of.v[i].v.n;
        vec_free(&t->of.v[i].v);
    }
    vec_free(&t->of);
    *t = r->v.v[--r->v.n];
}

void coord_line_cache_free(struct line_cache *r)
{
    if (!r)
        return;
    while (r->v.n)
        forget_table(r, 0);
    vec_free(&r->v);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

/* ---- learning ---- */

static struct known_table *find_table(struct line_cache *r, uint64_t key)
{
    for (size_t i = 0; i < r->v.n; i++)
        if (r->v.v[i].key == key)
            return &r->v.v[i];
    return NULL;
}

static void forget_oldest(struct line_cache *r)
{
    size_t oldest = 0;
    for (size_t i = 1; i < r->v.n; i++)
        if (r->v.v[i].used < r->v.v[oldest].used)
            oldest = i;
    forget_table(r, oldest);
}

/* Returns the part to update; marks its table as used last. Call with the lock held. */
static struct known_part *part_to_learn(struct line_cache *r, const struct merged_table *t, size_t member)
{
    size_t number = t->call->request.members[member]->number;
    struct known_table *k = find_table(r, t->key);
    if (!k) {
        if (r->v.n >= KEPT_TABLES)
            forget_oldest(r);
        vec_push(&r->v, ((struct known_table){.key = t->key}));
        k = &r->v.v[r->v.n - 1];
    }
    k->used = ++r->uses;
    while (k->of.n <= number)
        vec_push(&k->of, ((struct known_part){0}));
    return &k->of.v[number];
}

/* Makes room for new lines: drops every other known one. */
static void thin(struct known_part *p)
{
    size_t kept = 0;
    for (size_t i = 0; i < p->v.n; i++)
        if (!(i & 1) || i + 1 == p->v.n)
            p->v.v[kept++] = p->v.v[i];
    p->v.n = kept;
}

/* Puts lines in, and drops known ones that contradict them. */
static void put_known(struct known_part *p, const struct known_line *lines, size_t n)
{
    const struct known_line *last = &lines[n - 1];
    size_t from = 0, to = p->v.n;
    for (size_t half = to; from < half;) { /* first one not before the lines */
        size_t middle = from + (half - from) / 2;
        if (p->v.v[middle].index < lines->index && p->v.v[middle].time <= lines->time)
            from = middle + 1;
        else
            half = middle;
    }
    for (size_t half = from; half < to;) { /* first one after the lines */
        size_t middle = half + (to - half) / 2;
        if (p->v.v[middle].index > last->index && p->v.v[middle].time >= last->time)
            to = middle;
        else
            half = middle + 1;
    }
    size_t rest = p->v.n - to;
    if (n > to - from)
        vec_reserve(&p->v, n - (to - from));
    memmove(p->v.v + from + n, p->v.v + to, rest * sizeof *p->v.v);
    memcpy(p->v.v + from, lines, n * sizeof *p->v.v);
    p->v.n = from + n + rest;
}

/* Returns the lines whose times are in the order of their numbers. */
static size_t lines_in_order(const struct line_answer *a, struct known_line *out)
{
    size_t n = 0;
    for (size_t i = 0; i < a->n; i++) {
        const struct table_line *l = &a->lines[i];
        if (l->index < a->size && (!n || (l->index > out[n - 1].index && l->time >= out[n - 1].time)))
            out[n++] = (struct known_line){l->index, l->time};
    }
    return n;
}

static size_t known_of_one(const struct merged_table *t)
{
    size_t share = KNOWN_OF_ALL / t->n;
    return share < KNOWN_OF_ONE ? share : KNOWN_OF_ONE;
}

void coord_line_cache_note(const struct merged_table *t, size_t member, const struct line_answer *a)
{
    struct line_cache *r = t->call->c->line_cache;
    if (t->columns->descending)
        return; /* the value of a line with a known number only cannot be estimated */
    unsigned epoch = atomic_load(&t->call->request.members[member]->epoch);
    struct known_line *lines = arena_new(t->call->arena, struct known_line, a->n + 1);
    size_t n = t->columns->ordered ? lines_in_order(a, lines) : 0;
    pthread_mutex_lock(&r->lock);
    struct known_part *p = part_to_learn(r, t, member);
    size_t before = p->v.n;
    if (a->size < p->size || (p->epoch != epoch && a->size != p->size))
        p->v.n = 0; /* lines have changed */
    while (p->v.n > 2 && p->v.n + n > known_of_one(t))
        thin(p);
    if (n)
        put_known(p, lines, n);
    p->reported = true;
    p->epoch = epoch;
    p->size = a->size;
    r->lines += p->v.n - before;
    while (r->lines > KNOWN_OF_ALL && r->v.n > 1)
        forget_oldest(r); /* keeps this table, the last used one */
    pthread_mutex_unlock(&r->lock);
}

/* ---- remembering ---- */

/* Part as of its first use, so that numbers of one answer agree. */
struct cached_lines {
    uint64_t size, n;
    struct known_line *v; /* first and last line are always there, perhaps estimated */
    bool first_guessed, last_guessed;
};

/* Adds the first and the last line if they are unknown, by the range of the server's part of the experiment. */
static void add_ends(const struct merged_table *t, size_t member, struct cached_lines *r)
{
    struct time_range range = coord_member_range(t->call, t->call->request.members[member]);
    bool some = r->n > 0;
    if (!r->size)
        return;
    if (!some || r->v[0].index > 0) {
        int64_t begin = some && (range.begin >= range.end || r->v[0].time < range.begin) ? r->v[0].time : range.begin;
        memmove(r->v + 1, r->v, r->n * sizeof *r->v);
        r->v[0] = (struct known_line){0, begin};
        r->n++;
        r->first_guessed = true;
    }
    const struct known_line *last = &r->v[r->n - 1];
    if (last->index < r->size - 1) {
        r->v[r->n] = (struct known_line){r->size - 1, last->time > range.end ? last->time : range.end};
        r->n++;
        r->last_guessed = true;
    }
}

static const struct cached_lines *find_cached(struct merged_table *t, size_t member)
{
    struct line_cache *r = t->call->c->line_cache;
    struct arena *a = t->call->arena;
    size_t number = t->call->request.members[member]->number;
    struct cached_lines *out = NULL;
    if (t->cached_lines[member])
        return t->cached_lines[member];
    pthread_mutex_lock(&r->lock);
    struct known_table *k = find_table(r, t->key);
    if (k && number < k->of.n && k->of.v[number].reported) {
        const struct known_part *p = &k->of.v[number];
        k->used = ++r->uses;
        out = arena_new(a, struct cached_lines, 1);
        *out = (struct cached_lines){.size = p->size, .n = p->v.n, .v = arena_new(a, struct known_line, p->v.n + 2)};
        if (p->v.n)
            memcpy(out->v, p->v.v, p->v.n * sizeof *out->v);
    }
    pthread_mutex_unlock(&r->lock);
    if (out && t->columns->ordered)
        add_ends(t, member, out);
    return t->cached_lines[member] = out;
}

/* Returns the last known line with at most that index. */
static size_t known_before(const struct cached_lines *r, uint64_t index)
{
    size_t low = 0, high = r->n;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        *(r->v[middle].index <= index ? &low : &high) = middle;
    }
    return low;
}

/* Returns a line; unknown ones are evenly spread between known ones. */
static struct table_line line_at(const struct cached_lines *r, uint64_t index)
{
    struct table_line l = {.index = index};
    if (!r->n)
        return l;
    size_t at = known_before(r, index);
    const struct known_line *k = &r->v[at];
    l.time = k->time;
    l.sure = index == k->index && !(at == 0 && r->first_guessed) && !(at + 1 == r->n && r->last_guessed);
    if (index > k->index && at + 1 < r->n)
        l.time += (int64_t)((unsigned __int128)((uint64_t)k[1].time - (uint64_t)k->time) * (index - k->index) /
            (k[1].index - k->index));
    return l;
}

/* Returns the first line at or after the time. */
static uint64_t line_from(const struct cached_lines *r, int64_t time)
{
    uint64_t low = 0, high = r->size;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (line_at(r, middle).time < time)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool coord_line_cache_answer(struct merged_table *t, size_t member, const struct line_ask *ask, struct line_answer *out)
{
    const struct cached_lines *r = find_cached(t, member);
    if (!r)
        return false;
    uint64_t from = ask->by_time ? line_from(r, ask->time) : ask->index;
    *out = (struct line_answer){.good = true, .low = from, .size = r->size};
    if (ask->find || from >= r->size)
        return true; /* content of lines is not cached */
    uint64_t n = ask->count < r->size - from ? ask->count : r->size - from;
    out->lines = arena_new(t->call->arena, struct table_line, n + 1);
    for (; out->n < n; out->n++)
        out->lines[out->n] = line_at(r, from + out->n);
    return true;
}

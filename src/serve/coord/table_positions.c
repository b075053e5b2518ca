/* SPDX-License-Identifier: MIT */
/* Positions of lines of a merged table. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/order.h"
#include "coord/table.h"

/* NEAR: up to so many lines are fetched (their times alone) instead of another question. */
enum { NEAR = 500, MOST_ROUNDS = 200, KEPT_TABLES = 512, KEPT_POSITIONS = 32 };

/* ---- cache ---- */

struct noted {
    uint64_t *position, *size; /* values by member */
};
struct kept_table {
    uint64_t key;
    size_t n;
    VEC(struct noted) v;
    size_t next; /* index of the position to replace next */
};
struct kept_columns {
    uint64_t key;
    unsigned epoch;
    char *text;
    size_t n;
};
struct places {
    pthread_mutex_t lock;
    VEC(struct kept_table) tables;
    VEC(struct kept_columns) columns;
};

struct places *coord_positions_new(void)
{
    struct places *p = mem_zalloc(sizeof *p);
    pthread_mutex_init(&p->lock, NULL);
    return p;
}

static void forget_positions(struct kept_table *t)
{
    for (size_t i = 0; i < t->v.n; i++)
        free(t->v.v[i].position);
    vec_free(&t->v);
    t->next = 0;
}

static void forget_tables(struct places *p)
{
    for (size_t i = 0; i < p->tables.n; i++)
        forget_positions(&p->tables.v[i]);
    vec_free(&p->tables);
}

static void forget_columns(struct places *p)
{
    for (size_t i = 0; i < p->columns.n; i++)
        free(p->columns.v[i].text);
    vec_free(&p->columns);
}

void coord_positions_free(struct places *p)
{
    if (!p)
        return;
    forget_tables(p);
    forget_columns(p);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

static uint64_t columns_key(struct coord_call *c, const struct node *n)
{
    uint64_t key[3] = {
        c->keys[n->number], map_hash(c->arg[0], strlen(c->arg[0])), map_hash(c->arg[1], strlen(c->arg[1]))};
    return map_hash(key, sizeof key);
}

/* Finds a server's columns; NULL: none. Call with the lock held. */
static struct kept_columns *find_columns(struct places *p, uint64_t key)
{
    for (size_t i = 0; i < p->columns.n; i++)
        if (p->columns.v[i].key == key)
            return &p->columns.v[i];
    return NULL;
}

struct slice coord_model_cached(struct coord_call *c, const struct node *n)
{
    struct places *p = c->c->places;
    struct slice s = {0};
    uint64_t key = columns_key(c, n);
    pthread_mutex_lock(&p->lock);
    const struct kept_columns *k = find_columns(p, key);
    /* Columns may have changed if the server was away since: it may have been restarted. */
    if (k && (k->epoch == atomic_load(&n->epoch) || coord_node_is_away(n)))
        s = (struct slice){arena_strndup(c->q->arena, k->text, k->n), k->n};
    pthread_mutex_unlock(&p->lock);
    return s;
}

void coord_model_note(struct coord_call *c, const struct node *n, struct slice model)
{
    struct places *p = c->c->places;
    struct kept_columns k = {columns_key(c, n), atomic_load(&n->epoch), mem_alloc(model.n + 1), model.n};
    memcpy(k.text, model.at, model.n);
    pthread_mutex_lock(&p->lock);
    struct kept_columns *old = find_columns(p, k.key);
    if (!old && p->columns.n >= KEPT_TABLES * 8)
        forget_columns(p);
    if (old) {
        free(old->text);
        *old = k;
    } else {
        vec_push(&p->columns, k);
    }
    pthread_mutex_unlock(&p->lock);
}

/* Finds a table's positions; NULL: none. Call with the lock held. */
static struct kept_table *kept(struct places *p, const struct merged_table *t)
{
    for (size_t i = 0; i < p->tables.n; i++)
        if (p->tables.v[i].key == t->key && p->tables.v[i].n == t->n)
            return &p->tables.v[i];
    return NULL;
}

void coord_positions_note(struct merged_table *t, const uint64_t *position)
{
    struct places *p = t->call->c->places;
    size_t bytes = t->n * sizeof *position;
    for (size_t i = 0; i < t->n; i++)
        if (t->absent[i])
            return;
    struct noted n = {.position = mem_alloc(2 * bytes + 1)};
    n.size = n.position + t->n;
    memcpy(n.position, position, bytes);
    for (size_t i = 0; i < t->n; i++)
        n.size[i] = t->asked[i] ? t->size[i] : UINT64_MAX;
    pthread_mutex_lock(&p->lock);
    struct kept_table *k = kept(p, t);
    if (!k) {
        if (p->tables.n >= KEPT_TABLES)
            forget_tables(p);
        vec_push(&p->tables, ((struct kept_table){.key = t->key, .n = t->n}));
        k = &p->tables.v[p->tables.n - 1];
    }
    if (k->v.n < KEPT_POSITIONS) {
        vec_push(&k->v, n);
    } else {
        free(k->v.v[k->next].position);
        k->v.v[k->next] = n;
        k->next = (k->next + 1) % KEPT_POSITIONS;
    }
    pthread_mutex_unlock(&p->lock);
}

/* Returns whether all members still have the same numbers of lines. */
static bool is_current(const struct merged_table *t, const struct noted *n)
{
    bool same = true;
    for (size_t i = 0; i < t->n && same; i++)
        same = n->size[i] == (t->asked[i] ? t->size[i] : UINT64_MAX);
    return same;
}

static uint64_t distance(uint64_t a, uint64_t b)
{
    return a < b ? b - a : a - b;
}

bool coord_positions_near(struct merged_table *t, uint64_t n, uint64_t *position)
{
    struct places *p = t->call->c->places;
    uint64_t least = UINT64_MAX;
    pthread_mutex_lock(&p->lock);
    const struct kept_table *k = kept(p, t);
    for (size_t i = 0; k && i < k->v.n; i++) {
        uint64_t away = distance(coord_position_sum(t, k->v.v[i].position), n);
        if (away >= least || !is_current(t, &k->v.v[i]))
            continue;
        least = away;
        memcpy(position, k->v.v[i].position, t->n * sizeof *position);
    }
    pthread_mutex_unlock(&p->lock);
    return least != UINT64_MAX;
}

bool coord_positions_exactly(struct merged_table *t, uint64_t n, uint64_t *position)
{
    struct places *p = t->call->c->places;
    bool found = false;
    pthread_mutex_lock(&p->lock);
    const struct kept_table *k = kept(p, t);
    for (size_t i = k ? k->v.n : 0; i-- && !found;) {
        bool same_members = true;
        for (size_t m = 0; m < t->n; m++)
            same_members &= t->asked[m] == (k->v.v[i].size[m] != UINT64_MAX);
        found = same_members && coord_position_sum(t, k->v.v[i].position) == n;
        if (!found)
            continue;
        memcpy(position, k->v.v[i].position, t->n * sizeof *position);
        for (size_t m = 0; m < t->n; m++)
            t->size[m] = t->asked[m] ? k->v.v[i].size[m] : 0;
    }
    pthread_mutex_unlock(&p->lock);
    return found;
}

/* ---- search ---- */

uint64_t coord_position_sum(const struct merged_table *t, const uint64_t *position)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < t->n; i++)
        sum += t->asked[i] ? position[i] : 0;
    return sum;
}

uint64_t coord_table_size(const struct merged_table *t)
{
    return coord_position_sum(t, t->size);
}

static struct line_ask *asks_new(const struct merged_table *t)
{
    return arena_new(t->call->q->arena, struct line_ask, t->n + 1);
}

static struct line_answer *answers_new(const struct merged_table *t)
{
    return arena_new(t->call->q->arena, struct line_answer, t->n + 1);
}

static void ask_times(const struct merged_table *t, struct line_ask *ask, size_t member)
{
    ask[member].ids = t->columns->of[member].by;
    ask[member].n_ids = t->columns->ordered ? t->columns->of[member].n_by : 0;
}

/* Finds how many lines of each member come before the time. */
bool coord_table_locate_time(struct merged_table *t, int64_t time, uint64_t *position)
{
    struct line_ask *ask = asks_new(t);
    struct line_answer *answer = answers_new(t);
    struct coord_gather f;
    for (size_t i = 0; i < t->n; i++) {
        ask[i] = (struct line_ask){.by_time = t->columns->ordered, .time = time, .count = 1};
        ask_times(t, ask, i);
    }
    bool good = coord_table_ask(t, ask, answer, &f);
    for (size_t i = 0; good && i < t->n; i++) {
        position[i] = answer[i].good ? answer[i].n ? answer[i].lines[0].index : answer[i].size : 0;
        if (!t->columns->ordered)
            position[i] = 0;
    }
    coord_gather_end(&f);
    return good;
}

/* Asks all members for their first (or last) lines. Sets the range of the lines' times, and the sizes. */
static bool ask_end(struct merged_table *t, bool last, int64_t *least, int64_t *most)
{
    struct line_ask *ask = asks_new(t);
    struct line_answer *answer = answers_new(t);
    struct coord_gather f;
    *least = INT64_MAX;
    *most = INT64_MIN;
    for (size_t i = 0; i < t->n; i++) {
        ask[i] = (struct line_ask){.index = last && t->size[i] ? t->size[i] - 1 : 0, .count = 1};
        ask_times(t, ask, i);
    }
    bool good = coord_table_ask(t, ask, answer, &f);
    for (size_t i = 0; good && i < t->n; i++) {
        if (answer[i].good && answer[i].n) {
            int64_t time = answer[i].lines[0].time;
            *least = time < *least ? time : *least;
            *most = time > *most ? time : *most;
        }
    }
    coord_gather_end(&f);
    return good;
}

int coord_table_compare(const struct table_line *a, size_t i, const struct table_line *b, size_t k)
{
    return order_of(a->time, b->time) ?: order_of(a->begin, b->begin) ?: order_of(i, k);
}

size_t coord_table_next(const struct merged_table *t, const struct line_answer *next, const size_t *taken)
{
    size_t best = t->n;
    for (size_t i = 0; i < t->n; i++)
        if (t->asked[i] && taken[i] < next[i].n &&
            (best == t->n ||
                coord_table_compare(&next[i].lines[taken[i]], i, &next[best].lines[taken[best]], best) < 0))
            best = i;
    return best;
}

/* Moves a position forward by some lines. */
static bool step_forward(struct merged_table *t, uint64_t lines, uint64_t *position)
{
    struct line_ask *ask = asks_new(t);
    struct line_answer *answer = answers_new(t);
    size_t *taken = arena_new(t->call->q->arena, size_t, t->n + 1);
    struct coord_gather f;
    for (size_t i = 0; i < t->n; i++) {
        ask[i] = (struct line_ask){.index = position[i], .count = lines};
        ask_times(t, ask, i);
    }
    bool good = coord_table_ask(t, ask, answer, &f);
    for (size_t next; good && lines && (next = coord_table_next(t, answer, taken)) < t->n; lines--) {
        taken[next]++;
        position[next]++;
    }
    coord_gather_end(&f);
    return good;
}

/* Returns the member with the last line before a position, among the lines left; n: none. */
static size_t previous(const struct merged_table *t, const struct line_answer *before, const size_t *left)
{
    size_t best = t->n;
    for (size_t i = 0; i < t->n; i++)
        if (t->asked[i] && left[i] &&
            (best == t->n ||
                coord_table_compare(&before[i].lines[left[i] - 1], i, &before[best].lines[left[best] - 1], best) > 0))
            best = i;
    return best;
}

static bool step_back(struct merged_table *t, uint64_t lines, uint64_t *position)
{
    struct line_ask *ask = asks_new(t);
    struct line_answer *answer = answers_new(t);
    size_t *left = arena_new(t->call->q->arena, size_t, t->n + 1);
    struct coord_gather f;
    for (size_t i = 0; i < t->n; i++) {
        uint64_t n = lines < position[i] ? lines : position[i];
        ask[i] = (struct line_ask){.index = position[i] - n, .count = n, .skip = !n};
        ask_times(t, ask, i);
    }
    bool good = coord_table_ask(t, ask, answer, &f);
    for (size_t i = 0; good && i < t->n; i++)
        left[i] = answer[i].good ? answer[i].n : 0;
    for (size_t last; good && lines && (last = previous(t, answer, left)) < t->n; lines--) {
        left[last]--;
        position[last]--;
    }
    coord_gather_end(&f);
    return good;
}

/* Moves a position towards another one by some lines, member after member. */
static void fill(const struct merged_table *t, const uint64_t *to, uint64_t lines, uint64_t *position)
{
    for (size_t i = 0; i < t->n; i++) {
        uint64_t more = t->asked[i] ? to[i] - position[i] : 0;
        more = more < lines ? more : lines;
        position[i] += more;
        lines -= more;
    }
}

/* Returns a time between two: by the wanted share of lines, as if they were spread evenly. Every third time it is the
 * middle, so that unevenness costs no more than halving. */
static int64_t guess(int64_t low, int64_t high, double share, unsigned round)
{
    uint64_t span = (uint64_t)high - (uint64_t)low, step = span / 2;
    if (round % 3 != 2)
        step = (uint64_t)((double)span * share);
    step = step < 1 ? 1 : step >= span ? span - 1 : step;
    return (int64_t)((uint64_t)low + step);
}

/* Searches by questions for times, until few lines are left between. low: at most n lines are before it. */
static bool search(struct merged_table *t, uint64_t n, uint64_t *low)
{
    struct arena *a = t->call->q->arena;
    uint64_t *high = arena_new(a, uint64_t, t->n + 1), *middle = arena_new(a, uint64_t, t->n + 1);
    int64_t begin, end, ignored;
    if (!ask_end(t, false, &begin, &ignored) || !ask_end(t, true, &ignored, &end))
        return false;
    memset(low, 0, t->n * sizeof *low);
    memcpy(high, t->size, t->n * sizeof *high);
    if (end == INT64_MAX || begin > end)
        return true;
    end++; /* time after all lines */
    for (unsigned round = 0; round < MOST_ROUNDS && n - coord_position_sum(t, low) > NEAR; round++) {
        uint64_t before = coord_position_sum(t, low), after = coord_position_sum(t, high);
        if ((uint64_t)end - (uint64_t)begin <= 1) {
            fill(t, high, n - before, low); /* lines with one common time */
            return true;
        }
        int64_t time = guess(begin, end, (double)(n - before) / (double)(after - before + 1), round);
        if (!coord_table_locate_time(t, time, middle))
            return false;
        bool is_low = coord_position_sum(t, middle) <= n;
        memcpy(is_low ? low : high, middle, t->n * sizeof *middle);
        *(is_low ? &begin : &end) = time;
    }
    return true;
}

/* Asks for the sizes, if nothing else was asked yet. */
static bool ask_sizes(struct merged_table *t)
{
    int64_t ignored[2];
    return t->sized || ask_end(t, false, &ignored[0], &ignored[1]);
}

bool coord_table_locate(struct merged_table *t, uint64_t n, uint64_t *position)
{
    if (!ask_sizes(t))
        return false;
    memset(position, 0, t->n * sizeof *position);
    if (n >= coord_table_size(t)) {
        memcpy(position, t->size, t->n * sizeof *position);
        return true;
    }
    if (!t->columns->ordered) {
        fill(t, t->size, n, position);
        return true;
    }
    uint64_t at;
    if (!coord_positions_near(t, n, position) || distance(at = coord_position_sum(t, position), n) > NEAR)
        if (!search(t, n, position))
            return false;
    at = coord_position_sum(t, position);
    if (at < n)
        return step_forward(t, n - at, position);
    return at == n || step_back(t, at - n, position);
}

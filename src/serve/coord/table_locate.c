/* SPDX-License-Identifier: MIT */
/* Search for positions of lines in a merged table. */
#include <string.h>

#include "coord/gather.h"
#include "coord/table.h"

/* NEAR: up to so many lines are fetched (their times alone) instead of another question. */
enum { NEAR = 500, MOST_ROUNDS = 200 };

static uint64_t distance(uint64_t a, uint64_t b)
{
    return a < b ? b - a : a - b;
}

static struct line_ask *asks_new(const struct merged_table *t)
{
    return arena_new(t->call->arena, struct line_ask, t->n + 1);
}

static struct line_answer *answers_new(const struct merged_table *t)
{
    return arena_new(t->call->arena, struct line_answer, t->n + 1);
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
    struct coord_answers f;
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
    struct coord_answers f;
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

/* Moves a position forward by some lines. */
static bool step_forward(struct merged_table *t, uint64_t lines, uint64_t *position)
{
    struct line_ask *ask = asks_new(t);
    struct line_answer *answer = answers_new(t);
    size_t *taken = arena_new(t->call->arena, size_t, t->n + 1);
    struct coord_answers f;
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

static bool step_back(struct merged_table *t, uint64_t lines, uint64_t *position)
{
    struct line_ask *ask = asks_new(t);
    struct line_answer *answer = answers_new(t);
    size_t *left = arena_new(t->call->arena, size_t, t->n + 1);
    struct coord_answers f;
    for (size_t i = 0; i < t->n; i++) {
        uint64_t n = lines < position[i] ? lines : position[i];
        ask[i] = (struct line_ask){.index = position[i] - n, .count = n, .skip = !n};
        ask_times(t, ask, i);
    }
    bool good = coord_table_ask(t, ask, answer, &f);
    for (size_t i = 0; good && i < t->n; i++)
        left[i] = answer[i].good ? answer[i].n : 0;
    for (size_t last; good && lines && (last = coord_table_previous(t, answer, left)) < t->n; lines--) {
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
    struct arena *a = t->call->arena;
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

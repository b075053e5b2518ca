/* SPDX-License-Identifier: MIT */
/* Lines of a table of many servers. */
#include <string.h>

#include "coord/gather.h"
#include "coord/numbering.h"
#include "coord/table.h"

enum { MAX_EQUAL = 500 };

/* ---- searching ---- */

/* Returns the number of columns that a member's lines are ordered by. */
static size_t ids_by(const struct merged_table *t, size_t member)
{
    return t->columns->ordered ? t->columns->of[member].n_by : 0;
}

/* Finds the member with the next line at a position; n: none. False: an answer was sent. */
static bool owner_at(struct merged_table *t, const uint64_t *position, size_t *owner)
{
    struct arena *a = t->call->arena;
    struct line_ask *ask = arena_new(a, struct line_ask, t->n + 1);
    struct line_answer *answer = arena_new(a, struct line_answer, t->n + 1);
    size_t *taken = arena_new(a, size_t, t->n + 1);
    struct coord_answers f;
    for (size_t i = 0; i < t->n; i++)
        ask[i] = (struct line_ask){
            .index = position[i], .count = 1, .ids = t->columns->of[i].by, .n_ids = ids_by(t, i)};
    bool good = coord_table_ask(t, ask, answer, &f);
    *owner = good ? coord_table_next(t, answer, taken) : t->n;
    coord_gather_end(&f);
    return good;
}

/* Moves the position past other members' lines of the same number that come before a line of `owner`. Such lines are
 * few. */
static bool pass_equals(
    struct merged_table *t, size_t owner, const struct table_line *line, const uint64_t *after, uint64_t *position)
{
    struct line_ask *ask = arena_new(t->call->arena, struct line_ask, t->n + 1);
    struct line_answer *answer = arena_new(t->call->arena, struct line_answer, t->n + 1);
    struct coord_answers f;
    for (size_t i = 0; i < t->n; i++) {
        uint64_t n = i == owner || after[i] < position[i] ? 0 : after[i] - position[i];
        ask[i] = (struct line_ask){.index = position[i],
            .count = n < MAX_EQUAL ? n : MAX_EQUAL,
            .skip = !n,
            .ids = t->columns->of[i].by,
            .n_ids = ids_by(t, i)};
    }
    bool good = coord_table_ask(t, ask, answer, &f);
    for (size_t i = 0; good && i < t->n; i++)
        for (size_t k = 0; k < answer[i].n && coord_table_compare(&answer[i].lines[k], i, line, owner) < 0; k++)
            position[i]++;
    coord_gather_end(&f);
    return good;
}

/* Finds how many lines of each member come before a line of `owner`. */
static bool locate_line(struct merged_table *t, size_t owner, const struct table_line *line, uint64_t *position)
{
    const int64_t time = line->time;
    const uint64_t index = line->index;
    uint64_t *at = arena_new(t->call->arena, uint64_t, t->n + 1),
             *after = arena_new(t->call->arena, uint64_t, t->n + 1);
    if (!t->columns->ordered) {
        memset(position, 0, t->n * sizeof *position);
        memcpy(position, t->size, owner * sizeof *position);
    } else {
        if (!coord_table_locate_time(t, time, at) || (time < INT64_MAX && !coord_table_locate_time(t, time + 1, after)))
            return false;
        for (size_t i = 0; i < t->n; i++)
            position[i] = i < owner && !t->columns->descending ? after[i] : at[i];
        if (t->columns->descending && !pass_equals(t, owner, line, after, position))
            return false;
    }
    position[owner] = index;
    return true;
}

/* Moves the position to the next (or previous) line that fits the search. *found: there is one. False: an answer was
 * sent. */
static bool find(struct merged_table *t, bool backward, uint64_t *position, bool *found)
{
    struct arena *a = t->call->arena;
    struct line_ask *ask = arena_new(a, struct line_ask, t->n + 1);
    struct line_answer *answer = arena_new(a, struct line_answer, t->n + 1);
    struct coord_answers f;
    size_t owner = t->n, best = t->n;
    if (backward && !owner_at(t, position, &owner))
        return false;
    for (size_t i = 0; i < t->n; i++) {
        bool none = backward && i != owner && !position[i];
        ask[i] = (struct line_ask){.index = position[i] - (backward && i != owner && position[i]),
            .count = 1,
            .find = !t->all_fit[i],
            .backward = backward,
            .skip = none || !t->fits[i] || t->absent[i],
            .ids = t->columns->of[i].by,
            .n_ids = ids_by(t, i)};
    }
    bool good = coord_table_ask(t, ask, answer, &f);
    for (size_t i = 0; good && i < t->n; i++) {
        if (!answer[i].n)
            continue;
        int order = best < t->n ? coord_table_compare(answer[i].lines, i, answer[best].lines, best) : 0;
        if (best == t->n || (backward ? order > 0 : order < 0))
            best = i;
    }
    *found = good && best < t->n;
    if (*found)
        good = locate_line(t, best, answer[best].lines, position);
    coord_gather_end(&f);
    return good;
}

/* Sets the columns to request: those shown, by the member's ids, those of the order, and the trail for other
 * servers. */
static void ask_shown(const struct merged_table *t, const struct lines_wanted *w, struct line_ask *ask)
{
    bool finds = false;
    for (size_t k = 0; k < w->n_shown; k++)
        finds |= t->columns->v[w->shown[k]].found && t->n > 1;
    for (size_t i = 0; i < t->n; i++) {
        const struct own_columns *own = &t->columns->of[i];
        int64_t *ids = arena_new(t->call->arena, int64_t, w->n_shown + 4);
        for (size_t k = 0; k < w->n_shown; k++)
            if (own->own[w->shown[k]] >= 0)
                ids[ask[i].n_ids++] = own->own[w->shown[k]];
        for (size_t k = 0; k < ids_by(t, i); k++)
            if (coord_table_find_id(ids, ask[i].n_ids, own->by[k]) == ask[i].n_ids)
                ids[ask[i].n_ids++] = own->by[k];
        if (finds && own->trail >= 0)
            ids[ask[i].n_ids++] = own->trail;
        ask[i].ids = ids;
    }
}

static bool ask_lines(struct merged_table *t, struct line_ask *ask, uint64_t count, const uint64_t *position,
    struct line_answer *answer, struct coord_answers *f)
{
    for (size_t i = 0; i < t->n; i++) {
        ask[i].index = position[i];
        ask[i].count = count;
    }
    return coord_table_ask(t, ask, answer, f);
}

/* Returns the number of lines that usually suffices from each server: four times its share. */
static uint64_t usual_page(const struct merged_table *t, uint64_t lines)
{
    uint64_t share = 4 * lines / (t->n ? t->n : 1) + 16;
    return share < lines ? share : lines;
}

/* Sets the position of lines requested by time. */
static void positions_of(const struct merged_table *t, const struct line_answer *answer, uint64_t *position)
{
    for (size_t i = 0; i < t->n; i++)
        position[i] = !answer[i].good ? 0 : answer[i].n ? answer[i].lines[0].index : answer[i].size;
}

/* Returns whether lines are requested from a time. Their position need not be searched, since each server reports
 * it. */
static bool is_from_time(const struct merged_table *t, const struct lines_wanted *w)
{
    return w->by_time && !w->find && t->columns->ordered && w->count;
}

/* Sends `count` lines from a position. sizes: sizes that the position belongs to; if they have changed, nothing is
 * sent, and false is returned. NULL: the sizes were reported just now. */
static bool send_lines(struct merged_table *t, const struct lines_wanted *w, uint64_t count, uint64_t low,
    uint64_t *position, const uint64_t *sizes)
{
    struct coord_call *c = t->call;
    struct arena *a = c->arena;
    struct line_ask *ask = arena_new(a, struct line_ask, t->n + 1);
    struct line_answer *answer = arena_new(a, struct line_answer, 2 * t->n + 1);
    struct merged_lines lines = {.v = arena_new(a, struct chosen_line, count + 1)};
    uint64_t asked = usual_page(t, count);
    struct coord_answers f[2];
    for (size_t i = 0; i < t->n; i++)
        ask[i] = (struct line_ask){.tagged = t->fits[i], .by_time = is_from_time(t, w), .time = w->time};
    ask_shown(t, w, ask);
    coord_gather_begin(&f[1], c, 0);
    bool good = ask_lines(t, ask, asked, position, answer, &f[0]);
    if (good && is_from_time(t, w)) {
        positions_of(t, answer, position);
        low = coord_position_sum(t, position);
    }
    if (good && !sizes && c->outcome.status == COORD_COMPLETED)
        coord_positions_note(t, position);
    bool same = !good || !sizes || !memcmp(sizes, t->size, t->n * sizeof *sizes);
    if (good && same && !coord_table_merge(t, answer, asked, count, position, &lines)) {
        uint64_t left = count - lines.n;
        for (size_t i = 0; i < t->n; i++)
            ask[i].by_time = false;
        good = ask_lines(t, ask, left, position, answer + t->n, &f[1]);
        if (good)
            coord_table_merge(t, answer + t->n, left, count, position, &lines);
    }
    if (good && same && c->outcome.status == COORD_COMPLETED)
        coord_positions_note(t, position);
    struct backfill backfill = {0};
    if (good && same && coord_backfill_ask(t, lines.v, lines.n, &backfill)) {
        struct text out = {.fd = -1};
        struct json j = coord_envelope_begin(c, &out);
        coord_put_table(t, w, low, &lines, &backfill, &j);
        coord_envelope_send(c, &out);
    }
    coord_backfill_end(&backfill);
    coord_gather_end(&f[1]);
    coord_gather_end(&f[0]);
    return same;
}

/* Sends lines from a noted position, with one question to each server, if all still have the same numbers of lines. */
static bool send_lines_again(struct merged_table *t, const struct lines_wanted *w, uint64_t *position)
{
    if (w->by_time || w->find || !coord_positions_exactly(t, w->index, position) || w->index >= coord_table_size(t))
        return false;
    uint64_t *sizes = arena_new(t->call->arena, uint64_t, t->n + 1);
    memcpy(sizes, t->size, t->n * sizeof *sizes);
    return send_lines(t, w, w->count, w->index, position, sizes);
}

static bool is_searched(const struct coord_call *c, const struct table_column *column)
{
    const char *key = arena_printf(c->arena, "%lld", (long long)column->id);
    return json_object_get(json_object_get(c->request.parameters, "table_search_expressions"), key) ||
        json_object_get(json_object_get(c->request.parameters, "table_filter_expressions"), key);
}

/* Asks for the numbering if a requested column has numbers of entries. False: the client is gone. */
static bool ask_numbering(
    struct coord_call *c, const struct table_columns *columns, const struct lines_wanted *w, struct group_numbers *out)
{
    *out = (struct group_numbers){0};
    for (size_t i = 0; i < columns->n; i++) {
        bool asked = columns->v[i].numbers_of.at && is_searched(c, &columns->v[i]);
        for (size_t k = 0; columns->v[i].numbers_of.at && k < w->n_shown; k++)
            asked |= w->shown[k] == i;
        if (asked)
            return coord_numbering_ask(c, columns->v[i].numbers_of, out);
    }
    return true;
}

void coord_table_lines(struct coord_call *c)
{
    struct table_columns columns;
    struct group_numbers numbering;
    struct merged_table t;
    struct lines_wanted w;
    bool found = true;
    if (!coord_columns_find(c, &columns))
        return;
    const char *wrong = coord_lines_wanted(c, &columns, &w);
    if (wrong) {
        coord_error(c, 400, wrong, NULL);
        return;
    }
    if (!ask_numbering(c, &columns, &w, &numbering))
        return;
    coord_table_begin(&t, c, &columns, &numbering);
    uint64_t *position = arena_new(c->arena, uint64_t, t.n + 1);
    if (is_from_time(&t, &w)) {
        send_lines(&t, &w, w.count, 0, position, NULL);
        return;
    }
    if (send_lines_again(&t, &w, position))
        return;
    if (w.by_time ? !coord_table_locate_time(&t, w.time, position) : !coord_table_locate(&t, w.index, position))
        return;
    if (w.find && !find(&t, w.backward, position, &found))
        return;
    uint64_t at = coord_position_sum(&t, position), beyond = w.find ? 0 : w.index;
    bool there = at < coord_table_size(&t) && found;
    send_lines(&t, &w, found ? w.count : 0, there || (w.by_time && found) ? at : beyond, position, NULL);
}

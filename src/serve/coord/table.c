/* SPDX-License-Identifier: MIT */
/* Lines of a table of many servers. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/terms.h"
#include "coord/gather.h"
#include "coord/numbering.h"
#include "coord/rotation.h"
#include "coord/times.h"
#include "coord/table.h"

enum { MAX_LINES = 10000, MAX_EQUAL = 500 };

/* ---- requests ---- */

/* Returns the expression for a member's column; NULL: none of its lines has it. */
static json_t *expression_for(
    const struct merged_table *t, size_t member, const struct table_column *column, json_t *given)
{
    const struct node *n = t->call->request.members[member];
    const char *pattern = json_string_value(given);
    if (!pattern)
        return json_incref(given);
    if (column->timed)
        return json_string(coord_time_text_asked(t->call->arena, n, pattern));
    if (!column->numbers_of.at || !t->numbering)
        return json_incref(given);
    const char *own = coord_numbers_asked(t->numbering, t->call->arena, n, pattern);
    return own ? json_string(own) : NULL;
}

/* Translates expressions by column to a member's ids. False: none of its lines fits. */
static bool translate(const struct merged_table *t, size_t member, json_t *given, json_t **out)
{
    const char *key;
    json_t *value;
    bool fits = true;
    *out = NULL;
    if (!json_is_object(given))
        return true;
    *out = json_object();
    json_object_foreach (given, key, value) {
        char *end;
        int64_t id = strtoll(key, &end, 10);
        size_t at = 0;
        const char *pattern = json_string_value(value);
        while (at < t->columns->n && t->columns->v[at].id != id)
            at++;
        int64_t own = at < t->columns->n ? t->columns->of[member].own[at] : -1;
        if (own >= 0) {
            json_t *asked = expression_for(t, member, &t->columns->v[at], value);
            fits &= asked != NULL;
            if (!asked)
                continue;
            json_object_set_new(*out, arena_printf(t->call->arena, "%lld", (long long)own), asked);
        } else if (pattern) { /* lines without the column all show the same text */
            struct terms one = {0};
            terms_add(&one, 0, pattern);
            fits &= term_fits(
                &one.v[0], at == t->columns->trace ? coord_machine_name(t->call->request.members[member]) : "");
            terms_fini(&one);
        }
    }
    return fits;
}

/* Returns a hash that differs between tables with different lines. */
static uint64_t key_of(struct coord_call *c)
{
    static const char *const keys[] = {"table_filter_expressions", "filter_query_parameters"};
    struct arena *a = c->arena;
    const char *s = arena_printf(a, "%s\n%s", c->request.arg[0], c->request.arg[1]);
    for (int i = 0; i < 2; i++) {
        char *text = json_dumps(
            json_object_get(c->request.parameters, keys[i]), JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
        s = arena_printf(a, "%s\n%s", s, text ? text : "");
        free(text);
    }
    return map_hash(s, strlen(s));
}

/* Keeps a translated expression with the request's body, and frees it with the body. */
static void keep(struct coord_call *c, const char *name, size_t member, json_t *v)
{
    if (v)
        json_object_set_new(c->request.body, arena_printf(c->arena, "%s of %zu", name, member), v);
}

static void table_begin(struct merged_table *t, struct coord_call *c, const struct table_columns *columns,
    const struct group_numbers *numbering)
{
    struct arena *a = c->arena;
    *t = (struct merged_table){
        .call = c, .columns = columns, .numbering = numbering, .n = c->request.n_members, .key = key_of(c)};
    t->asked = arena_new(a, bool, t->n + 1);
    t->absent = arena_new(a, bool, t->n + 1);
    t->cached_lines = arena_new(a, const struct cached_lines *, t->n + 1);
    t->fits = arena_new(a, bool, t->n + 1);
    t->all_fit = arena_new(a, bool, t->n + 1);
    t->filter = arena_new(a, json_t *, t->n + 1);
    t->search = arena_new(a, json_t *, t->n + 1);
    t->size = arena_new(a, uint64_t, t->n + 1);
    for (size_t i = 0; i < t->n; i++) {
        bool passes = translate(
            t, i, json_object_get(c->request.parameters, "table_filter_expressions"), &t->filter[i]);
        t->fits[i] = translate(t, i, json_object_get(c->request.parameters, "table_search_expressions"), &t->search[i]);
        t->all_fit[i] = t->fits[i] && t->search[i] && !json_object_size(t->search[i]);
        t->asked[i] = columns->of[i].known && passes;
        if (!columns->of[i].known && coord_node_is_away(c->request.members[i]))
            coord_note_missing(&c->outcome, c->request.members[i], coord_node_why(c->request.members[i], a));
        if (t->asked[i] && json_object_size(t->filter[i]) && atomic_load(&c->request.members[i]->numbers_anew))
            coord_note_partial(&c->outcome, c->request.members[i],
                "it may show lines that do not fit: the protocol has no such filters");
        keep(c, "filter", i, t->filter[i]);
        keep(c, "search", i, t->search[i]);
    }
}

static const char *read_shown(struct coord_call *c, const struct table_columns *columns, struct lines_wanted *w)
{
    json_t *list = json_object_get(c->request.parameters, "requested_table_column_ids"), *item;
    size_t i;
    int64_t id;
    w->shown = arena_new(c->arena, size_t, columns->n + json_array_size(list) + 1);
    for (i = 0; !json_array_size(list) && i < columns->n; i++)
        w->shown[w->n_shown++] = i;
    json_array_foreach (list, i, item) {
        if (!coord_integer(item, &id))
            return "Invalid query parameters: requested_table_column_ids";
        for (size_t k = 0; k < columns->n; k++)
            if (columns->v[k].id == id)
                w->shown[w->n_shown++] = k;
    }
    return NULL;
}

static const char *read_wanted(struct coord_call *c, const struct table_columns *columns, struct lines_wanted *w)
{
    json_t *index = json_object_get(c->request.parameters, "requested_table_index"),
           *times = json_object_get(c->request.parameters, "requested_times"),
           *value = json_object_get(c->request.parameters, "requested_value"),
           *count = json_object_get(c->request.parameters, "requested_table_count");
    const char *direction = coord_text(c->request.parameters, "table_search_direction");
    int64_t n;
    *w = (struct lines_wanted){0};
    if (!index && !times && !value)
        return "Missing query parameters: requested_table_index";
    if (!count)
        return "Missing query parameters: requested_table_count";
    if (!coord_integer(count, &n) || n < 0)
        return "Invalid query parameters: requested_table_count";
    w->count = n > MAX_LINES ? MAX_LINES : (uint64_t)n;
    w->by_time = !index;
    if (index && (!coord_integer(index, &n) || n < 0))
        return "Invalid query parameters: requested_table_index";
    w->index = index ? (uint64_t)n : 0;
    if (!index && (value ? !coord_integer(value, &w->time) : !coord_integer(json_array_get(times, 0), &w->time)))
        return value ? "Invalid query parameters: requested_value" : "Invalid query parameters: requested_times";
    if (columns->descending)
        w->time = value ? coord_table_negative(w->time) : INT64_MIN;
    if (direction && strcasecmp(direction, "NEXT") != 0 && strcasecmp(direction, "PREVIOUS") != 0)
        return "Invalid query parameters: table_search_direction";
    w->find = direction && json_object_size(json_object_get(c->request.parameters, "table_search_expressions"));
    w->backward = w->find && !strcasecmp(direction, "PREVIOUS");
    return read_shown(c, columns, w);
}

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

static void write_lines(const struct merged_table *t, const struct lines_wanted *w, uint64_t low,
    const struct merged_lines *lines, const struct backfill *backfill)
{
    struct text out = {.fd = -1};
    struct json j = coord_envelope_begin(t->call, &out);
    coord_put_table_head(t, &j, w, low);
    for (uint64_t i = 0; i < lines->n; i++)
        coord_put_table_line(t, &j, w, &(struct shown_line){lines->v[i], backfill, i}, low + i);
    json_end_array(&j);
    json_end_object(&j);
    coord_envelope_send(t->call, &out);
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
    if (good && same && coord_backfill_ask(t, lines.v, lines.n, &backfill))
        write_lines(t, w, low, &lines, &backfill);
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
    const char *wrong = read_wanted(c, &columns, &w);
    if (wrong) {
        coord_error(c, 400, wrong, NULL);
        return;
    }
    if (!ask_numbering(c, &columns, &w, &numbering))
        return;
    table_begin(&t, c, &columns, &numbering);
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

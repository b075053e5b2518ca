/* SPDX-License-Identifier: MIT */
/* Writing of lines of a merged table. */

#include "coord/numbering.h"
#include "coord/rotation.h"
#include "coord/table.h"
#include "coord/times.h"

enum { HIGHLIGHT = 8 };

struct shown_line {
    struct chosen_line at;
    const struct backfill *backfill;
    size_t number; /* index among the chosen lines */
};

static void put_timed_cell(
    struct json *j, const struct node *n, struct slice cell, const struct table_line *line, bool by_time)
{
    struct slice_walk in = slice_members(cell);
    json_begin_object(j);
    for (struct slice key, value; slice_next_member(&in, &key, &value);) {
        slice_put_key(j, key);
        if (slice_equals(key, "content"))
            coord_put_time_text(j, n, value, by_time ? &line->own_time : NULL);
        else
            slice_put(j, value);
    }
    json_end_object(j);
}

static void put_number_cell(const struct merged_table *t, struct json *j, size_t member, struct slice cell)
{
    struct slice_walk in = slice_members(cell);
    json_begin_object(j);
    for (struct slice key, value; slice_next_member(&in, &key, &value);) {
        int64_t own, shown;
        slice_put_key(j, key);
        if (!slice_equals(key, "content") || !coord_table_take_time(value, &own))
            slice_put(j, value);
        else if ((shown = coord_number_shown(t->numbering, t->call->request.members[member], own)))
            json_write_string(j, arena_printf(t->call->arena, "%lld", (long long)shown));
        else
            json_write_string(j, "");
    }
    json_end_object(j);
}

/* Writes a cell; empty if there is none. */
static void put_cell(const struct merged_table *t, struct json *j, size_t column, size_t member, struct slice cell,
    const struct table_line *line)
{
    const struct table_column *c = &t->columns->v[column];
    const struct node *n = t->call->request.members[member];
    if (!cell.at) {
        json_begin_object(j);
        json_kv_string(j, "content", column == t->columns->trace ? coord_machine_name(n) : "");
        json_end_object(j);
    } else if (c->numbers_of.at) {
        put_number_cell(t, j, member, cell);
    } else if (c->timed && n->is->clock) {
        put_timed_cell(j, n, cell, line, t->columns->ordered && !t->columns->descending);
    } else {
        slice_put(j, cell);
    }
}

static void put_cells(const struct merged_table *t, struct json *j, const struct lines_wanted *w,
    const struct shown_line *is, const struct table_line *line, struct slice cells)
{
    size_t member = is->at.member;
    struct slice *cell = arena_new(t->call->arena, struct slice, is->at.of->n_ids + 1);
    struct slice_walk in = slice_items(cells);
    for (size_t i = 0; i < is->at.of->n_ids && slice_next(&in, &cell[i]); i++)
        ;
    json_begin_array(j);
    for (size_t i = 0; i < w->n_shown; i++) {
        size_t column = w->shown[i];
        struct slice filled = coord_backfill_cell(t, is->backfill, is->number, column);
        int64_t own = t->columns->of[member].own[column];
        size_t at = own < 0 ? is->at.of->n_ids : coord_table_find_id(is->at.of->ids, is->at.of->n_ids, own);
        if (filled.at)
            put_cell(t, j, column, is->backfill->of[is->number].by, filled, line);
        else
            put_cell(t, j, column, member, at < is->at.of->n_ids ? cell[at] : (struct slice){0}, line);
    }
    json_end_array(j);
}

/* Returns the column for the note that a line's server is absent: the first one of text, else the last one. */
static size_t telling_column(const struct merged_table *t, const struct lines_wanted *w)
{
    for (size_t i = 0; i < w->n_shown; i++) {
        const struct table_column *c = &t->columns->v[w->shown[i]];
        if (!c->timed && w->shown[i] != t->columns->trace && slice_equals(slice_get(c->object, "type"), "STRING"))
            return i;
    }
    return w->n_shown - 1;
}

static void put_absent_line(const struct merged_table *t, struct json *j, const struct lines_wanted *w, size_t member,
    const struct table_line *line, uint64_t index)
{
    const char *name = t->call->request.members[member]->is->name;
    size_t telling = telling_column(t, w);
    json_begin_object(j);
    json_kv_u64(j, "index", index);
    json_key(j, "cells");
    json_begin_array(j);
    for (size_t i = 0; i < w->n_shown; i++) {
        size_t column = w->shown[i];
        const char *text = column == t->columns->trace ? coord_machine_name(t->call->request.members[member]) : "";
        if (i == telling)
            text = arena_printf(t->call->arena, "(%s is away)", name);
        else if (line->sure && t->columns->of[member].own[column] == t->columns->of[member].by[0])
            text = arena_printf(t->call->arena, "%lld", (long long)line->time);
        json_begin_object(j);
        json_kv_string(j, "content", text);
        json_end_object(j);
    }
    json_end_array(j);
    json_end_object(j);
}

static void put_line(const struct merged_table *t, struct json *j, const struct lines_wanted *w,
    const struct shown_line *is, uint64_t index)
{
    const struct table_line *line = is->at.line;
    struct slice_walk in = slice_members(line->object);
    if (t->absent[is->at.member]) {
        put_absent_line(t, j, w, is->at.member, line, index);
        return;
    }
    json_begin_object(j);
    for (struct slice key, value; slice_next_member(&in, &key, &value);) {
        slice_put_key(j, key);
        if (slice_equals(key, "index"))
            json_u64(j, index);
        else if (slice_equals(key, "cells"))
            put_cells(t, j, w, is, line, value);
        else
            slice_put(j, value);
    }
    if (t->all_fit[is->at.member] && !slice_get(line->object, "tags").at)
        json_kv_i64(j, "tags", HIGHLIGHT);
    json_end_object(j);
}

static void put_head(const struct merged_table *t, struct json *j, const struct lines_wanted *w, uint64_t low)
{
    json_begin_object(j);
    json_kv_u64(j, "lowIndex", low);
    json_kv_u64(j, "size", coord_table_size(t));
    json_key(j, "columnIds");
    json_begin_array(j);
    for (size_t i = 0; i < w->n_shown; i++)
        json_i64(j, t->columns->v[w->shown[i]].id);
    json_end_array(j);
    json_key(j, "lines");
    json_begin_array(j);
}

void coord_put_table(const struct merged_table *t, const struct lines_wanted *w, uint64_t low,
    const struct merged_lines *lines, const struct backfill *backfill, struct json *j)
{
    put_head(t, j, w, low);
    for (uint64_t i = 0; i < lines->n; i++)
        put_line(t, j, w, &(struct shown_line){lines->v[i], backfill, i}, low + i);
    json_end_array(j);
    json_end_object(j);
}

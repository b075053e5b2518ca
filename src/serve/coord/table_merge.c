/* SPDX-License-Identifier: MIT */
/* Lines of all members, and their order. */
#include "base/order.h"
#include "coord/table.h"
#include "coord/times.h"

enum { MAX_COLUMNS_ASKED = 4096 };

/* Returns the negative, for numbers in descending order. */
int64_t coord_table_negative(int64_t v)
{
    return v == INT64_MIN ? INT64_MAX : -v;
}

/* Reads a number such as "1795225075376113629", with or without quotes. */
bool coord_table_take_time(struct slice content, int64_t *time)
{
    if (slice_is(content, '"'))
        content = (struct slice){content.at + 1, content.n - 2};
    return slice_integer(content, time);
}

size_t coord_table_find_id(const int64_t *ids, size_t n, int64_t id)
{
    size_t i = 0;
    while (i < n && ids[i] != id)
        i++;
    return i;
}

struct slice coord_line_cell(struct slice line, size_t cell)
{
    struct slice_walk w = slice_items(slice_get(line, "cells"));
    struct slice c = {0};
    for (size_t i = 0; i <= cell; i++)
        if (!slice_next(&w, &c))
            return (struct slice){0};
    return c;
}

static struct slice content_at(struct slice line, size_t cell)
{
    return slice_get(coord_line_cell(line, cell), "content");
}

const char *coord_table_read(
    const struct merged_table *t, size_t member, struct slice model, uint64_t most, struct line_answer *out)
{
    struct arena *a = t->call->arena;
    struct slice column_ids = slice_get(model, "columnIds");
    struct slice_walk w = slice_items(column_ids);
    size_t n_ids = 0;
    const struct own_columns *own = &t->columns->of[member];
    int64_t low, size, index;
    struct slice item;
    while (n_ids < MAX_COLUMNS_ASKED && slice_next(&w, &item))
        n_ids++;
    out->ids = arena_new(a, int64_t, n_ids + 1);
    for (w = slice_items(column_ids); out->n_ids < n_ids && slice_next(&w, &item);)
        if (!slice_integer(item, &out->ids[out->n_ids++]))
            return "its table has columns without numbers";
    if (!slice_integer(slice_get(model, "lowIndex"), &low) || !slice_integer(slice_get(model, "size"), &size) ||
        low < 0 || size < 0)
        return "its table has no size";
    out->low = (uint64_t)low;
    out->size = (uint64_t)size;
    size_t time = coord_table_find_id(out->ids, out->n_ids, own->by[0]),
           begin = coord_table_find_id(out->ids, out->n_ids, own->by[1]);
    out->lines = arena_new(a, struct table_line, most + 1);
    for (w = slice_items(slice_get(model, "lines")); out->n < most && slice_next(&w, &item); out->n++) {
        struct table_line *l = &out->lines[out->n];
        if (!slice_integer(slice_get(item, "index"), &index) || index < 0)
            return "its table has lines without numbers";
        *l = (struct table_line){.object = item, .index = (uint64_t)index};
        if (t->columns->ordered && !coord_table_take_time(content_at(item, time), &l->own_time))
            return "its table has lines without times";
        if (t->columns->descending) {
            l->time = coord_table_negative(l->own_time);
            if (own->n_by > 1 && coord_table_take_time(content_at(item, begin), &l->begin))
                l->begin = coord_time_shown(t->call->request.members[member], l->begin);
        } else if (t->columns->ordered) {
            l->time = coord_time_shown(t->call->request.members[member], l->own_time);
        }
    }
    out->good = true;
    return NULL;
}

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

/* Returns the member with the last line before a position, among the lines left; n: none. */
size_t coord_table_previous(const struct merged_table *t, const struct line_answer *before, const size_t *left)
{
    size_t best = t->n;
    for (size_t i = 0; i < t->n; i++)
        if (t->asked[i] && left[i] &&
            (best == t->n ||
                coord_table_compare(&before[i].lines[left[i] - 1], i, &before[best].lines[left[best] - 1], best) > 0))
            best = i;
    return best;
}

/* Takes lines until there are `count`. False: before that, a member ran out of its `asked` lines, so that the next line
 * is unknown. */
bool coord_table_merge(struct merged_table *t, const struct line_answer *answer, uint64_t asked, uint64_t count,
    uint64_t *position, struct merged_lines *out)
{
    size_t *taken = arena_new(t->call->arena, size_t, t->n + 1);
    for (size_t i; out->n < count && (i = coord_table_next(t, answer, taken)) < t->n;) {
        out->v[out->n++] = (struct chosen_line){i, &answer[i], &answer[i].lines[taken[i]++]};
        position[i]++;
        if (taken[i] == asked && out->n < count)
            return false;
    }
    return true;
}

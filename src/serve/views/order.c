/* SPDX-License-Identifier: MIT */
#include "views/order.h"

static void set_next(const struct row_order *o, size_t row, size_t next)
{
    o->rows[row].next = next;
    o->rows[row].time = next < o->rows[row].n ? o->time(o->arg, row, next) : INT64_MAX;
}

size_t order_size(const struct row_order *o)
{
    size_t n = 0;
    for (size_t i = 0; i < o->n_rows; i++)
        n += o->rows[i].n;
    return n;
}

static size_t before(const struct row_order *o, int64_t t)
{
    size_t n = 0;
    for (size_t i = 0; i < o->n_rows; i++)
        n += o->before(o->arg, i, t);
    return n;
}

/* Goes to a position: first to the latest time with at most `position` earlier items, then row by row through that
 * time's items. */
static void seek(struct row_order *o, size_t position)
{
    int64_t low = INT64_MAX, high = INT64_MIN;
    for (size_t i = 0; i < o->n_rows; i++) {
        if (!o->rows[i].n)
            continue;
        int64_t first = o->time(o->arg, i, 0), last = o->time(o->arg, i, o->rows[i].n - 1);
        low = first < low ? first : low;
        high = last > high ? last : high;
    }
    while (low < high) {
        int64_t middle = (int64_t)((uint64_t)low + ((uint64_t)high - (uint64_t)low) / 2 + 1);
        if (before(o, middle) <= position)
            low = middle;
        else
            high = middle - 1;
    }
    size_t left = position - before(o, low);
    for (size_t i = 0; i < o->n_rows; i++)
        for (set_next(o, i, o->before(o->arg, i, low)); left && o->rows[i].time == low; left--)
            set_next(o, i, o->rows[i].next + 1);
}

/* Row of the next item. */
static size_t first_row(const struct row_order *o)
{
    size_t best = 0;
    for (size_t i = 1; i < o->n_rows; i++)
        if (o->rows[i].time < o->rows[best].time)
            best = i;
    return best;
}

/* Row of the previous item. */
static size_t last_row(const struct row_order *o)
{
    size_t best = 0;
    int64_t latest = INT64_MIN;
    for (size_t i = 0; i < o->n_rows; i++) {
        int64_t t = o->rows[i].next ? o->time(o->arg, i, o->rows[i].next - 1) : INT64_MIN;
        if (o->rows[i].next && t >= latest) {
            latest = t;
            best = i;
        }
    }
    return best;
}

size_t order_at(struct row_order *o, size_t position, size_t *item)
{
    if (o->position && position == o->position) {
        set_next(o, o->row, o->rows[o->row].next + 1);
        o->row = first_row(o);
    } else if (o->position && position + 2 == o->position) {
        o->row = last_row(o);
        set_next(o, o->row, o->rows[o->row].next - 1);
    } else if (position + 1 != o->position) {
        seek(o, position);
        o->row = first_row(o);
    }
    o->position = position + 1;
    *item = o->rows[o->row].next;
    return o->row;
}

/* SPDX-License-Identifier: MIT */
/* Order of the rows of many chunks. There may be a million rows, most of them files of threads, whose names repeat:
 * numbers are compared, and each name only once. */
#include "state/list_order.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/order.h"

/* ---- sorting by key ---- */

struct key {
    uint64_t key;
    uint32_t at;
};

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };

static void sort_digit(const struct key *v, size_t n, unsigned shift, struct key *out)
{
    size_t count[DIGITS] = {0}, sum = 0;
    for (size_t i = 0; i < n; i++)
        count[v[i].key >> shift & (DIGITS - 1)]++;
    for (size_t d = 0; d < DIGITS; d++) {
        size_t of_digit = count[d];
        count[d] = sum;
        sum += of_digit;
    }
    for (size_t i = 0; i < n; i++)
        out[count[v[i].key >> shift & (DIGITS - 1)]++] = v[i];
}

/* Stable sort. */
static void sort_by_key(list_items *items)
{
    size_t n = items->n;
    uint64_t most = 0, differ = 0;
    for (size_t i = 0; i < n; i++) {
        most = items->v[i].key > most ? items->v[i].key : most;
        differ |= i && items->v[i].key < items->v[i - 1].key;
    }
    if (!differ)
        return;
    struct key *v = mem_alloc(2 * n * sizeof *v), *from = v, *to = v + n;
    for (size_t i = 0; i < n; i++)
        v[i] = (struct key){items->v[i].key, (uint32_t)i};
    for (unsigned shift = 0; shift < 64 && most >> shift; shift += DIGIT_BITS) {
        sort_digit(from, n, shift, to);
        struct key *other = from;
        from = to;
        to = other;
    }
    struct list_item *sorted = mem_alloc(items->cap * sizeof *sorted);
    for (size_t i = 0; i < n; i++)
        sorted[i] = items->v[from[i].at];
    free(items->v);
    items->v = sorted;
    free(v);
}

/* ---- order by number ---- */

void state_list_order_by_number(list_items *items)
{
    int32_t least = INT32_MAX;
    for (size_t i = 0; i < items->n; i++)
        least = items->v[i].number < least ? items->v[i].number : least;
    for (size_t i = 0; i < items->n; i++) {
        items->v[i].key = (uint64_t)((int64_t)items->v[i].number - least);
        items->v[i].nth = 0;
    }
    sort_by_key(items);
}

/* ---- order by name ---- */

static int by_text(const void *a, const void *b, void *names)
{
    return strcmp(strings_get(names, *(const uint32_t *)a), strings_get(names, *(const uint32_t *)b));
}

/* Sets as key of each item the rank of its name among all names. */
static void rank_names(const struct state_store *s, list_items *items)
{
    struct strings names = {0};
    uint32_t *known = NULL, part = UINT32_MAX; /* number + 1 by name of the part */
    strings_intern(&names, "", 0);
    for (size_t i = 0; i < items->n; i++) {
        struct list_item *x = &items->v[i];
        if (x->part != part) {
            part = x->part;
            free(known);
            known = mem_zalloc((s->parts[part].chunk->n_names + 1) * sizeof *known);
        }
        uint32_t *number = &known[x->row->name];
        if (!*number)
            *number = strings_intern(&names, x->name, strlen(x->name)) + 1;
        x->key = *number - 1;
    }
    free(known);
    uint32_t *order = mem_alloc(names.n * sizeof *order), *rank = mem_alloc(names.n * sizeof *rank);
    for (size_t i = 0; i < names.n; i++)
        order[i] = (uint32_t)i;
    qsort_r(order, names.n, sizeof *order, by_text, &names);
    for (size_t i = 0; i < names.n; i++)
        rank[order[i]] = (uint32_t)i;
    for (size_t i = 0; i < items->n; i++)
        items->v[i].key = rank[items->v[i].key];
    free(order);
    free(rank);
    strings_fini(&names);
}

static int by_nth(const void *a, const void *b)
{
    const struct list_item *x = a, *y = b;
    return order_of(x->nth, y->nth) ?: order_of(x->part, y->part) ?: order_of(x->at, y->at);
}

/* Distinguishes rows of one name and thread in a chunk. */
static void tell_twins(struct list_item *v, size_t n)
{
    bool any = false;
    v->nth = 0;
    for (size_t i = 1; i < n; i++) {
        v[i].nth = v[i].part == v[i - 1].part ? v[i - 1].nth + 1 : 0;
        any |= v[i].nth > 0;
    }
    if (any)
        qsort(v, n, sizeof *v, by_nth);
}

void state_list_order_by_name(const struct state_store *s, list_items *items)
{
    uint64_t threads = 1;
    rank_names(s, items);
    for (size_t i = 0; i < items->n; i++) {
        uint64_t thread = (uint64_t)((int64_t)items->v[i].thread + 1);
        threads = thread >= threads ? thread + 1 : threads;
    }
    for (size_t i = 0; i < items->n; i++)
        items->v[i].key = items->v[i].key * threads + (uint64_t)((int64_t)items->v[i].thread + 1);
    sort_by_key(items);
    for (size_t i = 0, n; i < items->n; i += n) {
        n = 1;
        while (i + n < items->n && items->v[i + n].key == items->v[i].key)
            n++;
        tell_twins(&items->v[i], n);
    }
}

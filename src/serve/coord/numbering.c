/* SPDX-License-Identifier: MIT */
#include "coord/numbering.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/order.h"
#include "base/terms.h"
#include "coord/gather.h"

enum { MOST_NUMBERED = 1 << 20 };

/* ---- roots ---- */

bool coord_entry_is_root(struct slice entry)
{
    int64_t parent;
    return !slice_integer(slice_get(entry, "parentId"), &parent) || parent < 0;
}

static bool number_of(struct slice metadata, const char *key, int64_t *out)
{
    return slice_integer(slice_first(slice_get(metadata, key)), out);
}

static bool take(const struct node *n, size_t part, struct slice entry, struct numbered *out)
{
    struct slice m = slice_get(entry, "metadata");
    *out = (struct numbered){.node = n, .part = part, .entry = entry};
    if (!number_of(m, "group", &out->own) || !number_of(m, "count", &out->count) || !number_of(m, "first", &out->first))
        return false;
    out->first = coord_time_shown(n, out->first);
    return true;
}

static int most_first(const void *pa, const void *pb)
{
    const struct numbered *a = pa, *b = pb;
    return order_of(b->count, a->count)
        ?: order_of(a->first, b->first) ?: order_of(a->part, b->part) ?: order_of(a->own, b->own);
}

static size_t count_entries(const struct coord_answers *f, size_t *roots)
{
    size_t n = 0;
    *roots = 0;
    for (size_t i = 0; i < f->n; i++) {
        struct slice_walk w = slice_items(slice_get(f->v[i].model, "entries"));
        for (struct slice e; slice_next(&w, &e); n++)
            *roots += coord_entry_is_root(e);
    }
    return n;
}

/* Entry below a root. */
struct descendant {
    struct slice entry;
    size_t root;
};

static uint64_t key_of(size_t part, int64_t id)
{
    return map_hash((uint64_t[2]){part, (uint64_t)id}, sizeof(uint64_t[2]));
}

/* Takes all entries. root_of: their roots, by part and id. False: some root has no number, or some entry has no root
 * before it. */
static bool take_all(const struct coord_answers *f, struct numbered *v, struct descendant *below, struct map *root_of)
{
    size_t roots = 0, n = 0;
    for (size_t i = 0; i < f->n; i++) {
        struct slice_walk w = slice_items(slice_get(f->v[i].model, "entries"));
        for (struct slice e; slice_next(&w, &e);) {
            int64_t id, parent;
            const uint64_t *above;
            size_t root = roots;
            if (!slice_integer(slice_get(e, "id"), &id))
                return false;
            if (coord_entry_is_root(e)) {
                if (!take(f->v[i].node, i, e, &v[roots++]))
                    return false;
            } else {
                slice_integer(slice_get(e, "parentId"), &parent);
                above = map_find(root_of, key_of(i, parent));
                if (!above)
                    return false;
                root = *above;
                v[root].n_below++;
                below[n++] = (struct descendant){e, root};
            }
            *map_put(root_of, key_of(i, id), NULL) = root;
        }
    }
    return true;
}

/* Sorts entries below their roots, in the order in which they came. */
static void place_below(struct numbered *v, size_t roots, const struct descendant *below, size_t n, struct arena *a)
{
    struct slice *room = arena_alloc(a, (n + 1) * sizeof *room);
    for (size_t i = 0; i < roots; i++) {
        v[i].below = room;
        room += v[i].n_below;
        v[i].n_below = 0;
    }
    for (size_t i = 0; i < n; i++) {
        struct numbered *root = &v[below[i].root];
        root->below[root->n_below++] = below[i].entry;
    }
}

bool coord_numbering_take(const struct coord_answers *f, struct group_numbers *out)
{
    struct arena *a = f->call->arena;
    size_t roots, n = count_entries(f, &roots);
    *out = (struct group_numbers){0};
    if (!roots || n > MOST_NUMBERED)
        return false;
    struct numbered *v = arena_alloc(a, roots * sizeof *v);
    struct descendant *below = arena_alloc(a, (n - roots + 1) * sizeof *below);
    struct map root_of = {0};
    bool all = take_all(f, v, below, &root_of);
    map_fini(&root_of);
    if (!all)
        return false;
    place_below(v, roots, below, n - roots, a);
    qsort(v, roots, sizeof *v, most_first);
    *out = (struct group_numbers){v, roots};
    return true;
}

bool coord_numbering_ask(struct coord_call *c, struct slice output, struct group_numbers *out)
{
    struct arena *a = c->arena;
    const char *name = slice_string(output, a);
    const char *path = arena_printf(a, "/experiments/%s/outputs/data/%s/tree", coord_path_part(a, c->request.arg[0]),
        coord_path_part(a, name ? name : ""));
    struct coord_answers f;
    *out = (struct group_numbers){0};
    bool waits = coord_gather_trees(&f, c, path);
    if (waits)
        coord_numbering_take(&f, out);
    coord_gather_end(&f);
    return waits;
}

/* ---- translation of numbers ---- */

int64_t coord_number_shown(const struct group_numbers *g, const struct node *n, int64_t own)
{
    for (size_t i = 0; i < g->n; i++)
        if (g->v[i].node == n && g->v[i].own == own)
            return (int64_t)i + 1;
    return 0;
}

const char *coord_numbers_asked(
    const struct group_numbers *g, struct arena *a, const struct node *n, const char *pattern)
{
    struct terms one = {0};
    struct text own = {.fd = -1};
    const char *kept = NULL;
    size_t fits = 0;
    terms_add(&one, 0, pattern);
    for (size_t i = 0; i < g->n; i++) {
        if (g->v[i].node != n || !term_fits(&one.v[0], arena_printf(a, "%zu", i + 1)))
            continue;
        text_puts(&own, fits++ ? "|" : "^(");
        text_i64(&own, g->v[i].own);
    }
    if (term_fits(&one.v[0], ""))
        text_puts(&own, fits++ ? "|" : "^(");
    text_puts(&own, ")$");
    if (fits)
        kept = arena_strdup(a, text_cstr(&own));
    text_fini(&own);
    terms_fini(&one);
    return kept;
}

void coord_put_number_metadata(struct json *j, const struct node *n, int64_t number, struct slice metadata)
{
    struct slice_walk w = slice_members(metadata);
    json_begin_object(j);
    for (struct slice key, value; slice_next_member(&w, &key, &value);) {
        slice_put_key(j, key);
        if (slice_equals(key, "first")) {
            coord_put_time_numbers(j, n, value);
        } else if (slice_equals(key, "group")) {
            json_begin_array(j);
            json_i64(j, number);
            json_end_array(j);
        } else {
            slice_put(j, value);
        }
    }
    json_end_object(j);
}

/* SPDX-License-Identifier: MIT */
/* Sums: reports of several servers about all their machines, merged into one of the same form. */
#include "coord/sums.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "coord/entries.h"

enum { MOST_SUMS = 64 };

/* ---- rules: text of a label, and the numbers it is made of (docs/tsp.md) ---- */

static void minimum(struct text *t, const struct root_sum *s)
{
    text_duration(t, s->all.least);
}
static void maximum(struct text *t, const struct root_sum *s)
{
    text_duration(t, s->all.most);
}
static void total(struct text *t, const struct root_sum *s)
{
    text_duration(t, s->all.sum);
}
static void self_time(struct text *t, const struct root_sum *s)
{
    text_duration(t, s->self);
}
static void how_many(struct text *t, const struct root_sum *s)
{
    text_u64(t, s->all.n);
}

static void average(struct text *t, const struct root_sum *s)
{
    text_duration(t, (int64_t)((double)s->all.sum / (double)s->all.n));
}

static void deviation(struct text *t, const struct root_sum *s)
{
    if (s->all.n > 2)
        text_duration(t, (int64_t)sqrt(s->all.spread / ((double)s->all.n - 1)));
    else
        text_puts(t, "---");
}

static void range(struct text *t, int64_t begin, int64_t duration)
{
    text_putc(t, '[');
    text_i64(t, begin);
    text_putc(t, ',');
    text_i64(t, figures_sum(begin, duration));
    text_putc(t, ']');
}

static void minimum_range(struct text *t, const struct root_sum *s)
{
    range(t, s->all.least_begin, s->all.least);
}
static void maximum_range(struct text *t, const struct root_sum *s)
{
    range(t, s->all.most_begin, s->all.most);
}

/* Rules of the columns of figures. */
static const struct {
    enum tsp_merge how;
    const char *of;
    bool is_range;
    void (*write)(struct text *, const struct root_sum *);
} labels[] = {{TSP_MIN, "minimum", false, minimum}, {TSP_MAX, "maximum", false, maximum},
    {TSP_MIN, "minimum", true, minimum_range}, {TSP_MAX, "maximum", true, maximum_range},
    {TSP_MEAN, "total", false, average}, {TSP_DEVIATION, "spread", false, deviation},
    {TSP_SUM, "count", false, how_many}, {TSP_SUM, "total", false, total}, {TSP_SUM, "self", false, self_time}};
enum { N_LABELS = sizeof labels / sizeof *labels };

bool coord_put_sum_label(struct json *j, const struct root_sum *s, const struct merge_rule *r)
{
    size_t i = 0;
    struct text t = {.fd = -1};
    while (i < N_LABELS &&
        (labels[i].how != r->how || labels[i].is_range != r->is_range || strcmp(labels[i].of, r->of) != 0))
        i++;
    if (i == N_LABELS)
        return false;
    labels[i].write(&t, s);
    json_write_string(j, text_cstr(&t));
    text_fini(&t);
    return true;
}

/* ---- numbers ---- */

static bool number(struct slice metadata, const char *key, int64_t *out)
{
    return slice_integer(slice_first(slice_get(metadata, key)), out);
}

static bool take_figures(const struct node *n, struct slice m, struct figures *f)
{
    int64_t count;
    struct slice spread = slice_first(slice_get(m, "spread"));
    if (!number(m, "count", &count) || count <= 0 || !number(m, "minimum", &f->least) ||
        !number(m, "maximum", &f->most) || !number(m, "total", &f->sum) ||
        !number(m, "minimumBegin", &f->least_begin) || !number(m, "maximumBegin", &f->most_begin) || !spread.at ||
        !(text_is_digit(*spread.at)))
        return false;
    f->n = (uint64_t)count;
    f->spread = strtod(spread.at, NULL); /* number ends there: the text behind it is no part of one */
    f->least_begin = coord_time_shown(n, f->least_begin);
    f->most_begin = coord_time_shown(n, f->most_begin);
    return true;
}

bool coord_sum_add(struct root_sum *s, const struct node *n, struct slice metadata)
{
    struct figures f = {0};
    int64_t self;
    if (!take_figures(n, metadata, &f))
        return false;
    if (number(metadata, "self", &self))
        s->self = figures_sum(s->self, self);
    figures_join(&s->all, &f);
    return true;
}

void coord_put_sum_metadata(struct json *j, const struct root_sum *s, struct slice metadata)
{
    const struct {
        const char *key;
        int64_t value;
    } whole[] = {{"minimum", s->all.least}, {"maximum", s->all.most}, {"minimumBegin", s->all.least_begin},
        {"maximumBegin", s->all.most_begin}, {"count", (int64_t)s->all.n}, {"total", s->all.sum}, {"self", s->self}};
    enum { N_WHOLE = sizeof whole / sizeof *whole };
    struct slice_walk w = slice_members(metadata);
    json_begin_object(j);
    for (struct slice key, value; slice_next_member(&w, &key, &value);) {
        size_t i = 0;
        bool spread = slice_equals(key, "spread");
        while (i < N_WHOLE && !slice_equals(key, whole[i].key))
            i++;
        slice_put_key(j, key);
        if (i == N_WHOLE && !spread) {
            slice_put(j, value);
            continue;
        }
        json_begin_array(j);
        if (spread)
            json_double(j, s->all.spread);
        else
            json_i64(j, whole[i].value);
        json_end_array(j);
    }
    json_end_object(j);
}

/* ---- roots ---- */

static bool is_called(const struct root_sum *s, struct slice label, struct slice key)
{
    return s->key.at && key.at ? slice_same_value(s->key, key) : slice_same_value(s->label, label);
}

static struct root_sum *sum_called(struct sums *all, struct coord_call *c, struct slice label, struct slice key)
{
    for (size_t i = 0; i < all->v.n; i++)
        if (is_called(&all->v.v[i], label, key))
            return &all->v.v[i];
    if (all->v.n == MOST_SUMS)
        return NULL;
    struct root_sum s = {.label = label, .key = key, .root = arena_new(c->arena, int64_t, all->parts + 1)};
    for (size_t i = 0; i < all->parts; i++)
        s.root[i] = -1;
    vec_push(&all->v, s);
    return &all->v.v[all->v.n - 1];
}

void coord_sums_take(struct sums *all, struct coord_call *c, const struct node *n, size_t part, struct slice entry)
{
    struct slice_walk w = slice_items(slice_get(entry, "labels"));
    struct slice label, m = slice_get(entry, "metadata"), key = slice_get(entry, "key");
    int64_t own;
    struct root_sum *s = slice_next(&w, &label) ? sum_called(all, c, label, key) : NULL;
    if (!s)
        return;
    bool first = !s->all.n;
    if (s->root[part] >= 0 || coord_merge_stated(entry) != TSP_SUM || !slice_integer(slice_get(entry, "id"), &own) ||
        own < 0 || !coord_sum_add(s, n, m)) {
        s->apart = true;
        return;
    }
    if (first) {
        s->id = coord_id(c, n, own);
        s->first = part;
    }
    s->root[part] = own;
    s->parts++;
}

const struct root_sum *coord_sum_of(const struct sums *all, size_t part, struct slice id)
{
    int64_t own;
    if (!slice_integer(id, &own) || own < 0)
        return NULL;
    for (size_t i = 0; i < all->v.n; i++)
        if (!all->v.v[i].apart && all->v.v[i].root[part] == own)
            return &all->v.v[i];
    return NULL;
}

void coord_sums_fini(struct sums *all)
{
    vec_free(&all->v);
}

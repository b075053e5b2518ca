/* SPDX-License-Identifier: MIT */
#include "coord/totals.h"

#include <stdlib.h>
#include <string.h>

#include "base/figures.h"
#include "coord/entries.h"
#include "coord/experiments.h"
#include "coord/rotation.h"
#include "coord/times.h"

static const char *const labels[MOST_TOTALS] = {"Total", "Lost"}; /* order of merge_total.lines */

/* Returns whether the output is of a family: one output for each kind of durations, with one line. */
static bool is_density(const struct coord_call *c)
{
    const struct merge_total *w = coord_merge_total_of(c->request.arg[1]);
    return w && w->family;
}

bool coord_totals_exist(const struct coord_request *r)
{
    return r->several && coord_merge_total_of(r->arg[1]);
}

/* ---- lines of members ---- */

static bool is_labelled(struct slice entry, const char *label)
{
    struct slice_walk w = slice_items(slice_get(entry, "labels"));
    struct slice first;
    return slice_next(&w, &first) && slice_equals(first, label);
}

static int64_t number_in(struct slice entry, const char *key)
{
    int64_t v;
    return slice_integer(slice_get(entry, key), &v) ? v : -1;
}

/* Returns the server's own sum: a root with the experiment's name. -1: none. */
static int64_t own_sum(struct slice entries, const char *name)
{
    struct slice_walk w = slice_items(entries);
    for (struct slice e; slice_next(&w, &e);)
        if (number_in(e, "parentId") < 0 && is_labelled(e, name))
            return number_in(e, "id");
    return -1;
}

/* Takes a line. place: its index among the entries with its parent. */
static void take_line(struct coord_totals *x, size_t member, struct slice entry, size_t place, int64_t sum)
{
    int i = coord_merge_total_line(x->kind, entry, place);
    if (i < 0 || (sum >= 0 && number_in(entry, "parentId") != sum))
        return;
    vec_push(&x->parts, ((struct total_part){member, number_in(entry, "id"), (size_t)i}));
    x->line[i].shown |= slice_get(entry, "isDefault").n == strlen("true");
}

/* Takes the only entry of a density. False: it has others. */
static bool take_only(struct coord_totals *x, size_t member, struct slice entries)
{
    struct slice_walk w = slice_items(entries);
    struct slice first, more;
    if (!slice_next(&w, &first))
        return true;
    if (slice_next(&w, &more) || number_in(first, "parentId") >= 0 || coord_merge_total_line(x->kind, first, 0) < 0)
        return false;
    struct total_part p = {member, number_in(first, "id"), 0};
    vec_push(&x->parts, p);
    vec_push(&x->instead, p);
    return true;
}

static void take_member(struct coord_totals *x, size_t member, struct slice entries)
{
    struct slice_walk w = slice_items(entries);
    int64_t sum = own_sum(entries, x->name), above = -1;
    size_t place = 0;
    for (struct slice e; slice_next(&w, &e);) {
        int64_t id = number_in(e, "id"), parent = number_in(e, "parentId");
        place = parent == above ? place + 1 : 0;
        above = parent;
        if (parent >= 0 && id >= 0)
            take_line(x, member, e, place, sum);
        if (sum >= 0 && (id == sum || parent == sum))
            vec_push(&x->instead, ((struct total_part){member, id, 0}));
    }
}

void coord_totals_find(struct coord_call *c, const struct slice *models, struct coord_totals *x)
{
    *x = (struct coord_totals){0};
    if (!coord_totals_exist(&c->request) || !(x->name = coord_experiment_name(c)))
        return;
    x->kind = coord_merge_total_of(c->request.arg[1]);
    const char *of = arena_printf(c->arena, "%s\n%s", c->request.arg[0], c->request.arg[1]);
    uint64_t nobody = map_hash(of, strlen(of)); /* owner of these ids */
    x->n = is_density(c) ? 1 : MOST_TOTALS;
    x->root = is_density(c) ? -1 : coord_id_of(c->c->ids, nobody, 0, false);
    for (size_t i = 0; i < x->n; i++) {
        x->line[i].label = labels[i];
        x->line[i].id = coord_id_of(c->c->ids, nobody, (int64_t)i + 1, false);
        x->line[i].shown = is_density(c);
    }
    for (size_t m = 0; m < c->request.n_members && x->name; m++)
        if (!is_density(c))
            take_member(x, m, slice_get(models[m], "entries"));
        else if (!take_only(x, m, slice_get(models[m], "entries")))
            x->name = NULL; /* entries of several things, each of one machine */
    if (!x->parts.n)
        x->name = NULL;
    if (!x->name)
        x->instead.n = 0;
}

void coord_totals_fini(struct coord_totals *x)
{
    vec_free(&x->parts);
    vec_free(&x->instead);
}

bool coord_totals_replace(const struct coord_totals *x, size_t member, struct slice id)
{
    int64_t own;
    bool instead = false;
    for (size_t i = 0; i < x->instead.n && !instead; i++)
        instead = x->instead.v[i].member == member && slice_integer(id, &own) && x->instead.v[i].own == own;
    return instead;
}

/* Writes an entry. key NULL: it stands for the experiment, and has no line. */
static void put_whole(
    struct json *j, int64_t id, int64_t parent, const char *label, const char *key, bool shown, size_t columns)
{
    json_begin_object(j);
    json_kv_i64(j, "id", id);
    json_kv_i64(j, "parentId", parent);
    json_key(j, "labels");
    json_begin_array(j);
    json_write_string(j, label);
    for (size_t i = 1; i < columns; i++)
        json_write_string(j, "");
    json_end_array(j);
    json_kv_bool(j, "hasData", key);
    json_kv_bool(j, "isDefault", shown);
    if (key) {
        json_kv_string(j, "key", key);
        json_kv_string(j, "merge", tsp_merge_name(TSP_SUM));
    }
    json_end_object(j);
}

void coord_put_totals(struct json *j, const struct coord_totals *x, size_t columns)
{
    if (!x->name)
        return;
    if (x->root >= 0)
        put_whole(j, x->root, -1, x->name, NULL, false, columns);
    for (size_t i = 0; i < x->n; i++)
        put_whole(j, x->line[i].id, x->root, x->line[i].label, x->kind->lines[i], x->line[i].shown, columns);
}

/* ---- series ---- */

struct sum {
    double *y; /* values by point; of durations by ratio: by range, see figures.h */
    size_t n;
    struct slice ranges;
    const struct node *of; /* server of `like`, whose form the sum gets */
    struct slice like;
};

static bool is_by_ratio(struct coord_call *c)
{
    const char *scale = coord_text(c->request.parameters, "x_scale");
    return is_density(c) && scale && !strcmp(scale, "logarithmic");
}

static void add_by_ratio(struct coord_answers *f, const struct coord_answer *p, struct sum *s, struct slice series)
{
    struct slice_walk x = slice_items(slice_get(series, "xRanges")), y = slice_items(slice_get(series, "yValues"));
    struct slice range, item;
    if (!s->like.at) {
        s->n = FIGURES_RATIO_RANGES;
        s->y = arena_new(f->call->arena, double, s->n);
        s->like = series;
        s->of = p->node;
    }
    while (slice_next(&x, &range) && slice_next(&y, &item)) {
        int64_t begin = number_in(range, "start");
        size_t k = begin < 0 ? s->n : figures_range(begin, FIGURES_BY_RATIO, s->n);
        if (k == s->n || figures_range_begin(FIGURES_BY_RATIO, k) != begin) {
            coord_note_missing(&f->call->outcome, p->node, "its ranges are others");
            return;
        }
        s->y[k] += strtod(item.at, NULL);
    }
}

static void add_series(struct coord_answers *f, struct coord_answer *p, struct sum *s, struct slice series)
{
    if (is_by_ratio(f->call)) {
        add_by_ratio(f, p, s, series);
        return;
    }
    struct slice y = slice_get(series, "yValues"), item;
    struct slice_walk w = slice_items(y);
    size_t n = 0;
    if (!s->like.at) {
        for (struct slice_walk count = w; slice_next(&count, &item);)
            s->n++;
        s->y = arena_new(f->call->arena, double, s->n + 1);
        s->like = series;
        s->of = p->node;
        s->ranges = slice_get(series, "xRanges");
    }
    for (struct slice_walk count = w; slice_next(&count, &item);)
        n++;
    if (n != s->n || !slice_same_value(s->ranges, slice_get(series, "xRanges"))) {
        coord_note_missing(
            &f->call->outcome, p->node, is_density(f->call) ? "its ranges are others" : "its times are others");
        return;
    }
    for (n = 0; slice_next(&w, &item); n++)
        s->y[n] += strtod(item.at, NULL); /* number ends there: the text behind it is no part of one */
}

static void add_up(
    struct coord_answers *f, struct coord_answer *p, const struct coord_totals *x, const bool *wanted, struct sum *sum)
{
    struct slice_walk w = slice_items(slice_get(p->model, "series"));
    for (struct slice series; slice_next(&w, &series);)
        for (size_t i = 0; i < x->parts.n; i++) {
            const struct total_part *part = &x->parts.v[i];
            if (f->call->request.members[part->member] == p->node && wanted[part->line] &&
                part->own == number_in(series, "seriesId"))
                add_series(f, p, &sum[part->line], series);
        }
}

static void put_ratio_ranges(struct json *j, size_t first, size_t end)
{
    json_begin_array(j);
    for (size_t i = first; i < end; i++) {
        json_begin_object(j);
        json_kv_i64(j, "start", figures_range_begin(FIGURES_BY_RATIO, i));
        json_kv_i64(j, "end", figures_range_begin(FIGURES_BY_RATIO, i + 1));
        json_end_object(j);
    }
    json_end_array(j);
}

static void put_sum(
    struct coord_call *c, struct json *j, const struct coord_totals *x, size_t line, const struct sum *s)
{
    bool by_ratio = is_by_ratio(c);
    size_t first = 0, end = s->n; /* ranges that are not empty */
    while (by_ratio && end && s->y[end - 1] <= 0)
        end--;
    while (by_ratio && first < end && s->y[first] <= 0)
        first++;
    struct slice_walk w = slice_members(s->like);
    json_begin_object(j);
    for (struct slice key, value; slice_next_member(&w, &key, &value);) {
        slice_put_key(j, key);
        if (slice_equals(key, "seriesId")) {
            json_i64(j, x->line[line].id);
        } else if (slice_equals(key, "seriesName")) {
            json_write_string(j, x->root < 0 ? labels[line] : arena_printf(c->arena, "%s/%s", x->name, labels[line]));
        } else if (by_ratio && slice_equals(key, "xRanges")) {
            put_ratio_ranges(j, first, end);
        } else if (slice_equals(key, "yValues")) {
            json_begin_array(j);
            for (size_t i = first; i < end; i++)
                json_double(j, s->y[i]);
            json_end_array(j);
        } else if (!coord_put_times(c, j, s->of, s->like, key, value)) {
            slice_put(j, value);
        }
    }
    json_end_object(j);
}

/* Returns the ids, as clients know them, of the series that are requested as they are. */
static struct map own_wanted(struct coord_call *c)
{
    struct map ids = {0};
    json_t *item;
    size_t i;
    json_array_foreach (json_object_get(c->request.parameters, "requested_items"), i, item)
        map_put(&ids, (uint64_t)json_integer_value(item), NULL);
    return ids;
}

static void put_own(struct coord_call *c, struct json *j, const struct coord_answer *p, const struct map *wanted)
{
    static const char *const ids[] = {"seriesId", NULL};
    struct slice_walk w = slice_items(slice_get(p->model, "series"));
    for (struct slice series; slice_next(&w, &series);)
        if (map_find(wanted, (uint64_t)coord_id(c, p->node, number_in(series, "seriesId"))))
            coord_put_with_ids(c, j, p->node, series, ids);
}

void coord_merge_totals(
    struct coord_answers *f, const struct coord_totals *x, const bool wanted[MOST_TOTALS], struct json *j)
{
    struct coord_call *c = f->call;
    struct sum sum[MOST_TOTALS] = {0};
    struct slice title = {0};
    for (size_t i = 0; i < f->n; i++) {
        struct coord_answer *p = &f->v[i];
        if (p->model.at && !slice_is(slice_get(p->model, "series"), '['))
            coord_answer_spoil(f, p, "its answer has another form than the protocol's");
        add_up(f, p, x, wanted, sum);
        title = title.at ? title : slice_get(p->model, "title");
    }
    coord_rotation_fold_series(f);
    struct map own = own_wanted(c);
    json_begin_object(j);
    if (title.at) {
        json_key(j, "title");
        slice_put(j, title);
    }
    json_key(j, "series");
    json_begin_array(j);
    for (size_t i = 0; i < f->n; i++)
        put_own(c, j, &f->v[i], &own);
    for (size_t k = 0; k < x->n; k++)
        if (sum[k].like.at)
            put_sum(c, j, x, k, &sum[k]);
    json_end_array(j);
    json_end_object(j);
    map_fini(&own);
}

int64_t coord_totals_width(const struct coord_answers *f)
{
    int64_t most = 0, least = INT64_MAX;
    if (!is_density(f->call) || is_by_ratio(f->call))
        return 0;
    for (size_t i = 0; i < f->n; i++) {
        struct slice_walk w = slice_items(slice_get(f->v[i].model, "series")), in;
        struct slice series, range;
        while (slice_next(&w, &series)) {
            in = slice_items(slice_get(series, "xRanges"));
            if (!slice_next(&in, &range))
                continue;
            int64_t width = number_in(range, "end");
            most = width > most ? width : most;
            least = width < least ? width : least;
        }
    }
    return most > least ? most : 0;
}

/* SPDX-License-Identifier: MIT */
#include "coord/counts.h"

#include <string.h>

#include "base/figures.h"
#include "coord/entries.h"
#include "coord/gather.h"
#include "coord/merge.h"
#include "coord/numbering.h"
#include "coord/question.h"
#include "coord/totals.h"

struct counts {
    uint64_t count[FIGURES_EIGHTHS];
    size_t first, past;
    struct slice series; /* series of the first server that has one; its axes' titles are used */
    int64_t id;          /* id for clients: that of the entry */
};

/* Returns the only entry of a tree, if it states counts; at NULL: it is none. */
static struct slice counting_entry(struct slice model)
{
    struct slice_walk w = slice_items(slice_get(model, "entries"));
    struct slice e, more;
    int64_t id;
    bool only = slice_next(&w, &e) && !slice_next(&w, &more);
    return only && coord_entry_is_root(e) && coord_merge_stated(e) == TSP_COUNTS &&
            slice_is(slice_get(e, "key"), '"') && slice_integer(slice_get(e, "id"), &id)
        ? e
        : (struct slice){0};
}

bool coord_counts_are_stated(const struct slice *models, size_t n)
{
    struct slice key = {0};
    for (size_t i = 0; i < n; i++) {
        struct slice own = slice_get(models[i].at ? counting_entry(models[i]) : models[i], "key");
        if (models[i].at && (!own.at || (key.at && !slice_same_value(key, own))))
            return false;
        key = key.at ? key : own;
    }
    return key.at;
}

/* Adds a server's series. Returns NULL, or the error; nothing is taken then. */
static const char *take(struct counts *all, struct slice series)
{
    struct counts sum = *all, *b = &sum;
    struct slice_walk ranges = slice_items(slice_get(series, "xRanges")),
                      counts = slice_items(slice_get(series, "yValues"));
    for (struct slice range, count; slice_next(&ranges, &range) && slice_next(&counts, &count);) {
        int64_t from, many;
        if (!slice_integer(slice_get(range, "start"), &from) || !slice_integer(count, &many) || many < 0)
            return "its counts have another form";
        size_t i = figures_eighth_of(from);
        if (figures_eighth(i) != from)
            return "it counts by other ranges of durations";
        b->count[i] += (uint64_t)many;
        b->first = b->past && b->first < i ? b->first : i;
        b->past = b->past > i ? b->past : i + 1;
    }
    b->series = b->series.at ? b->series : series;
    *all = sum;
    return NULL;
}

static void put_ranges(struct json *j, const struct counts *b)
{
    json_begin_array(j);
    for (size_t i = b->first; i < b->past; i++) {
        json_begin_object(j);
        json_kv_i64(j, "start", figures_eighth(i));
        json_kv_i64(j, "end", figures_eighth(i + 1));
        json_end_object(j);
    }
    json_end_array(j);
}

static void put_counts(struct json *j, const struct counts *b)
{
    json_begin_array(j);
    for (size_t i = b->first; i < b->past; i++)
        json_u64(j, b->count[i]);
    json_end_array(j);
}

static void put_series(struct json *j, const struct counts *b)
{
    struct slice_walk w = slice_members(b->series);
    json_begin_object(j);
    for (struct slice key, value; slice_next_member(&w, &key, &value);) {
        slice_put_key(j, key);
        if (slice_equals(key, "seriesId"))
            json_i64(j, b->id);
        else if (slice_equals(key, "xRanges"))
            put_ranges(j, b);
        else if (slice_equals(key, "yValues"))
            put_counts(j, b);
        else
            slice_put(j, value);
    }
    json_end_object(j);
}

void coord_merge_counts(struct coord_answers *f, int64_t id, struct json *j)
{
    struct counts sum = {.id = id};
    for (size_t i = 0; i < f->n; i++) {
        struct slice_walk w = slice_items(slice_get(f->v[i].model, "series"));
        for (struct slice series; slice_next(&w, &series);) {
            const char *wrong = take(&sum, series);
            if (wrong)
                coord_answer_spoil(f, &f->v[i], wrong);
        }
    }
    if (!coord_answers_some(f)) {
        json_write_null(j);
        return;
    }
    json_begin_object(j);
    coord_put_rest(f, j, "series");
    json_key(j, "series");
    json_begin_array(j);
    if (sum.series.at)
        put_series(j, &sum);
    json_end_array(j);
    json_end_object(j);
}

/* Finds each member's own item in its tree; *id: that of the first one, which clients know. False: the request is not
 * about it. */
static bool find_entries(struct coord_call *c, const struct slice *trees, json_t **items, int64_t *id)
{
    json_t *kept = json_array(), *item; /* freed with the body */
    bool wanted = false;
    size_t k;
    json_object_set_new(c->request.body, "by server", kept);
    for (size_t i = 0; i < c->request.n_members; i++) {
        int64_t own;
        items[i] = json_array();
        json_array_append_new(kept, items[i]);
        if (!trees[i].at || !slice_integer(slice_get(counting_entry(trees[i]), "id"), &own))
            continue;
        json_array_append_new(items[i], json_integer(own));
        int64_t known = coord_id(c, c->request.members[i], own);
        *id = *id < 0 ? known : *id;
        json_array_foreach (json_object_get(c->request.parameters, "requested_items"), k, item)
            wanted |= json_is_integer(item) && json_integer_value(item) == known;
    }
    return wanted;
}

static void ask_and_send(struct coord_call *c, json_t **items, int64_t id)
{
    struct coord_answers f;
    coord_gather_begin(&f, c, c->request.n_members);
    for (size_t i = 0; i < c->request.n_members; i++)
        coord_gather_ask(&f, c->request.members[i], "POST", coord_path_asked(&c->request),
            coord_body_with(c, c->request.members[i], "requested_items", items[i], NULL, NULL));
    if (coord_gather_wait(&f) && coord_envelopes_open(&f)) {
        struct text t = {.fd = -1};
        struct json j = coord_envelope_begin(c, &t);
        coord_merge_counts(&f, id, &j);
        coord_envelope_send(c, &t);
    }
    coord_gather_end(&f);
}

bool coord_counts_answer(struct coord_call *c)
{
    int64_t id = -1;
    if (!strstr(c->request.path, "/genericXY/"))
        return false;
    const struct slice *trees = coord_member_trees(c);
    json_t **items = arena_new(c->arena, json_t *, c->request.n_members + 1);
    if (!trees || !coord_counts_are_stated(trees, c->request.n_members) || !find_entries(c, trees, items, &id))
        return false;
    c->outcome.missing.n = 0; /* the new question reports missing sources itself */
    ask_and_send(c, items, id);
    return true;
}

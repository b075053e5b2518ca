/* SPDX-License-Identifier: MIT */
/* Data of entries: merging of states, arrows, series, tooltips, annotations; and of styles. */
#include "coord/rows.h"


#include "coord/entries.h"
#include "coord/groups.h"
#include "coord/rotation.h"

/* ---- rows of requested entries ---- */

/* Writes the arrays of all models joined; `ids`: members of their objects that are ids. Other members are those of the
 * first model. */
static void join(struct coord_answers *f, struct json *j, const char *array, const char *const *ids)
{
    struct coord_call *c = f->call;
    int64_t own;
    json_begin_object(j);
    coord_put_rest(f, j, array);
    json_key(j, array);
    json_begin_array(j);
    for (size_t i = 0; i < f->n; i++) {
        struct slice_walk w = slice_items(slice_get(f->v[i].model, array));
        for (struct slice row; slice_next(&w, &row);)
            if (!c->question.lines || !slice_integer(slice_get(row, ids[0]), &own) ||
                !coord_groups_hide(c, coord_id(c, f->v[i].node, own)))
                coord_put_with_ids(c, j, f->v[i].node, row, ids);
        coord_answer_release(&f->v[i]);
    }
    json_end_array(j);
    json_end_object(j);
}

/* Drops answers without the array. False: none is left, and null was written. */
static bool are_rows(struct coord_answers *f, struct json *j, const char *array)
{
    for (size_t i = 0; i < f->n; i++)
        if (f->v[i].model.at && !slice_is(slice_get(f->v[i].model, array), '['))
            coord_answer_spoil(f, &f->v[i], "its answer has another form than the protocol's");
    if (!coord_answers_some(f))
        json_write_null(j);
    return coord_answers_some(f);
}

void coord_merge_states(struct coord_answers *f, struct json *j)
{
    if (!are_rows(f, j, "rows"))
        return;
    coord_rotation_fold_states(f);
    coord_groups_add_states(f);
    join(f, j, "rows", (const char *const[]){"entryId", NULL});
}

void coord_merge_series(struct coord_answers *f, struct json *j)
{
    if (!are_rows(f, j, "series"))
        return;
    coord_rotation_fold_series(f);
    coord_groups_add_series(f);
    join(f, j, "series", (const char *const[]){"seriesId", NULL});
}

void coord_merge_arrows(struct coord_answers *f, struct json *j)
{
    static const char *const ids[] = {"sourceId", "targetId", NULL};
    json_begin_array(j);
    for (size_t i = 0; i < f->n; i++) {
        struct slice_walk w = slice_items(f->v[i].model);
        for (struct slice arrow; slice_next(&w, &arrow);)
            coord_put_with_ids(f->call, j, f->v[i].node, arrow, ids);
        coord_answer_release(&f->v[i]);
    }
    json_end_array(j);
}

/* ---- unions ---- */

enum { MAX_NAMES = 4096 };

/* Names of members already written; the first object with a name wins. */
struct names {
    struct slice *v;
    size_t n;
};

static struct names names_new(const struct coord_answers *f)
{
    return (struct names){arena_new(f->call->arena, struct slice, MAX_NAMES), 0};
}

static bool is_new(struct names *n, struct slice name)
{
    for (size_t i = 0; i < n->n; i++)
        if (slice_same(n->v[i], name))
            return false;
    if (n->n < MAX_NAMES)
        n->v[n->n++] = name;
    return true;
}

typedef void put_named(struct coord_answers *, struct json *, struct slice name, struct slice value);

/* Writes an object with one member: the members of all models' objects of that name, each once. */
static void put_members(struct coord_answers *f, struct json *j, const char *object, put_named *put)
{
    struct names names = names_new(f);
    json_begin_object(j);
    json_key(j, object);
    json_begin_object(j);
    for (size_t i = 0; i < f->n; i++) {
        struct slice_walk w = slice_members(slice_get(f->v[i].model, object));
        for (struct slice key, value; slice_next_member(&w, &key, &value);)
            if (is_new(&names, key)) {
                slice_put_key(j, key);
                put(f, j, key, value);
            }
    }
    json_end_object(j);
    json_end_object(j);
}

/* Writes the items of arrays, each once. */
static void put_union(struct coord_answers *f, struct json *j, const char *array)
{
    struct names names = names_new(f);
    json_begin_array(j);
    for (size_t i = 0; i < f->n; i++) {
        struct slice model = f->v[i].model;
        struct slice_walk w = slice_items(array ? slice_get(model, array) : model);
        for (struct slice item; slice_next(&w, &item);)
            if (is_new(&names, item))
                slice_put(j, item);
    }
    json_end_array(j);
}

static void put_style(struct coord_answers *f, struct json *j, struct slice name, struct slice value)
{
    slice_put(j, value);
}

void coord_merge_styles(struct coord_answers *f, struct json *j)
{
    put_members(f, j, "styles", put_style);
}

void coord_merge_categories(struct coord_answers *f, struct json *j)
{
    json_begin_object(j);
    json_key(j, "annotationCategories");
    put_union(f, j, "annotationCategories");
    json_end_object(j);
}

void coord_merge_marker_sets(struct coord_answers *f, struct json *j)
{
    put_union(f, j, NULL);
}

/* Writes the annotations of a category, of all servers. */
static void put_category(struct coord_answers *f, struct json *j, struct slice name, struct slice first)
{
    static const char *const ids[] = {"entryId", NULL};
    json_begin_array(j);
    for (size_t i = 0; i < f->n; i++) {
        struct slice_walk w = slice_members(slice_get(f->v[i].model, "annotations"));
        for (struct slice key, value, item; slice_next_member(&w, &key, &value);) {
            struct slice_walk in = slice_items(value);
            while (slice_same(key, name) && slice_next(&in, &item))
                coord_put_with_ids(f->call, j, f->v[i].node, item, ids);
        }
    }
    json_end_array(j);
}

void coord_merge_annotations(struct coord_answers *f, struct json *j)
{
    put_members(f, j, "annotations", put_category);
}

/* ---- tooltips ---- */

/* Writes a value of a tooltip. A time is recognized by its date. */
static void put_tip(struct json *j, const struct node *owner, struct slice tip)
{
    if (slice_is(tip, '"') && tip.n > 10 && tip.at[5] == '-')
        coord_put_time_text(j, owner, tip, NULL);
    else
        slice_put(j, tip);
}

void coord_merge_tips(struct coord_answers *f, struct json *j)
{
    const struct coord_answer *p = &f->v[0];
    struct slice_walk w = slice_members(p->model);
    if (!slice_is(p->model, '{')) {
        json_write_null(j);
        return;
    }
    json_begin_object(j);
    for (struct slice key, value; slice_next_member(&w, &key, &value);) {
        slice_put_key(j, key);
        put_tip(j, p->node, value);
    }
    json_end_object(j);
}

/* SPDX-License-Identifier: MIT */
/* Questions for series with sums over servers. */
#include "coord/entries.h"
#include "coord/model_cache.h"
#include "coord/question.h"
#include "coord/totals.h"

/* ---- trees of the members ---- */

struct slice *coord_member_trees(struct coord_call *c)
{
    struct slice *models = arena_new(c->arena, struct slice, c->request.n_members + 1);
    const char *path = coord_tree_path(&c->request);
    struct coord_answers f;
    coord_gather_begin(&f, c, c->request.n_members);
    for (size_t m = 0; m < c->request.n_members; m++)
        if (!(models[m] = coord_model_cached(c, c->request.members[m])).at)
            coord_gather_ask(&f, c->request.members[m], "POST", path, "{\"parameters\":{}}");
    bool good = !f.n || coord_gather_wait(&f);
    for (size_t m = 0, k = 0; good && m < c->request.n_members && k < f.n; m++) {
        if (models[m].at)
            continue;
        struct slice model = slice_get(f.v[k].root, "model");
        if (f.v[k++].fate == COORD_GOOD && slice_is(model, '{')) {
            coord_model_note(c, c->request.members[m], model);
            models[m] = coord_model_cached(c, c->request.members[m]);
        }
    }
    coord_gather_end(&f);
    return good ? models : NULL;
}

/* ---- series ---- */

struct asked {
    struct coord_totals totals;
    bool wanted[MOST_TOTALS];
    json_t **items; /* items by member: its own, and those that are only added up */
};

/* Moves the sums out of the requested items. Returns whether there are any. */
static bool take_wanted(struct coord_call *c, struct asked *x)
{
    json_t *items = json_object_get(c->request.parameters, "requested_items"), *item, *rest = json_array();
    bool some = false;
    size_t i;
    json_array_foreach (items, i, item) {
        bool is_sum = false;
        for (size_t k = 0; k < x->totals.n; k++)
            if (json_is_integer(item) && json_integer_value(item) == x->totals.line[k].id)
                is_sum = x->wanted[k] = true;
        if (!is_sum)
            json_array_append(rest, item);
        some |= is_sum;
    }
    if (some)
        json_object_set(c->request.parameters, "requested_items", rest);
    json_decref(rest);
    return some;
}

static void add_parts(struct coord_call *c, struct asked *x, const struct items *items)
{
    x->items = arena_new(c->arena, json_t *, c->request.n_members + 1);
    for (size_t m = 0; m < c->request.n_members; m++)
        x->items[m] = items->own[m];
    for (size_t i = 0; i < x->totals.parts.n; i++) {
        const struct total_part *p = &x->totals.parts.v[i];
        json_t *list = x->items[p->member];
        size_t at = 0;
        while (at < json_array_size(list) && json_integer_value(json_array_get(list, at)) != p->own)
            at++;
        if (x->wanted[p->line] && at == json_array_size(list))
            json_array_append_new(list, json_integer(p->own));
    }
}

/* Asks the members. x_width: width of the ranges; NULL: not set. */
static bool ask(struct coord_call *c, struct asked *x, json_t *x_width, struct coord_answers *f)
{
    const char *path = coord_path_asked(&c->request);
    coord_gather_begin(f, c, c->request.n_members);
    for (size_t m = 0; m < c->request.n_members; m++)
        if (json_array_size(x->items[m]) || coord_node_is_away(c->request.members[m]))
            coord_gather_ask(f, c->request.members[m], "POST", path,
                coord_body_with(
                    c, c->request.members[m], "requested_items", x->items[m], x_width ? "x_width" : NULL, x_width));
    return coord_gather_wait(f) && coord_envelopes_open(f);
}

/* Asks the members and sends the sums. Each server's ranges of durations end at the longest of its own; they are
 * requested again with the width of the widest. */
static void ask_and_send(struct coord_call *c, struct asked *x)
{
    struct items items;
    struct coord_answers f;
    const char *wrong = coord_items_split(c, &items);
    if (wrong) {
        coord_error(c, 400, wrong, NULL);
        return;
    }
    add_parts(c, x, &items);
    bool good = ask(c, x, NULL, &f);
    int64_t width = good ? coord_totals_width(&f) : 0;
    if (width) {
        json_t *x_width = json_integer(width);
        coord_gather_end(&f);
        good = ask(c, x, x_width, &f);
        json_decref(x_width);
    }
    if (good) {
        struct text t = {.fd = -1};
        struct json j = coord_envelope_begin(c, &t);
        coord_merge_totals(&f, &x->totals, x->wanted, &j);
        coord_envelope_send(c, &t);
    }
    coord_gather_end(&f);
}

bool coord_totals_answer(struct coord_call *c)
{
    struct asked x = {0};
    const struct slice *trees = coord_totals_exist(&c->request) ? coord_member_trees(c) : NULL;
    if (!trees)
        return false;
    c->outcome.missing.n = 0; /* the new question reports missing sources itself */
    coord_totals_find(c, trees, &x.totals);
    bool some = x.totals.name && take_wanted(c, &x);
    if (some)
        ask_and_send(c, &x);
    coord_totals_fini(&x.totals);
    return some;
}

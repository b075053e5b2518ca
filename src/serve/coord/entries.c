/* SPDX-License-Identifier: MIT */
/* Entries: their owners and their ids for clients. */
#include <stdlib.h>
#include <string.h>

#include "coord/rotation.h"

enum { MAX_ITEMS = 1 << 20 };

int64_t coord_id(struct coord_call *c, const struct node *n, int64_t own)
{
    const struct coord_virtual_node *g = coord_rotation_of(c, n);
    if (own < 0)
        return own;
    if (g)
        return coord_id_of(c->c->ids, coord_node_key(c, &g->self), coord_piece_key(c, n, own), false);
    return coord_id_of(c->c->ids, coord_node_key(c, n), own, atomic_load(&n->numbers_anew));
}

uint64_t coord_node_key(const struct coord_call *c, const struct node *n)
{
    return n->number == SIZE_MAX ? atomic_load(&n->key) : c->keys[n->number];
}

bool coord_node_is_same(const struct coord_call *c, const struct node *n)
{
    return c->keys[n->number] == atomic_load(&n->key);
}

void coord_put_with_ids(
    struct coord_call *c, struct json *j, const struct node *n, struct slice object, const char *const *ids)
{
    struct slice_walk w = slice_members(object);
    json_begin_object(j);
    for (struct slice key, value; slice_next_member(&w, &key, &value);) {
        int64_t own;
        bool is_id = false;
        for (const char *const *k = ids; *k && !is_id; k++)
            is_id = slice_equals(key, *k) && slice_integer(value, &own);
        slice_put_key(j, key);
        if (is_id)
            json_i64(j, coord_id(c, n, own));
        else if (!coord_put_times(c, j, n, object, key, value))
            slice_put(j, value);
    }
    json_end_object(j);
}

const char *coord_body_of(struct coord_call *c, const struct node *n, json_t *p)
{
    json_t *body = json_object();
    coord_times_ask(c, n, p);
    json_object_set(body, "parameters", p);
    return coord_body_text(c->q->arena, body);
}

const char *coord_body_with(
    struct coord_call *c, const struct node *n, const char *key, json_t *value, const char *key2, json_t *value2)
{
    json_t *p = json_copy(c->parameters);
    if (key)
        json_object_set(p, key, value);
    if (key2)
        json_object_set(p, key2, value2);
    const char *body = coord_body_of(c, n, p);
    json_decref(p);
    return body;
}

/* ---- owners ---- */

/* Returns whether the member has the entry of an id, which belongs to its server or to its server's group. */
static bool has_entry(struct coord_call *c, const struct node *n, uint64_t server, int64_t given, int64_t *own)
{
    const struct coord_virtual_node *g = coord_rotation_of(c, n);
    *own = given;
    return g ? coord_node_key(c, &g->self) == server && coord_piece_own(c, n, given, own)
             : coord_node_key(c, n) == server;
}

/* Reads the requested time; false: there is none. */
static bool time_meant(struct coord_call *c, int64_t *t)
{
    return coord_integer(json_object_get(json_object_get(c->parameters, "requested_element"), "time"), t) ||
        coord_integer(json_array_get(json_object_get(c->parameters, "requested_times"), 0), t) ||
        coord_integer(json_object_get(c->parameters, "begin"), t);
}

struct node *coord_entry_owner(struct coord_call *c, int64_t id, int64_t *own)
{
    struct node *best = NULL;
    struct time_range of_best = {0};
    uint64_t server;
    int64_t given, its, t;
    bool timed = time_meant(c, &t);
    if (!coord_id_owner(c->c->ids, id, &server, &given))
        return NULL;
    for (size_t i = 0; i < c->n_members; i++) {
        struct node *n = c->members[i];
        struct time_range r = n->rotation ? coord_member_range(c, n) : (struct time_range){0};
        if (!has_entry(c, n, server, given, &its))
            continue;
        /* Best piece: of those that begin by then, the latest; of those that begin later, the first. */
        bool better = !best || (coord_node_is_away(best) && !coord_node_is_away(n));
        if (best && timed && coord_node_is_away(best) == coord_node_is_away(n))
            better = r.begin <= t ? of_best.begin > t || r.begin > of_best.begin : r.begin < of_best.begin;
        if (!better)
            continue;
        best = n;
        of_best = r;
        *own = its;
    }
    return best;
}

static void learn_entries(struct coord_call *c, const struct coord_answer *p)
{
    struct slice_walk w = slice_items(slice_get(p->model, "entries"));
    int64_t own;
    for (struct slice e; slice_next(&w, &e);)
        if (slice_integer(slice_get(e, "id"), &own))
            coord_id(c, p->node, own);
}

bool coord_trees_ask(struct coord_gather *f, struct coord_call *c)
{
    const char *path = coord_path_asked(c), *slash = strrchr(path, '/');
    path = arena_printf(c->q->arena, "%.*s/tree", (int)(slash - path), path);
    coord_gather_begin(f, c, c->n_members);
    for (size_t i = 0; i < c->n_members; i++)
        coord_gather_ask(f, c->members[i], "POST", path, "{\"parameters\":{}}");
    if (!coord_gather_wait(f))
        return false;
    for (size_t i = 0; i < f->n; i++)
        f->parts[i].model = f->parts[i].fate == COORD_GOOD ? slice_get(f->parts[i].root, "model") : (struct slice){0};
    coord_rotation_fold_tree(f);
    return true;
}

/* Learns the ids of the output's trees, so that ids from before a restart are known again. */
static void learn_trees(struct coord_call *c)
{
    struct coord_gather f;
    if (coord_trees_ask(&f, c)) {
        for (size_t i = 0; i < f.n; i++) {
            learn_entries(c, &f.parts[i]);
            if (f.parts[i].fate == COORD_REFUSED)
                coord_piece_note_known(c, f.parts[i].node); /* server has no entries */
        }
    }
    coord_gather_end(&f);
}

static bool is_known(struct coord_call *c, int64_t id)
{
    uint64_t server;
    int64_t own;
    if (!coord_id_owner(c->c->ids, id, &server, &own))
        return false;
    /* Keys of pieces' entries are known from their trees only. */
    bool known = true;
    for (size_t i = 0; i < c->n_members && known; i++) {
        const struct coord_virtual_node *g = coord_rotation_of(c, c->members[i]);
        known = !g || coord_node_key(c, &g->self) != server || coord_node_is_away(c->members[i]) ||
            coord_piece_is_known(c, c->members[i]);
    }
    return known;
}

const char *coord_items_split(struct coord_call *c, struct items *out)
{
    json_t *list = json_object_get(c->parameters, "requested_items"), *item;
    size_t i;
    int64_t id, own;
    bool unknown = false;
    *out = (struct items){.own = arena_new(c->q->arena, json_t *, c->n_members + 1), .given = json_is_array(list)};
    if (list && !json_is_null(list) && !out->given)
        return "Invalid query parameters: requested_items";
    if (json_array_size(list) > MAX_ITEMS)
        return "Invalid query parameters: requested_items (too many)";
    json_array_foreach (list, i, item) {
        if (!coord_integer(item, &id))
            return "Invalid query parameters: requested_items";
        unknown |= !is_known(c, id);
    }
    if (unknown)
        learn_trees(c);
    /* Freed with the parameters. */
    json_t *kept = json_array();
    json_object_set_new(c->body, "by server", kept);
    for (size_t m = 0; m < c->n_members; m++) {
        out->own[m] = json_array();
        json_array_append_new(kept, out->own[m]);
    }
    json_array_foreach (list, i, item) {
        uint64_t server;
        int64_t given;
        bool given_once = coord_id_owner(c->c->ids, json_integer_value(item), &server, &given);
        for (size_t m = 0; given_once && m < c->n_members; m++)
            if (has_entry(c, c->members[m], server, given, &own))
                json_array_append_new(out->own[m], json_integer(own));
    }
    return NULL;
}

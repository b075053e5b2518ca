/* SPDX-License-Identifier: MIT */
/* Requested items: entries and their owners. */
#include "coord/entries.h"
#include "coord/gather.h"
#include "coord/rotation.h"

enum { MAX_ITEMS = 1 << 20 };

/* Returns whether the member has the entry of an id, which belongs to its server or to its server's group. */
static bool has_entry(struct coord_call *c, const struct node *n, uint64_t server, int64_t given, int64_t *own)
{
    const struct coord_virtual_node *g = coord_rotation_of(c, n);
    *own = given;
    return g ? coord_node_key(&c->request, &g->self) == server && coord_piece_own(c, n, given, own)
             : coord_node_key(&c->request, n) == server;
}

/* Reads the requested time; false: there is none. */
static bool time_meant(struct coord_call *c, int64_t *t)
{
    return coord_integer(json_object_get(json_object_get(c->request.parameters, "requested_element"), "time"), t) ||
        coord_integer(json_array_get(json_object_get(c->request.parameters, "requested_times"), 0), t) ||
        coord_integer(json_object_get(c->request.parameters, "begin"), t);
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
    for (size_t i = 0; i < c->request.n_members; i++) {
        struct node *n = c->request.members[i];
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

bool coord_trees_ask(struct coord_answers *f, struct coord_call *c)
{
    bool waits = coord_gather_trees(f, c, coord_tree_path(&c->request));
    if (waits)
        coord_rotation_fold_tree(f);
    return waits;
}

/* Learns the ids of the output's trees, so that ids from before a restart are known again. */
static void learn_trees(struct coord_call *c)
{
    struct coord_answers f;
    if (coord_trees_ask(&f, c)) {
        for (size_t i = 0; i < f.n; i++) {
            learn_entries(c, &f.v[i]);
            if (f.v[i].fate == COORD_REFUSED)
                coord_piece_note_known(c, f.v[i].node); /* server has no entries */
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
    for (size_t i = 0; i < c->request.n_members && known; i++) {
        const struct coord_virtual_node *g = coord_rotation_of(c, c->request.members[i]);
        known = !g || coord_node_key(&c->request, &g->self) != server || coord_node_is_away(c->request.members[i]) ||
            coord_piece_is_known(c, c->request.members[i]);
    }
    return known;
}

const char *coord_items_split(struct coord_call *c, struct items *out)
{
    json_t *list = json_object_get(c->request.parameters, "requested_items"), *item;
    size_t i;
    int64_t id, own;
    bool unknown = false;
    *out = (struct items){.own = arena_new(c->arena, json_t *, c->request.n_members + 1), .given = json_is_array(list)};
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
    json_object_set_new(c->request.body, "by server", kept);
    for (size_t m = 0; m < c->request.n_members; m++) {
        out->own[m] = json_array();
        json_array_append_new(kept, out->own[m]);
    }
    json_array_foreach (list, i, item) {
        uint64_t server;
        int64_t given;
        bool given_once = coord_id_owner(c->c->ids, json_integer_value(item), &server, &given);
        for (size_t m = 0; given_once && m < c->request.n_members; m++)
            if (has_entry(c, c->request.members[m], server, given, &own))
                json_array_append_new(out->own[m], json_integer(own));
    }
    return NULL;
}

struct node *coord_question_owner(struct coord_call *c, json_t *question, int64_t *own)
{
    int64_t id;
    return coord_integer(json_object_get(question, "id"), &id) ? coord_entry_owner(c, id, own) : NULL;
}

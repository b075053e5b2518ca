/* SPDX-License-Identifier: MIT */
/* Questions for data of entries: each server is asked for its own. */
#include <string.h>

#include "coord/counts.h"
#include "coord/entries.h"
#include "coord/groups.h"
#include "coord/question.h"
#include "coord/rotation.h"
#include "coord/rows.h"
#include "coord/totals.h"

/* ---- rows of requested entries ---- */

/* Returns the body for a member; NULL: it has nothing to report. */
typedef const char *make_body(struct coord_call *, size_t member, json_t *items);

static const char *body_plain(struct coord_call *c, size_t member, json_t *items)
{
    return coord_body_with(c, c->request.members[member], "requested_items", items, NULL, NULL);
}

/* Asks the owners of the requested items. False: an answer was sent. */
static bool ask_owners(
    struct coord_answers *f, struct coord_call *c, const char *path, struct items *items, make_body *make)
{
    const char *body;
    size_t asked = 0;
    if (!coord_groups_ask(c))
        return false;
    const char *wrong = coord_items_split(c, items);
    if (wrong || !items->given) {
        coord_error(c, 400, wrong ? wrong : "Missing query parameters: requested_items", NULL);
        return false;
    }
    coord_gather_begin(f, c, c->request.n_members + c->c->n_groups);
    for (size_t i = 0; i < c->request.n_members; i++)
        if (json_array_size(items->own[i]) && (body = make(c, i, items->own[i]))) {
            coord_gather_ask(f, c->request.members[i], "POST", path, body);
            asked++;
        }
    for (size_t i = 0; i < c->request.n_members && !asked; i++) /* errors in the rest: one server reports them */
        if (!coord_node_is_away(c->request.members[i]) || i + 1 == c->request.n_members) {
            coord_gather_ask(f, c->request.members[i], "POST", path, body_plain(c, i, items->own[i]));
            asked++;
        }
    if (coord_gather_wait(f) && coord_envelopes_open(f))
        return true;
    coord_gather_end(f);
    return false;
}

static void send_rows(struct coord_call *c, make_body *make, coord_merge *merge)
{
    struct coord_answers f;
    struct items items;
    if (!ask_owners(&f, c, coord_path_asked(&c->request), &items, make))
        return;
    coord_envelope_merge(&f, merge);
    coord_gather_end(&f);
}

static const char *body_states(struct coord_call *c, size_t member, json_t *items)
{
    struct coord_rotation *rotations;
    size_t n = c->request.members[member]->rotation ? coord_rotations_find(c, &rotations) : 0;
    for (size_t g = 0; g < n; g++)
        for (size_t i = 0; i < rotations[g].n; i++)
            if (rotations[g].v[i].node == c->request.members[member])
                return coord_rotation_states_body(c, &rotations[g], i, items);
    return body_plain(c, member, items);
}

void coord_analysis_states(struct coord_call *c)
{
    send_rows(c, body_states, coord_merge_states);
}

void coord_analysis_xy(struct coord_call *c)
{
    if (!coord_totals_answer(c) && !coord_counts_answer(c) && !http_gone(c->q))
        send_rows(c, body_plain, coord_merge_series);
}

/* ---- data from all servers ---- */

static void ask_all(struct coord_call *c, const char *method, coord_merge *merge)
{
    struct coord_answers f;
    const char *path = coord_path_asked(&c->request), *set = http_query(c->q, "markerSetId");
    if (set)
        path = arena_printf(c->arena, "%s?markerSetId=%s", path, coord_path_part(c->arena, set));
    coord_gather_begin(&f, c, c->request.n_members);
    for (size_t i = 0; i < c->request.n_members; i++)
        coord_gather_ask(&f, c->request.members[i], method, path,
            *method == 'P' ? coord_body_with(c, c->request.members[i], NULL, NULL, NULL, NULL) : NULL);
    ;
    if (coord_gather_wait(&f) && coord_envelopes_open(&f))
        coord_envelope_merge(&f, merge);
    coord_gather_end(&f);
}

void coord_analysis_arrows(struct coord_call *c)
{
    ask_all(c, "POST", coord_merge_arrows);
}

void coord_analysis_style(struct coord_call *c)
{
    ask_all(c, "POST", coord_merge_styles);
}

void coord_analysis_categories(struct coord_call *c)
{
    ask_all(c, "GET", coord_merge_categories);
}

void coord_marker_sets(struct coord_call *c)
{
    ask_all(c, "GET", coord_merge_marker_sets);
}

/* Asks for annotations. Items are optional; without them, the request goes to all servers unchanged. */
void coord_analysis_annotations(struct coord_call *c)
{
    struct coord_answers f;
    struct items items;
    const struct coord_request *r = &c->request;
    const char *wrong = NULL, *path = coord_path_asked(r);
    bool by_items = json_is_array(json_object_get(r->parameters, "requested_items"));
    if (by_items && (wrong = coord_items_split(c, &items))) {
        coord_error(c, 400, wrong, NULL);
        return;
    }
    coord_gather_begin(&f, c, r->n_members);
    for (size_t i = 0; i < r->n_members; i++)
        coord_gather_ask(&f, r->members[i], "POST", path,
            coord_body_with(
                c, r->members[i], by_items ? "requested_items" : NULL, by_items ? items.own[i] : NULL, NULL, NULL));
    if (coord_gather_wait(&f) && coord_envelopes_open(&f))
        coord_envelope_merge(&f, coord_merge_annotations);
    coord_gather_end(&f);
}

/* ---- tooltips: answered by the owner ---- */

/* Returns the requested element with the owner's ids. */
static json_t *own_element(struct coord_call *c, const struct node *owner)
{
    static const char *const keys[] = {"entryId", "destinationId"};
    json_t *e = json_copy(json_object_get(c->request.parameters, "requested_element"));
    for (int i = 0; i < 2; i++) {
        int64_t id, own;
        if (coord_integer(json_object_get(e, keys[i]), &id) && id >= 0)
            json_object_set_new(e, keys[i], json_integer(coord_entry_owner(c, id, &own) == owner ? own : -1));
    }
    return e;
}

/* Returns the member with the requested entry; else one that can report what is wrong with the question. */
static size_t owner_of_items(struct coord_call *c, const struct items *items)
{
    json_t *list = json_object_get(c->request.parameters, "requested_items"), *item;
    const struct node *n = NULL;
    size_t i, owner = 0;
    int64_t own;
    json_array_foreach (list, i, item)
        if (!n)
            n = coord_entry_owner(c, json_integer_value(item), &own);
    while (owner < c->request.n_members && c->request.members[owner] != n)
        owner++;
    if (n && owner < c->request.n_members && json_array_size(items->own[owner]))
        return owner;
    for (owner = 0; owner + 1 < c->request.n_members && coord_node_is_away(c->request.members[owner]);)
        owner++;
    return owner;
}

/* Returns the previous piece of the member's group that has the requested entry, too; n_members: none. */
static size_t piece_before(struct coord_call *c, size_t member, const struct items *items)
{
    size_t best = c->request.n_members;
    for (size_t i = 0; i < c->request.n_members && c->request.members[member]->rotation; i++)
        if (c->request.members[i]->rotation == c->request.members[member]->rotation && json_array_size(items->own[i]) &&
            coord_member_range(c, c->request.members[i]).begin <
                coord_member_range(c, c->request.members[member]).begin &&
            (best == c->request.n_members ||
                coord_member_range(c, c->request.members[i]).begin >
                    coord_member_range(c, c->request.members[best]).begin))
            best = i;
    return best;
}

/* Asks a piece for its end: the next piece does not know the state at its own begin, but this one does. */
static void tip_at_end(struct coord_call *c, size_t member, json_t *items)
{
    struct coord_answers f;
    json_t *p = json_copy(c->request.parameters), *element = own_element(c, c->request.members[member]);
    json_t *end = json_integer(coord_member_range(c, c->request.members[member]).end);
    json_object_set(p, "requested_items", items);
    json_object_set_new(p, "requested_times", json_pack("[O]", end));
    if (element) {
        json_object_set(element, "entryId", json_array_get(items, 0));
        json_object_set(element, "time", end);
        json_object_set_new(element, "duration", json_integer(0));
        json_object_set(p, "requested_element", element);
    }
    coord_gather_begin(&f, c, 1);
    coord_gather_ask(&f, c->request.members[member], "POST", coord_path_asked(&c->request),
        coord_body_of(c, c->request.members[member], p));
    if (coord_gather_wait(&f) && coord_envelopes_open(&f))
        coord_envelope_merge(&f, coord_merge_tips);
    coord_gather_end(&f);
    json_decref(end);
    json_decref(element);
    json_decref(p);
}

/* Sends the tooltip of a group's line, from its machines' states at that time. */
static void send_group_tips(struct coord_call *c)
{
    static const char end[] = "tooltip";
    struct coord_answers f;
    struct items items;
    struct text t = {.fd = -1};
    const char *path = coord_path_asked(&c->request);
    path = arena_printf(c->arena, "%.*sstates", (int)(strlen(path) - strlen(end)), path);
    if (!ask_owners(&f, c, path, &items, body_states))
        return;
    coord_rotation_fold_states(&f);
    struct json j = coord_envelope_begin(c, &t);
    coord_groups_put_tips(&f, &j);
    coord_envelope_send(c, &t);
    coord_gather_end(&f);
}

void coord_analysis_tooltip(struct coord_call *c)
{
    if (coord_groups_point(c)) {
        send_group_tips(c);
        return;
    }
    struct coord_answers f;
    struct items items;
    const char *wrong = coord_items_split(c, &items), *path = coord_path_asked(&c->request);
    if (wrong) {
        coord_error(c, 400, wrong, NULL);
        return;
    }
    size_t owner = owner_of_items(c, &items);
    json_t *element = own_element(c, c->request.members[owner]);
    const char *body = coord_body_with(c, c->request.members[owner], items.given ? "requested_items" : NULL,
        items.own[owner], element ? "requested_element" : NULL, element);
    coord_gather_begin(&f, c, 1);
    coord_gather_ask(&f, c->request.members[owner], "POST", path, body);
    if (coord_gather_wait(&f) && coord_envelopes_open(&f)) {
        struct slice_walk w = slice_members(f.v[0].model);
        struct slice key, value;
        size_t before = slice_next_member(&w, &key, &value) ? c->request.n_members : piece_before(c, owner, &items);
        if (before < c->request.n_members)
            tip_at_end(c, before, items.own[before]);
        else
            coord_envelope_merge(&f, coord_merge_tips);
    }
    coord_gather_end(&f);
    json_decref(element);
}

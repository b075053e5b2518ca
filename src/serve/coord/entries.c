/* SPDX-License-Identifier: MIT */
/* Entries: their owners and their ids for clients. */

#include "coord/rotation.h"

int64_t coord_id(struct coord_call *c, const struct node *n, int64_t own)
{
    const struct coord_virtual_node *g = coord_rotation_of(c, n);
    if (own < 0)
        return own;
    if (g)
        return coord_id_of(c->c->ids, coord_node_key(&c->request, &g->self), coord_piece_key(c, n, own), false);
    return coord_id_of(c->c->ids, coord_node_key(&c->request, n), own, atomic_load(&n->numbers_anew));
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

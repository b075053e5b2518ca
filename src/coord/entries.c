/* Entries: whose they are, what clients know them by. */
#include <stdlib.h>
#include <string.h>

#include "coord/times.h"

enum { MAX_ITEMS = 1 << 20 };

int64_t coord_id(struct coord_call *c, const struct node *n, int64_t own)
{
    return own < 0 ? own : coord_id_of(c->c->ids, c->keys[n->number], own, atomic_load(&n->numbers_anew));
}

bool node_is_same(const struct coord_call *c, const struct node *n)
{
    return c->keys[n->number] == atomic_load(&n->key);
}

void put_slice_key(struct json *j, struct slice key)
{
    json_before_value(j);
    text_put(j->out, key.at, key.n);
    text_putc(j->out, ':');
    j->key_pending = true;
}

void put_with_ids(
    struct coord_call *c, struct json *j, const struct node *n, struct slice object, const char *const *ids)
{
    struct slice_walk w = slice_members(object);
    json_begin_object(j);
    for (struct slice key, value; slice_next_member(&w, &key, &value);) {
        int64_t own;
        bool is_id = false;
        for (const char *const *k = ids; *k && !is_id; k++)
            is_id = slice_equals(key, *k) && slice_integer(value, &own);
        put_slice_key(j, key);
        if (is_id)
            json_i64(j, coord_id(c, n, own));
        else if (!put_times(c, j, n, object, key, value))
            put_slice(j, value);
    }
    json_end_object(j);
}

const char *body_with(
    struct coord_call *c, const struct node *n, const char *key, json_t *value, const char *key2, json_t *value2)
{
    json_t *p = json_copy(c->parameters), *body = json_object();
    if (key)
        json_object_set(p, key, value);
    if (key2)
        json_object_set(p, key2, value2);
    times_ask(c, n, p);
    json_object_set_new(body, "parameters", p);
    char *text = json_dumps(body, JSON_COMPACT);
    const char *kept = text ? arena_strdup(c->q->arena, text) : NULL;
    free(text);
    json_decref(body);
    return kept;
}

/* ---- owners ---- */

struct node *entry_owner(struct coord_call *c, int64_t id, int64_t *own)
{
    uint64_t server;
    if (!coord_id_owner(c->c->ids, id, &server, own))
        return NULL;
    for (size_t i = 0; i < c->n_members; i++)
        if (c->keys[c->members[i]->number] == server)
            return c->members[i];
    return NULL;
}

static void learn_entries(struct coord_call *c, const struct fan_part *p)
{
    struct slice_walk w = slice_items(slice_get(p->model, "entries"));
    int64_t own;
    for (struct slice e; slice_next(&w, &e);)
        if (slice_integer(slice_get(e, "id"), &own))
            coord_id(c, p->node, own);
}

/* Goes through the output's trees, so that ids that clients have from before a restart are known again. */
static void learn_trees(struct coord_call *c)
{
    struct fan f;
    const char *path = path_asked(c), *slash = strrchr(path, '/');
    path = arena_printf(c->q->arena, "%.*s/tree", (int)(slash - path), path);
    fan_begin(&f, c, c->n_members);
    for (size_t i = 0; i < c->n_members; i++)
        fan_ask(&f, c->members[i], "POST", path, "{\"parameters\":{}}");
    if (fan_wait(&f))
        for (size_t i = 0; i < f.n; i++) {
            f.parts[i].model = slice_get(f.parts[i].root, "model");
            if (f.parts[i].fate == PART_GOOD)
                learn_entries(c, &f.parts[i]);
        }
    fan_end(&f);
}

static bool is_known(struct coord_call *c, int64_t id)
{
    uint64_t server;
    int64_t own;
    return coord_id_owner(c->c->ids, id, &server, &own);
}

const char *items_split(struct coord_call *c, struct items *out)
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
    /* They are freed with the parameters. */
    json_t *kept = json_array();
    json_object_set_new(c->body, "by server", kept);
    for (size_t m = 0; m < c->n_members; m++) {
        out->own[m] = json_array();
        json_array_append_new(kept, out->own[m]);
    }
    json_array_foreach (list, i, item) {
        const struct node *n = entry_owner(c, json_integer_value(item), &own);
        for (size_t m = 0; n && m < c->n_members; m++)
            if (c->members[m] == n)
                json_array_append_new(out->own[m], json_integer(own));
    }
    return NULL;
}

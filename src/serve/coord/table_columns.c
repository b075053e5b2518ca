/* SPDX-License-Identifier: MIT */
/* Columns of a table of many servers. */
#include <string.h>

#include "coord/gather.h"
#include "coord/merge.h"
#include "coord/model_cache.h"
#include "coord/rotation.h"
#include "coord/table.h"

enum { MAX_COLUMNS = 512, ID_BITS = 31 };

/* ---- asking ---- */

static const char *columns_path(struct coord_call *c)
{
    return arena_printf(c->arena, "/experiments/%s/outputs/table/%s/columns",
        coord_path_part(c->arena, c->request.arg[0]), coord_path_part(c->arena, c->request.arg[1]));
}

/* Notes a server that may have the table, but does not report its columns. */
static void note_unknown(struct coord_call *c, const struct coord_answer *p)
{
    const char *said = slice_string(slice_get(p->root, p->fate == COORD_GOOD ? "statusMessage" : "title"), c->arena);
    if (p->fate == COORD_GOOD || (p->fate == COORD_REFUSED && p->http_status != 404 && p->http_status != 405))
        coord_note_missing(&c->outcome, p->node, said ? said : "it does not say which columns its table has");
}

/* Returns the columns of all members; asks those that never reported them. */
static bool ask_columns(struct coord_call *c, struct slice *models)
{
    struct coord_answers f;
    bool some = false, unknown = false;
    coord_gather_begin(&f, c, c->request.n_members);
    for (size_t i = 0; i < c->request.n_members; i++) {
        models[i] = coord_model_cached(c, c->request.members[i]);
        some |= models[i].at != NULL;
        unknown |= !models[i].at;
        if (!models[i].at)
            coord_gather_ask(&f, c->request.members[i], "POST", columns_path(c), "{\"parameters\":{}}");
    }
    bool good = !unknown || coord_gather_wait(&f);
    for (size_t i = 0, k = 0; good && unknown && i < c->request.n_members; i++) {
        if (models[i].at)
            continue;
        struct coord_answer *p = &f.v[k++];
        struct slice model = slice_get(p->root, "model");
        if (p->fate != COORD_GOOD || !slice_is(model, '['))
            continue;
        coord_model_note(c, p->node, model);
        models[i] = coord_model_cached(c, p->node);
        some = true;
    }
    for (size_t i = 0; good && some && i < f.n; i++)
        if (!slice_is(slice_get(f.v[i].root, "model"), '['))
            note_unknown(c, &f.v[i]);
    if (good && !some) {
        good = false;
        if (coord_envelopes_open(&f))
            coord_envelope_send_null(c, c->outcome.status, c->outcome.message);
    }
    coord_gather_end(&f);
    return good;
}

/* ---- merging ---- */

static size_t find_column(const struct table_columns *t, struct slice object)
{
    size_t i = 0;
    while (i < t->n && !coord_merge_same_column(t->v[i].object, object))
        i++;
    return i;
}

static bool id_is_taken(const struct table_columns *t, int64_t id)
{
    bool taken = false;
    for (size_t i = 0; i < t->n && !taken; i++)
        taken = t->v[i].id == id;
    return taken;
}

/* Returns the server's own id (-1: it has no permanent one) if it is free, so that servers that agree need no
 * translation; else a hash. */
static int64_t new_id(const struct table_columns *t, int64_t own, struct slice name)
{
    for (uint64_t n = 0; own < 0 || own >= INT64_C(1) << ID_BITS || id_is_taken(t, own); n++)
        own = (int64_t)(map_mix(map_hash(name.at, name.n) + n) >> (64 - ID_BITS));
    return own;
}

static void take_columns(
    const struct coord_call *c, struct table_columns *t, struct own_columns *of, struct slice model, bool numbers_anew)
{
    struct slice_walk w = slice_items(model);
    size_t place = 0;
    for (struct slice object; slice_next(&w, &object); place++) {
        struct slice name = slice_get(object, "name");
        int64_t own;
        size_t at = find_column(t, object);
        if (!slice_is(name, '"') || !slice_integer(slice_get(object, "id"), &own) || own < 0)
            continue;
        if (at == t->n && t->n == MAX_COLUMNS)
            continue;
        if (at == t->n) {
            t->v[at] = (struct table_column){new_id(t, numbers_anew ? -1 : own, name), name, object,
                coord_merge_is_time(c->request.arg[1], object, place), slice_get(object, "numbersOf"),
                slice_get(object, "foundBy").at != NULL};
            t->n++;
        }
        of->own[at] = own;
        if (slice_get(object, "foundBy").at && !slice_integer(slice_get(object, "foundBy"), &of->trail))
            of->trail = -1;
        if (coord_merge_orders_lines(c->request.arg[1], object, place)) {
            of->by[0] = own;
            of->n_by = 1;
        } else if (!place && slice_equals(slice_get(object, "order"), "DESCENDING")) {
            of->by[0] = own;
            of->n_by = 1;
            of->descending = true;
        } else if (of->descending && of->n_by == 1 && slice_equals(slice_get(object, "type"), "TIMESTAMP")) {
            of->by[1] = own;
            of->n_by = 2;
        }
    }
    of->known = true;
}

/* Finds or adds the column "Trace". Lines of servers without it show their server there. */
static void add_trace(struct table_columns *t)
{
    static const char name[] = "\"Trace\"",
                      object[] = "{\"id\":1,\"name\":\"Trace\",\"description\":\"Host or server on which it was "
                                 "recorded\",\"type\":\"STRING\",\"key\":\"trace\"}";
    t->trace = find_column(t, (struct slice){object, sizeof object - 1});
    if (t->trace < t->n || t->n == MAX_COLUMNS)
        return;
    for (size_t i = t->n; i > 1; i--)
        t->v[i] = t->v[i - 1];
    t->trace = t->n ? 1 : 0;
    t->v[t->trace] = (struct table_column){new_id(t, 1, (struct slice){name, sizeof name - 1}), {name, sizeof name - 1},
        {object, sizeof object - 1}, false, {0}};
    t->n++;
}

void coord_columns_merge(struct coord_call *c, const struct slice *models, struct table_columns *t)
{
    struct arena *a = c->arena;
    const struct coord_request *r = &c->request;
    size_t known = 0;
    *t = (struct table_columns){.v = arena_new(a, struct table_column, MAX_COLUMNS + 1),
        .of = arena_new(a, struct own_columns, r->n_members + 1),
        .ordered = true};
    for (size_t i = 0; i < r->n_members; i++) {
        t->of[i].own = arena_new(a, int64_t, MAX_COLUMNS + 1);
        memset(t->of[i].own, 0xff, (MAX_COLUMNS + 1) * sizeof(int64_t));
        t->of[i].trail = -1;
        if (models[i].at) {
            take_columns(c, t, &t->of[i], models[i], atomic_load(&r->members[i]->numbers_anew));
            t->descending |= t->of[i].descending;
            t->ordered &= t->of[i].n_by > 0;
            known++;
        }
    }
    for (size_t i = 0; i < r->n_members; i++)
        t->ordered &= !t->of[i].known || t->of[i].descending == t->descending;
    t->trace = t->n;
    if (known < 2 || !coord_machines_several(c) || !t->ordered || t->descending)
        return;
    size_t before = t->n;
    add_trace(t);
    for (size_t i = 0; i < r->n_members && t->n > before; i++) {
        int64_t *own = t->of[i].own;
        memmove(own + t->trace + 1, own + t->trace, (MAX_COLUMNS - t->trace) * sizeof *own);
        own[t->trace] = -1;
    }
}

bool coord_columns_find(struct coord_call *c, struct table_columns *t)
{
    struct slice *models = arena_new(c->arena, struct slice, c->request.n_members + 1);
    if (!ask_columns(c, models))
        return false;
    coord_columns_merge(c, models, t);
    return true;
}

/* ---- the operation ---- */

static void put_column(struct json *j, const struct table_column *column)
{
    struct slice_walk w = slice_members(column->object);
    json_begin_object(j);
    for (struct slice key, value; slice_next_member(&w, &key, &value);) {
        if (slice_equals(key, "foundBy"))
            continue; /* the servers that could fill in cells were asked */
        slice_put_key(j, key);
        if (slice_equals(key, "id"))
            json_i64(j, column->id);
        else
            slice_put(j, value);
    }
    json_end_object(j);
}

void coord_put_columns(struct json *j, const struct table_columns *t)
{
    json_begin_array(j);
    for (size_t i = 0; i < t->n; i++)
        put_column(j, &t->v[i]);
    json_end_array(j);
}

void coord_table_columns(struct coord_call *c)
{
    struct table_columns t;
    struct text out = {.fd = -1};
    if (!coord_columns_find(c, &t))
        return;
    struct json j = coord_envelope_begin(c, &out);
    coord_put_columns(&j, &t);
    for (size_t i = 0; i < c->request.n_members; i++)
        c->outcome.complete += t.of[i].known;
    c->outcome.status = COORD_COMPLETED;
    coord_envelope_send(c, &out);
}

/* SPDX-License-Identifier: MIT */
/* Backfill: cells that a line's owner leaves empty and another server can fill in (the sender of a request). The owner
 * reports a trail, by which the other servers find their cell. */

#include "coord/gather.h"
#include "coord/table.h"
#include "coord/times.h"

enum { MOST_TRAILS = 20000, MOST_IDS = 64 };

struct slice coord_backfill_cell(const struct merged_table *t, const struct backfill *f, size_t chosen, size_t column)
{
    const struct fill *is = &f->of[chosen];
    int64_t own = t->columns->v[column].found && is->line.at ? t->columns->of[is->by].own[column] : -1;
    size_t at = own < 0 ? 0 : coord_table_find_id(f->ids[is->by], f->n_ids[is->by], own);
    return own < 0 || at == f->n_ids[is->by] ? (struct slice){0} : coord_line_cell(is->line, at);
}

/* ---- asking ---- */

/* Trails of other members' lines, and the indices of those lines. */
struct trails {
    json_t *trails, *times;
    size_t *of, n;
};

static struct slice trail_of(const struct merged_table *t, const struct chosen_line *c)
{
    const struct line_answer *a = c->of;
    size_t at = coord_table_find_id(a->ids, a->n_ids, t->columns->of[c->member].trail);
    if (at == a->n_ids)
        return (struct slice){0};
    struct slice trail = slice_get(coord_line_cell(c->line->object, at), "content");
    return slice_is(trail, '"') && trail.n > 2 ? trail : (struct slice){0};
}

/* Returns whether times of two servers are comparable: a clock is configured. */
static bool are_related(const struct node *a, const struct node *b)
{
    return a->is->clock || b->is->clock;
}

static struct trails trails_for(struct merged_table *t, size_t member, const struct chosen_line *lines, size_t n)
{
    struct coord_call *c = t->call;
    struct trails a = {json_array(), json_array(), arena_new(c->arena, size_t, n + 1), 0};
    const struct node *to = c->request.members[member];
    for (size_t i = 0; i < n && a.n < MOST_TRAILS; i++) {
        struct slice trail = lines[i].member != member ? trail_of(t, &lines[i]) : (struct slice){0};
        const struct node *from = c->request.members[lines[i].member];
        int64_t at = lines[i].line->begin;
        if (!trail.at)
            continue;
        json_array_append_new(a.trails, json_string(slice_string(trail, c->arena)));
        json_array_append_new(
            a.times, are_related(from, to) ? json_integer(coord_time_asked_from(to, at)) : json_null());
        a.of[a.n++] = i;
    }
    return a;
}

static const char *trails_body(struct merged_table *t, size_t member, const struct trails *a)
{
    json_t *p = json_object(), *body = json_object(), *ids = json_array();
    for (size_t i = 0; i < t->columns->n; i++)
        if (t->columns->v[i].found && t->columns->of[member].own[i] >= 0)
            json_array_append_new(ids, json_integer(t->columns->of[member].own[i]));
    json_object_set_new(p, "requested_table_index", json_integer(0));
    json_object_set_new(p, "requested_table_count", json_integer(0));
    json_object_set_new(p, "requested_table_column_ids", ids);
    json_object_set(p, "requested_trails", a->trails);
    json_object_set(p, "requested_times", a->times);
    json_object_set_new(body, "parameters", p);
    return coord_body_text(t->call->arena, body);
}

/* ---- answers ---- */

/* Takes a member's cells. Of several members that fill in a line, the first one wins. */
static void take(struct merged_table *t, struct backfill *f, size_t member, const struct trails *a, struct slice model)
{
    struct slice_walk w = slice_items(slice_get(model, "columnIds"));
    struct slice item;
    int64_t index;
    f->ids[member] = arena_new(t->call->arena, int64_t, MOST_IDS);
    while (
        f->n_ids[member] < MOST_IDS && slice_next(&w, &item) && slice_integer(item, &f->ids[member][f->n_ids[member]]))
        f->n_ids[member]++;
    w = slice_items(slice_get(model, "lines"));
    while (slice_next(&w, &item))
        if (slice_integer(slice_get(item, "index"), &index) && index >= 0 && (size_t)index < a->n &&
            !f->of[a->of[index]].line.at)
            f->of[a->of[index]] = (struct fill){member, item};
}

bool coord_backfill_ask(struct merged_table *t, const struct chosen_line *lines, size_t n, struct backfill *f)
{
    struct coord_call *c = t->call;
    struct trails *asking = arena_new(c->arena, struct trails, t->n + 1);
    struct coord_answer **part = arena_new(c->arena, struct coord_answer *, t->n + 1);
    f->of = arena_new(c->arena, struct fill, n + 1);
    f->ids = arena_new(c->arena, int64_t *, t->n + 1);
    f->n_ids = arena_new(c->arena, size_t, t->n + 1);
    coord_gather_begin(&f->gather, c, t->n);
    for (size_t i = 0; i < t->n; i++) {
        if (t->columns->of[i].trail < 0)
            continue; /* server has no trails */
        asking[i] = trails_for(t, i, lines, n);
        if (asking[i].n)
            part[i] = coord_gather_ask(&f->gather, c->request.members[i], "POST", coord_path_asked(&c->request),
                trails_body(t, i, &asking[i]));
        json_decref(asking[i].trails);
        json_decref(asking[i].times);
    }
    if (f->gather.n && !coord_gather_wait(&f->gather))
        return false;
    for (size_t i = 0; i < t->n; i++)
        if (part[i] && part[i]->fate == COORD_GOOD)
            take(t, f, i, &asking[i], slice_get(part[i]->root, "model"));
    return true;
}

void coord_backfill_end(struct backfill *f)
{
    if (f->of)
        coord_gather_end(&f->gather);
}

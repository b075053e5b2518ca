/* SPDX-License-Identifier: MIT */
/* Questions for lines of a merged table. */
#include "coord/gather.h"
#include "coord/question.h"
#include "coord/table.h"
#include "coord/times.h"

enum { MAX_COLUMNS_ASKED = 4096 };

static json_t *list_of(const int64_t *v, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_integer(v[i]));
    return list;
}

static void set(json_t *p, const char *key, json_t *value)
{
    if (value)
        json_object_set(p, key, value);
    else
        json_object_del(p, key);
}

/* Returns the request's parameters for one member, including filters unknown to the coordinator. */
static const char *body_for(const struct merged_table *t, size_t member, const struct line_ask *a)
{
    json_t *p = json_copy(t->call->request.parameters), *body = json_object();
    bool descending = t->columns->descending;
    int64_t own_time = descending ? coord_table_negative(a->time)
                                  : coord_time_asked_from(t->call->request.members[member], a->time);
    set(p, "requested_table_index", NULL);
    set(p, "requested_times", NULL);
    set(p, "requested_value", NULL);
    set(p, "table_search_direction", NULL);
    set(p, "table_filter_expressions", t->filter[member]);
    set(p, "table_search_expressions", a->find || a->tagged ? t->search[member] : NULL);
    if (a->by_time && descending)
        json_object_set_new(p, "requested_value", json_integer(own_time));
    else if (a->by_time)
        json_object_set_new(p, "requested_times", list_of(&own_time, 1));
    else
        json_object_set_new(p, "requested_table_index", json_integer((json_int_t)a->index));
    if (a->find)
        json_object_set_new(p, "table_search_direction", json_string(a->backward ? "PREVIOUS" : "NEXT"));
    json_object_set_new(p, "requested_table_count", json_integer((json_int_t)a->count));
    set(p, "requested_table_column_ids", NULL);
    if (a->n_ids)
        json_object_set_new(p, "requested_table_column_ids", list_of(a->ids, a->n_ids));
    json_object_set_new(body, "parameters", p);
    return coord_body_text(t->call->arena, body);
}

static struct slice content_at(struct slice line, size_t cell)
{
    return slice_get(coord_line_cell(line, cell), "content");
}

/* Reads the member's lines. Returns NULL, or what is wrong with them. */
static const char *read_lines(
    const struct merged_table *t, size_t member, struct slice model, uint64_t most, struct line_answer *out)
{
    struct arena *a = t->call->arena;
    struct slice column_ids = slice_get(model, "columnIds");
    struct slice_walk w = slice_items(column_ids);
    size_t n_ids = 0;
    const struct own_columns *own = &t->columns->of[member];
    int64_t low, size, index;
    struct slice item;
    while (n_ids < MAX_COLUMNS_ASKED && slice_next(&w, &item))
        n_ids++;
    out->ids = arena_new(a, int64_t, n_ids + 1);
    for (w = slice_items(column_ids); out->n_ids < n_ids && slice_next(&w, &item);)
        if (!slice_integer(item, &out->ids[out->n_ids++]))
            return "its table has columns without numbers";
    if (!slice_integer(slice_get(model, "lowIndex"), &low) || !slice_integer(slice_get(model, "size"), &size) ||
        low < 0 || size < 0)
        return "its table has no size";
    out->low = (uint64_t)low;
    out->size = (uint64_t)size;
    size_t time = coord_table_find_id(out->ids, out->n_ids, own->by[0]),
           begin = coord_table_find_id(out->ids, out->n_ids, own->by[1]);
    out->lines = arena_new(a, struct table_line, most + 1);
    for (w = slice_items(slice_get(model, "lines")); out->n < most && slice_next(&w, &item); out->n++) {
        struct table_line *l = &out->lines[out->n];
        if (!slice_integer(slice_get(item, "index"), &index) || index < 0)
            return "its table has lines without numbers";
        *l = (struct table_line){.object = item, .index = (uint64_t)index};
        if (t->columns->ordered && !coord_table_take_time(content_at(item, time), &l->own_time))
            return "its table has lines without times";
        if (t->columns->descending) {
            l->time = coord_table_negative(l->own_time);
            if (own->n_by > 1 && coord_table_take_time(content_at(item, begin), &l->begin))
                l->begin = coord_time_shown(t->call->request.members[member], l->begin);
        } else if (t->columns->ordered) {
            l->time = coord_time_shown(t->call->request.members[member], l->own_time);
        }
    }
    out->good = true;
    return NULL;
}

static void take_lines(struct merged_table *t, size_t member, struct coord_answers *f, struct coord_answer *p,
    const struct line_ask *ask, struct line_answer *out)
{
    const char *wrong = NULL;
    if (p->fate == COORD_GOOD && p->model.at)
        wrong = slice_is(p->model, '{') ? read_lines(t, member, p->model, ask->count, out) : "its table is none";
    if (wrong)
        coord_answer_spoil(f, p, wrong);
    if (out->good && !wrong) {
        coord_line_cache_note(t, member, out);
    } else {
        *out = (struct line_answer){0};
        bool away = p->fate == COORD_MISSING || (p->fate == COORD_REFUSED && p->http_status >= 500);
        t->absent[member] = away && coord_line_cache_answer(t, member, ask, out);
        t->asked[member] = t->absent[member];
    }
    t->size[member] = out->size;
}

bool coord_table_ask(
    struct merged_table *t, const struct line_ask *ask, struct line_answer *answer, struct coord_answers *f)
{
    struct coord_call *c = t->call;
    const char *path = coord_path_asked(&c->request);
    struct coord_answer **part = arena_new(c->arena, struct coord_answer *, t->n + 1);
    coord_gather_begin(f, c, t->n);
    for (size_t i = 0; i < t->n; i++)
        if (t->absent[i] && !ask[i].skip)
            coord_line_cache_answer(t, i, &ask[i], &answer[i]);
        else if (t->asked[i] && !ask[i].skip)
            part[i] = coord_gather_ask(f, c->request.members[i], "POST", path, body_for(t, i, &ask[i]));
    if (!f->n)
        return true;
    if (!coord_gather_wait(f) || !coord_envelopes_open(f))
        return false;
    for (size_t i = 0; i < t->n; i++)
        if (part[i])
            take_lines(t, i, f, part[i], &ask[i], &answer[i]);
    t->sized = true;
    return true;
}

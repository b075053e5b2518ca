/* SPDX-License-Identifier: MIT */
/* Questions for lines of a merged table. */
#include "coord/gather.h"
#include "coord/table.h"
#include "coord/times.h"

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

static void take_lines(struct merged_table *t, size_t member, struct coord_answers *f, struct coord_answer *p,
    const struct line_ask *ask, struct line_answer *out)
{
    const char *wrong = NULL;
    if (p->fate == COORD_GOOD && p->model.at)
        wrong = slice_is(p->model, '{') ? coord_table_read(t, member, p->model, ask->count, out) : "its table is none";
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

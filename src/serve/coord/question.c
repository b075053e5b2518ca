/* SPDX-License-Identifier: MIT */
#include "coord/question.h"

#include <string.h>

#include "base/time.h"
#include "coord/experiments.h"
#include "coord/times.h"

/* Limit of lists: servers accept requests of 1 MiB. */
enum { MOST_LISTED = 16384 };

/* ---- times ---- */

static json_t *ask_list(struct coord_call *c, const struct node *n, const int64_t *v, size_t count)
{
    struct arena *a = c->arena;
    int64_t *own = arena_new(a, int64_t, count + 1);
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        own[i] = coord_time_asked(n, v[i]);
        json_array_append_new(list, json_integer(own[i]));
    }
    if (!c->question.own_times)
        c->question.own_times = arena_new(a, struct coord_sent_times, c->c->most + 1);
    c->question.own_times[n->number] = (struct coord_sent_times){own, v, count};
    return list;
}

static void ask_member(const struct node *n, json_t *object, const char *key)
{
    int64_t t;
    if (coord_integer(json_object_get(object, key), &t))
        json_object_set_new(object, key, json_integer(coord_time_asked(n, t)));
}

/* Translates a range. Samples become a list, since steps that are even by one clock may be uneven by another. */
static void ask_range(struct coord_call *c, const struct node *n, json_t *p)
{
    json_t *range = json_object_get(p, "requested_timerange");
    int64_t begin, end, samples;
    size_t count;
    if (!json_is_object(range))
        return;
    if (coord_integer(json_object_get(range, "nbTimes"), &samples) && samples > 2 && samples <= MOST_LISTED &&
        !json_object_get(range, "nbSamples") && coord_integer(json_object_get(range, "start"), &begin) &&
        coord_integer(json_object_get(range, "end"), &end) && begin <= end) {
        const int64_t *v = tsp_sample_times(c->arena, begin, end, samples, &count);
        json_object_set_new(p, "requested_times", ask_list(c, n, v, count));
        json_object_del(p, "requested_timerange");
        return;
    }
    range = json_copy(range);
    ask_member(n, range, "start");
    ask_member(n, range, "end");
    json_object_set_new(p, "requested_timerange", range);
}

static void ask_times(struct coord_call *c, const struct node *n, json_t *p)
{
    json_t *list = json_object_get(p, "requested_times"), *item;
    int64_t *v = arena_new(c->arena, int64_t, json_array_size(list) + 1);
    size_t i;
    if (!json_array_size(list))
        return;
    json_array_foreach (list, i, item)
        if (!coord_integer(item, &v[i]))
            return;
    json_object_set_new(p, "requested_times", ask_list(c, n, v, i));
}

static void ask_selection(const struct node *n, json_t *p)
{
    json_t *range = json_object_get(p, "selection_range");
    if (!json_is_object(range))
        return;
    range = json_copy(range);
    ask_member(n, range, "start");
    ask_member(n, range, "end");
    json_object_set_new(p, "selection_range", range);
}

static void ask_element(const struct node *n, json_t *p)
{
    json_t *e = json_object_get(p, "requested_element");
    int64_t time, duration, end;
    if (!coord_integer(json_object_get(e, "time"), &time))
        return;
    e = json_copy(e);
    ask_member(n, e, "time");
    if (coord_integer(json_object_get(e, "duration"), &duration) && !__builtin_add_overflow(time, duration, &end))
        json_object_set_new(e, "duration", json_integer(coord_time_asked(n, end) - coord_time_asked(n, time)));
    json_object_set_new(p, "requested_element", e);
}

/* Translates a time of a derived output: a number, or a text, which may count from the experiment's begin. */
static void ask_moment(struct coord_call *c, const struct node *n, json_t *p, const char *key)
{
    const char *text = coord_text(p, key);
    if (text) { /* experiment_range visits all members */
        struct time_range whole = coord_experiment_range(c);
        int64_t t;
        if ((whole.end || *text != '+') && !time_parse(text, whole.begin, &t, NULL))
            json_object_set_new(p, key, json_integer(t));
    }
    if (n->is->clock)
        ask_member(n, p, key);
}

void coord_times_ask(struct coord_call *c, const struct node *n, json_t *p)
{
    if (c->request.arg[0]) {
        ask_moment(c, n, p, "begin");
        ask_moment(c, n, p, "end");
    }
    if (!n->is->clock)
        return;
    if (json_object_get(p, "requested_times"))
        ask_times(c, n, p);
    ask_range(c, n, p);
    ask_selection(n, p);
    ask_element(n, p);
}

/* ---- bodies ---- */

const char *coord_body_of(struct coord_call *c, const struct node *n, json_t *p)
{
    json_t *body = json_object();
    coord_times_ask(c, n, p);
    json_object_set(body, "parameters", p);
    return coord_body_text(c->arena, body);
}

const char *coord_body_with(
    struct coord_call *c, const struct node *n, const char *key, json_t *value, const char *key2, json_t *value2)
{
    json_t *p = json_copy(c->request.parameters);
    if (key)
        json_object_set(p, key, value);
    if (key2)
        json_object_set(p, key2, value2);
    const char *body = coord_body_of(c, n, p);
    json_decref(p);
    return body;
}

bool coord_question_names_host(json_t *question)
{
    const char *thread = coord_text(question, "thread");
    return !json_object_get(question, "thread") || coord_text(question, "host") ||
        (thread && thread[strcspn(thread, ":/")] == ':'); /* "kworker/0:1" names none */
}

/* SPDX-License-Identifier: MIT */
/* The model as text of the protocol. All functions: with the server's lock held. */
#include "base/progress.h"
#include "tsp/model.h"

void tsp_figures_add(struct tsp_figures *sum, const struct tsp_figures *f)
{
    if (!f->events)
        return;
    sum->begin = !sum->events || f->begin < sum->begin ? f->begin : sum->begin;
    sum->end = !sum->events || f->end > sum->end ? f->end : sum->end;
    sum->events += f->events;
}

/* Figures of a path of the opening. While it is being opened: of what has been read. */
static struct tsp_figures figures_at(const struct tsp_opening *o, size_t path)
{
    const struct tsp_growing *g = &o->growing[path];
    if (o->stage == STAGE_OPEN)
        return o->data->figures[path];
    struct tsp_figures f = {.events = atomic_load(&g->events)}; /* times are set before their events */
    f.begin = atomic_load(&g->begin);
    f.end = atomic_load(&g->end);
    return f.events && f.begin <= f.end ? f : (struct tsp_figures){0};
}

static struct tsp_figures figures_of(const struct tsp_opening *o, const struct tsp_trace *t)
{
    for (size_t i = 0; o && i < o->request.n; i++)
        if (!strcmp(o->request.paths[i], t->path))
            return figures_at(o, i);
    return (struct tsp_figures){0};
}

static struct tsp_figures all_figures(const struct tsp_opening *o)
{
    struct tsp_figures all = {0};
    if (o && o->stage == STAGE_OPEN)
        return (struct tsp_figures){.events = o->data->events, .begin = o->data->begin, .end = o->data->end};
    for (size_t i = 0; o && i < o->request.n; i++) {
        struct tsp_figures f = figures_at(o, i);
        tsp_figures_add(&all, &f);
    }
    return all;
}

void tsp_model_write_trace(struct json *j, const struct tsp_trace *t, const struct tsp_figures *f, const char *state)
{
    const struct tsp_figures none = {0};
    f = f ? f : &none;
    json_begin_object(j);
    json_kv_string(j, "name", t->name);
    json_kv_string(j, "path", t->path);
    json_kv_string(j, "UUID", t->uuid);
    json_kv_u64(j, "nbEvents", f->events);
    json_kv_i64(j, "start", f->begin);
    json_kv_i64(j, "end", f->end);
    json_kv_string(j, "indexingStatus", state);
    json_key(j, "properties");
    json_begin_object(j);
    for (size_t i = 0; i < f->n_properties; i++)
        json_kv_string(j, f->properties[i][0], f->properties[i][1]);
    json_end_object(j);
    json_end_object(j);
}

/* Writes the progress of reading traces, once the total is known. */
static void write_indexed(struct json *j, const struct tsp_opening *o)
{
    uint64_t done, total;
    progress_read(o->request.progress, &done, &total);
    if (!total)
        return;
    json_key(j, "indexed");
    json_begin_object(j);
    json_kv_u64(j, "bytes", done < total ? done : total);
    json_kv_u64(j, "of", total);
    json_end_object(j);
}

void tsp_model_write_experiment(struct tsp_server *s, struct json *j, const struct tsp_experiment *x)
{
    const struct tsp_opening *open = x->open && x->open->stage != STAGE_FAILED ? x->open : NULL;
    bool is_open = open && open->stage == STAGE_OPEN, goes_on = open && (!is_open || x->next);
    const char *state = !open ? "CLOSED" : goes_on ? "RUNNING" : "COMPLETED";
    struct tsp_figures all = all_figures(open);
    json_begin_object(j);
    json_kv_string(j, "name", x->name);
    json_kv_string(j, "UUID", x->uuid);
    json_kv_u64(j, "nbEvents", all.events);
    json_kv_i64(j, "start", all.begin);
    json_kv_i64(j, "end", all.end);
    json_kv_string(j, "indexingStatus", state);
    json_kv_u64(j, "version", is_open ? x->version : 0);
    if (is_open && open->data->reference)
        json_kv_string(j, "reference", open->data->reference);
    if (x->problem.code)
        json_kv_string(j, "problem", x->problem.text);
    if (goes_on)
        write_indexed(j, is_open ? x->next : open);
    json_key(j, "traces");
    json_begin_array(j);
    for (size_t i = 0; i < x->traces.n; i++) {
        const struct tsp_trace *t = tsp_model_trace(s, x->traces.v[i]);
        struct tsp_figures f = t ? figures_of(open, t) : all;
        if (t)
            tsp_model_write_trace(j, t, &f, state);
    }
    json_end_array(j);
    json_end_object(j);
}

void tsp_model_write_config(struct json *j, const struct tsp_config *c)
{
    json_begin_object(j);
    json_kv_string(j, "id", c->id);
    json_kv_string(j, "name", c->name);
    json_kv_string(j, "description", c->description);
    json_kv_string(j, "sourceTypeId", c->type);
    json_key(j, "parameters");
    if (c->text)
        json_raw(j, c->text, strlen(c->text));
    else
        json_write_null(j);
    json_end_object(j);
}

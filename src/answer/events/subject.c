/* SPDX-License-Identifier: MIT */
#include "events/subject.h"

#include <stdlib.h>

/* ---- classes ---- */

static void bind_first(const struct ctf_event_class *cls, const char *a, const char *b, struct event_field *out)
{
    events_field_bind(cls, a, out);
    if (out->how == EVENT_FIELD_ABSENT && b)
        events_field_bind(cls, b, out);
}

static struct event_subject_class *bind_class(const struct event_subject *s, const struct ctf_event_class *cls)
{
    struct event_subject_class *c = mem_zalloc(sizeof *c);
    bind_first(cls, "ctx.tid", "ctx.vtid", &c->tid);
    if (c->tid.how == EVENT_FIELD_ABSENT)
        events_field_bind(cls, "fields.perf_tid", &c->tid);
    bind_first(cls, "ctx.procname", "ctx.comm", &c->comm);
    kernel_switch_is(&c->as_switch, cls);
    kernel_exec_is(&c->as_exec, cls);
    c->slots = mem_zalloc(sizeof *c->slots * (s->n_names + 1));
    for (size_t i = 0; i < s->n_names; i++)
        if (s->builtins[i] == EVENT_IS_NONE)
            events_field_bind(cls, s->names[i], &c->slots[i]);
    return c;
}

static const struct event_subject_class *class_info(
    struct event_subject *s, size_t schema, const struct ctf_event_class *cls)
{
    struct event_subject_class **c = &s->classes[schema][cls->index];
    if (!*c)
        *c = bind_class(s, cls);
    return *c;
}

/* Returns whether the schema has switches without the thread in a context. */
static bool has_bare_switch(struct event_subject *s, size_t schema)
{
    const struct event_schema *v = &s->table->schemas.v[schema];
    for (size_t k = 0; k < v->n; k++) {
        if (!v->classes[k] || v->classes[k]->item != CTF_EVENT)
            continue;
        const struct event_subject_class *c = class_info(s, schema, v->classes[k]);
        if (c->as_switch.cls && (c->tid.how == EVENT_FIELD_ABSENT || c->comm.how == EVENT_FIELD_ABSENT))
            return true;
    }
    return false;
}

/* ---- events ---- */

void events_subject_enter(struct event_subject *s, const struct ctf_merge *m, const struct ctf_event *ev)
{
    s->ev = ev;
    s->source = ctf_merge_source(m, ev->stream);
    if (ev->cls->item != CTF_EVENT) {
        struct kernel_running *r = s->follows_threads ? kernel_running_on(&s->cpus[s->source], ev->cpu) : NULL;
        if (r)
            r->tid = KERNEL_NO_TID; /* lost events may include a switch */
        return;
    }
    s->info = class_info(s, s->table->schema_of[s->source], ev->cls);
    bool tells = s->follows_threads && (s->info->as_switch.cls || s->info->as_exec.cls);
    struct kernel_running *r = tells ? kernel_running_on(&s->cpus[s->source], ev->cpu) : NULL;
    if (r && s->info->as_exec.cls)
        kernel_running_exec(r, &s->info->as_exec, ev);
    else if (r) /* the thread may have an unknown new name */
        kernel_running_set(r, &s->info->as_switch.prev, ev);
}

static void put_text(struct expr_value *out, const char *s)
{
    if (s)
        *out = (struct expr_value){.type = EXPR_STRING, .s = s, .n = strlen(s)};
}

void events_subject_thread(struct event_subject *s, bool comm, struct expr_value *out)
{
    events_field_get(comm ? &s->info->comm : &s->info->tid, s->ev, out);
    if (out->type != EXPR_ABSENT)
        return;
    const struct kernel_running *r = kernel_running_on(&s->cpus[s->source], s->ev->cpu);
    if (!r || r->tid == KERNEL_NO_TID)
        return;
    if (comm)
        put_text(out, r->comm);
    else
        *out = (struct expr_value){.type = EXPR_INT, .i = r->tid};
}

void events_subject_get(struct event_subject *s, size_t name, struct expr_value *out)
{
    *out = (struct expr_value){.type = EXPR_ABSENT};
    switch (s->builtins[name]) {
    case EVENT_IS_NAME: put_text(out, s->ev->cls->name); break;
    case EVENT_IS_CPU:
        if (s->ev->cpu >= 0)
            *out = (struct expr_value){.type = EXPR_INT, .i = s->ev->cpu};
        break;
    case EVENT_IS_TS: *out = (struct expr_value){.type = EXPR_INT, .i = s->ev->ts}; break;
    case EVENT_IS_TID: events_subject_thread(s, false, out); break;
    case EVENT_IS_COMM: events_subject_thread(s, true, out); break;
    case EVENT_IS_HOST: put_text(out, s->table->origins[s->source].host); break;
    case EVENT_IS_NONE: events_field_get(&s->info->slots[name], s->ev, out); break;
    }
}

/* ---- life ---- */

int events_subject_init(struct event_subject *s, const struct event_table *table, const char *const *names, size_t n,
    bool threads, struct ctf_window window, struct err *e)
{
    int r = ERR_OK;
    *s = (struct event_subject){.table = table, .names = names, .n_names = n, .follows_threads = threads};
    s->builtins = mem_zalloc(sizeof *s->builtins * (n + 1));
    for (size_t i = 0; i < n; i++) {
        s->builtins[i] = events_builtin(names[i]);
        s->follows_threads |= s->builtins[i] == EVENT_IS_TID || s->builtins[i] == EVENT_IS_COMM;
    }
    s->classes = mem_zalloc(sizeof *s->classes * (table->schemas.n + 1));
    for (size_t i = 0; i < table->schemas.n; i++)
        s->classes[i] = mem_zalloc(sizeof **s->classes * (table->schemas.v[i].n + 1));
    s->cpus = mem_zalloc(sizeof *s->cpus * (table->n + 1));
    for (size_t i = 0; i < table->n && r == ERR_OK && s->follows_threads; i++)
        if (has_bare_switch(s, table->schema_of[i]))
            r = kernel_running_find(&s->cpus[i], &table->sources[i], window, e);
    return r;
}

void events_subject_fini(struct event_subject *s)
{
    if (!s->table)
        return;
    for (size_t i = 0; i < s->table->schemas.n; i++) {
        for (size_t k = 0; k < s->table->schemas.v[i].n; k++) {
            free(s->classes[i][k] ? s->classes[i][k]->slots : NULL);
            free(s->classes[i][k]);
        }
        free(s->classes[i]);
    }
    free(s->classes);
    for (size_t i = 0; i < s->table->n; i++)
        vec_free(&s->cpus[i]);
    free(s->cpus);
    free(s->builtins);
    *s = (struct event_subject){0};
}

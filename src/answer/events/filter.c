/* SPDX-License-Identifier: MIT */
/* Selection of events: by name, CPU, thread and expression. */
#include <fnmatch.h>
#include <stdlib.h>

#include "base/expr.h"
#include "events/subject.h"

enum { NAME_UNKNOWN, NAME_WANTED, NAME_NOT_WANTED };

struct event_filter {
    struct event_patterns patterns;
    int64_t cpu, tid;
    struct expr *where;
    struct event_subject subject; /* subject with the names of the expression */
    uint8_t **named;              /* by schema of the table and number of the class; NULL: all names are selected */
};

/* ---- testing ---- */

static bool is_named(struct event_filter *f, const struct ctf_event_class *cls)
{
    if (!f->named)
        return true;
    uint8_t *answer = &f->named[f->subject.table->schema_of[f->subject.source]][cls->index];
    if (*answer == NAME_UNKNOWN) {
        *answer = NAME_NOT_WANTED;
        for (size_t i = 0; i < f->patterns.n && *answer != NAME_WANTED; i++)
            if (fnmatch(f->patterns.v[i], cls->name ? cls->name : "", 0) == 0)
                *answer = NAME_WANTED;
    }
    return *answer == NAME_WANTED;
}

static void get(void *arg, size_t slot, struct expr_value *out)
{
    events_subject_get(arg, slot, out);
}

static bool is_wanted(struct event_filter *f, const struct ctf_event *ev)
{
    if (!is_named(f, ev->cls) || (f->cpu >= 0 && ev->cpu != f->cpu))
        return false;
    if (f->tid >= 0) {
        struct expr_value v;
        events_subject_thread(&f->subject, false, &v);
        if (v.type != EXPR_INT || v.i != f->tid)
            return false;
    }
    return !f->where || expr_eval(f->where, get, &f->subject);
}

bool events_filter_matches(struct event_filter *f, const struct ctf_merge *m, const struct ctf_event *ev)
{
    events_subject_enter(&f->subject, m, ev);
    if (ev->cls->item != CTF_EVENT)
        return f->cpu < 0 || ev->cpu == f->cpu;
    bool wanted = is_wanted(f, ev);
    event_subject_leave(&f->subject);
    return wanted;
}

/* ---- life ---- */

static void take_patterns(struct event_filter *f, const struct event_table *table, const struct event_filter_options *o)
{
    for (size_t i = 0; i < o->n_names; i++)
        events_patterns_add(&f->patterns, o->names[i]);
    if (!f->patterns.n)
        return;
    f->named = mem_zalloc(sizeof *f->named * (table->schemas.n + 1));
    for (size_t i = 0; i < table->schemas.n; i++)
        f->named[i] = mem_zalloc(table->schemas.v[i].n + 1);
}

int events_filter_new(const struct event_table *table, const struct event_filter_options *o, struct ctf_window window,
    struct event_filter **out, struct err *e)
{
    struct event_filter *f = mem_zalloc(sizeof *f);
    *out = NULL;
    f->cpu = o->cpu;
    f->tid = o->tid;
    int r = o->where ? expr_compile(o->where, &f->where, e) : ERR_OK;
    if (r == ERR_OK) {
        const char *const *names = NULL;
        size_t n = f->where ? expr_names(f->where, &names) : 0;
        take_patterns(f, table, o);
        r = events_subject_init(&f->subject, table, names, n, f->tid >= 0, window, e);
    }
    if (r != ERR_OK) {
        events_filter_free(f);
        return r;
    }
    *out = f;
    return ERR_OK;
}

void events_filter_free(struct event_filter *f)
{
    if (!f)
        return;
    for (size_t i = 0; f->named && i < f->subject.table->schemas.n; i++)
        free(f->named[i]);
    free(f->named);
    events_patterns_free(&f->patterns);
    events_subject_fini(&f->subject);
    expr_free(f->where);
    free(f);
}

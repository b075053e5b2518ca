/* SPDX-License-Identifier: MIT */
/* Private to events: values of names in expressions and columns, event by event, and the current threads. */
#ifndef WEFT_EVENTS_SUBJECT_H
#define WEFT_EVENTS_SUBJECT_H

#include "events/field.h"
#include "events/names.h"
#include "events/table.h"
#include "kernel/kernel.h"

struct event_subject_class {
    struct event_field tid, comm; /* thread of the event, from a context */
    struct kernel_exec as_exec;
    struct kernel_switch as_switch; /* with class NULL if it is none */
    struct event_field *slots;      /* fields by name; absent for properties of the event itself */
};

struct event_subject {                /* zero-initialise; one owner */
    const struct event_table *table;
    size_t n_names;
    enum events_builtin *builtins;     /* properties by name */
    const char *const *names;
    struct event_subject_class ***classes; /* by schema of the table and number of the class; NULL until requested */
    struct kernel_running_cpus *cpus; /* current threads by source */
    bool follows_threads;
    /* current event */
    const struct ctf_event *ev;
    const struct event_subject_class *info;
    uint32_t source;
};

/* names: borrowed; threads: events_subject_thread will be called, too. `window` must be the merge's: if needed, the
 * threads running at its begin are searched. Call events_subject_fini even if it fails. */
int events_subject_init(struct event_subject *, const struct event_table *, const char *const *names, size_t n,
    bool threads, struct ctf_window window, struct err *e);
void events_subject_fini(struct event_subject *);
/* Enters the next item. Call it for every one in order, followed by event_subject_leave unless it is a loss; in
 * between, values are available. */
void events_subject_enter(struct event_subject *, const struct ctf_merge *, const struct ctf_event *);
static inline void event_subject_leave(struct event_subject *s)
{
    if (s->follows_threads && s->info->as_switch.cls) {
        struct kernel_running *r = kernel_running_on(&s->cpus[s->source], s->ev->cpu);
        if (r)
            kernel_running_set(r, &s->info->as_switch.next, s->ev);
    }
}
/* Id (or name) of the thread of the event; absent if unknown. */
void events_subject_thread(struct event_subject *, bool comm, struct expr_value *out);
/* Value of a name by its number; strings are borrowed until the next event. */
void events_subject_get(struct event_subject *, size_t name, struct expr_value *out);

#endif

/* SPDX-License-Identifier: MIT */
/* Private to events: values that names stand for in expressions and columns, event after event, and which thread runs
 * where meanwhile. */
#ifndef WEFT_EVENTS_SUBJECT_H
#define WEFT_EVENTS_SUBJECT_H

#include "events/field.h"
#include "events/names.h"
#include "events/table.h"
#include "kernel/kernel.h"

struct event_subject_class {
    struct event_field tid, comm; /* of the thread the event happened in, from a context */
    struct kernel_exec as_exec;
    struct kernel_switch as_switch; /* its class NULL: it is none */
    struct event_field *slots;      /* by name; absent for those of the event itself */
};

struct event_subject {                /* zero-initialise; one owner */
    const struct event_table *table;
    size_t n_names;
    enum event_builtin *builtins;     /* by name */
    const char *const *names;
    struct event_subject_class ***classes; /* by schema of the table and number of the class; NULL until asked for */
    struct kernel_running_cpus *cpus; /* by source; which thread runs on each */
    bool follows_threads;
    /* the event it is at */
    const struct ctf_event *ev;
    const struct event_subject_class *info;
    uint32_t source;
};

/* names: borrowed; threads: event_subject_thread will be asked besides. `window` is the one that the merge will be
 * given: the threads running at its begin are found out where they matter. To be ended by event_subject_fini also when
 * it fails. */
int event_subject_init(struct event_subject *, const struct event_table *, const char *const *names, size_t n,
    bool threads, struct ctf_window window, struct err *e);
void event_subject_fini(struct event_subject *);
/* Begins with the next item; to be called for every one in order, and then, unless it is a loss, event_subject_leave:
 * values can be asked for in between. */
void event_subject_enter(struct event_subject *, const struct ctf_merge *, const struct ctf_event *);
static inline void event_subject_leave(struct event_subject *s)
{
    if (s->follows_threads && s->info->as_switch.cls) {
        struct kernel_running *r = kernel_running_on(&s->cpus[s->source], s->ev->cpu);
        if (r)
            kernel_running_set(r, &s->info->as_switch.next, s->ev);
    }
}
/* Thread id (or its name) in which the event happened; absent when it is not known. */
void event_subject_thread(struct event_subject *, bool comm, struct expr_value *out);
/* Value of a name by its number; strings are borrowed until the next event. */
void event_subject_get(struct event_subject *, size_t name, struct expr_value *out);

#endif

/* SPDX-License-Identifier: MIT */
/* Current thread of each CPU, from its switches: for readers of single events, or of a part of a trace. Included by
 * kernel/kernel.h.
 *
 * The tracker does not use it: it follows rows instead of tids, and reads a switch's fields together through its plan
 * of the class, at fixed offsets. A second look at every switch would slow its pass. */
#ifndef WEFT_KERNEL_RUNNING_H
#define WEFT_KERNEL_RUNNING_H

#include "ctf/ctf.h"

/* Side of a switch: fields of the thread that leaves a CPU, and of the one that comes. */
struct kernel_switch_side { struct ctf_access tid, comm, priority; };
struct kernel_switch {
    const struct ctf_event_class *cls;   /* NULL: not bound yet */
    struct kernel_switch_side prev, next;
};
/* Returns whether it is a switch (of LTTng or perf); then binds *s to its class. */
bool kernel_switch_is(struct kernel_switch *s, const struct ctf_event_class *);
/* False: the event has none. */
bool kernel_switch_tid(const struct kernel_switch_side *, const struct ctf_event *, int64_t *out);
bool kernel_switch_priority(const struct kernel_switch_side *, const struct ctf_event *, int64_t *out);

/* Exec: the thread runs another program from then on. */
struct kernel_exec { const struct ctf_event_class *cls; struct ctf_access tid, old_tid, filename; };
bool kernel_exec_is(struct kernel_exec *, const struct ctf_event_class *); /* see kernel_switch_is */

enum { KERNEL_NO_TID = -1 };
struct kernel_running { int64_t tid; /* KERNEL_NO_TID: unknown */ char comm[32]; };
struct kernel_running_cpus { struct kernel_running *v; size_t n, cap; }; /* CPUs of a host; zero-initialise, vec_free */
/* NULL for negative and impossible numbers. Valid until the next call. */
struct kernel_running *kernel_running_on(struct kernel_running_cpus *, int32_t cpu);
/* Sets the thread that runs from the event on (or ran before it). */
void kernel_running_set(struct kernel_running *, const struct kernel_switch_side *, const struct ctf_event *);
/* Sets the name of the thread to its program's, from the event on. */
void kernel_running_exec(struct kernel_running *, const struct kernel_exec *, const struct ctf_event *);
/* Finds the current threads at the window's begin: from the first switch of each stream in the window; if there is
 * none, or an exec comes before it, from the last switch before the window. */
int kernel_running_find(struct kernel_running_cpus *, const struct ctf_source *, struct ctf_window, struct err *e);

#endif

/* SPDX-License-Identifier: MIT */
/* Which thread each CPU runs, from its switches: for those who read single events, or a part of a trace. Included by
 * kernel/kernel.h.
 *
 * The tracker does not use it: it follows rows instead of tids, and reads a switch's fields together through its plan
 * of the class, at fixed offsets. A second look at every switch would slow its pass. */
#ifndef WEFT_KERNEL_RUNNING_H
#define WEFT_KERNEL_RUNNING_H

#include "ctf/ctf.h"

/* Where a class of events has the thread that leaves a CPU, and the one that comes. */
struct kernel_switch_side { struct ctf_access tid, comm, priority; };
struct kernel_switch {
    const struct ctf_event_class *cls;   /* NULL: bound to none yet */
    struct kernel_switch_side prev, next;
};
/* Is it a switch (of LTTng or perf)? Then *s is bound to its class. */
bool kernel_switch_is(struct kernel_switch *s, const struct ctf_event_class *);
/* False: the event has none. */
bool kernel_switch_tid(const struct kernel_switch_side *, const struct ctf_event *, int64_t *out);
bool kernel_switch_priority(const struct kernel_switch_side *, const struct ctf_event *, int64_t *out);

/* An exec: which thread runs which program from then on. */
struct kernel_exec { const struct ctf_event_class *cls; struct ctf_access tid, old_tid, filename; };
bool kernel_exec_is(struct kernel_exec *, const struct ctf_event_class *); /* as kernel_switch_is */

enum { KERNEL_NO_TID = -1 };
struct kernel_running { int64_t tid; /* KERNEL_NO_TID: not known */ char comm[32]; };
struct kernel_running_cpus { struct kernel_running *v; size_t n, cap; }; /* of a host; zero-initialise, vec_free */
/* NULL for negative numbers and those that no machine has. Valid until the next call. */
struct kernel_running *kernel_running_on(struct kernel_running_cpus *, int32_t cpu);
/* That thread runs from the event on (or did before it). */
void kernel_running_set(struct kernel_running *, const struct kernel_switch_side *, const struct ctf_event *);
/* The thread has the name of its program from the event on. */
void kernel_running_exec(struct kernel_running *, const struct kernel_exec *, const struct ctf_event *);
/* Who runs at the window's begin: from the first switch of each stream in the window; without any, or when an exec
 * comes before it, from the last switch before the window. */
int kernel_running_find(struct kernel_running_cpus *, const struct ctf_source *, struct ctf_window, struct err *e);

#endif

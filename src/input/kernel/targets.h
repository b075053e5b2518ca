/* SPDX-License-Identifier: MIT */
/* CPUs that threads are woken for or moved to: finds those without a stream in the trace. Included by
 * kernel/kernel.h. */
#ifndef WEFT_KERNEL_TARGETS_H
#define WEFT_KERNEL_TARGETS_H

#include "ctf/ctf.h"

struct text;

/* Where events of a trace name such a CPU, by class; mode 0: they do not. Any number of threads may read it. */
struct kernel_targets { struct ctf_access *by_class; size_t n; };
void kernel_targets_bind(struct kernel_targets *, const struct ctf_trace *);
void kernel_targets_fini(struct kernel_targets *);
/* CPU; -1: the event has none. */
static inline int64_t kernel_target_of(const struct kernel_targets *t, const struct ctf_event *ev)
{
    bool present = ev->cls->index < t->n && t->by_class[ev->cls->index].mode != 0;
    if (!present)
        return -1;
    const struct ctf_access *a = &t->by_class[ev->cls->index];
    int64_t cpu = a->mode < 3 ? ctf_read_int(ev, a) : ctf_read_slow(ev, a, &present);
    return present ? cpu : -1;
}
/* Returns whether a complete trace has no packet of that CPU, although it has packets of others with a CPU number. */
bool kernel_cpu_is_missing(const struct ctf_trace *, int64_t cpu);
/* Returns whether its files show that (ctf_trace_absent), so that it is among the trace's problems. */
bool kernel_missing_is_told(const struct ctf_trace *, int64_t cpu);
/* Writes the sentence about it. */
void kernel_missing_words(struct text *out, const struct ctf_trace *, const int32_t *cpus, size_t n);

#endif

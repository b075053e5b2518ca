/* SPDX-License-Identifier: MIT */
/* CPUs that threads are woken for or moved to: finds those without a stream in the trace. Included by
 * kernel/kernel.h. */
#ifndef WEFT_KERNEL_TARGETS_H
#define WEFT_KERNEL_TARGETS_H

#include "ctf/ctf.h"

struct text;

struct kernel_target { struct ctf_access cpu; bool known; };
/* Targets of one trace; zero-initialise. */
struct kernel_targets { struct { struct kernel_target *v; size_t n, cap; } by_class; };
/* Returns whether the class has such a CPU. */
bool kernel_targets_bind(struct kernel_targets *, const struct ctf_event_class *);
void kernel_targets_fini(struct kernel_targets *);
/* CPU; -1: the event has none. */
static inline int64_t kernel_target_of(struct kernel_targets *t, const struct ctf_event *ev)
{
    bool present = ev->cls->index < t->by_class.n && t->by_class.v[ev->cls->index].known
        ? t->by_class.v[ev->cls->index].cpu.mode != 0
        : kernel_targets_bind(t, ev->cls);
    if (!present)
        return -1;
    const struct ctf_access *a = &t->by_class.v[ev->cls->index].cpu;
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

/* SPDX-License-Identifier: MIT */
/* CPUs that threads go to. One without any packet in the trace is missing: its stream file was not copied. */
#include "kernel/targets.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"

static const char *field_of(const struct ctf_event_class *cls)
{
    const char *name = cls->item == CTF_EVENT && cls->name ? cls->name : "";
    if (!strncmp(name, "sched:", 6)) /* perf's */
        name += 6;
    if (!strcmp(name, "sched_waking") || !strcmp(name, "sched_wakeup") || !strcmp(name, "sched_wakeup_new"))
        return "target_cpu";
    return strcmp(name, "sched_migrate_task") ? NULL : "dest_cpu";
}

void kernel_targets_bind(struct kernel_targets *t, const struct ctf_trace *trace)
{
    const struct ctf_event_class *const *classes;
    t->n = ctf_trace_classes(trace, &classes);
    t->by_class = mem_zalloc((t->n + 1) * sizeof *t->by_class);
    for (size_t i = 0; i < t->n; i++) {
        const char *field = field_of(classes[i]);
        if (field)
            ctf_access_find(classes[i], CTF_PAYLOAD, field, &t->by_class[i]);
    }
}

void kernel_targets_fini(struct kernel_targets *t)
{
    free(t->by_class);
}

bool kernel_cpu_is_missing(const struct ctf_trace *t, int64_t cpu)
{
    bool has = cpu < 0 || cpu >= CTF_MOST_CPUS, any = false;
    for (size_t i = 0; i < ctf_trace_streams(t) && !has; i++) {
        struct ctf_stream_info s;
        ctf_trace_stream(t, i, &s);
        has = s.packets && (s.cpu < 0 || s.cpu == cpu);
        any = true;
    }
    return any && !has;
}

bool kernel_missing_is_told(const struct ctf_trace *t, int64_t cpu)
{
    const struct ctf_absent *absent;
    size_t n = ctf_trace_absent(t, &absent), i = 0;
    while (i < n && absent[i].cpu != cpu)
        i++;
    return i < n;
}

void kernel_missing_words(struct text *out, const struct ctf_trace *t, const int32_t *cpus, size_t n)
{
    text_printf(out, "%s: missing stream%s of CPU%s ", ctf_trace_path(t), n == 1 ? "" : "s", n == 1 ? "" : "s");
    for (size_t i = 0; i < n; i++)
        text_printf(out, "%s%d", i ? ", " : "", cpus[i]);
    text_puts(out, ": threads go there, but nothing that was recorded there is in the trace; copy all of its files");
}

/* SPDX-License-Identifier: MIT */
/* Performance counters in the contexts of events. LTTng calls the kernel's counters per CPU `perf_cpu_…`; old versions
 * only `perf_…`. */
#include <string.h>

#include "base/mem.h"
#include "kernel/tracker.h"

static const enum ctf_scope scopes[] = {CTF_STREAM_EVENT_CONTEXT, CTF_EVENT_CONTEXT};

/* Number of the counter with that name, added if there is none; -1: too many. */
static int counter_number(struct kernel_binding *b, const char *name)
{
    for (size_t i = 0; i < b->n_counters; i++)
        if (!strcmp(b->counters[i], name))
            return (int)i;
    if (b->n_counters == KERNEL_MOST_COUNTERS)
        return -1;
    b->counters[b->n_counters++] = name;
    return (int)b->n_counters - 1;
}

static bool is_counter(const struct ctf_field *f)
{
    return f->type->kind == CTF_INT && !strncmp(f->shown, "perf_", 5);
}

void kernel_counters_bind(struct kernel_binding *b, struct kernel_plan *p, const struct ctf_event_class *c)
{
    size_t n = 0;
    for (size_t k = 0; k < sizeof scopes / sizeof *scopes; k++)
        for (uint32_t i = 0; c->scope[scopes[k]] && i < c->scope[scopes[k]]->n; i++)
            n += is_counter(&c->scope[scopes[k]]->u.fields[i]);
    if (!n)
        return;
    struct kernel_counters *found = arena_alloc(&b->arena, sizeof *found + n * sizeof *found->v);
    found->n = 0;
    for (size_t k = 0; k < sizeof scopes / sizeof *scopes; k++)
        for (uint32_t i = 0; c->scope[scopes[k]] && i < c->scope[scopes[k]]->n; i++) {
            const struct ctf_field *f = &c->scope[scopes[k]]->u.fields[i];
            struct kernel_counter *to = &found->v[found->n];
            if (is_counter(f) && ctf_access_find(c, scopes[k], f->name, &to->access) &&
                (to->number = counter_number(b, f->shown)) >= 0)
                found->n++;
        }
    p->counters = found;
}

void kernel_counters_read(const struct kernel_counters *c, const struct ctf_event *ev, struct kernel_record *r,
    int64_t values[KERNEL_MOST_COUNTERS])
{
    r->u.counters.present = 0;
    r->u.counters.values = values;
    for (size_t i = 0; i < c->n; i++) {
        values[c->v[i].number] = ctf_read_int(ev, &c->v[i].access);
        r->u.counters.present |= UINT64_C(1) << c->v[i].number;
    }
}

size_t kernel_tracker_counters(const struct kernel_tracker *t, const char *const **out)
{
    *out = t->binding->counters;
    return t->binding->n_counters;
}

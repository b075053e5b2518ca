#include "kernel/running.h"

#include <string.h>

#include "base/mem.h"

enum { BATCH = 256 };

/* ---- switches ---- */

static bool is_integer(const struct ctf_type *t)
{
    return t->kind == CTF_INT || t->kind == CTF_ENUM;
}

static bool is_text(const struct ctf_type *t)
{
    return t->kind == CTF_STRING ||
        ((t->kind == CTF_ARRAY || t->kind == CTF_SEQUENCE) && t->u.list.element->kind == CTF_INT &&
            t->u.list.element->is_text);
}

/* `other`: what perf calls the field, or NULL. */
static void bind(const struct ctf_event_class *cls, bool (*fits)(const struct ctf_type *), const char *name,
    const char *other, struct ctf_access *out)
{
    if (cls->scope[CTF_PAYLOAD] && ctf_access_find(cls, CTF_PAYLOAD, name, out) && fits(out->type))
        return;
    *out = (struct ctf_access){0};
    if (other)
        bind(cls, fits, other, NULL, out);
}

bool kernel_switch_is(struct kernel_switch *s, const struct ctf_event_class *cls)
{
    if (s->cls == cls)
        return true;
    if (cls->item != CTF_EVENT || !cls->name ||
        (strcmp(cls->name, "sched_switch") && strcmp(cls->name, "sched:sched_switch")))
        return false;
    s->cls = cls;
    bind(cls, is_integer, "prev_tid", "prev_pid", &s->prev.tid);
    bind(cls, is_integer, "next_tid", "next_pid", &s->next.tid);
    bind(cls, is_text, "prev_comm", NULL, &s->prev.comm);
    bind(cls, is_text, "next_comm", NULL, &s->next.comm);
    bind(cls, is_integer, "prev_prio", NULL, &s->prev.priority);
    bind(cls, is_integer, "next_prio", NULL, &s->next.priority);
    return true;
}

static bool read_integer(const struct ctf_access *a, const struct ctf_event *ev, int64_t *out)
{
    bool present = a->mode != 0;
    if (present)
        *out = a->mode == 1 ? ctf_read_int(ev, a) : ctf_read_slow(ev, a, &present);
    return present;
}

bool kernel_switch_tid(const struct kernel_switch_side *s, const struct ctf_event *ev, int64_t *out)
{
    return read_integer(&s->tid, ev, out);
}

bool kernel_switch_priority(const struct kernel_switch_side *s, const struct ctf_event *ev, int64_t *out)
{
    return read_integer(&s->priority, ev, out);
}

/* ---- who runs ---- */

struct kernel_running *kernel_running_on(struct kernel_running_cpus *cpus, int32_t cpu)
{
    if (cpu < 0 || cpu >= CTF_MOST_CPUS)
        return NULL;
    while (cpus->n <= (size_t)cpu)
        vec_push(cpus, ((struct kernel_running){.tid = KERNEL_NO_TID}));
    return &cpus->v[cpu];
}

void kernel_running_set(struct kernel_running *r, const struct kernel_switch_side *s, const struct ctf_event *ev)
{
    size_t n = 0;
    const char *comm = s->comm.mode ? ctf_read_string(ev, &s->comm, &n) : NULL;
    if (!read_integer(&s->tid, ev, &r->tid))
        r->tid = KERNEL_NO_TID;
    n = !comm ? 0 : n < sizeof r->comm ? n : sizeof r->comm - 1;
    if (n)
        memcpy(r->comm, comm, n);
    r->comm[n] = '\0';
}

/* Reads a stream up to its first switch; before: all of it, up to its last. */
static int find(struct kernel_running_cpus *cpus, const struct ctf_source *source, int stream, struct ctf_window w,
    bool before, bool *found, struct err *e)
{
    struct kernel_switch s = {0};
    struct ctf_event batch[BATCH];
    struct ctf_merge *m;
    int r = ctf_merge_new(source, 1, w, stream, &m, e);
    if (r != ERR_OK)
        return r;
    *found = false;
    for (size_t n; (before || !*found) && (n = ctf_merge_next(m, batch, BATCH)) > 0;)
        for (size_t i = 0; i < n && (before || !*found); i++) {
            struct kernel_running *on = kernel_switch_is(&s, batch[i].cls) ? kernel_running_on(cpus, batch[i].cpu)
                                                                           : NULL;
            if (on)
                kernel_running_set(on, before ? &s.next : &s.prev, &batch[i]);
            *found |= on != NULL;
        }
    ctf_merge_free(m);
    return ERR_OK;
}

int kernel_running_find(
    struct kernel_running_cpus *cpus, const struct ctf_source *source, struct ctf_window w, struct err *e)
{
    struct ctf_window after = {w.begin, INT64_MAX}, before = {INT64_MIN, w.begin - (w.begin > INT64_MIN)};
    int r = ERR_OK;
    for (size_t i = 0; i < ctf_trace_streams(source->trace) && r == ERR_OK; i++) {
        bool found;
        r = find(cpus, source, (int)i, after, false, &found, e);
        if (r == ERR_OK && !found && w.begin != INT64_MIN)
            r = find(cpus, source, (int)i, before, true, &found, e);
    }
    return r;
}

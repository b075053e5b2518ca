/* SPDX-License-Identifier: MIT */
#include "kernel/running.h"

#include <string.h>

#include "base/mem.h"
#include "kernel/binding.h"

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

/* `other`: perf's name of the field, or NULL. */
static void bind(const struct ctf_event_class *cls, bool (*fits)(const struct ctf_type *), const char *name,
    const char *other, struct ctf_access *out)
{
    if (cls->scope[CTF_PAYLOAD] && ctf_access_find(cls, CTF_PAYLOAD, name, out) && fits(out->type))
        return;
    *out = (struct ctf_access){0};
    if (other)
        bind(cls, fits, other, NULL, out);
}

static bool is_called(const struct ctf_event_class *cls, const char *name, const char *of_perf)
{
    return cls->item == CTF_EVENT && cls->name && (!strcmp(cls->name, name) || !strcmp(cls->name, of_perf));
}

bool kernel_exec_is(struct kernel_exec *x, const struct ctf_event_class *cls)
{
    if (x->cls == cls)
        return true;
    if (!is_called(cls, "sched_process_exec", "sched:sched_process_exec"))
        return false;
    x->cls = cls;
    bind(cls, is_integer, "tid", "pid", &x->tid);
    bind(cls, is_integer, "old_tid", "old_pid", &x->old_tid);
    bind(cls, is_text, "filename", NULL, &x->filename);
    return true;
}

bool kernel_switch_is(struct kernel_switch *s, const struct ctf_event_class *cls)
{
    if (s->cls == cls)
        return true;
    if (!is_called(cls, "sched_switch", "sched:sched_switch"))
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

/* ---- current threads ---- */

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

void kernel_running_exec(struct kernel_running *r, const struct kernel_exec *x, const struct ctf_event *ev)
{
    size_t n = 0;
    const char *path = x->filename.mode ? ctf_read_string(ev, &x->filename, &n) : "", *name = path;
    for (size_t i = 0; i < n; i++)
        if (path[i] == '/')
            name = path + i + 1;
    n -= (size_t)(name - path); /* the kernel keeps the first bytes */
    n = n < KERNEL_COMM_BYTES ? n : KERNEL_COMM_BYTES - 1;
    read_integer(&x->tid, ev, &r->tid);
    if (n)
        memcpy(r->comm, name, n);
    r->comm[n] = '\0';
}

/* Search for the thread at a window's begin. */
struct search {
    struct kernel_running_cpus *cpus;
    struct kernel_switch as_switch;
    struct kernel_exec as_exec;
    bool before; /* reads everything before the window; otherwise up to the first event that shows it */
    bool told, found;
};

static void look_at(struct search *s, const struct ctf_event *ev)
{
    bool is_switch = kernel_switch_is(&s->as_switch, ev->cls), is_exec = kernel_exec_is(&s->as_exec, ev->cls);
    struct kernel_running *on = is_switch || is_exec ? kernel_running_on(s->cpus, ev->cpu) : NULL;
    if (!on)
        return;
    s->told = true;
    s->found |= is_switch;
    if (is_switch) {
        kernel_running_set(on, s->before ? &s->as_switch.next : &s->as_switch.prev, ev);
    } else if (s->before) {
        kernel_running_exec(on, &s->as_exec, ev);
    } else { /* its name until then is not in this part of the trace */
        on->comm[0] = '\0';
        if (!read_integer(&s->as_exec.old_tid, ev, &on->tid))
            on->tid = KERNEL_NO_TID;
    }
}

/* Reads a stream of the source. */
static int find(struct search *s, const struct ctf_source *source, int stream, struct ctf_window w, struct err *e)
{
    struct ctf_event batch[BATCH];
    struct ctf_merge *m;
    int r = ctf_merge_new(source, 1, w, stream, &m, e);
    if (r != ERR_OK)
        return r;
    s->told = s->found = false;
    for (size_t n; (s->before || !s->told) && (n = ctf_merge_next(m, batch, BATCH)) > 0;)
        for (size_t i = 0; i < n && (s->before || !s->told); i++)
            look_at(s, &batch[i]);
    ctf_merge_free(m);
    return ERR_OK;
}

int kernel_running_find(
    struct kernel_running_cpus *cpus, const struct ctf_source *source, struct ctf_window w, struct err *e)
{
    struct ctf_window after = {w.begin, INT64_MAX}, before = {INT64_MIN, w.begin - (w.begin > INT64_MIN)};
    int r = ERR_OK;
    for (size_t i = 0; i < ctf_trace_streams(source->trace) && r == ERR_OK; i++) {
        struct search s = {.cpus = cpus};
        r = find(&s, source, (int)i, after, e);
        s.before = true;
        if (r == ERR_OK && !s.found && w.begin != INT64_MIN)
            r = find(&s, source, (int)i, before, e);
    }
    return r;
}

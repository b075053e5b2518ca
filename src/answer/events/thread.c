/* SPDX-License-Identifier: MIT */
#include "events/thread.h"

#include "kernel/kernel.h"

/* Turn of a thread on a CPU; times by the host's clock. */
struct turn {
    struct index_occupant at; /* last requested interval; empty: none yet */
    /* Priority from the switch that began an interval, or the one that ended it: */
    bool known, has;
    int64_t since, priority;
};

struct event_threads {
    const struct event_table *table;
    struct kernel_switch as_switch; /* class of the last one */
    struct turn turns[];
};

struct event_threads *events_threads_new(const struct event_table *t)
{
    struct event_threads *p = mem_zalloc(sizeof *p + sizeof *p->turns * t->n_streams);
    p->table = t;
    return p;
}

void events_threads_free(struct event_threads *p)
{
    free(p);
}

/* Interval in which the event's CPU has its thread, or NULL. */
static const struct index_occupant *occupant_of(struct event_threads *p, const struct ctf_event *ev, uint32_t source)
{
    struct index_occupant *at = &p->turns[ev->stream].at;
    const struct index_host *h = event_index(p->table, source);
    if (!h || !h->states || ev->cpu < 0)
        return NULL;
    int64_t t = event_host_time(p->table, source, ev->ts);
    if ((at->begin <= t && t < at->end) || index_occupant_at(h, ev->cpu, t, at))
        return at;
    *at = (struct index_occupant){0};
    return NULL;
}

static bool context_integer(const struct ctf_event *ev, enum ctf_scope scope, const char *name, int64_t *out)
{
    struct ctf_access a;
    bool present = true;
    if (!ev->cls->scope[scope] || !ctf_access_find(ev->cls, scope, name, &a) ||
        (a.type->kind != CTF_INT && a.type->kind != CTF_ENUM))
        return false;
    *out = a.mode == 3 ? ctf_read_slow(ev, &a, &present) : ctf_read_int(ev, &a);
    return present;
}

/* ---- thread ---- */

/* Id recorded with the event: in a context or, by perf, in a field; -1 there: the thread is about to end, and has left
 * the process. */
static bool recorded_id(const struct ctf_event *ev, bool process, int64_t *out)
{
    return context_integer(ev, CTF_STREAM_EVENT_CONTEXT, process ? "pid" : "tid", out) ||
        context_integer(ev, CTF_STREAM_EVENT_CONTEXT, process ? "vpid" : "vtid", out) ||
        (context_integer(ev, CTF_PAYLOAD, process ? "perf_pid" : "perf_tid", out) && *out >= 0);
}

/* Ids from the stores. `leaves`: the event is a switch, and the leaving thread is meant. False: unknown. */
static bool stored_ids(
    struct event_threads *p, const struct ctf_event *ev, uint32_t source, bool leaves, int32_t *tid, int32_t *tgid)
{
    const struct index_host *h = event_index(p->table, source);
    if (!h || !h->graph)
        return false;
    const struct index_occupant *at = leaves ? NULL : occupant_of(p, ev, source);
    int64_t t = event_host_time(p->table, source, ev->ts);
    int32_t row = at && at->row >= 0 ? at->row : index_occupant_row(h, ev->cpu, t - 1);
    return index_thread(h, row, t, tid, tgid);
}

/* The clock's inverse is exact to 1 ns only, so at a switch its own field is preferred. */
bool events_thread_id(struct event_threads *p, const struct ctf_event *ev, uint32_t source, bool process, int64_t *out)
{
    int32_t tid, tgid;
    int64_t leaves;
    if (recorded_id(ev, process, out))
        return true;
    bool switched = kernel_switch_is(&p->as_switch, ev->cls) && kernel_switch_tid(&p->as_switch.prev, ev, &leaves);
    if (switched && !process) {
        *out = leaves;
        return true;
    }
    if (!stored_ids(p, ev, source, switched, &tid, &tgid) || (switched && tid != leaves))
        return false;
    *out = process ? tgid : tid;
    return *out >= 0;
}

/* ---- priority ---- */

/* Reads the priority of one side of the switch recorded at that time by the host's clock. */
static bool read_priority(struct event_threads *p, uint32_t source, uint32_t stream, int64_t at,
    const struct kernel_switch_side *side, int64_t *out)
{
    struct ctf_source one = {.trace = p->table->sources[source].trace};
    struct ctf_merge *m;
    struct ctf_event ev;
    struct err e = {0};
    bool found = false;
    if (ctf_merge_new(&one, 1, (struct ctf_window){at, at}, (int)(stream - p->table->first_stream[source]), &m, &e))
        return false;
    while (!found && ctf_merge_next(m, &ev, 1))
        found = kernel_switch_is(&p->as_switch, ev.cls) && kernel_switch_priority(side, &ev, out);
    ctf_merge_free(m);
    return found;
}

bool events_thread_priority(struct event_threads *p, const struct ctf_event *ev, uint32_t source, int64_t *out)
{
    struct turn *s = &p->turns[ev->stream];
    const struct kernel_switch *as = &p->as_switch;
    if (context_integer(ev, CTF_STREAM_EVENT_CONTEXT, "prio", out))
        return true;
    if (kernel_switch_is(&p->as_switch, ev->cls)) {
        s->known = true;
        s->since = event_host_time(p->table, source, ev->ts);
        s->has = kernel_switch_priority(&as->next, ev, &s->priority);
        return kernel_switch_priority(&as->prev, ev, out);
    }
    const struct index_occupant *i = occupant_of(p, ev, source);
    if (!i)
        return false;
    /* Times converted to the table's clock and back may be off by 1 ns. */
    if (!s->known || s->since - i->begin > 1 || i->begin - s->since > 1) {
        s->known = true;
        s->since = i->begin;
        s->has = read_priority(p, source, ev->stream, i->begin, &as->next, &s->priority) ||
            read_priority(p, source, ev->stream, i->end, &as->prev, &s->priority);
    }
    *out = s->priority;
    return s->has;
}

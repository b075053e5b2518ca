#include "events/prio.h"

#include "events/cell.h"

/* Times by the host's clock. */
struct slot {
    struct state_interval at; /* the interval asked for last; empty: none yet */
    /* What the switch that began an interval, or the one that ended it, told: */
    bool known, has;
    int64_t since, prio;
};

struct event_prios {
    const struct event_cells *cells;
    struct slot *slots; /* by stream */
};

static bool is_switch(const struct ctf_event_class *cls)
{
    return cls->item == CTF_EVENT && cls->name &&
        (!strcmp(cls->name, "sched_switch") || !strcmp(cls->name, "sched:sched_switch"));
}

bool event_prios_told(const struct views *x)
{
    struct ctf_access a;
    for (size_t i = 0; i < x->n_sources; i++) {
        const struct ctf_event_class *const *classes;
        size_t n = ctf_trace_classes(x->sources[i].trace, &classes);
        for (size_t k = 0; k < n; k++)
            if (classes[k] &&
                (ctf_access_find(classes[k], CTF_STREAM_EVENT_CONTEXT, "prio", &a) ||
                    (is_switch(classes[k]) && ctf_access_find(classes[k], CTF_PAYLOAD, "next_prio", &a))))
                return true;
    }
    return false;
}

struct event_prios *event_prios_new(const struct event_cells *cells)
{
    struct event_prios *p = mem_zalloc(sizeof *p);
    p->cells = cells;
    p->slots = mem_zalloc(sizeof *p->slots * (cells->n_streams + 1));
    return p;
}

void event_prios_free(struct event_prios *p)
{
    if (p)
        free(p->slots);
    free(p);
}

/* A field of the switch that was recorded on the stream at that time by the host's clock. */
static bool read_switch(
    const struct event_prios *p, uint32_t source, uint32_t stream, int64_t at, const char *field, int64_t *out)
{
    struct ctf_source one = {.trace = p->cells->x->sources[source].trace};
    struct ctf_merge *m;
    struct ctf_event ev;
    struct err e = {0};
    bool found = false;
    if (ctf_merge_new(&one, 1, (struct ctf_window){at, at}, (int)(stream - p->cells->first_stream[source]), &m, &e))
        return false;
    while (!found && ctf_merge_next(m, &ev, 1))
        found = is_switch(ev.cls) && event_field_integer(&ev, CTF_PAYLOAD, field, out);
    ctf_merge_free(m);
    return found;
}

/* The interval in which the event's CPU has its thread, or NULL. */
static const struct state_interval *interval_of(struct event_prios *p, const struct ctf_event *ev, uint32_t source)
{
    struct state_interval *at = &p->slots[ev->stream].at;
    const struct views *x = p->cells->x;
    int32_t host = x->source_hosts[source];
    const struct view_host *h = host >= 0 ? &x->hosts[host] : NULL;
    if (!h || !h->states || ev->cpu < 0 || h->index->trace != x->sources[source].trace)
        return NULL;
    int64_t t = view_to_host(h, ev->ts);
    if (at->begin <= t && t < at->end)
        return at;
    int64_t row = state_find_row(h->states, STATE_CPU_THREAD, ev->cpu);
    if (row >= 0 && state_at(h->states, STATE_CPU_THREAD, (size_t)row, t, at))
        return at;
    *at = (struct state_interval){0};
    return NULL;
}

int32_t event_thread(struct event_prios *p, const struct ctf_event *ev, uint32_t source)
{
    const struct state_interval *i = interval_of(p, ev, source);
    return i ? i->thread : -1;
}

static bool at_switch(struct event_prios *p, const struct ctf_event *ev, uint32_t source, int64_t *out)
{
    struct slot *s = &p->slots[ev->stream];
    int32_t host = p->cells->x->source_hosts[source];
    s->known = host >= 0;
    if (s->known)
        s->since = view_to_host(&p->cells->x->hosts[host], ev->ts);
    s->has = event_field_integer(ev, CTF_PAYLOAD, "next_prio", &s->prio);
    return event_field_integer(ev, CTF_PAYLOAD, "prev_prio", out);
}

bool event_prio(struct event_prios *p, const struct ctf_event *ev, uint32_t source, int64_t *out)
{
    struct slot *s = &p->slots[ev->stream];
    if (event_field_integer(ev, CTF_STREAM_EVENT_CONTEXT, "prio", out))
        return true;
    if (is_switch(ev->cls))
        return at_switch(p, ev, source, out);
    const struct state_interval *i = interval_of(p, ev, source);
    if (!i)
        return false;
    /* Times that went to the reference clock and back may be off by 1 ns. */
    if (!s->known || s->since - i->begin > 1 || i->begin - s->since > 1) {
        s->known = true;
        s->since = i->begin;
        s->has = read_switch(p, source, ev->stream, i->begin, "next_prio", &s->prio) ||
            read_switch(p, source, ev->stream, i->end, "prev_prio", &s->prio);
    }
    *out = s->prio;
    return s->has;
}

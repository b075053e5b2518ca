/* SPDX-License-Identifier: MIT */
#include "events/table.h"

#include "kernel/kernel.h"

/* Columns in order of display. */
static const struct event_column all_columns[EVENT_COLUMNS] = {
    {EVENT_TIMESTAMP, "Timestamp", "Time of the event, UTC, on the clock of the experiment", NULL},
    {EVENT_TRACE, "Trace", "Host on which the event was recorded", NULL},
    {EVENT_CHANNEL, "Channel", "Stream of the trace", NULL},
    {EVENT_CPU, "CPU", "CPU on which the event was recorded", "NUMBER"},
    {EVENT_TYPE, "Event type", "Name of the event", NULL},
    {EVENT_CONTENTS, "Contents", "Fields of the event", NULL},
    {EVENT_PACKET_CONTEXT, "Packet context", "Context fields of the packet", NULL},
    {EVENT_STREAM_CONTEXT, "Stream context", "Context fields that all events of the stream have", NULL},
    {EVENT_CONTEXT, "Event context", "Context fields of this event type", NULL},
    {EVENT_TID, "TID", "Thread that ran on the CPU", "NUMBER"},
    {EVENT_PRIO, "Prio", "Priority with which that thread came to the CPU", "NUMBER"},
    {EVENT_PID, "PID", "Process of that thread", "NUMBER"},
    {EVENT_TIMESTAMP_NS, "Timestamp ns", "Time of the event in ns since the epoch", "TIMESTAMP"},
};

/* ---- choice of columns ---- */

static bool has_scope(const struct ctf_event_class *cls, enum ctf_scope scope)
{
    return cls->scope[scope] && cls->scope[scope]->n;
}

static bool has_priority(const struct ctf_event_class *cls, enum ctf_scope scope)
{
    struct kernel_switch s = {0};
    struct ctf_access a;
    return ctf_access_find(cls, scope, "prio", &a) || (kernel_switch_is(&s, cls) && s.next.priority.mode);
}

static bool any_class(
    const struct event_table *t, bool (*has)(const struct ctf_event_class *, enum ctf_scope), enum ctf_scope scope)
{
    for (size_t i = 0; i < t->schemas.n; i++)
        for (size_t k = 0; k < t->schemas.v[i].n; k++)
            if (t->schemas.v[i].classes[k] && has(t->schemas.v[i].classes[k], scope))
                return true;
    return false;
}

static bool any_graph(const struct event_table *t)
{
    bool any = false;
    for (size_t i = 0; i < t->n && !any; i++)
        any = t->origins[i].index && t->origins[i].index->graph;
    return any;
}

static bool is_shown(const struct event_table *t, int64_t column)
{
    enum ctf_scope scope;
    switch (column) {
    case EVENT_TRACE: return t->n > 1;
    case EVENT_TID:
    case EVENT_PID: return any_graph(t) || any_class(t, has_scope, CTF_STREAM_EVENT_CONTEXT);
    case EVENT_PRIO: return any_class(t, has_priority, CTF_STREAM_EVENT_CONTEXT);
    case EVENT_CONTENTS: return true;
    default: return !event_column_scope(column, &scope) || any_class(t, has_scope, scope);
    }
}

/* ---- life ---- */

static size_t find_schema(struct event_table *t, const struct ctf_trace *trace)
{
    struct event_schema s;
    s.n = ctf_trace_classes(trace, &s.classes);
    for (size_t i = 0; i < t->schemas.n; i++)
        if (t->schemas.v[i].classes == s.classes && t->schemas.v[i].n == s.n)
            return i;
    vec_push(&t->schemas, s);
    return t->schemas.n - 1;
}

static void name_channels(struct event_table *t)
{
    t->first_stream = mem_zalloc(sizeof *t->first_stream * (t->n + 1));
    for (size_t i = 0; i < t->n; i++) {
        t->first_stream[i] = t->n_streams;
        t->n_streams += (uint32_t)ctf_trace_streams(t->sources[i].trace);
    }
    t->channels = mem_zalloc(sizeof *t->channels * (t->n_streams + 1));
    for (size_t i = 0, at = 0; i < t->n; i++)
        for (size_t k = 0; k < ctf_trace_streams(t->sources[i].trace); k++) {
            struct ctf_stream_info s;
            ctf_trace_stream(t->sources[i].trace, k, &s);
            t->channels[at++] = mem_strdup(s.name ? s.name : "");
        }
}

struct event_table *events_table_new(const struct ctf_source *sources, const struct event_origin *origins, size_t n)
{
    struct event_table *t = mem_zalloc(sizeof *t);
    t->sources = sources;
    t->n = n;
    t->origins = mem_alloc(sizeof *t->origins * (n + 1));
    t->schema_of = mem_alloc(sizeof *t->schema_of * (n + 1));
    for (size_t i = 0; i < n; i++) {
        t->origins[i] = origins[i];
        t->schema_of[i] = find_schema(t, sources[i].trace);
    }
    for (int i = 0; i < EVENT_COLUMNS; i++)
        if (is_shown(t, all_columns[i].id))
            t->columns[t->n_columns++] = all_columns[i];
    name_channels(t);
    return t;
}

void events_table_free(struct event_table *t)
{
    if (!t)
        return;
    for (uint32_t i = 0; i < t->n_streams; i++)
        free(t->channels[i]);
    free(t->channels);
    free(t->first_stream);
    free(t->schema_of);
    free(t->origins);
    vec_free(&t->schemas);
    free(t);
}

size_t events_table_columns(const struct event_table *t, const struct event_column **out)
{
    *out = t->columns;
    return t->n_columns;
}

#include "events/cell.h"

#include <stdio.h>

#include "base/time.h"
#include "ctf/ctf.h"

/* In the order in which they are shown. */
static const struct tsp_column all_columns[EVENT_COLUMNS] = {
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

static const enum ctf_scope column_scopes[EVENT_COLUMNS] = {[EVENT_CONTENTS] = CTF_PAYLOAD,
    [EVENT_PACKET_CONTEXT] = CTF_PACKET_CONTEXT,
    [EVENT_STREAM_CONTEXT] = CTF_STREAM_EVENT_CONTEXT,
    [EVENT_CONTEXT] = CTF_EVENT_CONTEXT};

bool event_cell_scope(const struct event_cells *c, size_t column, enum ctf_scope *out)
{
    int64_t id = c->columns[column].id;
    *out = column_scopes[id];
    return id == EVENT_CONTENTS || id == EVENT_PACKET_CONTEXT || id == EVENT_STREAM_CONTEXT || id == EVENT_CONTEXT;
}

static bool has_scope(const struct views *x, enum ctf_scope scope)
{
    for (size_t i = 0; i < x->n_sources; i++) {
        const struct ctf_event_class *const *classes;
        size_t n = ctf_trace_classes(x->sources[i].trace, &classes);
        for (size_t k = 0; k < n; k++)
            if (classes[k]->scope[scope] && classes[k]->scope[scope]->n)
                return true;
    }
    return false;
}

static bool is_shown(const struct views *x, int64_t column)
{
    switch (column) {
    case EVENT_TRACE: return x->n_sources > 1;
    case EVENT_TID:
    case EVENT_PID: return x->paths != NULL || has_scope(x, CTF_STREAM_EVENT_CONTEXT);
    case EVENT_PRIO: return event_prios_told(x);
    case EVENT_PACKET_CONTEXT:
    case EVENT_STREAM_CONTEXT:
    case EVENT_CONTEXT: return has_scope(x, column_scopes[column]);
    default: return true;
    }
}

void event_cells_init(struct event_cells *c, const struct views *x)
{
    uint32_t n = 0;
    *c = (struct event_cells){.x = x};
    for (int i = 0; i < EVENT_COLUMNS; i++)
        if (is_shown(x, all_columns[i].id))
            c->columns[c->n_columns++] = all_columns[i];
    c->first_stream = mem_zalloc(sizeof *c->first_stream * (x->n_sources + 1));
    for (size_t i = 0; i < x->n_sources; i++) {
        c->first_stream[i] = n;
        n += (uint32_t)ctf_trace_streams(x->sources[i].trace);
    }
    c->n_streams = n;
    c->channels = mem_zalloc(sizeof *c->channels * (n + 1));
    for (size_t i = 0; i < x->n_sources; i++)
        for (size_t k = 0; k < ctf_trace_streams(x->sources[i].trace); k++) {
            struct ctf_stream_info s;
            ctf_trace_stream(x->sources[i].trace, k, &s);
            c->channels[c->first_stream[i] + k] = mem_strdup(s.name ? s.name : "");
        }
}

void event_cells_fini(struct event_cells *c)
{
    for (uint32_t i = 0; i < c->n_streams; i++)
        free(c->channels[i]);
    free(c->channels);
    free(c->first_stream);
}

/* ---- fields: "prev_comm=tier, prev_tid=204, list=[1, 2], inner={a=1}" ---- */

enum { MAX_CELL_BYTES = 16384 };
struct fields {
    struct text *out;
    size_t start;
    unsigned depth;
    bool comma;
};

static const struct ctf_type *integer_type(const struct ctf_type *t)
{
    return t->kind == CTF_ENUM && t->u.enumeration.container ? t->u.enumeration.container : t;
}

static bool begin_field(struct fields *f, const struct ctf_value *v)
{
    if (f->out->n - f->start > MAX_CELL_BYTES)
        return false;
    if (f->comma)
        text_puts(f->out, ", ");
    f->comma = true;
    if (v->name && *v->name) {
        text_puts(f->out, v->name);
        text_putc(f->out, '=');
    }
    return true;
}

static const char *label_of(const struct ctf_type *t, int64_t v)
{
    bool is_signed = integer_type(t)->is_signed;
    for (uint32_t i = 0; i < t->n; i++) {
        const struct ctf_range *r = &t->u.enumeration.ranges[i];
        if (is_signed ? v >= r->lo && v <= r->hi : (uint64_t)v >= (uint64_t)r->lo && (uint64_t)v <= (uint64_t)r->hi)
            return r->label;
    }
    return NULL;
}

static unsigned long long low_bits(int64_t v, unsigned n)
{
    return n < 64 ? (uint64_t)v & (((uint64_t)1 << n) - 1) : (uint64_t)v;
}

static void write_integer(struct text *out, const struct ctf_type *t, int64_t v)
{
    const struct ctf_type *i = integer_type(t);
    unsigned size = (unsigned)i->size_bits;
    if (i->base == 16) { /* of negative ones whole digits, as babeltrace2 shows them */
        text_printf(out, "0x%llx", low_bits(v, (size + 3) / 4 * 4));
    } else if (i->base == 8) {
        text_printf(out, "0%llo", low_bits(v, (size + 2) / 3 * 3));
    } else if (i->base == 2) {
        text_puts(out, "0b");
        while (size-- > 0)
            text_putc(out, (uint64_t)v >> size & 1 ? '1' : '0');
    } else if (i->is_signed) {
        text_i64(out, v);
    } else {
        text_u64(out, (uint64_t)v);
    }
}

static void field_leaf(void *arg, const struct ctf_value *v)
{
    struct fields *f = arg;
    const char *label = v->type->kind == CTF_ENUM ? label_of(v->type, v->v.i) : NULL;
    if (!begin_field(f, v))
        return;
    if (label)
        text_puts(f->out, label);
    else if (v->type->kind == CTF_INT || v->type->kind == CTF_ENUM)
        write_integer(f->out, v->type, v->v.i);
    else if (v->type->kind == CTF_FLOAT)
        text_printf(f->out, "%.17g", v->v.f);
    else
        text_put(f->out, v->s, v->len < MAX_CELL_BYTES ? v->len : MAX_CELL_BYTES);
}

static bool is_list(const struct ctf_value *v)
{
    return v->type->kind == CTF_ARRAY || v->type->kind == CTF_SEQUENCE;
}

static void field_begin(void *arg, const struct ctf_value *v)
{
    struct fields *f = arg;
    if (f->depth++ == 0 || v->type->kind == CTF_VARIANT)
        return;
    if (begin_field(f, v))
        text_putc(f->out, is_list(v) ? '[' : '{');
    f->comma = false;
}

static void field_end(void *arg, const struct ctf_value *v)
{
    struct fields *f = arg;
    if (--f->depth == 0 || v->type->kind == CTF_VARIANT)
        return;
    text_putc(f->out, is_list(v) ? ']' : '}');
    f->comma = true;
}

static void write_scope(const struct ctf_event *ev, enum ctf_scope scope, struct text *out)
{
    struct fields f = {.out = out, .start = out->n};
    struct ctf_visitor visitor = {field_leaf, field_begin, field_end, &f};
    if (ev->cls->scope[scope])
        ctf_visit(ev, scope, &visitor);
}

/* ---- threads ---- */

bool event_field_integer(const struct ctf_event *ev, enum ctf_scope scope, const char *name, int64_t *out)
{
    struct ctf_access a;
    bool present = true;
    if (!ev->cls->scope[scope] || !ctf_access_find(ev->cls, scope, name, &a) ||
        (a.type->kind != CTF_INT && a.type->kind != CTF_ENUM))
        return false;
    *out = a.mode == 3 ? ctf_read_slow(ev, &a, &present) : ctf_read_int(ev, &a);
    return present;
}

/* The row of the thread in whose context the event was recorded (`leaves`: by a switch that it leaves by); false: not
 * known. The clock's map back is exact to 1 ns, so at a switch the field of the event is asked first. */
static bool thread_of(const struct event_cells *c, struct event_prios *prios, bool leaves, const struct ctf_event *ev,
    uint32_t source, struct graph_row *out)
{
    int32_t host = c->x->source_hosts[source];
    const struct view_host *h = host >= 0 ? &c->x->hosts[host] : NULL;
    if (!h || !h->index->graph || ev->cpu < 0 || h->index->trace != c->x->sources[source].trace)
        return false;
    int32_t row = leaves ? -1 : event_thread(prios, ev, source);
    if (row < 0)
        row = graph_cpu_occupant(h->index->graph, (uint32_t)ev->cpu, view_to_host(h, ev->ts) - 1);
    if (row < 0)
        return false;
    graph_row(h->index->graph, row, out);
    return true;
}

/* As the tracer told it with the event: in a context, or, by perf, among the fields; -1 there: the thread is about to
 * end, and is not in the process any more. */
static bool told_thread(const struct ctf_event *ev, bool process, int64_t *out)
{
    return event_field_integer(ev, CTF_STREAM_EVENT_CONTEXT, process ? "pid" : "tid", out) ||
        event_field_integer(ev, CTF_STREAM_EVENT_CONTEXT, process ? "vpid" : "vtid", out) ||
        (event_field_integer(ev, CTF_PAYLOAD, process ? "perf_pid" : "perf_tid", out) && *out >= 0);
}

static void write_thread(const struct event_cells *c, struct event_prios *prios, bool process,
    const struct ctf_event *ev, uint32_t source, struct text *out)
{
    struct graph_row row;
    int64_t v;
    if (told_thread(ev, process, &v)) {
        text_i64(out, v);
        return;
    }
    bool switched = ev->cls->item == CTF_EVENT && strstr(ev->cls->name, "sched_switch") &&
        (event_field_integer(ev, CTF_PAYLOAD, "prev_tid", &v) || event_field_integer(ev, CTF_PAYLOAD, "prev_pid", &v));
    bool known = (process || !switched) && thread_of(c, prios, switched, ev, source, &row);
    if (!process && switched)
        text_i64(out, v);
    else if (known && (!switched || row.tid == v) && (process ? row.tgid : row.tid) >= 0)
        text_i64(out, process ? row.tgid : row.tid);
}

/* ---- cells ---- */

static void write_loss(const struct ctf_event *ev, struct text *out)
{
    const struct ctf_loss *loss = (const struct ctf_loss *)(const void *)ev->data;
    text_printf(out, "%s=%llu", ev->cls->item == CTF_LOST_PACKETS ? "lost_packets" : "lost_events",
        (unsigned long long)loss->count);
    if (loss->begin_known && loss->end_known)
        text_printf(out, ", begin=%lld, end=%lld", (long long)loss->begin, (long long)loss->end);
}

static void write_trace(const struct event_cells *c, uint32_t source, struct text *out)
{
    int32_t host = c->x->source_hosts[source];
    text_puts(out, host >= 0 ? c->x->hosts[host].id : ctf_trace_path(c->x->sources[source].trace));
    if (host >= 0 && c->x->hosts[host].index->trace != c->x->sources[source].trace) {
        const char *domain = ctf_trace_env_string(c->x->sources[source].trace, "domain");
        text_printf(out, " (%s)", domain ? domain : "other");
    }
}

void event_cell_write(const struct event_cells *c, struct event_prios *prios, size_t column, const struct ctf_event *ev,
    uint32_t source, struct text *out)
{
    int64_t prio;
    int64_t id = c->columns[column].id;
    bool loss = ev->cls->item != CTF_EVENT;
    switch (id) {
    case EVENT_TIMESTAMP: time_write_utc(out, ev->ts, true); break;
    case EVENT_TRACE: write_trace(c, source, out); break;
    case EVENT_CHANNEL:
        if (ev->stream < c->n_streams)
            text_puts(out, c->channels[ev->stream]);
        break;
    case EVENT_CPU:
        if (ev->cpu >= 0)
            text_i64(out, ev->cpu);
        break;
    case EVENT_TYPE: text_puts(out, loss ? "Lost events" : ev->cls->name); break;
    case EVENT_TID:
    case EVENT_PID:
        if (!loss)
            write_thread(c, prios, id == EVENT_PID, ev, source, out);
        break;
    case EVENT_PRIO:
        if (!loss && event_prio(prios, ev, source, &prio))
            text_i64(out, prio);
        break;
    case EVENT_TIMESTAMP_NS: text_i64(out, ev->ts); break;
    default:
        if (!loss)
            write_scope(ev, column_scopes[id], out);
        else if (id == EVENT_CONTENTS)
            write_loss(ev, out);
    }
}

/* SPDX-License-Identifier: MIT */
#include "events/cell.h"

#include "base/time.h"
#include "events/field.h"

/* ---- fields: "prev_comm=tier, prev_tid=204, list=[1, 2], inner={a=1}" ---- */

enum { MAX_CELL_BYTES = 16384 };
struct fields {
    struct text *out;
    size_t start;
    unsigned depth;
    bool comma;
};

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

static unsigned long long low_bits(int64_t v, unsigned n)
{
    return n < 64 ? (uint64_t)v & (((uint64_t)1 << n) - 1) : (uint64_t)v;
}

static void write_integer(struct text *out, const struct ctf_type *t, int64_t v)
{
    const struct ctf_type *i = events_integer_type(t);
    unsigned size = (unsigned)i->size_bits;
    if (i->base == 16) { /* full width for negative ones, as in babeltrace2 */
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
    const char *label = v->type->kind == CTF_ENUM ? events_label(v->type, v->v.i) : NULL;
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

/* ---- cells ---- */

static void write_loss(const struct ctf_event *ev, struct text *out)
{
    const struct ctf_loss *loss = (const struct ctf_loss *)(const void *)ev->data;
    text_printf(out, "%s=%llu", ev->cls->item == CTF_LOST_PACKETS ? "lost_packets" : "lost_events",
        (unsigned long long)loss->count);
    if (loss->begin_known && loss->end_known)
        text_printf(out, ", begin=%lld, end=%lld", (long long)loss->begin, (long long)loss->end);
}

static void write_trace(const struct event_table *t, uint32_t source, struct text *out)
{
    const struct event_origin *o = &t->origins[source];
    const struct ctf_trace *trace = t->sources[source].trace;
    text_puts(out, o->host ? o->host : ctf_trace_path(trace));
    if (o->index && !event_index(t, source)) {
        const char *domain = ctf_trace_env_string(trace, "domain");
        text_printf(out, " (%s)", domain ? domain : "other");
    }
}

void events_cell_write(const struct event_table *t, struct event_threads *threads, size_t column,
    const struct ctf_event *ev, uint32_t source, struct text *out)
{
    int64_t number, id = t->columns[column].id;
    enum ctf_scope scope;
    bool loss = ev->cls->item != CTF_EVENT;
    switch (id) {
    case EVENT_TIMESTAMP: time_write_utc(out, ev->ts, true); break;
    case EVENT_TRACE: write_trace(t, source, out); break;
    case EVENT_CHANNEL:
        if (ev->stream < t->n_streams)
            text_puts(out, t->channels[ev->stream]);
        break;
    case EVENT_CPU:
        if (ev->cpu >= 0)
            text_i64(out, ev->cpu);
        break;
    case EVENT_TYPE: text_puts(out, loss ? "Lost events" : ev->cls->name); break;
    case EVENT_TID:
    case EVENT_PID:
        if (!loss && events_thread_id(threads, ev, source, id == EVENT_PID, &number))
            text_i64(out, number);
        break;
    case EVENT_PRIO:
        if (!loss && events_thread_priority(threads, ev, source, &number))
            text_i64(out, number);
        break;
    case EVENT_TIMESTAMP_NS: text_i64(out, ev->ts); break;
    default:
        if (!loss && event_column_scope(id, &scope))
            write_scope(ev, scope, out);
        else if (id == EVENT_CONTENTS)
            write_loss(ev, out);
    }
}

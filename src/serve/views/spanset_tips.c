/* SPDX-License-Identifier: MIT */
/* Tooltips of spans: all recorded data of a span, within limits. */
#include <stdio.h>

#include "views/spanset.h"
#include "views/tips.h"

enum { MOST_ATTRIBUTES = 40, MOST_EVENTS = 20, MOST_LINKS = 8, LONGEST_VALUE = 240 };

static const struct spans_unit *root_unit(const struct spanset *o, uint32_t trace)
{
    const struct spans_unit *first = NULL;
    for (uint32_t i = o->traces[trace].row; i < o->traces[trace].row + o->traces[trace].rows; i++) {
        const struct spans_unit *u = o->units + o->rows[i].unit;
        if (!first || u->begin_ns < first->begin_ns)
            first = u;
    }
    return first;
}

void spanset_write_root(const struct spanset *o, uint32_t trace, struct text *out)
{
    const struct spans_unit *u = root_unit(o, trace);
    text_puts(out, spans_text(o->s, u->service));
    if (u->root >= 0) {
        text_puts(out, ": ");
        text_puts(out, spans_text(o->s, u->name));
    }
}

/* ---- lines ---- */

/* Writes a value, cut at a character boundary. */
static void put_value(struct text *out, const char *value)
{
    size_t n = strlen(value);
    if (n > LONGEST_VALUE) {
        n = LONGEST_VALUE;
        while (n && ((unsigned char)value[n] & 0xc0) == 0x80)
            n--;
    }
    text_put(out, value, n);
    text_puts(out, value[n] ? "…" : "");
}

static void write_value(struct tsp_answer *answer, const char *name, const char *value)
{
    struct text t = {.fd = -1};
    put_value(&t, value);
    tsp_write_tip(answer, name, text_cstr(&t));
    text_fini(&t);
}

/* Writes each attribute under its key; `of`: owner, written before the key. Keys that resemble lines of this file get a
 * prefix. */
static void write_attributes(const struct spanset_pointed *p, const struct span_attributes *a, const char *of)
{
    struct arena *arena = p->q->http->arena;
    for (size_t i = 0; i < a->n && i < MOST_ATTRIBUTES; i++) {
        if (*of && !strcmp(a->v[i].key, "service.name"))
            continue; /* attribute already written */
        bool like_ours = !*of && (a->v[i].key[0] < 'a' || a->v[i].key[0] > 'z');
        struct text name = {.fd = -1};
        text_puts(&name, like_ours ? "attribute " : of);
        put_value(&name, a->v[i].key);
        write_value(p->answer, text_cstr(&name), span_value_text(&a->v[i].value, arena));
        text_fini(&name);
    }
    if (a->n > MOST_ATTRIBUTES)
        view_write_number(p->answer, arena_printf(arena, "%smore attributes", of), (int64_t)(a->n - MOST_ATTRIBUTES));
}

static void write_events(const struct spanset_pointed *p, const struct span *s)
{
    struct arena *arena = p->q->http->arena;
    for (size_t i = 0; i < s->n_events && i < MOST_EVENTS; i++) {
        const struct span_event *v = s->events + i;
        struct text name = {.fd = -1}, value = {.fd = -1};
        text_printf(&name, "Event %zu, %s", i + 1, v->time_ns < s->begin_ns ? "-" : "+");
        text_duration(&name, v->time_ns < s->begin_ns ? s->begin_ns - v->time_ns : v->time_ns - s->begin_ns);
        put_value(&value, v->name);
        for (size_t k = 0; k < v->attributes.n && k < MOST_LINKS; k++) {
            text_puts(&value, k ? ", " : ": ");
            put_value(&value, v->attributes.v[k].key);
            text_puts(&value, "=");
            put_value(&value, span_value_text(&v->attributes.v[k].value, arena));
        }
        tsp_write_tip(p->answer, text_cstr(&name), text_cstr(&value));
        text_fini(&name);
        text_fini(&value);
    }
    if (s->n_events > MOST_EVENTS)
        view_write_number(p->answer, "More events", (int64_t)(s->n_events - MOST_EVENTS));
    for (size_t i = 0; i < s->n_links && i < MOST_LINKS; i++) {
        struct text value = {.fd = -1};
        span_write_hex(&value, s->links[i].trace_id, SPAN_TRACE_BYTES);
        text_puts(&value, " ");
        span_write_hex(&value, s->links[i].id, SPAN_ID_BYTES);
        tsp_write_tip(p->answer, arena_printf(arena, "Link %zu", i + 1), text_cstr(&value));
        text_fini(&value);
    }
}

static void write_id(struct tsp_answer *answer, const char *name, uint64_t id)
{
    struct text t = {.fd = -1};
    spans_write_id(&t, id);
    tsp_write_tip(answer, name, text_cstr(&t));
    text_fini(&t);
}

static void write_trace_id(const struct spanset_pointed *p, uint32_t trace)
{
    struct text t = {.fd = -1};
    span_write_hex(&t, p->x->spans->traces[trace].id, SPAN_TRACE_BYTES);
    tsp_write_tip(p->answer, "Trace", text_cstr(&t));
    text_fini(&t);
}

/* ---- spans ---- */

static void write_status(const struct spanset_pointed *p, const struct spans_row *r, const struct span *s)
{
    static const char *const statuses[] = {"not said", "ok", "error"};
    static const char *const kinds[] = {"", "internal", "server", "client", "producer", "consumer"};
    struct text t = {.fd = -1};
    text_puts(&t, statuses[r->status]);
    if (s && *s->status_message) {
        text_puts(&t, ": ");
        put_value(&t, s->status_message);
    }
    tsp_write_tip(p->answer, "Status", text_cstr(&t));
    text_fini(&t);
    if (r->life != SPAN_ENDED)
        tsp_write_tip(p->answer, "End", r->life == SPAN_LOST ? "not seen: it was lost" : "not seen: it may still run");
    if (s && s->kind)
        tsp_write_tip(p->answer, "Kind", kinds[s->kind]);
}

static const char *shift_text(const struct spanset_pointed *p, int64_t ns)
{
    struct text t = {.fd = -1};
    text_puts(&t, ns < 0 ? "-" : "+");
    text_duration(&t, ns < 0 ? -ns : ns);
    const char *out = arena_strdup(p->q->http->arena, text_cstr(&t));
    text_fini(&t);
    return out;
}

/* Writes the span's traced thread, and the way it was found. */
static void write_thread(const struct spanset_pointed *p, uint32_t row)
{
    static const char *const ways[] = {"", "by its number", "by its number in the container", "by marks in the trace"};
    const struct spanset *o = p->x->spans;
    const struct index_span_thread *t = o->joined.threads + row;
    struct graph_row r;
    if (t->row < 0)
        return;
    const struct index_host *host = p->x->hosts[t->host].index;
    graph_row_then(host->graph, t->row, t->begin_ns, t->end_ns, &r);
    tsp_write_tip(p->answer, "Thread", arena_printf(p->q->http->arena, "%s:%d", host->name, r.tid));
    tsp_write_tip(p->answer, "Thread found", ways[t->by]);
    int64_t shift = t->begin_ns - t->said_begin_ns;
    if (shift)
        tsp_write_tip(p->answer, "Wall clock put right by", shift_text(p, shift));
}

static void write_on_path(const struct spanset_pointed *p, uint32_t row)
{
    const struct spanset *o = p->x->spans;
    struct spanset_sections path = {0};
    int64_t mine = 0;
    spanset_sections(o, o->rows[row].unit, &path);
    for (size_t i = 0; i < path.n; i++)
        mine += path.v[i].row == (int32_t)row ? path.v[i].end - path.v[i].begin : 0;
    struct text t = {.fd = -1};
    text_duration(&t, mine);
    if (mine)
        text_printf(&t, " (%.1f %%)", 100 * (double)mine / (double)(path.v[path.n - 1].end - path.v[0].begin));
    tsp_write_tip(p->answer, "On the critical path", mine ? text_cstr(&t) : "no");
    text_fini(&t);
    vec_free(&path);
}

/* Writes times of a span with a corrected begin, on its host's clock. */
static void write_begin(const struct spanset_pointed *p, uint32_t row)
{
    const struct spans_row *r = p->x->spans->rows + row;
    int64_t cut = r->begin_ns - r->shift_ns - r->recorded_ns;
    if (r->shift_ns)
        tsp_write_tip(p->answer, "Moved into its caller by", shift_text(p, r->shift_ns));
    if (cut)
        view_write_duration(p->answer, "Recorded as begun earlier by", cut);
    else if (r->cut)
        tsp_write_tip(p->answer, "Begin", "known to the second: it was up to 1 s later");
}

void spanset_tell_span(const struct spanset_pointed *p, uint32_t row)
{
    const struct spanset *o = p->x->spans;
    const struct spans_row *r = o->rows + row;
    struct spanset_whole w = spanset_find(o, row, p->q->http->arena);
    uint32_t host = spans_own_value(o->s, r, "host");
    write_value(p->answer, "Operation", spans_text(o->s, r->name));
    write_value(p->answer, "Service", spans_text(o->s, r->service));
    if (host)
        tsp_write_tip(p->answer, "Host", spans_text(o->s, host));
    write_thread(p, row);
    view_write_span(p->answer, o->times[row].begin, o->times[row].begin + spans_duration(r));
    write_status(p, r, w.span);
    write_begin(p, row);
    write_on_path(p, row);
    int32_t traced = o->joined.threads[row].host;
    if (traced >= 0)
        view_write_clock_error(p->answer, &p->x->hosts[traced], o->times[row].begin);
    if (w.span) {
        write_events(p, w.span);
        write_attributes(p, &w.span->attributes, "");
        write_attributes(p, &w.span->origin->resource, "resource ");
    }
    write_trace_id(p, r->trace);
    write_id(p->answer, "Span", r->id);
    if (r->parent_id)
        write_id(p->answer, "Parent", r->parent_id);
    spanset_release(&w);
}

void spanset_tell_trace(const struct spanset_pointed *p, uint32_t trace)
{
    const struct spanset_shown *s = p->x->spans->shown + trace;
    struct text t = {.fd = -1};
    spanset_write_root(p->x->spans, trace, &t);
    write_value(p->answer, "Begins with", text_cstr(&t));
    text_fini(&t);
    view_write_number(p->answer, "Spans", s->rows);
    view_write_number(p->answer, "Errors", s->errors);
    write_trace_id(p, trace);
}

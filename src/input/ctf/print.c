/* SPDX-License-Identifier: MIT */
/* Events as lines: parts shared by all formats, and the start of text and JSON lines. */
#include <stdio.h>

#include "base/mem.h"
#include "ctf/layout.h"
#include "ctf/print_line.h"

/* ---- sources ---- */

static size_t find_schema(struct ctf_print *p, const struct ctf_trace *trace)
{
    const struct ctf_event_class *const *classes;
    size_t n = ctf_trace_classes(trace, &classes);
    for (size_t i = 0; i < p->schemas.n; i++)
        if (p->schemas.v[i].classes == classes && p->schemas.v[i].n == n)
            return i;
    struct print_schema s = {.classes = classes, .n = n, .plans = mem_zalloc(sizeof *s.plans * (n + 1))};
    vec_push(&p->schemas, s);
    return p->schemas.n - 1;
}

/* Writes "host:process:(pid) ", with the parts that the trace's environment has. */
static void put_text_prefix(struct text *t, const struct ctf_trace *trace)
{
    const char *host = ctf_trace_env_string(trace, "hostname"), *process = ctf_trace_env_string(trace, "procname");
    if (host)
        text_puts(t, host);
    if (process) {
        text_puts(t, host ? ":" : "");
        text_puts(t, process);
    }
    bool any = host || process;
    const struct ctf_env *env;
    size_t n = ctf_trace_env(trace, &env);
    for (size_t i = 0; i < n; i++)
        if (strcmp(env[i].name, "vpid") == 0 && !env[i].is_string) {
            text_printf(t, "%s(%lld)", any ? ":" : "", (long long)env[i].number);
            any = true;
        }
    if (any)
        text_putc(t, ' ');
}

static void set_prefix(struct ctf_print *p, struct print_source *s, const struct ctf_trace *trace)
{
    struct text t = {.fd = -1};
    text_room(&t, 1); /* keeps it non-NULL if empty */
    if (p->format == CTF_PRINT_TEXT) {
        put_text_prefix(&t, trace);
    } else {
        text_puts(&t, ",\"host\":");
        if (s->host) {
            size_t n = strlen(s->host);
            char *o = text_room(&t, 6 * n + 2);
            t.n += (size_t)(print_json_string(o, s->host, n) - o);
        } else {
            text_puts(&t, "null");
        }
        text_puts(&t, ",\"cpu\":");
    }
    free(s->prefix);
    s->prefix_n = t.n;
    s->prefix = text_take(&t);
}

struct ctf_print *ctf_print_new(const struct ctf_source *sources, size_t n, enum ctf_print_format format)
{
    struct ctf_print *p = mem_zalloc(sizeof *p);
    p->format = format;
    p->scratch.fd = -1;
    p->second = INT64_MIN;
    p->n_sources = n;
    p->sources = mem_zalloc(sizeof *p->sources * (n + 1));
    for (size_t i = 0; i < n; i++) {
        struct print_source *s = &p->sources[i];
        const struct ctf_trace *trace = sources[i].trace;
        const char *host = ctf_trace_env_string(trace, "hostname");
        if (!host)
            host = ctf_trace_env_string(trace, "host");
        s->trace = trace;
        s->schema = find_schema(p, trace);
        s->host = host ? mem_strdup(host) : NULL;
        set_prefix(p, s, trace);
    }
    return p;
}

void ctf_print_host(struct ctf_print *p, size_t source, const char *host)
{
    struct print_source *s = &p->sources[source];
    free(s->host);
    s->host = mem_strdup(host);
    if (p->format == CTF_PRINT_JSON)
        set_prefix(p, s, NULL);
}

void ctf_print_free(struct ctf_print *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->schemas.n; i++) {
        for (size_t j = 0; j < p->schemas.v[i].n; j++)
            print_plan_free(p->schemas.v[i].plans[j]);
        free(p->schemas.v[i].plans);
        map_fini(&p->schemas.v[i].clock_streams);
    }
    vec_free(&p->schemas);
    for (size_t i = 0; i < p->n_sources; i++) {
        free(p->sources[i].host);
        free(p->sources[i].prefix);
    }
    free(p->sources);
    text_fini(&p->scratch);
    free(p);
}

/* Returns whether any integer of any event of the stream is mapped to a clock. */
static bool stream_has_clock(const struct print_schema *s, const struct ctf_event_class *cls)
{
    if (cls->layout && cls->layout->plan->sc->is_ctf2)
        return cls->layout->plan->sc->clock >= 0;
    for (int scope = CTF_PACKET_CONTEXT; scope <= CTF_STREAM_EVENT_CONTEXT; scope++)
        if (print_has_clock(cls->scope[scope]))
            return true;
    return map_find(&s->clock_streams, cls->stream_id) != NULL;
}

/* Finds streams with an event that has such an integer in its own context or payload. */
static void find_clock_streams(struct print_schema *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->classes[i] && s->classes[i]->item == CTF_EVENT &&
            (print_has_clock(s->classes[i]->scope[CTF_EVENT_CONTEXT]) ||
                print_has_clock(s->classes[i]->scope[CTF_PAYLOAD])))
            map_put(&s->clock_streams, s->classes[i]->stream_id, NULL);
    s->clocks_known = true;
}

static const struct print_plan *make_plan(
    struct ctf_print *p, struct print_schema *s, const struct ctf_event_class *cls)
{
    if (!s->clocks_known)
        find_clock_streams(s);
    return s->plans[cls->index] = print_plan_new(cls, p->format, stream_has_clock(s, cls));
}

/* ---- lines ---- */

/* Writes "[seconds.nanoseconds] "; the seconds are cached. */
static char *put_time(struct ctf_print *p, char *o, int64_t ts)
{
    uint64_t into = (uint64_t)ts - (uint64_t)p->second;
    if (into >= 1000000000 || p->second == INT64_MIN) {
        bool negative = ts < 0;
        uint64_t size = negative ? -(uint64_t)ts : (uint64_t)ts;
        char *s = p->seconds;
        *s++ = '[';
        if (negative)
            *s++ = '-';
        s = print_u64(s, size / 1000000000);
        *s++ = '.';
        p->seconds_n = (size_t)(s - p->seconds);
        into = size % 1000000000;
        p->second = negative ? INT64_MIN : ts - (int64_t)into;
    }
    memcpy(o, p->seconds, sizeof p->seconds);
    o = print_nine(o + p->seconds_n, (uint32_t)into);
    *o++ = ']';
    *o++ = ' ';
    return o;
}

static char *put_signed(char *o, int64_t v)
{
    if (v < 0)
        *o++ = '-';
    return print_u64(o, v < 0 ? -(uint64_t)v : (uint64_t)v);
}

static void start_text(struct ctf_print *p, const struct print_source *s, bool has_clock, int64_t ts, struct text *out)
{
    char *o = text_room(out, s->prefix_n + 128);
    if (has_clock)
        o = put_time(p, o, ts);
    memcpy(o, s->prefix, s->prefix_n);
    out->n = (size_t)(o + s->prefix_n - out->v);
}

static char *start_json(const struct print_source *s, bool has_clock, const struct ctf_event *ev, struct text *out)
{
    char *o = text_room(out, s->prefix_n + 128);
    o = stpcpy(o, "{\"ts\":");
    o = has_clock ? put_signed(o, ev->ts) : stpcpy(o, "null");
    memcpy(o, s->prefix, s->prefix_n);
    o += s->prefix_n;
    return ev->cpu >= 0 ? print_u64(o, (uint64_t)ev->cpu) : stpcpy(o, "null");
}

/* Writes {"lost_events":n,"ts":…,"host":…,"cpu":…,"stream":…,"begin":…,"end":…}. */
static void put_json_loss(const struct print_source *s, const struct ctf_event *ev, struct text *out)
{
    const struct ctf_loss *loss = (const void *)ev->data;
    char *o = start_json(s, loss->begin_known || loss->end_known, ev, out);
    out->n = (size_t)(o - out->v);
    text_printf(out, ",\"%s\":%llu", ev->cls->item == CTF_LOST_EVENTS ? "lost_events" : "lost_packets",
        (unsigned long long)loss->count);
    text_puts(out, ",\"begin\":");
    loss->begin_known ? text_i64(out, loss->begin) : text_puts(out, "null");
    text_puts(out, ",\"end\":");
    loss->end_known ? text_i64(out, loss->end) : text_puts(out, "null");
    text_puts(out, "}\n");
}

static void print_loss(struct ctf_print *p, const struct print_source *s, const struct ctf_event *ev, struct text *out)
{
    if (p->format == CTF_PRINT_JSON)
        put_json_loss(s, ev, out);
    else if (p->format == CTF_PRINT_CSV)
        print_csv_loss(s, ev, out);
}

void ctf_print_header(struct ctf_print *p, struct text *out)
{
    if (p->format == CTF_PRINT_CSV)
        print_csv_header(out);
}

static const struct print_plan *plan_of(struct ctf_print *p, struct print_source *s, const struct ctf_event_class *cls)
{
    if (cls->index >= p->schemas.v[s->schema].n) /* classes were added */
        s->schema = find_schema(p, s->trace);
    struct print_schema *schema = &p->schemas.v[s->schema];
    const struct print_plan *plan = schema->plans[cls->index];
    return plan ? plan : make_plan(p, schema, cls);
}

bool ctf_print_timed(struct ctf_print *p, const struct ctf_merge *m, const struct ctf_event *ev)
{
    const struct ctf_loss *loss = (const void *)ev->data;
    if (ev->cls->item != CTF_EVENT)
        return loss->begin_known || loss->end_known;
    return plan_of(p, &p->sources[ctf_merge_source(m, ev->stream)], ev->cls)->has_clock;
}

void ctf_print_event(struct ctf_print *p, const struct ctf_merge *m, const struct ctf_event *ev, struct text *out)
{
    struct print_source *s = &p->sources[ctf_merge_source(m, ev->stream)];
    if (ev->cls->item != CTF_EVENT) {
        print_loss(p, s, ev, out);
        return;
    }
    const struct print_plan *plan = plan_of(p, s, ev->cls);
    switch (p->format) {
    case CTF_PRINT_TEXT:
        start_text(p, s, plan->has_clock, ev->ts, out);
        print_plan_run(plan, ev, out);
        break;
    case CTF_PRINT_JSON: {
        char *o = start_json(s, plan->has_clock, ev, out);
        o = stpcpy(o, ",\"name\":");
        out->n = (size_t)(o - out->v);
        print_plan_run(plan, ev, out);
        break;
    }
    case CTF_PRINT_CSV: print_csv_event(p, s, plan, ev, out); break;
    }
}

/* SPDX-License-Identifier: MIT */
/* Facts about traces as pages, a table, CSV or JSON. */
#include "cli/info.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/shown.h"
#include "base/time.h"
#include "cli/cli.h"

/* ---- words ---- */

static void put_bytes(struct text *t, uint64_t bytes)
{
    static const struct {
        const char *unit;
        double bytes;
    } units[] = {{"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}};
    for (size_t i = 0; i < 3; i++)
        if ((double)bytes >= units[i].bytes) {
            double v = (double)bytes / units[i].bytes;
            text_printf(t, "%.*f %s", v < 10 ? 2 : v < 100 ? 1 : 0, v, units[i].unit);
            return;
        }
    text_printf(t, "%llu B", (unsigned long long)bytes);
}

static void put_frequency(struct text *t, uint64_t hz)
{
    static const struct {
        const char *unit;
        uint64_t hz;
    } units[] = {{"GHz", 1000000000}, {"MHz", 1000000}, {"kHz", 1000}, {"Hz", 1}};
    size_t i = 0;
    while (i < 3 && hz < units[i].hz)
        i++;
    text_printf(t, "%.9g %s", (double)hz / (double)units[i].hz, units[i].unit);
}

/* Returns the time of value 0 of the clock, in ns since the epoch. */
static int64_t clock_offset_ns(const struct ctf_clock *c)
{
    __int128 ns = (__int128)c->offset_s * 1000000000 + (c->freq ? (__int128)c->offset * 1000000000 / c->freq : 0);
    return ns > INT64_MAX ? INT64_MAX : ns < INT64_MIN ? INT64_MIN : (int64_t)ns;
}

static void put_count(struct text *t, uint64_t n, const char *what)
{
    text_grouped(t, n);
    text_printf(t, " %s%s", what, n == 1 ? "" : "s");
}

static const char *or_dash(const char *s)
{
    return s && *s ? s : "–";
}

/* Writes a name from the trace. */
static void put_name(struct text *t, const char *s)
{
    shown_line(t, s, strlen(s));
}

/* ---- page of one trace ---- */

static void label(struct text *t, const char *name)
{
    text_printf(t, "  %-10s", name);
}

/* How far the clock may be from its origin's time, in ns; false: not stated. */
static bool clock_error_ns(const struct ctf_clock *c, int64_t *out)
{
    unsigned __int128 cycles = (unsigned __int128)c->precision + c->accuracy, ns = cycles * 1000000000 / c->freq;
    *out = ns < INT64_MAX ? (int64_t)ns : INT64_MAX;
    return c->has_error;
}

static void put_origin(struct text *t, const struct ctf_clock *c)
{
    bool stated = c->origin && *c->origin && !c->absolute;
    if (c->absolute || (!c->origin && clock_offset_ns(c)))
        text_puts(t, " s after the epoch");
    else
        text_puts(t, stated ? " s after the origin " : " s, not tied to the epoch");
    if (stated)
        put_name(t, c->origin);
    int64_t error;
    if (clock_error_ns(c, &error)) {
        text_puts(t, ", ± ");
        text_duration(t, error);
    }
    text_putc(t, '\n');
}

static void put_clock(struct text *t, const struct ctf_clock *c)
{
    label(t, "clock");
    put_name(t, or_dash(c->name));
    text_puts(t, ", ");
    put_frequency(t, c->freq);
    text_puts(t, ", starts at ");
    time_write_seconds(t, clock_offset_ns(c));
    put_origin(t, c);
}

static void put_span(struct text *t, const struct trace_facts *f)
{
    label(t, "span");
    if (!f->has_span) {
        text_puts(t, "–\n");
        return;
    }
    time_write_utc(t, f->begin, true);
    text_puts(t, "  →  ");
    time_write_utc(t, f->end, true);
    text_puts(t, " UTC   ");
    text_duration(t, time_between(f->begin, f->end));
    text_putc(t, '\n');
}

static void put_losses(struct text *t, const struct trace_facts *f)
{
    label(t, "lost");
    if (!f->lost_events && !f->lost_packets) {
        bool missing = false;
        for (size_t i = 0; i < f->problems.n; i++)
            missing |= !f->problems.v[i].harmless;
        text_puts(t, missing ? "nothing of what is there\n" : "nothing\n");
        return;
    }
    if (f->lost_events) {
        put_count(t, f->lost_events, "event");
        text_printf(t, " (%.3g %% of all)", 100.0 * (double)f->lost_events / (double)(f->lost_events + f->events));
    }
    if (f->lost_packets) {
        text_puts(t, f->lost_events ? ", " : "");
        put_count(t, f->lost_packets, "packet");
    }
    text_putc(t, '\n');
}

static void put_page(struct text *t, const struct trace_facts *f)
{
    cli_bold(t);
    put_name(t, or_dash(f->host));
    cli_plain(t);
    text_puts(t, "  ");
    if (f->domain) {
        put_name(t, f->domain);
        text_puts(t, "  ");
    }
    put_name(t, ctf_trace_path(f->trace));
    text_putc(t, '\n');
    label(t, "tracer");
    put_name(t, or_dash(f->tracer));
    if (f->kernel) {
        text_puts(t, ", kernel ");
        put_name(t, f->kernel);
    }
    text_putc(t, '\n');
    if (f->clock)
        put_clock(t, f->clock);
    put_span(t, f);
    label(t, "events");
    put_count(t, f->events, "event");
    text_puts(t, " in ");
    put_count(t, f->n_streams, "stream");
    text_puts(t, ", ");
    put_count(t, f->packets, "packet");
    text_puts(t, ", ");
    put_bytes(t, f->bytes);
    text_putc(t, '\n');
    put_losses(t, f);
}

/* The texts name the files that they speak of. */
static void put_problems(struct text *t, const struct trace_facts *f, bool page)
{
    for (size_t i = 0; i < f->problems.n; i++) {
        label(t, !page ? "problem" : i ? "" : "problems");
        put_name(t, f->problems.v[i].text);
        if (f->problems.v[i].count > 1)
            text_printf(t, " (%llu times)", (unsigned long long)f->problems.v[i].count);
        text_putc(t, '\n');
    }
}

/* ---- table of several traces ---- */

static void put_table(struct text *out, const struct trace_facts *facts, size_t n)
{
    static const struct cli_column columns[] = {{"host", false, false}, {"events", true, true}, {"lost", true, true},
        {"begin (UTC)", false, false}, {"duration", true, true}, {"size", true, true}, {"streams", true, true},
        {"packets", true, true}, {"domain", false, false}, {"tracer", false, false}, {"kernel", false, false}};
    struct cli_table *table = cli_table_new(columns, sizeof columns / sizeof *columns);
    struct text t = {.fd = -1};
    uint64_t events = 0, bytes = 0, lost = 0;
    for (size_t i = 0; i < n; i++) {
        const struct trace_facts *f = &facts[i];
        cli_table_cell(table, "%s", or_dash(f->host));
        text_grouped(&t, f->events), cli_table_text(table, &t);
        if (f->lost_events)
            text_grouped(&t, f->lost_events);
        cli_table_text(table, &t);
        if (f->has_span)
            time_write_utc(&t, f->begin, true);
        cli_table_text(table, &t);
        if (f->has_span)
            text_duration(&t, time_between(f->begin, f->end));
        cli_table_text(table, &t);
        put_bytes(&t, f->bytes), cli_table_text(table, &t);
        cli_table_cell(table, "%zu", f->n_streams);
        text_grouped(&t, f->packets), cli_table_text(table, &t);
        cli_table_cell(table, "%s", or_dash(f->domain));
        cli_table_cell(table, "%s", or_dash(f->tracer));
        cli_table_cell(table, "%s", or_dash(f->kernel));
        events += f->events, bytes += f->bytes, lost += f->lost_events;
    }
    cli_table_write(table, CLI_TABLE, out);
    cli_table_free(table);
    text_fini(&t);
    text_putc(out, '\n');
    put_count(out, n, "trace");
    text_puts(out, ", ");
    put_count(out, events, "event");
    text_puts(out, ", ");
    put_bytes(out, bytes);
    if (lost) {
        text_puts(out, ", ");
        put_count(out, lost, "event");
        text_puts(out, " lost");
    }
    text_putc(out, '\n');
}

/* ---- CSV and JSON ---- */

static void number_cell(struct cli_table *t, bool known, int64_t v)
{
    if (known)
        cli_table_number(t, v);
    else
        cli_table_cell(t, "%s", "");
}

static void put_csv(struct text *out, const struct trace_facts *facts, size_t n)
{
    static const struct cli_column columns[] = {{"host"}, {"path"}, {"domain"}, {"tracer"}, {"kernel"}, {"clock"},
        {"clock_freq"}, {"clock_offset_ns"}, {"streams"}, {"packets"}, {"events"}, {"lost_events"}, {"lost_packets"},
        {"begin"}, {"end"}, {"duration"}, {"bytes"}, {"problems"}};
    struct cli_table *t = cli_table_new(columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < n; i++) {
        const struct trace_facts *f = &facts[i];
        const char *const words[] = {
            f->host, ctf_trace_path(f->trace), f->domain, f->tracer, f->kernel, f->clock ? f->clock->name : NULL};
        for (size_t k = 0; k < 6; k++)
            cli_table_cell(t, "%s", words[k] ? words[k] : "");
        number_cell(t, f->clock, f->clock ? (int64_t)f->clock->freq : 0);
        number_cell(t, f->clock, f->clock ? clock_offset_ns(f->clock) : 0);
        const uint64_t counts[] = {f->n_streams, f->packets, f->events, f->lost_events, f->lost_packets};
        for (size_t k = 0; k < 5; k++)
            cli_table_number(t, (int64_t)counts[k]);
        number_cell(t, f->has_span, f->begin);
        number_cell(t, f->has_span, f->end);
        number_cell(t, f->has_span, time_between(f->begin, f->end));
        cli_table_number(t, (int64_t)f->bytes);
        cli_table_number(t, (int64_t)f->problems.n);
    }
    cli_table_write(t, CLI_CSV, out);
    cli_table_free(t);
}

static void kv_time(struct json *j, const char *key, bool known, int64_t v)
{
    json_key(j, key);
    known ? json_i64(j, v) : json_null(j);
}

static void json_streams(struct json *j, const struct trace_facts *f)
{
    json_key(j, "stream_list");
    json_array(j);
    for (size_t i = 0; i < f->n_streams; i++) {
        const struct ctf_stream_info *s = &f->streams[i].info;
        json_object(j);
        json_kv_string(j, "name", s->name);
        kv_time(j, "cpu", s->cpu >= 0, s->cpu);
        json_kv_u64(j, "packets", s->packets);
        json_kv_u64(j, "events", f->streams[i].events);
        json_kv_u64(j, "lost_events", s->lost_events);
        json_kv_u64(j, "lost_packets", s->lost_packets);
        json_kv_u64(j, "bytes", s->bytes);
        kv_time(j, "begin", f->streams[i].timed, s->begin);
        kv_time(j, "end", f->streams[i].timed, s->end);
        json_end_object(j);
    }
    json_end_array(j);
}

static void json_clock(struct json *j, const struct ctf_clock *c)
{
    json_key(j, "clock");
    if (!c) {
        json_null(j);
        return;
    }
    json_object(j);
    json_kv_string(j, "name", c->name);
    json_kv_u64(j, "freq", c->freq);
    json_kv_i64(j, "offset_ns", clock_offset_ns(c));
    json_kv_string(j, "description", c->description);
    json_kv_string(j, "uid", c->uid);
    json_kv_string(j, "origin", c->origin && *c->origin ? c->origin : NULL);
    json_key(j, "error_ns");
    int64_t error;
    if (clock_error_ns(c, &error))
        json_i64(j, error);
    else
        json_null(j);
    json_end_object(j);
}

static void json_env(struct json *j, const struct ctf_trace *t)
{
    const struct ctf_env *env;
    size_t n = ctf_trace_env(t, &env);
    json_key(j, "env");
    json_object(j);
    for (size_t i = 0; i < n; i++)
        if (env[i].is_string)
            json_kv_string(j, env[i].name, env[i].string);
        else
            json_kv_i64(j, env[i].name, env[i].number);
    json_end_object(j);
}

static void json_trace(struct json *j, const struct trace_facts *f)
{
    json_object(j);
    json_kv_string(j, "host", f->host);
    json_kv_string(j, "path", ctf_trace_path(f->trace));
    json_kv_string(j, "domain", f->domain);
    json_kv_string(j, "tracer", f->tracer);
    json_kv_string(j, "kernel", f->kernel);
    json_clock(j, f->clock);
    json_kv_u64(j, "streams", f->n_streams);
    json_kv_u64(j, "packets", f->packets);
    json_kv_u64(j, "events", f->events);
    json_kv_u64(j, "lost_events", f->lost_events);
    json_kv_u64(j, "lost_packets", f->lost_packets);
    kv_time(j, "begin", f->has_span, f->begin);
    kv_time(j, "end", f->has_span, f->end);
    kv_time(j, "duration", f->has_span, time_between(f->begin, f->end));
    json_kv_u64(j, "bytes", f->bytes);
    json_key(j, "problems");
    json_array(j);
    for (size_t i = 0; i < f->problems.n; i++) {
        json_object(j);
        json_kv_string(j, "text", f->problems.v[i].text);
        json_kv_u64(j, "count", f->problems.v[i].count);
        json_end_object(j);
    }
    json_end_array(j);
    json_streams(j, f);
    json_env(j, f->trace);
    json_end_object(j);
}

static void put_json(struct text *out, const struct trace_facts *facts, size_t n)
{
    text_puts(out, "[");
    for (size_t i = 0; i < n; i++) {
        text_puts(out, i ? ",\n" : "\n");
        struct json j = JSON_TO(out);
        json_trace(&j, &facts[i]);
    }
    text_puts(out, "\n]\n");
}

void cli_info_write(struct text *out, const struct trace_facts *facts, size_t n, int format, bool pages)
{
    if (format == CLI_JSON) {
        put_json(out, facts, n);
    } else if (format == CLI_CSV) {
        put_csv(out, facts, n);
    } else if (pages || n == 1) {
        for (size_t i = 0; i < n; i++) {
            text_puts(out, i ? "\n" : "");
            put_page(out, &facts[i]);
            put_problems(out, &facts[i], true);
        }
    } else {
        put_table(out, facts, n);
        for (size_t i = 0; i < n; i++)
            put_problems(out, &facts[i], false);
    }
}

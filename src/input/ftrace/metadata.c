/* SPDX-License-Identifier: MIT */
/* CTF 1.8 metadata for a trace.dat file: what events look like once their pages were written as packets. */
#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "base/text.h"
#include "ftrace/pages.h"

static void put_quoted(struct text *t, const char *s, size_t n)
{
    text_putc(t, '"');
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c == '"' || c == '\\')
            text_putc(t, '\\');
        text_putc(t, c < ' ' ? '?' : (char)c);
    }
    text_putc(t, '"');
}

static void put_env(struct text *t, const char *name, const char *s, size_t n)
{
    text_printf(t, "  %s = ", name);
    put_quoted(t, s, n);
    text_puts(t, ";\n");
}

/* "Linux HOST RELEASE MACHINE" */
static void put_uname(struct text *t, const char *uname)
{
    static const char *const names[] = {"sysname", "hostname", "kernel_release", "machine"};
    for (size_t i = 0; i < 4 && *uname; i++) {
        size_t n = strcspn(uname, " \n");
        if (n)
            put_env(t, names[i], uname, n);
        uname += n;
        uname += strspn(uname, " \n");
    }
}

static void put_id(struct text *t, uint64_t id)
{
    text_printf(t, "  uuid = \"00000000-0000-0000-%04x-%012llx\";\n", (unsigned)(id >> 48),
        (unsigned long long)(id & 0xffffffffffff));
}

static void put_trace(struct text *t, const struct ftrace_file *f)
{
    unsigned v[3] = {0};
    text_puts(t, "/* CTF 1.8 */\ntrace {\n  major = 1;\n  minor = 8;\n");
    if (f->has_trace_id)
        put_id(t, f->trace_id);
    text_printf(t, "  byte_order = %s;\n};\nenv {\n  domain = \"kernel\";\n  tracer_name = \"trace-cmd\";\n",
        f->big ? "be" : "le");
    int n = f->tool ? sscanf(f->tool, "%5u.%5u.%5u", &v[0], &v[1], &v[2]) : 0;
    for (int i = 0; i < n; i++)
        text_printf(t, "  %s = %u;\n", (const char *[]){"tracer_major", "tracer_minor", "tracer_patchlevel"}[i], v[i]);
    if (f->uname)
        put_uname(t, f->uname);
    text_puts(t, "};\n");
}

/* Clocks are named by number where the name is no word. */
static const char *clock_of(const struct ftrace_file *f, const struct ftrace_buffer *b)
{
    return b->clock && *b->clock ? b->clock : f->clock ? f->clock : "local";
}

static void put_clock_name(struct text *t, const char *clock)
{
    for (const char *p = clock; *p; p++)
        text_putc(t,
            (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9' && p > clock) ? *p : '_');
}

static void put_clocks(struct text *t, const struct ftrace_file *f)
{
    for (size_t i = 0; i < f->buffers.n; i++) {
        const char *clock = clock_of(f, &f->buffers.v[i]);
        bool again = false;
        for (size_t k = 0; k < i; k++)
            again |= !strcmp(clock, clock_of(f, &f->buffers.v[k]));
        if (again)
            continue;
        text_puts(t, "clock {\n  name = ");
        put_clock_name(t, clock);
        text_puts(t, ";\n");
        if (f->n_shifts || (f->has_guests && f->has_trace_id)) /* recordings of one clock find each other by it */
            put_id(t, f->n_shifts ? f->host_id : f->trace_id);
        text_printf(t, "  description = \"trace clock of Linux\";\n  freq = 1000000000;\n  offset = %lld;\n};\n",
            (long long)f->offset_ns);
    }
}

static void put_type(struct text *t, unsigned bytes, bool is_signed, bool is_text, bool hex)
{
    text_printf(t, "%s%u", is_text ? "t" : hex ? "x" : is_signed ? "s" : "u", bytes * 8);
}

static void put_types(struct text *t)
{
    for (unsigned bits = 8; bits <= 64; bits *= 2)
        text_printf(t,
            "typealias integer { size = %u; align = 8; signed = false; } := u%u;\n"
            "typealias integer { size = %u; align = 8; signed = true; } := s%u;\n"
            "typealias integer { size = %u; align = 8; signed = false; base = 16; } := x%u;\n",
            bits, bits, bits, bits, bits, bits);
    text_puts(t, "typealias integer { size = 8; align = 8; signed = false; encoding = UTF8; } := t8;\n");
}

/* Fields of one name are told apart by a number. */
static void put_name(struct text *t, const ftrace_fields *fields, size_t i)
{
    size_t number = 1;
    for (size_t k = 0; k < i; k++)
        number += !strcmp(fields->v[k].name, fields->v[i].name);
    text_printf(t, "_%s", fields->v[i].name);
    if (number > 1)
        text_printf(t, "__%zu", number);
}

static void put_fields(struct text *t, const ftrace_fields *fields)
{
    text_puts(t, "struct {");
    for (size_t i = 0; i < fields->n; i++) {
        const struct ftrace_field *f = &fields->v[i];
        bool is_list = f->kind == FTRACE_LIST || f->kind == FTRACE_TAIL;
        if (is_list && f->is_text) {
            text_puts(t, " string ");
            put_name(t, fields, i);
            text_puts(t, ";");
            continue;
        }
        if (is_list) {
            text_puts(t, " u32 _");
            put_name(t, fields, i);
            text_puts(t, "_length;");
        }
        text_putc(t, ' ');
        put_type(t, f->element, f->is_signed, f->is_text, f->is_pointer);
        text_putc(t, ' ');
        put_name(t, fields, i);
        if (is_list) {
            text_puts(t, "[_");
            put_name(t, fields, i);
            text_puts(t, "_length]");
        } else if (f->kind == FTRACE_ARRAY) {
            text_printf(t, "[%u]", f->size / f->element);
        }
        text_putc(t, ';');
    }
    text_puts(t, " }");
}

/* Each buffer has all formats; it ends where the text has more bytes than `most`. */
static void put_stream(struct text *t, const struct ftrace_file *f, size_t i, size_t most)
{
    struct text clock = {.fd = -1};
    put_clock_name(&clock, clock_of(f, &f->buffers.v[i]));
    text_printf(t,
        "stream {\n  id = %zu;\n"
        "  event.header := struct { u16 id; integer { size = 64; align = 8; map = clock.%s.value; } timestamp; };\n"
        "  packet.context := struct {\n"
        "    integer { size = 64; align = 8; map = clock.%s.value; } timestamp_begin;\n"
        "    integer { size = 64; align = 8; map = clock.%s.value; } timestamp_end;\n"
        "    u64 events_discarded; u32 cpu_id; };\n",
        i, text_cstr(&clock), text_cstr(&clock), text_cstr(&clock));
    text_fini(&clock);
    if (f->common.n) {
        text_puts(t, "  event.context := ");
        put_fields(t, &f->common);
        text_puts(t, ";\n");
    }
    text_puts(t, "};\n");
    for (size_t k = 0; k < f->events.n && t->n <= most; k++) {
        const struct ftrace_event *ev = &f->events.v[k];
        text_puts(t, "event { name = ");
        put_quoted(t, ev->name, strlen(ev->name));
        text_printf(t, "; id = %u; stream_id = %zu; fields := ", ev->id, i);
        put_fields(t, &ev->own);
        text_puts(t, "; };\n");
    }
}

int ftrace_metadata(const struct ftrace_file *f, size_t most, char **out, size_t *n, struct err *e)
{
    struct text t = {.fd = -1};
    int rc = 0;
    put_trace(&t, f);
    put_clocks(&t, f);
    put_types(&t);
    for (size_t i = 0; i < f->buffers.n && t.n <= most; i++)
        put_stream(&t, f, i, most);
    *n = t.n;
    text_cstr(&t);
    if (t.error)
        rc = err_set(e, ERR_NOMEM, "%s: no memory for the formats of its events", f->path);
    else if (t.n > most)
        rc = err_set(e, ERR_LIMIT, "%s: the formats of %zu events in %zu buffers are too many", f->path, f->events.n,
            f->buffers.n);
    *out = rc ? NULL : text_take(&t);
    if (rc)
        text_fini(&t);
    return rc;
}

void ftrace_put_context(struct ftrace_sink *s, const struct ctf_made_packet *p, int32_t cpu, bool big)
{
    ftrace_put_number(s, p->begin, 8, big);
    ftrace_put_number(s, p->end, 8, big);
    ftrace_put_number(s, p->discarded, 8, big);
    ftrace_put_number(s, (uint32_t)cpu, 4, big);
}

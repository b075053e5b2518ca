/* SPDX-License-Identifier: MIT */
/* Contents of sections and options, of both versions of the file. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ftrace/file.h"

enum { MOST_EVENTS = 1 << 16, MOST_SYSTEMS = 1 << 12, MOST_PROBLEMS = 100 };

/* ---- bytes ---- */

const uint8_t *ftrace_take(struct ftrace_bytes *b, uint64_t n)
{
    if (b->bad || n > b->n - b->at) {
        b->bad = true;
        return NULL;
    }
    b->at += n;
    return b->v + b->at - n;
}

uint64_t ftrace_number(struct ftrace_bytes *b, unsigned bytes)
{
    const uint8_t *p = ftrace_take(b, bytes);
    return p ? ftrace_load(p, bytes, b->big) : 0;
}

const char *ftrace_string(struct ftrace_bytes *b)
{
    const uint8_t *begin = b->v + b->at, *end = b->bad ? NULL : memchr(begin, 0, b->n - b->at);
    b->bad |= !end;
    return end ? (const char *)ftrace_take(b, (uint64_t)(end - begin) + 1) : "";
}

/* ---- problems ---- */

static void add_problem(struct ftrace_file *f, bool harmless, const char *fmt, va_list ap)
{
    char text[600];
    vsnprintf(text, sizeof text, fmt, ap);
    if (f->n_told[harmless]++ < MOST_PROBLEMS) /* counted apart: remarks do not crowd out damage */
        vec_push(&f->problems, ((struct ctf_made_problem){arena_strdup(&f->arena, text), harmless}));
}

void ftrace_problem(struct ftrace_file *f, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    add_problem(f, false, fmt, ap);
    va_end(ap);
}

void ftrace_remark(struct ftrace_file *f, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    add_problem(f, true, fmt, ap);
    va_end(ap);
}

/* ---- headers ---- */

/* Lines of the page header's format. */
static void read_page_header(struct ftrace_file *f, const char *text, size_t n)
{
    const char *end = text + n;
    for (const char *line = text; line < end;) {
        const char *next = memchr(line, '\n', (size_t)(end - line));
        struct ftrace_field field = {0};
        bool ok = ftrace_field_parse(&f->arena, line, (size_t)((next ? next : end) - line), f->long_bytes, &field);
        if (ok && !strcmp(field.name, "timestamp") && field.size == 8)
            f->time_at = field.offset;
        if (ok && !strcmp(field.name, "commit") && (field.size == 4 || field.size == 8)) {
            f->commit_at = field.offset;
            f->commit_bytes = field.size;
        }
        if (ok && !strcmp(field.name, "data"))
            f->data_at = field.offset;
        line = next ? next + 1 : end;
    }
}

void ftrace_read_headers(struct ftrace_file *f, struct ftrace_bytes *b)
{
    const char *name = ftrace_string(b);
    bool is = !strcmp(name, "header_page");
    uint64_t n = ftrace_number(b, 8);
    const uint8_t *text = is ? ftrace_take(b, n) : NULL;
    f->commit_at = 8;
    f->commit_bytes = f->long_bytes;
    f->data_at = 8 + f->commit_bytes;
    if (text)
        read_page_header(f, (const char *)text, n);
    ftrace_string(b); /* header_event: always the same since Linux 2.6.31 */
    ftrace_take(b, ftrace_number(b, 8));
    if (!text || b->bad)
        ftrace_problem(f, "%s: the page header's format is damaged; the usual one is taken", f->path);
    f->long_bytes = f->commit_bytes;
}

/* ---- formats ---- */

static bool read_event(struct ftrace_file *f, struct ftrace_bytes *b)
{
    uint64_t n = ftrace_number(b, 8);
    const uint8_t *text = ftrace_take(b, n);
    struct ftrace_event ev;
    if (!text)
        return false;
    if (ftrace_event_parse(&f->arena, (const char *)text, n, f->long_bytes, &ev))
        vec_push(&f->events, ev);
    else if (n)
        ftrace_problem(f, "%s: the format of an event is damaged; the event is not read", f->path);
    return true;
}

static void read_events(struct ftrace_file *f, struct ftrace_bytes *b)
{
    uint64_t n = ftrace_number(b, 4);
    for (uint64_t i = 0; i < n && f->events.n < MOST_EVENTS && read_event(f, b); i++)
        ;
}

void ftrace_read_ftrace_events(struct ftrace_file *f, struct ftrace_bytes *b)
{
    read_events(f, b);
    if (b->bad)
        ftrace_problem(f, "%s: the formats of ftrace's own events end early", f->path);
}

void ftrace_read_event_formats(struct ftrace_file *f, struct ftrace_bytes *b)
{
    uint64_t n = ftrace_number(b, 4);
    for (uint64_t i = 0; i < n && i < MOST_SYSTEMS && !b->bad; i++) {
        ftrace_string(b);
        read_events(f, b);
    }
    if (b->bad)
        ftrace_problem(f, "%s: the formats of events end early; events without format are not read", f->path);
}

/* ---- options ---- */

enum {
    OPTION_DATE = 1,
    OPTION_CLOCK = 4,
    OPTION_UNAME = 5,
    OPTION_OFFSET = 7,
    OPTION_CPUS = 8,
    OPTION_VERSION = 9,
    OPTION_TRACE_ID = 11,
    OPTION_TIME_SHIFT = 12,
    OPTION_GUEST = 13,
    OPTION_TSC = 14
};

/* The option's text, without a NUL of its own. */
static const char *text_of(struct ftrace_file *f, const struct ftrace_bytes *b)
{
    return arena_strndup(&f->arena, (const char *)b->v, strnlen((const char *)b->v, b->n));
}

/* "local [mono] boot": the one in brackets. */
static const char *chosen_clock(struct ftrace_file *f, const struct ftrace_bytes *b)
{
    const char *text = text_of(f, b), *begin = strchr(text, '['), *end = begin ? strchr(begin, ']') : NULL;
    return end ? arena_strndup(&f->arena, begin + 1, (size_t)(end - begin - 1)) : NULL;
}

/* Sums of damaged options wrap around. */
static void add_offset(struct ftrace_file *f, uint64_t ns)
{
    f->offset_ns = (int64_t)((uint64_t)f->offset_ns + ns);
}

bool ftrace_read_option(struct ftrace_file *f, unsigned id, struct ftrace_bytes b)
{
    switch (id) {
    case OPTION_DATE: add_offset(f, (uint64_t)strtoll(text_of(f, &b), NULL, 0) * 1000); break;
    case OPTION_OFFSET: add_offset(f, (uint64_t)strtoll(text_of(f, &b), NULL, 0)); break;
    case OPTION_CLOCK: f->clock = chosen_clock(f, &b); break;
    case OPTION_UNAME: f->uname = text_of(f, &b); break;
    case OPTION_VERSION: f->tool = text_of(f, &b); break;
    case OPTION_CPUS: f->cpus = (uint32_t)ftrace_number(&b, 4); break;
    case OPTION_TRACE_ID:
        f->trace_id = ftrace_number(&b, 8);
        f->has_trace_id = !b.bad;
        break;
    case OPTION_TIME_SHIFT: ftrace_read_shift(f, b); break;
    case OPTION_GUEST: f->has_guests = true; break;
    case OPTION_TSC:
        f->tsc_mult = (uint32_t)ftrace_number(&b, 4);
        f->tsc_shift = (uint32_t)ftrace_number(&b, 4);
        f->tsc_mult = b.bad || f->tsc_shift > 63 ? 0 : f->tsc_mult;
        break;
    default: return false;
    }
    return true;
}

/* SPDX-License-Identifier: MIT */
/* Contexts: reading and writing W3C traceparent, Jaeger's uber-trace-id and Zipkin's b3. */
#include "script/context.h"

#include <stdio.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/time.h"

enum { TRACE_DIGITS = 32, SPAN_DIGITS = 16, TRACE_STATE_BYTES = 4096, TRACE_STATE_MEMBERS = 32 };

/* ---- pieces ---- */

static int digit_of(char c, bool upper)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return upper && c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The hex digits that s begins with, at most `most` + 1 are counted. */
static size_t count_digits(const char *s, size_t most, bool upper)
{
    size_t n = 0;
    while (n <= most && digit_of(s[n], upper) >= 0)
        n++;
    return n;
}

/* n digits become `width`, zeros in front, in lower case. False: all are zero, or they are none or too many. */
static bool take_id(const char *s, size_t n, size_t width, char *out)
{
    bool any = false;
    if (n == 0 || n > width)
        return false;
    memset(out, '0', width - n);
    for (size_t i = 0; i < n; i++) {
        any |= s[i] != '0';
        out[width - n + i] = "0123456789abcdef"[digit_of(s[i], true)];
    }
    out[width] = '\0';
    return any;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static const char *skip_blanks(const char *s)
{
    while (is_blank(*s))
        s++;
    return s;
}

static bool only_blanks(const char *s)
{
    return !*skip_blanks(s);
}

/* ---- the three notations ---- */

enum { W3C_CHARS = 55, W3C_SPAN_AT = 36, W3C_FLAGS_AT = 53 };

bool script_read_traceparent(const char *s, struct script_context *out)
{
    struct script_context c = {0};
    s = skip_blanks(s);
    if (count_digits(s, 2, false) != 2 || s[2] != '-' || !memcmp(s, "ff", 2))
        return false;
    if (count_digits(s + 3, TRACE_DIGITS, false) != TRACE_DIGITS || s[W3C_SPAN_AT - 1] != '-' ||
        count_digits(s + W3C_SPAN_AT, SPAN_DIGITS, false) != SPAN_DIGITS || s[W3C_FLAGS_AT - 1] != '-' ||
        count_digits(s + W3C_FLAGS_AT, 2, false) != 2)
        return false;
    bool first = !memcmp(s, "00", 2);
    if (!only_blanks(s + W3C_CHARS) && (first || s[W3C_CHARS] != '-'))
        return false;
    if (!take_id(s + 3, TRACE_DIGITS, TRACE_DIGITS, c.trace_id) ||
        !take_id(s + W3C_SPAN_AT, SPAN_DIGITS, SPAN_DIGITS, c.span_id))
        return false;
    c.flags = (unsigned)digit_of(s[W3C_FLAGS_AT + 1], false) & (SCRIPT_SAMPLED | SCRIPT_RANDOM);
    *out = c;
    return true;
}

bool script_read_uber(const char *s, struct script_context *out)
{
    struct script_context c = {0};
    s = skip_blanks(s);
    size_t n = count_digits(s, TRACE_DIGITS, true);
    if (!take_id(s, n, TRACE_DIGITS, c.trace_id) || s[n] != ':')
        return false;
    s += n + 1;
    n = count_digits(s, SPAN_DIGITS, true);
    if (!take_id(s, n, SPAN_DIGITS, c.span_id) || s[n] != ':')
        return false;
    s += n + 1;
    n = count_digits(s, SPAN_DIGITS, true); /* the parent: deprecated, may be empty */
    if (n > SPAN_DIGITS || s[n] != ':')
        return false;
    s += n + 1;
    n = count_digits(s, 2, true);
    if (n == 0 || n > 2 || !only_blanks(s + n))
        return false;
    /* Sampled, or debug, which means that too. */
    c.flags = digit_of(s[n - 1], true) & 3 ? SCRIPT_SAMPLED : 0;
    *out = c;
    return true;
}

bool script_read_b3(const char *s, struct script_context *out)
{
    struct script_context c = {.flags = SCRIPT_SAMPLED};
    s = skip_blanks(s);
    if ((*s == '0' || *s == '1' || *s == 'd') && only_blanks(s + 1)) {
        c.flags = *s == '0' ? 0 : SCRIPT_SAMPLED;
        *out = c;
        return true;
    }
    size_t n = count_digits(s, TRACE_DIGITS, true);
    if ((n != TRACE_DIGITS && n != SPAN_DIGITS) || !take_id(s, n, TRACE_DIGITS, c.trace_id) || s[n] != '-')
        return false;
    s += n + 1;
    if (count_digits(s, SPAN_DIGITS, true) != SPAN_DIGITS || !take_id(s, SPAN_DIGITS, SPAN_DIGITS, c.span_id))
        return false;
    s += SPAN_DIGITS;
    if (*s == '-' && (s[1] == '0' || s[1] == '1' || s[1] == 'd')) {
        c.flags = s[1] == '0' ? 0 : SCRIPT_SAMPLED;
        s += 2;
        if (*s == '-' && count_digits(s + 1, SPAN_DIGITS, true) == SPAN_DIGITS)
            s += 1 + SPAN_DIGITS;
    }
    if (!only_blanks(s))
        return false;
    *out = c;
    return true;
}

bool script_read_context(const char *s, struct script_context *out)
{
    return script_read_traceparent(s, out) || script_read_uber(s, out) || (script_read_b3(s, out) && *out->trace_id);
}

void script_write_traceparent(const struct script_context *c, char out[SCRIPT_CONTEXT_CHARS])
{
    snprintf(out, SCRIPT_CONTEXT_CHARS, "00-%s-%s-%02x", c->trace_id, c->span_id, c->flags);
}

void script_write_uber(const struct script_context *c, const char *parent_id, char out[SCRIPT_CONTEXT_CHARS])
{
    snprintf(out, SCRIPT_CONTEXT_CHARS, "%s:%s:%s:%02x", c->trace_id, c->span_id, *parent_id ? parent_id : "0",
        c->flags & SCRIPT_SAMPLED);
}

void script_write_b3(const struct script_context *c, char out[SCRIPT_CONTEXT_CHARS])
{
    snprintf(out, SCRIPT_CONTEXT_CHARS, "%s-%s-%u", c->trace_id, c->span_id, c->flags & SCRIPT_SAMPLED);
}

/* ---- the environment ---- */

/* X_B3_TRACEID, X_B3_SPANID, X_B3_SAMPLED, X_B3_FLAGS. */
static bool read_b3_parts(const char *trace, struct script_context *out)
{
    struct script_context c = {.flags = SCRIPT_SAMPLED};
    const char *span = getenv("X_B3_SPANID"), *sampled = getenv("X_B3_SAMPLED"), *flags = getenv("X_B3_FLAGS");
    size_t n = count_digits(trace, TRACE_DIGITS, true);
    if ((n != TRACE_DIGITS && n != SPAN_DIGITS) || trace[n] || !span ||
        count_digits(span, SPAN_DIGITS, true) != SPAN_DIGITS || span[SPAN_DIGITS])
        return false;
    if (!take_id(trace, n, TRACE_DIGITS, c.trace_id) || !take_id(span, SPAN_DIGITS, SPAN_DIGITS, c.span_id))
        return false;
    if (sampled && (!strcmp(sampled, "0") || !strcmp(sampled, "false")) && !(flags && !strcmp(flags, "1")))
        c.flags = 0;
    *out = c;
    return true;
}

static const struct source {
    const char *name;
    bool (*read)(const char *, struct script_context *);
    bool is_jaeger;
} sources[] = {
    {"TRACEPARENT", script_read_traceparent, false},
    {"UBER_TRACE_ID", script_read_uber, true},
    {"TRACE_ID", script_read_uber, true},
    {"B3", script_read_b3, false},
    {"X_B3_TRACEID", read_b3_parts, false},
};

static bool read_source(const struct source *s, struct script_context *out, struct text *bad)
{
    const char *value = getenv(s->name);
    if (!value || !*value)
        return false;
    if (s->read(value, out))
        return *out->trace_id;
    if (bad->n)
        text_puts(bad, ", ");
    text_puts(bad, s->name);
    return false;
}

bool script_find_context(bool uber_first, struct script_context *out, struct text *bad)
{
    *out = (struct script_context){.flags = SCRIPT_SAMPLED};
    for (int round = uber_first ? 0 : 1; round < 2; round++)
        for (size_t i = 0; i < sizeof sources / sizeof *sources; i++)
            if ((!uber_first || sources[i].is_jaeger == (round == 0)) && read_source(&sources[i], out, bad))
                return true;
    return false;
}

const char *script_find_trace_state(void)
{
    const char *s = getenv("TRACESTATE");
    size_t n = s ? strlen(s) : 0, members = 1;
    if (n == 0 || n > TRACE_STATE_BYTES)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        if ((s[i] < ' ' && s[i] != '\t') || s[i] > '~')
            return NULL;
        members += s[i] == ',';
    }
    return members <= TRACE_STATE_MEMBERS && strchr(s, '=') ? s : NULL;
}

/* ---- new ids ---- */

/* Makes an id without waiting. If the system has no randomness yet, time and process id distinguish spans. */
static void new_id(char *out, size_t digits)
{
    uint64_t v[2];
    size_t words = digits / 16;
    do {
        if (getrandom(v, sizeof v, GRND_NONBLOCK) != sizeof v) {
            v[0] = (uint64_t)time_now_ns() * 0x9e3779b97f4a7c15u;
            v[1] = ((uint64_t)getpid() << 32 | (uint64_t)getppid()) ^ (uint64_t)time_monotonic_ns();
            v[0] ^= v[1] * 0xbf58476d1ce4e5b9u;
        }
    } while (!v[0] || !v[1]);
    for (size_t i = 0; i < words; i++)
        snprintf(out + 16 * i, 17, "%016llx", (unsigned long long)v[i]);
}

void script_new_trace_id(char out[33])
{
    new_id(out, TRACE_DIGITS);
}

void script_new_span_id(char out[17])
{
    new_id(out, SPAN_DIGITS);
}

/* SPDX-License-Identifier: MIT */
/* Feeds what a relay sent (stdin) to traces in the order in which it came, and prints their events as soon as they are
 * certain. A record: operation, number of the trace, number of the line, two numbers, bytes that follow (all little
 * endian). Operations: M metadata, P packet, Q nothing comes in a stream class (a) before a time in cycles (b), H the
 * line ends. A line of output: number of the trace, tab, text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "ctf/feed.h"

enum { TRACES = 64, LINES = 256, BATCH = 7 };

struct __attribute__((packed)) record {
    char operation;
    uint32_t trace, line;
    uint64_t a, b;
    uint32_t n;
};

struct trace {
    struct ctf_feed *feed;
    struct ctf_source source;
    struct ctf_merge *merge;
    struct ctf_print *print;
    size_t classes; /* that `print` knows */
    uint32_t line_of[LINES];
    bool has_line[LINES];
};

static struct trace traces[TRACES];

static void fail(const char *what)
{
    fprintf(stderr, "feed_wire: %s\n", what);
    exit(1);
}

static struct trace *trace_of(uint32_t number)
{
    if (number >= TRACES)
        fail("too many traces");
    struct trace *t = &traces[number];
    if (!t->feed) {
        t->feed = ctf_feed_new("wire", NULL);
        ctf_feed_hold(t->feed, INT64_MIN); /* until its lines are known */
    }
    return t;
}

static uint32_t line_of(struct trace *t, uint32_t number)
{
    char name[32];
    if (number >= LINES)
        fail("too many lines");
    snprintf(name, sizeof name, "line-%u", number);
    if (!t->has_line[number])
        t->line_of[number] = ctf_feed_line(t->feed, name);
    t->has_line[number] = true;
    return t->line_of[number];
}

static void print_ready(struct trace *t)
{
    struct text out = {.fd = -1};
    struct ctf_event ev[BATCH];
    struct err e = {0};
    const struct ctf_event_class *const *classes;
    t->source.trace = ctf_feed_trace(t->feed);
    if (!t->source.trace)
        return;
    if (!t->merge && ctf_merge_new(&t->source, 1, (struct ctf_window){INT64_MIN, INT64_MAX}, -1, &t->merge, &e))
        fail(e.text);
    for (size_t n; (n = ctf_merge_next(t->merge, ev, BATCH)) > 0;) {
        size_t known = ctf_trace_classes(t->source.trace, &classes);
        if (t->print && known != t->classes) {
            ctf_print_free(t->print);
            t->print = NULL;
        }
        t->print = t->print ? t->print : ctf_print_new(&t->source, 1, CTF_PRINT_TEXT);
        t->classes = known;
        for (size_t i = 0; i < n; i++) {
            size_t before = out.n;
            text_printf(&out, "%zu\t", (size_t)(t - traces));
            size_t start = out.n;
            ctf_print_event(t->print, t->merge, &ev[i], &out);
            if (out.n == start) /* losses have no line */
                out.n = before;
        }
    }
    if (out.n)
        fwrite(out.v, 1, out.n, stdout);
    text_fini(&out);
}

static void take(const struct record *r, const uint8_t *bytes)
{
    struct trace *t = trace_of(r->trace);
    struct err e = {0};
    int64_t ns;
    int rc = 0;
    switch (r->operation) {
    case 'M': rc = ctf_feed_metadata(t->feed, bytes, r->n, &e); break;
    case 'P': rc = ctf_feed_packet(t->feed, line_of(t, r->line), bytes, r->n, &e); break;
    case 'Q':
        if (ctf_feed_time(t->feed, r->a, r->b, &ns))
            ctf_feed_quiet(t->feed, line_of(t, r->line), ns);
        break;
    case 'H': ctf_feed_line_end(t->feed, line_of(t, r->line)); break;
    default: fail("unknown operation");
    }
    if (rc && r->operation != 'M') /* metadata may be cut anywhere: what comes next makes them whole */
        fail(e.text);
    print_ready(t);
}

int main(void)
{
    struct record r;
    while (fread(&r, sizeof r, 1, stdin) == 1) {
        uint8_t *bytes = malloc(r.n + 1);
        if (!bytes || fread(bytes, 1, r.n, stdin) != r.n)
            fail("a record is cut");
        take(&r, bytes);
        free(bytes);
    }
    for (struct trace *t = traces; t < traces + TRACES; t++) {
        const struct ctf_problem *problems;
        if (!t->feed)
            continue;
        ctf_feed_hold(t->feed, INT64_MAX);
        ctf_feed_end(t->feed);
        print_ready(t);
        for (size_t i = 0; t->source.trace && i < ctf_trace_problems(t->source.trace, &problems); i++)
            if (!problems[i].harmless)
                fprintf(stderr, "%s\n", problems[i].text);
        ctf_print_free(t->print);
        ctf_merge_free(t->merge);
        ctf_feed_free(t->feed);
    }
    return 0;
}

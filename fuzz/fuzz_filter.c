/* SPDX-License-Identifier: MIT */
/* query.filter of Jaeger's newer interface: any text. What is understood is asked of a span with all there is; if it
 * holds, the span has the terms that the database looks for. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "span/code.h"
#include "span/jaeger_filter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* A constant, as initialisers want it. */
#define ALL \
    { \
        list, sizeof list / sizeof *list \
    }

static const struct span *rich(void)
{
    static const struct span_attribute list[] = {{"a", {.type = SPAN_STRING, .text = {"x", 1}}},
        {"b", {.type = SPAN_INT, .number = -3}}, {"c", {.type = SPAN_DOUBLE, .real = 0.5}},
        {"d", {.type = SPAN_BOOL, .truth = true}}, {"e", {.type = SPAN_BYTES, .text = {"\1\2", 2}}}};
    static const struct span_event events[] = {{1, "one", ALL, 0}, {2, "two", ALL, 0}};
    static const struct span_link links[] = {{.state = "", .attributes = ALL}};
    static const struct span_origin origin = {.service = "s",
        .resource = ALL,
        .resource_schema = "",
        .scope = "lib",
        .scope_version = "2",
        .scope_attributes = ALL,
        .scope_schema = ""};
    static struct span s = {.name = "n",
        .kind = SPAN_CLIENT,
        .status = SPAN_ERROR,
        .status_message = "broke",
        .state = "w=1",
        .attributes = ALL,
        .events = events,
        .links = links,
        .n_events = 2,
        .n_links = 1,
        .end_ns = 1000,
        .origin = &origin};
    return &s;
}

struct found {
    struct filter_wanted wanted;
    size_t n;
};

static void take(void *arg, uint64_t term)
{
    struct found *f = arg;
    for (size_t i = f->n; i < f->wanted.n; i++)
        if (term == f->wanted.v[i].term || term == f->wanted.v[i].any)
            f->wanted.v[i] = f->wanted.v[f->n++];
}

/* Returns whether the span has all terms of the filter. */
static bool has_terms(const struct filter *filter, const struct span *s)
{
    struct text span = {.fd = -1}, origin = {.fd = -1};
    struct found f = {0};
    filter_want(filter, &f.wanted);
    span_write(s, &span);
    span_write_origin(s->origin, &origin);
    struct wire_in in = wire_of(span.v, span.n), of_origin = wire_of(origin.v, origin.n);
    if (!span_each_term(&in, take, &f) || !span_each_origin_term(&of_origin, take, &f))
        abort();
    bool all = f.n == f.wanted.n;
    vec_free(&f.wanted);
    text_fini(&span);
    text_fini(&origin);
    return all;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char *text = mem_alloc(n + 1);
    struct filter *f = NULL;
    struct arena arena = {0};
    struct err e = {0};
    memcpy(text, data, n);
    text[n] = '\0';
    if (!filter_read(text, &f, &e)) {
        const bool holds = filter_holds(f, rich(), &arena);
        if (holds && filter_name(f) && strcmp(filter_name(f), "n") != 0)
            abort(); /* it was said to need another name */
        if (holds && !has_terms(f, rich()))
            abort();
    } else if (!*e.text) {
        abort();
    }
    filter_free(f);
    arena_fini(&arena);
    free(text);
    return 0;
}

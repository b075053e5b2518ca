/* SPDX-License-Identifier: MIT */
/* query.filter of Jaeger's newer interface: any text, and what is understood is asked of a span with all there is. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
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
        .scope = "",
        .scope_version = "",
        .scope_attributes = ALL,
        .scope_schema = ""};
    static struct span s = {.name = "n",
        .status_message = "",
        .state = "",
        .attributes = ALL,
        .events = events,
        .links = links,
        .n_events = 2,
        .n_links = 1,
        .end_ns = 1000,
        .origin = &origin};
    return &s;
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
        filter_holds(f, rich(), &arena);
        if (filter_name(f) && strcmp(filter_name(f), "n") != 0 && filter_holds(f, rich(), &arena))
            abort(); /* it was said to need another name */
    } else if (!*e.text) {
        abort();
    }
    filter_free(f);
    arena_fini(&arena);
    free(text);
    return 0;
}

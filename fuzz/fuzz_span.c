/* SPDX-License-Identifier: MIT */
/* What weft-span reads: contexts, URLs, lists of pairs, the answer of a collector. The first byte says which. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "script/context.h"
#include "script/send.h"
#include "script/settings.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* What was taken for a context is one when it is written again. */
static void check(const struct script_context *c)
{
    struct script_context again;
    char text[SCRIPT_CONTEXT_CHARS];
    script_write_traceparent(c, text);
    if (!script_read_traceparent(text, &again) || strcmp(again.trace_id, c->trace_id) != 0)
        abort();
    script_write_uber(c, "", text);
    if (!script_read_uber(text, &again) || strcmp(again.span_id, c->span_id) != 0)
        abort();
    script_write_b3(c, text);
    if (!script_read_b3(text, &again) || (again.flags ^ c->flags) & SCRIPT_SAMPLED)
        abort();
}

static void read_contexts(const char *s)
{
    struct script_context c;
    if (script_read_traceparent(s, &c))
        check(&c);
    if (script_read_uber(s, &c))
        check(&c);
    if (script_read_b3(s, &c) && *c.trace_id)
        check(&c);
}

static void read_pairs(struct arena *a, const char *s)
{
    struct script_span span = {.name = s, .kind = SCRIPT_INTERNAL};
    struct text out = {.fd = -1};
    script_read_pairs(a, s, &span.attributes);
    if (span.attributes.list.n > SCRIPT_MOST_ATTRIBUTES)
        abort();
    script_write_otlp(&span, &span.attributes, &out);
    script_write_thrift(&span, s, &span.attributes, &out);
    text_fini(&out);
    script_span_fini(&span);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct arena arena = {0};
    struct script_url url;
    struct script_reply reply = {0};
    const char *why;
    if (!n)
        return 0;
    char *s = mem_alloc(n);
    memcpy(s, data + 1, n - 1);
    s[n - 1] = '\0';
    switch (*data % 4) {
    case 0: read_contexts(s); break;
    case 1: read_pairs(&arena, s); break;
    case 2:
        if (script_read_url(&arena, s, "4318", &url, &why) && (!*url.host || *url.path != '/'))
            abort();
        break;
    case 3:
        if (script_read_reply((const char *)data + 1, n - 1, &reply) > 0 && reply.retry_after_ns < 0)
            abort();
        break;
    }
    free(s);
    arena_fini(&arena);
    return 0;
}

/* SPDX-License-Identifier: MIT */
/* Spans that anybody sends: OTLP as protobuf and as JSON, Zipkin's JSON, Jaeger's Thrift; the records that the log
 * holds; JSON that other programs save. The first byte says which. What was taken must be written and
 * read again as the same bytes. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "span/jaeger.h"
#include "span/read.h"
#include "span/write.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_written(const struct span *s)
{
    struct text t = {.fd = -1};
    struct json j = JSON_TO(&t);
    const struct span *one[] = {s};
    const struct span_list list = {one, 1, 1};
    json_array(&j);
    jaeger_write_resource_spans(&j, &list, "cut");
    jaeger_write_trace(&j, &list, NULL);
    struct jaeger_summary summary = {0};
    for (size_t i = 0; i < list.n; i++)
        jaeger_summary_add(&summary, list.v[i]);
    jaeger_summary_write(&j, &summary);
    jaeger_summary_fini(&summary);
    json_end_array(&j);
    if (j.depth)
        abort();
    text_fini(&t);
}

static bool is_even(const void *which, const char *key, size_t n)
{
    (void)which;
    (void)key;
    return n % 2 == 0;
}

/* What is read of a sound span in brief is what the whole of it says. */
static void check_brief(const struct span *whole, const void *v, size_t n)
{
    struct wire_in in = wire_of(v, n);
    struct arena arena = {0};
    struct span s = {0};
    size_t kept = 0;
    bool good = span_read_brief(&in, &arena, is_even, NULL, &s) && !strcmp(s.name, whole->name) &&
        s.begin_ns == whole->begin_ns && s.end_ns == whole->end_ns && s.status == whole->status;
    for (size_t i = 0; i < whole->attributes.n && good; i++) {
        const struct span_attribute *a = whole->attributes.v + i;
        if (!is_even(NULL, a->key, strlen(a->key)))
            continue;
        good = kept < s.attributes.n && !strcmp(s.attributes.v[kept].key, a->key) &&
            s.attributes.v[kept].value.type == a->value.type;
        kept++;
    }
    if (!good || kept != s.attributes.n)
        abort();
    arena_fini(&arena);
}

/* sound: they were made here, so that each must be whole. */
static void read_records(const void *records, size_t n, bool sound)
{
    struct wire_in in = wire_of(records, n), origin, body;
    struct span_origin o;
    struct arena of_origin = {0};
    bool has_origin = false;
    while (span_next_record(&in, &origin, &body)) {
        struct arena arena = {0};
        struct span s = {.origin = &o};
        struct text again = {.fd = -1};
        size_t bytes = (size_t)(body.end - body.at);
        const void *at = body.at;
        bool is_origin = origin.at != origin.end;
        if (is_origin) {
            arena_fini(&of_origin);
            memset(&o, 0, sizeof o);
            has_origin = span_read_origin(&origin, &of_origin, &o);
        }
        if (is_origin ? sound && !has_origin : !span_read(&body, &arena, &s) && sound)
            abort();
        if (!is_origin && !body.damaged)
            check_brief(&s, at, bytes);
        if (!is_origin && !body.damaged && sound) {
            span_write(&s, &again);
            if (again.n != bytes || memcmp(again.v, at, bytes) != 0)
                abort();
        }
        if (!is_origin && !body.damaged && has_origin)
            check_written(&s);
        text_fini(&again);
        arena_fini(&arena);
    }
    if (sound && in.damaged)
        abort();
    arena_fini(&of_origin);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct span_making m = SPAN_MAKING;
    static span_reader *const readers[] = {
        span_read_protobuf, span_read_json, span_read_zipkin, span_read_thrift, NULL, span_read_saved};
    struct err e = {0};
    unsigned which = n ? *data % 6u : 6;
    if (which < 6 && readers[which]) {
        readers[which](&m, data + 1, n - 1, &e);
        read_records(m.code.v, m.code.n, true);
    } else if (which == 4) {
        read_records(data + 1, n - 1, false);
    }
    span_making_fini(&m);
    return 0;
}

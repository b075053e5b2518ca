/* SPDX-License-Identifier: MIT */
/* A trace for Jaeger's newer interface: OTLP, and summaries. */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/order.h"
#include "span/jaeger.h"
#include "span/write.h"

/* Writes a span with a warning among its attributes, which is where Jaeger and its UI look for it. */
static void write_warned(struct json *j, const struct span *of, const char *warning)
{
    struct span s = *of;
    struct span_attribute *v = mem_zalloc((of->attributes.n + 1) * sizeof *v);
    const struct span_value said = {.type = SPAN_STRING, .text = {warning, strlen(warning)}};
    for (size_t i = 0; i < of->attributes.n; i++)
        v[i] = of->attributes.v[i];
    v[of->attributes.n].key = "@jaeger@warnings";
    v[of->attributes.n].value = (struct span_value){.type = SPAN_ARRAY, .array = {&said, 1}};
    s.attributes = (struct span_attributes){v, of->attributes.n + 1};
    span_write_otlp(j, &s);
    free(v);
}

void jaeger_write_resource_spans(struct json *j, const struct span_list *spans, const char *warning)
{
    for (size_t i = 0; i < spans->n;) {
        const struct span_origin *o = spans->v[i]->origin;
        json_object(j);
        span_write_otlp_resource(j, o);
        json_key(j, "scopeSpans");
        json_array(j);
        json_object(j);
        span_write_otlp_scope(j, o);
        json_key(j, "spans");
        json_array(j);
        for (; i < spans->n && spans->v[i]->origin == o; i++)
            if (warning && !i)
                write_warned(j, spans->v[i], warning);
            else
                span_write_otlp(j, spans->v[i]);
        json_end_array(j);
        json_end_object(j);
        json_end_array(j);
        json_end_object(j);
    }
}

/* ---- summaries ---- */

/* Part of a span that a summary needs. */
struct jaeger_part {
    uint64_t id, parent;
    int64_t begin_ns;
    uint32_t service, name;
    bool error;
};

void jaeger_summary_add(struct jaeger_summary *m, const struct span *s)
{
    const char *service = s->origin->service;
    struct jaeger_part part = {.begin_ns = s->begin_ns,
        .service = strings_intern(&m->names, service, strlen(service)),
        .name = strings_intern(&m->names, s->name, strlen(s->name)),
        .error = s->status == SPAN_ERROR};
    memcpy(&part.id, s->id, sizeof part.id);
    memcpy(&part.parent, s->parent_id, sizeof part.parent);
    map_put(&m->ids, part.id, NULL);
    if (!m->spans.n) {
        memcpy(m->trace_id, s->trace_id, sizeof m->trace_id);
        m->begin_ns = INT64_MAX;
        m->end_ns = INT64_MIN;
    }
    m->begin_ns = s->begin_ns < m->begin_ns ? s->begin_ns : m->begin_ns;
    m->end_ns = s->end_ns > m->end_ns ? s->end_ns : m->end_ns;
    vec_push(&m->spans, part);
}

void jaeger_summary_fini(struct jaeger_summary *m)
{
    vec_free(&m->spans);
    strings_fini(&m->names);
    map_fini(&m->ids);
}

struct service_count {
    const char *name;
    uint64_t spans, errors;
};

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct service_count *)a)->name, ((const struct service_count *)b)->name);
}

/* Returns the earliest span without a parent, or else the earliest with a missing parent. *orphans: number of spans
 * with a missing parent. */
static const struct jaeger_part *find_root(const struct jaeger_summary *m, uint64_t *orphans)
{
    const struct jaeger_part *root = NULL, *lost = NULL;
    *orphans = 0;
    for (size_t i = 0; i < m->spans.n; i++) {
        const struct jaeger_part *s = &m->spans.v[i];
        if (!s->parent && (!root || s->begin_ns < root->begin_ns))
            root = s;
        if (s->parent && !map_find(&m->ids, s->parent)) {
            ++*orphans;
            lost = !lost || s->begin_ns < lost->begin_ns ? s : lost;
        }
    }
    return root ? root : lost ? lost : m->spans.v;
}

static void write_i64(struct json *j, const char *key, int64_t v)
{
    json_key(j, key);
    json_before_value(j);
    text_printf(j->out, "\"%lld\"", (long long)v);
}

static void write_services(struct json *j, const struct jaeger_summary *m)
{
    VEC(struct service_count) all = {0};
    struct map places = {0}; /* name number → place + 1 */
    for (size_t i = 0; i < m->spans.n; i++) {
        const struct jaeger_part *s = &m->spans.v[i];
        uint64_t *place = map_put(&places, s->service, NULL);
        if (!*place) {
            vec_push(&all, ((struct service_count){.name = strings_get(&m->names, s->service)}));
            *place = all.n;
        }
        all.v[*place - 1].spans++;
        all.v[*place - 1].errors += s->error;
    }
    qsort(all.v, all.n, sizeof *all.v, by_name);
    json_key(j, "services");
    json_array(j);
    for (size_t i = 0; i < all.n; i++) {
        json_object(j);
        json_kv_string(j, "name", all.v[i].name);
        json_kv_u64(j, "spanCount", all.v[i].spans);
        json_kv_u64(j, "errorSpanCount", all.v[i].errors);
        json_end_object(j);
    }
    json_end_array(j);
    vec_free(&all);
    map_fini(&places);
}

void jaeger_summary_write(struct json *j, const struct jaeger_summary *m)
{
    uint64_t orphans, errors = 0;
    const struct jaeger_part *root = find_root(m, &orphans);
    for (size_t i = 0; i < m->spans.n; i++)
        errors += m->spans.v[i].error;
    json_object(j);
    json_key(j, "traceId");
    json_before_value(j);
    text_putc(j->out, '"');
    span_write_hex(j->out, m->trace_id, sizeof m->trace_id);
    text_putc(j->out, '"');
    json_kv_string(j, "rootServiceName", strings_get(&m->names, root->service));
    json_kv_string(j, "rootOperationName", strings_get(&m->names, root->name));
    write_i64(j, "minStartTimeUnixNano", m->begin_ns);
    write_i64(j, "maxEndTimeUnixNano", m->end_ns);
    json_kv_u64(j, "spanCount", m->spans.n);
    json_kv_u64(j, "errorSpanCount", errors);
    json_kv_u64(j, "orphanSpanCount", orphans);
    write_services(j, m);
    json_end_object(j);
}

/* A trace as Jaeger's newer interface tells it: OTLP, and summaries. */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/order.h"
#include "span/jaeger.h"
#include "span/write.h"

void jaeger_write_resource_spans(struct json *j, const struct span_list *spans)
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
            span_write_otlp(j, spans->v[i]);
        json_end_array(j);
        json_end_object(j);
        json_end_array(j);
        json_end_object(j);
    }
}

struct service_count {
    const char *name;
    uint64_t spans, errors;
};

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct service_count *)a)->name, ((const struct service_count *)b)->name);
}

/* Spans whose parent is not there, but is named; and the earliest that has none, or else the earliest of those. */
static const struct span *find_root(const struct span_list *spans, uint64_t *orphans)
{
    const struct span *root = NULL, *lost = NULL;
    struct map ids = {0};
    uint64_t id;
    *orphans = 0;
    for (size_t i = 0; i < spans->n; i++) {
        memcpy(&id, spans->v[i]->id, sizeof id);
        map_put(&ids, id, NULL);
    }
    for (size_t i = 0; i < spans->n; i++) {
        const struct span *s = spans->v[i];
        memcpy(&id, s->parent_id, sizeof id);
        if (!id && (!root || s->begin_ns < root->begin_ns))
            root = s;
        if (id && !map_find(&ids, id)) {
            ++*orphans;
            lost = !lost || s->begin_ns < lost->begin_ns ? s : lost;
        }
    }
    map_fini(&ids);
    return root ? root : lost ? lost : spans->v[0];
}

static void write_i64(struct json *j, const char *key, int64_t v)
{
    json_key(j, key);
    json_before_value(j);
    text_printf(j->out, "\"%lld\"", (long long)v);
}

static void write_services(struct json *j, const struct span_list *spans)
{
    VEC(struct service_count) all = {0};
    size_t n = 0;
    for (size_t i = 0; i < spans->n; i++)
        vec_push(&all, ((struct service_count){spans->v[i]->origin->service, 1, spans->v[i]->status == SPAN_ERROR}));
    if (all.n)
        qsort(all.v, all.n, sizeof *all.v, by_name);
    for (size_t i = 0; i < all.n; i++)
        if (n && !strcmp(all.v[n - 1].name, all.v[i].name)) {
            all.v[n - 1].spans++;
            all.v[n - 1].errors += all.v[i].errors;
        } else {
            all.v[n++] = all.v[i];
        }
    json_key(j, "services");
    json_array(j);
    for (size_t i = 0; i < n; i++) {
        json_object(j);
        json_kv_string(j, "name", all.v[i].name);
        json_kv_u64(j, "spanCount", all.v[i].spans);
        json_kv_u64(j, "errorSpanCount", all.v[i].errors);
        json_end_object(j);
    }
    json_end_array(j);
    vec_free(&all);
}

void jaeger_write_summary(struct json *j, const struct span_list *spans)
{
    uint64_t orphans, errors = 0;
    const struct span *root = find_root(spans, &orphans);
    int64_t begin = INT64_MAX, end = INT64_MIN;
    for (size_t i = 0; i < spans->n; i++) {
        const struct span *s = spans->v[i];
        begin = s->begin_ns < begin ? s->begin_ns : begin;
        end = s->end_ns > end ? s->end_ns : end;
        errors += s->status == SPAN_ERROR;
    }
    json_object(j);
    json_key(j, "traceId");
    json_before_value(j);
    text_putc(j->out, '"');
    span_write_hex(j->out, root->trace_id, sizeof root->trace_id);
    text_putc(j->out, '"');
    json_kv_string(j, "rootServiceName", root->origin->service);
    json_kv_string(j, "rootOperationName", root->name);
    write_i64(j, "minStartTimeUnixNano", begin);
    write_i64(j, "maxEndTimeUnixNano", end);
    json_kv_u64(j, "spanCount", spans->n);
    json_kv_u64(j, "errorSpanCount", errors);
    json_kv_u64(j, "orphanSpanCount", orphans);
    write_services(j, spans);
    json_end_object(j);
}

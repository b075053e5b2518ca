/* SPDX-License-Identifier: MIT */
/* Zipkin's second format, as JSON. */
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "span/json_text.h"
#include "span/read.h"
#include "span/read_saved.h"
#include "span/told.h"

static const char *text_of(struct span_making *m, const json_t *of, const char *key)
{
    const json_t *v = json_object_get(of, key);
    return json_is_string(v) ? span_making_text(m, json_string_value(v), json_string_length(v), true, NULL) : "";
}

/* Reads microseconds; some senders use fractions. Returns false if there is no such number. */
static bool us_of(const json_t *of, const char *key, uint64_t *ns)
{
    const json_t *v = json_object_get(of, key);
    double us = json_is_number(v) ? floor(json_number_value(v)) : -1;
    if (us < 0 || us > 9.2e15)
        return false;
    *ns = (json_is_integer(v) ? (uint64_t)json_integer_value(v) : (uint64_t)us) * 1000;
    return true;
}

/* Reads an id; 16 digits are the lower half of a trace id. */
static bool id_of(const json_t *of, const char *key, uint8_t *id, size_t bytes)
{
    const json_t *v = json_object_get(of, key);
    size_t n = json_string_length(v), half = bytes / 2;
    if (json_is_string(v) && bytes == SPAN_TRACE_BYTES && n == 2 * half)
        return span_read_hex(json_string_value(v), n, id + half, half);
    return json_is_string(v) && span_read_hex(json_string_value(v), n, id, bytes);
}

static enum span_kind kind_of(const json_t *in)
{
    static const char *const kinds[] = {"SERVER", "CLIENT", "PRODUCER", "CONSUMER"};
    const char *kind = json_string_value(json_object_get(in, "kind"));
    for (int i = 0; kind && i < 4; i++)
        if (!strcmp(kind, kinds[i]))
            return (enum span_kind)(SPAN_SERVER + i);
    return SPAN_INTERNAL;
}

/* Puts the span's origin, if it differs from the last one. */
static void put_origin(struct span_making *m, const json_t *endpoint, const char **last)
{
    const char *service = json_string_value(json_object_get(endpoint, "serviceName"));
    const char *address = json_string_value(json_object_get(endpoint, "ipv4"));
    address = address ? address : json_string_value(json_object_get(endpoint, "ipv6"));
    struct arena key = {0};
    const char *now = arena_printf(&key, "%s\n%s", service ? service : "", address ? address : "");
    if (!*last || strcmp(*last, now) != 0) {
        struct span_attribute list[2];
        size_t n = 0;
        span_begin_origin(m);
        if (service && *service)
            list[n++] = span_string_attribute(m, "service.name", service);
        if (address)
            list[n++] = span_string_attribute(m, "ip", address);
        struct span_origin o = {
            .resource = {list, n}, .resource_schema = "", .scope = "", .scope_version = "", .scope_schema = ""};
        span_put_origin(m, &o, NULL);
        *last = arena_strdup(&m->of_origin, now);
    }
    arena_fini(&key);
}

static void read_tags(struct span_making *m, const json_t *in, struct span *s)
{
    json_t *tags = json_object_get(in, "tags"), *value;
    const json_t *remote = json_object_get(in, "remoteEndpoint");
    struct span_attribute *v = arena_new(&m->of_span, struct span_attribute, json_object_size(tags) + 3);
    const char *key, *service = text_of(m, remote, "serviceName"), *address = text_of(m, remote, "ipv4");
    size_t n = 0;
    json_object_foreach (tags, key, value)
        if (json_is_string(value)) {
            v[n].key = span_making_text(m, key, strlen(key), true, NULL);
            v[n].value.type = SPAN_STRING;
            v[n].value.text.v = span_making_text(
                m, json_string_value(value), json_string_length(value), false, &v[n].value.text.n);
            n++;
        }
    if (*service)
        v[n++] = span_string_attribute(m, "peer.service", service);
    if (*address)
        v[n++] = span_string_attribute(m, "peer.ipv4", address);
    if (json_is_integer(json_object_get(remote, "port")))
        v[n++] = (struct span_attribute){
            "peer.port", {.type = SPAN_INT, .number = json_integer_value(json_object_get(remote, "port"))}};
    span_tell_of_tags(m, v, n, s);
}

static void read_annotations(struct span_making *m, const json_t *in, struct span *s)
{
    const json_t *list = json_object_get(in, "annotations");
    size_t all = json_array_size(list), most = all < CODE_MOST_ITEMS ? all : CODE_MOST_ITEMS;
    struct span_event *v = arena_new(&m->of_span, struct span_event, most);
    s->events = v;
    s->dropped_events = (uint32_t)(all - most);
    for (size_t i = 0; i < most; i++) {
        uint64_t ns = 0;
        us_of(json_array_get(list, i), "timestamp", &ns);
        v[i].time_ns = (int64_t)ns;
        v[i].name = text_of(m, json_array_get(list, i), "value");
    }
    s->n_events = most;
}

static void read_span(struct span_making *m, const json_t *in, const char **last)
{
    struct span s = {.kind = kind_of(in), .status_message = "", .state = ""};
    uint64_t begin = 0, lasted = 0;
    put_origin(m, json_object_get(in, "localEndpoint"), last);
    span_begin(m);
    bool parent = json_object_get(in, "parentId") && !json_is_null(json_object_get(in, "parentId"));
    if (!id_of(in, "traceId", s.trace_id, sizeof s.trace_id) || !id_of(in, "id", s.id, sizeof s.id) ||
        (parent && !id_of(in, "parentId", s.parent_id, sizeof s.parent_id))) {
        span_refuse(m, "a trace id is 16 or 32 hexadecimal digits, the id of a span or parent 16");
        return;
    }
    if (!us_of(in, "timestamp", &begin)) {
        span_refuse(m, "a span without a timestamp");
        return;
    }
    us_of(in, "duration", &lasted);
    s.name = text_of(m, in, "name");
    read_tags(m, in, &s);
    read_annotations(m, in, &s);
    span_put(m, &s, begin, begin + lasted);
}

int span_take_zipkin(struct span_making *m, const json_t *spans, struct err *e)
{
    const char *last = NULL;
    for (size_t i = 0; i < json_array_size(spans); i++) {
        if (!json_is_object(json_array_get(spans, i)))
            return err_set(e, ERR_FORMAT, "span %zu is no JSON object", i + 1);
        read_span(m, json_array_get(spans, i), &last);
    }
    return 0;
}

int span_read_zipkin(struct span_making *m, const void *data, size_t n, struct err *e)
{
    json_t *root = NULL;
    int rc = span_load_json(data, n, &root, e);
    if (rc)
        return rc;
    rc = json_is_array(root) ? span_take_zipkin(m, root, e) : err_set(e, ERR_FORMAT, "this is no JSON array of spans");
    json_decref(root);
    return rc;
}

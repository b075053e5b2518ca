/* SPDX-License-Identifier: MIT */
/* Conditions of Jaeger's searches. */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "span/jaeger.h"
#include "span/jaeger_filter.h"
#include "span/json_text.h"

void jaeger_search_fini(struct jaeger_search *s)
{
    free(s->tags.v);
    filter_free(s->filter);
}

bool jaeger_read_duration(const char *s, int64_t *out)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = {{"ns", 1}, {"us", 1e3}, {"µs", 1e3}, {"μs", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 6e10}, {"h", 3.6e12}};
    double sum = 0;
    if (!*s)
        return false;
    while (*s) {
        char *end;
        size_t u = 0, most = sizeof units / sizeof *units;
        if ((*s < '0' || *s > '9') && *s != '.')
            return false;
        double v = strtod(s, &end);
        if (end == s || strspn(s, "0123456789.") != (size_t)(end - s))
            return false;
        while (u < most && strncmp(end, units[u].name, strlen(units[u].name)) != 0)
            u++;
        if (u == most)
            return false;
        sum += v * units[u].ns;
        s = end + strlen(units[u].name);
    }
    *out = sum < 9.2e18 ? (int64_t)(sum + 0.5) : INT64_MAX;
    return true;
}

bool jaeger_read_tags(const char *text, struct arena *arena, struct jaeger_search *out)
{
    json_t *root = NULL, *v;
    const char *key;
    bool sound = !span_load_json(text, strlen(text), &root, NULL) && json_is_object(root);
    if (sound)
        json_object_foreach (root, key, v) {
            if (json_is_string(v))
                vec_push(&out->tags,
                    ((struct jaeger_tag){arena_strdup(arena, key), arena_strdup(arena, json_string_value(v))}));
            else
                sound = false;
        }
    json_decref(root);
    return sound;
}

static bool has(const struct span_attributes *a, const struct jaeger_tag *tag, struct arena *arena)
{
    const struct span_value *v = span_find(a, tag->key);
    return v && !strcmp(span_value_text(v, arena), tag->value);
}

/* Returns whether a tag matches a field that Jaeger shows as a tag, but is no attribute. */
static bool is_derived(const struct span *s, const struct jaeger_tag *tag)
{
    static const char *const kinds[] = {"", "internal", "server", "client", "producer", "consumer"};
    static const char *const status[] = {"", "OK", "ERROR"};
    const struct {
        const char *key, *value;
    } derived[] = {{"span.kind", kinds[s->kind]}, {"otel.status_code", status[s->status]},
        {"error", s->status == SPAN_ERROR ? "true" : ""}, {"otel.status_description", s->status_message},
        {"otel.scope.name", s->origin->scope}, {"otel.scope.version", s->origin->scope_version},
        {"w3c.tracestate", s->state}};
    for (size_t i = 0; i < sizeof derived / sizeof *derived; i++)
        if (!strcmp(tag->key, derived[i].key) && *derived[i].value && !strcmp(tag->value, derived[i].value))
            return true;
    return false;
}

static bool has_tag(const struct span *s, const struct jaeger_tag *tag, struct arena *arena)
{
    if (has(&s->attributes, tag, arena) || has(&s->origin->resource, tag, arena) || is_derived(s, tag))
        return true;
    for (size_t i = 0; i < s->n_events; i++)
        if (has(&s->events[i].attributes, tag, arena) ||
            (!strcmp(tag->key, "event") && !strcmp(tag->value, s->events[i].name)))
            return true;
    return false;
}

bool jaeger_matches(const struct jaeger_search *q, const struct span *s, struct arena *arena)
{
    int64_t lasted = s->end_ns - s->begin_ns;
    if (lasted < q->least_ns || lasted > q->most_ns)
        return false;
    for (size_t i = 0; i < q->tags.n; i++)
        if (!has_tag(s, &q->tags.v[i], arena))
            return false;
    return !q->filter || filter_holds(q->filter, s, arena);
}

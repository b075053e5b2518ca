/* SPDX-License-Identifier: MIT */
/* Specifiers of events that open and close pairs, as in Trace Compass. */
#include "views/inout.h"

enum { MAX_LABEL = 256 };

const char inout_schema[] =
    "{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"type\":\"object\",\"title\":\"In-and-out "
    "analysis\","
    "\"properties\":{\"specifiers\":{\"type\":\"array\",\"description\":\"Which events open and which close\","
    "\"minItems\":1,\"maxItems\":64,"
    "\"items\":{\"type\":\"object\",\"properties\":{"
    "\"label\":{\"type\":\"string\",\"description\":\"What the pair is called; or {0}, {1}, {2}, {3}: what inRegex, "
    "outRegex, contextInRegex, "
    "contextOutRegex captures of the event that opens\"},"
    "\"inRegex\":{\"type\":\"string\",\"description\":\"The whole name of events that open, as a regular expression\"},"
    "\"outRegex\":{\"type\":\"string\",\"description\":\"The whole name of events that close\"},"
    "\"contextInRegex\":{\"type\":\"string\",\"description\":\"What must be the same in both: its first group, "
    "looked for in the fields of the event "
    "that opens\"},"
    "\"contextOutRegex\":{\"type\":\"string\",\"description\":\"The same for the event that closes\"},"
    "\"classifier\":{\"type\":\"string\",\"description\":\"A column of the events table that must be the same in "
    "both: CPU, TID, ...\"}},"
    "\"required\":[\"label\",\"inRegex\",\"outRegex\"]}}},\"required\":[\"specifiers\"]}";

struct parser {
    const struct event_table *table;
    struct arena *arena;
    json_t *object; /* current specifier */
    size_t number;
    const char *wrong;
};

static void refuse(struct parser *p, const char *key, const char *why)
{
    if (!p->wrong)
        p->wrong = arena_printf(p->arena, "Invalid query parameters: specifiers[%zu].%s (%s)", p->number, key, why);
}

/* Text of a key; NULL: optional and absent, or wrong. */
static const char *text_of(struct parser *p, const char *key, bool required)
{
    json_t *v = json_object_get(p->object, key);
    if (!v && required && !p->wrong)
        p->wrong = arena_printf(p->arena, "Missing query parameters: specifiers[%zu].%s", p->number, key);
    else if (v && !json_is_string(v))
        refuse(p, key, "it must be a string");
    return json_string_value(v);
}

static struct regex *compile(struct parser *p, const char *key, const char *pattern)
{
    struct regex *r = NULL;
    struct err e = {0};
    if (!p->wrong && regex_compile(pattern, &r, &e))
        refuse(p, key, e.text);
    return r;
}

static struct regex *name_of(struct parser *p, const char *key)
{
    const char *pattern = text_of(p, key, true);
    if (pattern && !*pattern)
        refuse(p, key, "it must be the name of an event, as a regular expression");
    return pattern ? compile(p, key, pattern) : NULL;
}

/* "all" stands for no context, as in Trace Compass. */
static struct regex *context_of(struct parser *p, const char *key)
{
    const char *pattern = text_of(p, key, false);
    return pattern && pattern[strspn(pattern, " \t")] && strcasecmp(pattern, "all") ? compile(p, key, pattern) : NULL;
}

static size_t classifier_of(struct parser *p)
{
    const char *name = text_of(p, "classifier", false);
    if (!name || !name[strspn(name, " \t")])
        return SIZE_MAX;
    const struct event_column *columns;
    size_t n = events_table_columns(p->table, &columns);
    for (size_t i = 0; i < n; i++)
        if (!strcasecmp(columns[i].name, name))
            return i;
    refuse(p, "classifier", arena_printf(p->arena, "the events table of these traces has no column %.100s", name));
    return SIZE_MAX;
}

static void set_label(struct parser *p, struct event_pair_specifier *s)
{
    const char *label = text_of(p, "label", true);
    if (!label)
        return;
    if (!*label || strlen(label) > MAX_LABEL)
        refuse(p, "label", "it must have 1 to 256 bytes");
    s->label = mem_strdup(label);
    if (strlen(label) == 3 && label[0] == '{' && label[1] >= '0' && label[1] <= '3' && label[2] == '}')
        s->label_is = EVENT_LABEL_IN + (unsigned)(label[1] - '0');
}

const char *inout_config_parse(
    const struct event_table *table, json_t *parameters, struct arena *a, struct event_pair_config *out)
{
    json_t *list = json_object_get(parameters, "specifiers");
    struct parser p = {.table = table, .arena = a};
    *out = (struct event_pair_config){.n = 0};
    if (!list)
        return "Missing query parameters: specifiers";
    if (!json_is_array(list) || !json_array_size(list) || json_array_size(list) > EVENT_PAIR_SPECIFIERS)
        return "Invalid query parameters: specifiers (an array of 1 to 64)";
    for (; p.number < json_array_size(list) && !p.wrong; p.number++) {
        struct event_pair_specifier *s = &out->v[out->n++];
        p.object = json_array_get(list, p.number);
        if (!json_is_object(p.object)) {
            p.wrong = arena_printf(a, "Invalid query parameters: specifiers[%zu] (it must be an object)", p.number);
            break;
        }
        set_label(&p, s);
        s->in = name_of(&p, "inRegex");
        s->out = name_of(&p, "outRegex");
        s->context_in = context_of(&p, "contextInRegex");
        s->context_out = context_of(&p, "contextOutRegex");
        s->classifier = classifier_of(&p);
    }
    if (p.wrong)
        events_pair_config_free(out);
    return p.wrong;
}

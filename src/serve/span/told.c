/* SPDX-License-Identifier: MIT */
#include "span/told.h"

#include <string.h>

struct span_attribute span_string_attribute(struct span_making *m, const char *key, const char *value)
{
    struct span_attribute a = {.key = key, .value = {.type = SPAN_STRING}};
    a.value.text.v = span_making_text(m, value, strlen(value), false, &a.value.text.n);
    return a;
}

static bool tell_kind(const char *kind, struct span *s)
{
    static const char *const kinds[] = {"internal", "server", "client", "producer", "consumer"};
    for (int i = 0; i < 5; i++)
        if (!strcmp(kind, kinds[i])) {
            s->kind = (enum span_kind)(SPAN_INTERNAL + i);
            return true;
        }
    return false;
}

static bool tell_status(const char *code, struct span *s)
{
    if (!strcmp(code, "OK"))
        s->status = SPAN_OK;
    else if (!strcmp(code, "ERROR"))
        s->status = SPAN_ERROR;
    else
        return !strcmp(code, "UNSET");
    return true;
}

/* Sets the error status; a text with more information becomes its message. */
static bool tell_error(const struct span_value *v, struct span *s)
{
    bool text = v->type == SPAN_STRING;
    if ((v->type == SPAN_BOOL && !v->truth) || (!text && v->type != SPAN_BOOL) || (text && !strcmp(v->text.v, "false")))
        return false;
    s->status = SPAN_ERROR;
    if (text && strcmp(v->text.v, "true") != 0 && strlen(v->text.v) == v->text.n)
        s->status_message = v->text.v;
    return true;
}

static bool tell(const struct span_attribute *a, struct span *s)
{
    bool text = a->value.type == SPAN_STRING && strlen(a->value.text.v) == a->value.text.n;
    if (!strcmp(a->key, "span.kind"))
        return text && tell_kind(a->value.text.v, s);
    if (!strcmp(a->key, "otel.status_code"))
        return text && tell_status(a->value.text.v, s);
    if (!strcmp(a->key, "error"))
        return tell_error(&a->value, s);
    if (strcmp(a->key, "otel.status_description") != 0 || !text)
        return false;
    s->status_message = a->value.text.v;
    return true;
}

void span_tell_of_tags(struct span_making *m, struct span_attribute *v, size_t n, struct span *s)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (!tell(&v[i], s))
            v[kept++] = v[i];
    s->attributes = span_making_attributes(m, v, kept, &s->dropped_attributes);
}

const char *span_take_event_name(struct span_attribute *v, size_t *n)
{
    const char *name = "";
    size_t kept = 0;
    for (size_t i = 0; i < *n; i++)
        if (!strcmp(v[i].key, "event") && v[i].value.type == SPAN_STRING &&
            strlen(v[i].value.text.v) == v[i].value.text.n)
            name = v[i].value.text.v;
        else
            v[kept++] = v[i];
    *n = kept;
    return name;
}

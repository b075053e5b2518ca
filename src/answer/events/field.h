/* SPDX-License-Identifier: MIT */
/* Private to events: values of event fields for expressions: any field by its dotted path. */
#ifndef WEFT_EVENTS_FIELD_H
#define WEFT_EVENTS_FIELD_H

#include "base/expr.h"
#include "ctf/ctf.h"

struct event_field {
    enum { EVENT_FIELD_ABSENT, EVENT_FIELD_INT, EVENT_FIELD_LABEL, EVENT_FIELD_STRING, EVENT_FIELD_WALK,
        EVENT_FIELD_COMPOUND } how; /* COMPOUND: a structure, variant or list, which is no value of an expression */
    struct ctf_access access;
    const char *path;        /* WALK: searched by walking over the whole scope; borrowed from events_field_bind */
};

/* Binds a path to a class: "x", "x.y", "x[3].y"; "fields.x" only in the payload, "ctx.x" only in the contexts, else
 * payload before contexts. Enumerations: "x" and "x.value" are the number, "x.label" is the label. */
void events_field_bind(const struct ctf_event_class *, const char *path, struct event_field *out);
/* Reads the value; strings are borrowed from the event. */
void events_field_get(const struct event_field *, const struct ctf_event *, struct expr_value *out);
/* Integer of an enumeration; other types are returned unchanged. */
const struct ctf_type *events_integer_type(const struct ctf_type *);
/* Label of a value; NULL: none. */
const char *events_label(const struct ctf_type *, int64_t v);

#endif

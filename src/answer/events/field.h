/* SPDX-License-Identifier: MIT */
/* Private to events: values of event fields for expressions: any field by its dotted path. */
#ifndef WEFT_EVENTS_FIELD_H
#define WEFT_EVENTS_FIELD_H

#include "base/expr.h"
#include "ctf/ctf.h"

struct event_field {
    enum { EVENT_FIELD_ABSENT, EVENT_FIELD_INT, EVENT_FIELD_LABEL, EVENT_FIELD_STRING, EVENT_FIELD_WALK,
        EVENT_FIELD_COMPOUND } how; /* COMPOUND: a structure, variant or list; no value of an expression */
    struct ctf_access access;
    const char *path;        /* WALK: looked for while walking over the whole scope; borrowed from event_field_bind */
};

/* Binds a path to a class. "x", "x.y", "x[3].y"; "fields.x" only in the payload, "ctx.x" only in the contexts, else
 * payload before contexts. Enumerations: "x" and "x.value" are the number, "x.label" the label. */
void event_field_bind(const struct ctf_event_class *, const char *path, struct event_field *out);
/* The value; strings are borrowed from the event. */
void event_field_get(const struct event_field *, const struct ctf_event *, struct expr_value *out);
/* The integer that holds an enumeration; other types as they are. */
const struct ctf_type *event_integer_type(const struct ctf_type *);
/* The label of a value; NULL: it has none. */
const char *event_label(const struct ctf_type *, int64_t v);

#endif

/* SPDX-License-Identifier: MIT */
/* Private to span: tags for kind and status, in formats without such fields. */
#ifndef WEFT_SPAN_TOLD_H
#define WEFT_SPAN_TOLD_H

#include "span/code.h"

/* Makes an attribute; invalid text is repaired. */
struct span_attribute span_string_attribute(struct span_making *, const char *key, const char *value);
/* Sets the span's attributes. Tags for its kind and status become fields instead: span.kind, error, otel.status_code,
 * otel.status_description. */
void span_tell_of_tags(struct span_making *, struct span_attribute *, size_t n, struct span *);
/* Removes the field "event" of a log, and returns its text as the event's name; "" if absent. */
const char *span_take_event_name(struct span_attribute *, size_t *n);

#endif

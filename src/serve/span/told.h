/* SPDX-License-Identifier: MIT */
/* Private to span: what formats without kinds and states tell by tags. */
#ifndef WEFT_SPAN_TOLD_H
#define WEFT_SPAN_TOLD_H

#include "span/code.h"

/* The text is put right. */
struct span_attribute span_string_attribute(struct span_making *, const char *key, const char *value);
/* The span's attributes are these but for those that say its kind and status: span.kind, error, otel.status_code,
 * otel.status_description. */
void span_tell_of_tags(struct span_making *, struct span_attribute *, size_t n, struct span *);
/* The fields of a log become an event: its name is the field "event", which is removed; "" if there is none. */
const char *span_take_event_name(struct span_attribute *, size_t *n);

#endif

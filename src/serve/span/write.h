/* SPDX-License-Identifier: MIT */
/* Private to span: spans as JSON. */
#ifndef WEFT_SPAN_WRITE_H
#define WEFT_SPAN_WRITE_H

#include "base/json.h"
#include "span/span.h"

/* Writes the value as plain JSON: bytes as base64, int64 as numbers. */
void span_write_plain(struct json *, const struct span_value *);
/* Write OTLP JSON. Origins: "resource" and "schemaUrl" of a ResourceSpans, "scope" and "schemaUrl" of a ScopeSpans. */
void span_write_otlp_resource(struct json *, const struct span_origin *);
void span_write_otlp_scope(struct json *, const struct span_origin *);
void span_write_otlp(struct json *, const struct span *);

#endif

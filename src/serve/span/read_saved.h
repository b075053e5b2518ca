/* SPDX-License-Identifier: MIT */
/* Private to span: spans from parsed JSON. */
#ifndef WEFT_SPAN_READ_SAVED_H
#define WEFT_SPAN_READ_SAVED_H

#include <jansson.h>

#include "span/read.h"

typedef int span_tree_reader(struct span_making *, const json_t *, struct err *);
/* Forms: an object with "resourceSpans"; an array of Zipkin spans; a trace of Jaeger's older interface. */
bool span_is_otlp(const json_t *);
span_tree_reader span_take_otlp, span_take_zipkin, span_take_jaeger;

#endif

/* SPDX-License-Identifier: MIT */
/* Private to span: untrusted JSON, checked before jansson parses it. */
#ifndef WEFT_SPAN_JSON_TEXT_H
#define WEFT_SPAN_JSON_TEXT_H

#include <stddef.h>

#include <jansson.h>

#include "base/err.h"

/* Limits: a value of "[[],[]…" takes fifty times its bytes once parsed, so the number of values is bounded, too.
 * Invalid UTF-8 and halves of surrogate pairs become U+FFFD. ERR_LIMIT: too many values, or too deep. */
enum { JSON_MOST_VALUES = 4 << 20, JSON_MOST_DEPTH = 200 };
int span_load_json(const char *, size_t n, json_t **out, struct err *e);

#endif

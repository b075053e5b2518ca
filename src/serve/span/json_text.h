/* SPDX-License-Identifier: MIT */
/* Private to span: JSON that anybody sent, before jansson takes it apart. */
#ifndef WEFT_SPAN_JSON_TEXT_H
#define WEFT_SPAN_JSON_TEXT_H

#include <stddef.h>

#include <jansson.h>

#include "base/err.h"

/* A value of "[[],[]…" takes fifty times its bytes once it is taken apart, so that their number is bounded, too. What
 * is not UTF-8, and halves of surrogate pairs, become U+FFFD. ERR_LIMIT: too many values, or too deep. */
enum { JSON_MOST_VALUES = 4 << 20, JSON_MOST_DEPTH = 200 };
int span_load_json(const char *, size_t n, json_t **out, struct err *e);

#endif

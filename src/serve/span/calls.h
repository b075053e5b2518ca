/* SPDX-License-Identifier: MIT */
/* Private to span: calls from service to service, as databases count them. A call is a pair of a parent and a child
 * span of different services, at the child's begin. Each is counted once in a bucket of each width, so that any range
 * in whole seconds is a sum over few buckets. Children that begin before 1970 are not counted. */
#ifndef WEFT_SPAN_CALLS_H
#define WEFT_SPAN_CALLS_H

#include <stddef.h>
#include <stdint.h>

enum { CALL_WIDTHS = 4, CALL_RANGES = 2 * CALL_WIDTHS };
extern const int64_t call_widths_s[CALL_WIDTHS]; /* ascending; each divides the next */

/* Buckets [from, to); bucket n begins at n * width_s. */
struct call_range { int64_t width_s, from, to; };
/* Splits [begin_s, end_s), both at least 0, into ranges of buckets. Returns their number. */
size_t call_ranges(int64_t begin_s, int64_t end_s, struct call_range out[CALL_RANGES]);

#endif

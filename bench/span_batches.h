/* SPDX-License-Identifier: MIT */
/* Made-up spans for measuring: batches of OTLP as protobuf. */
#ifndef WEFT_BENCH_SPAN_BATCHES_H
#define WEFT_BENCH_SPAN_BATCHES_H

#include "base/text.h"

enum { BENCH_BATCH = 512, BENCH_TRACE_SPANS = 16 };
/* The same numbers in every run. */
uint64_t bench_draw(void);
/* An ExportTraceServiceRequest: 16 spans a trace, three attributes a span; *n counts the spans of all batches. */
void bench_make_batch(struct text *, uint64_t *n);
/* The same with calls: each span but the first of its trace is a child of the one before, and of another service. */
void bench_make_calls(struct text *, uint64_t *n);

#endif

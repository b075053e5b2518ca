/* SPDX-License-Identifier: MIT */
/* Private to span: readers of all received formats. Each puts the valid spans of a whole message (span_put). On an
 * error the message is damaged, and nothing of it may be used. */
#ifndef WEFT_SPAN_READ_H
#define WEFT_SPAN_READ_H

#include "span/code.h"

typedef int span_reader(struct span_making *, const void *, size_t n, struct err *e);
/* An ExportTraceServiceRequest as protobuf, or as JSON; a list of Zipkin spans, as JSON; a Batch of Jaeger's Thrift. */
span_reader span_read_protobuf, span_read_json, span_read_zipkin, span_read_thrift;
/* Reads JSON saved by other programs: OTLP, a trace of Jaeger or an array of Zipkin spans, also in the envelopes of
 * servers' answers. ERR_FORMAT: none of them; the message names the expected formats. */
span_reader span_read_saved;

#endif

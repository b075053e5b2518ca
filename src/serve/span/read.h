/* SPDX-License-Identifier: MIT */
/* Private to span: the formats that spans come in. Each makes of a whole message what can be taken (span_put). An
 * error: the message is damaged, and nothing of it may be used. */
#ifndef WEFT_SPAN_READ_H
#define WEFT_SPAN_READ_H

#include "span/code.h"

typedef int span_reader(struct span_making *, const void *, size_t n, struct err *e);
/* An ExportTraceServiceRequest as protobuf, or as JSON; a list of Zipkin's spans, as JSON; a Batch of Jaeger's Thrift.
 */
span_reader span_read_protobuf, span_read_json, span_read_zipkin, span_read_thrift;
/* JSON as other programs save it: OTLP, a trace of Jaeger or an array of Zipkin's spans, also in the envelopes in which
 * servers answer. ERR_FORMAT: none of them; the message says what is expected. */
span_reader span_read_saved;

#endif

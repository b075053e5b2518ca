/* Private to span: the formats that spans come in. Each makes of a whole message what can be taken (span_put). An
 * error: the message is damaged, and nothing of it may be used. */
#ifndef WEFT_SPAN_READ_H
#define WEFT_SPAN_READ_H

#include "span/code.h"

typedef int span_reader(struct span_making *, const void *, size_t n, struct err *e);
/* An ExportTraceServiceRequest as protobuf, or as JSON; a list of Zipkin's spans, as JSON; a Batch of Jaeger's Thrift.
 */
span_reader span_read_protobuf, span_read_json, span_read_zipkin, span_read_thrift;

#endif

/* Private to span: the formats that spans come in. Each makes of a whole message what can be taken (span_put). An
 * error: the message is damaged, and nothing of it may be used. */
#ifndef WEFT_SPAN_READ_H
#define WEFT_SPAN_READ_H

#include "span/code.h"

/* An ExportTraceServiceRequest as protobuf, or as JSON. */
int span_read_protobuf(struct span_making *, const void *, size_t n, struct err *e);
int span_read_json(struct span_making *, const char *, size_t n, struct err *e);

#endif

/* SPDX-License-Identifier: MIT */
/* Private to http: checks the head of a request as strictly as RFC 9112 requires. Two servers in a row may read a
 * malformed head differently, which lets one request hide in another (request smuggling). It is refused, and its
 * connection closed. */
#ifndef WEFT_HTTP_HEAD_H
#define WEFT_HTTP_HEAD_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>

/* Request line, as the library passes it before decoding it in place; `uri` borrows its buffer. */
struct head_line { const char *uri; size_t uri_bytes; bool is_sound; };
struct head_line http_head_line_of(const char *uri);

/* Returns 0 if the head is well-formed; else the status of the refusal, and *why. Call it before the body is read. */
int http_head_refusal(struct MHD_Connection *, const char *method, const char *version, const struct head_line *,
    const char **why);
/* Returns the place of a chunked request's body in the library's buffer. NULL: it is not chunked, or the library checks
 * its lines by itself. */
const char *http_head_chunks(struct MHD_Connection *, const char *method);
bool http_head_has_trailer(struct MHD_Connection *);

#endif

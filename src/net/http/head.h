/* SPDX-License-Identifier: MIT */
/* Private to http: checks the head of a request as strictly as RFC 9112 asks for. A head that two servers in a row may
 * read differently lets one request hide in another (request smuggling); it is refused, and its connection closed. */
#ifndef WEFT_HTTP_HEAD_H
#define WEFT_HTTP_HEAD_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>

/* The request's first line, as the library shows it before it decodes it in place; `uri` borrows its buffer. */
struct head_line { const char *uri; size_t uri_bytes; bool is_sound; };
struct head_line head_line_of(const char *uri);

/* 0: it is well-formed; else the status to refuse it with, and *why. To be called before the body is read. */
int head_refusal(struct MHD_Connection *, const char *method, const char *version, const struct head_line *,
    const char **why);
/* Where the body of a chunked request lies in the library's buffer; NULL: it is not chunked, or the library looks at
 * its lines by itself. */
const char *head_chunks(struct MHD_Connection *, const char *method);
bool head_has_trailer(struct MHD_Connection *);

#endif

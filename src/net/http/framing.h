/* SPDX-License-Identifier: MIT */
/* Private to http: framing of the pieces of a chunked body (RFC 9112, section 7.1). */
#ifndef WEFT_HTTP_FRAMING_H
#define WEFT_HTTP_FRAMING_H

#include <stdbool.h>

/* Checks the lines between chunks. libmicrohttpd 0.9.75 accepts a bare LF as the end of these lines. It passes pieces
 * of the body where they lie in its buffer, behind the lines that frame them. Only lines that arrived together with
 * their piece can be seen. So the connection of a chunked request must end with its answer: nothing can hide in a body
 * that another server ends elsewhere. */
struct framing {
    const char *head_end; /* begin of the buffer; NULL: the library checks by itself, or the body is not chunked */
    const char *last_end; /* end of the piece before, or NULL */
};

/* Returns false if a line before the piece ends with a bare LF. */
bool http_framing_take(struct framing *, const char *piece, unsigned long n);

#endif

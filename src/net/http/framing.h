/* SPDX-License-Identifier: MIT */
/* Private to http: how the pieces of a chunked body are framed (RFC 9112, section 7.1). */
#ifndef WEFT_HTTP_FRAMING_H
#define WEFT_HTTP_FRAMING_H

#include <stdbool.h>

/* libmicrohttpd 0.9.75 takes a bare LF for the end of a line between chunks, and hands out pieces of the body where
 * they lie in its buffer, behind the lines that frame them. These lines are seen if they came together with the piece.
 * Others are not, so the connection of a chunked request must end with its answer: nothing can hide in a body that
 * another server ends elsewhere. */
struct framing {
    const char *head_end; /* where the buffer begins; NULL: the library looks by itself, or the body is not chunked */
    const char *last_end; /* of the piece before, or NULL */
};

/* False: a line before the piece ends with a bare LF. */
bool framing_take(struct framing *, const char *piece, unsigned long n);

#endif

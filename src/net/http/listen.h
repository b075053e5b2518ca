/* SPDX-License-Identifier: MIT */
/* Private to http: a socket that listens. */
#ifndef WEFT_HTTP_LISTEN_H
#define WEFT_HTTP_LISTEN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* listen_at: "ADDRESS:PORT", port 0: any free one. `address` becomes the URL under which it can be reached. */
int listen_on(const char *listen_at, char *address, size_t n, bool tls, int *fd, struct err *);

#endif

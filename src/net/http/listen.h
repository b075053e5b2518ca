/* SPDX-License-Identifier: MIT */
/* Private to http: listening socket. */
#ifndef WEFT_HTTP_LISTEN_H
#define WEFT_HTTP_LISTEN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* Listens. listen_at: "ADDRESS:PORT"; port 0: any free one. `address` receives the URL. */
int http_listen_on(const char *listen_at, char *address, size_t n, bool tls, int *fd, struct err *);

#endif

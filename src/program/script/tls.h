/* SPDX-License-Identifier: MIT */
/* TLS to a collector, by GnuTLS: it is loaded only where an endpoint is https, and only in a process of its own, so
 * that everything else starts as fast without it, and on machines that lack it. */
#ifndef WEFT_SCRIPT_TLS_H
#define WEFT_SCRIPT_TLS_H

#include <sys/types.h>

#include "script/settings.h"

struct script_tls {
    pid_t process;      /* 0: there is none */
    int problems;       /* it writes there why it gave up */
};
/* Starts a process that takes over the connected socket `fd` (also on failure) and verifies the server. Returns a
 * socket, not blocking, for the plain bytes; -1 with errno. */
int script_tls_start(const struct script_settings *, int fd, struct script_tls *);
/* Ends the process. `why`: why it gave up; unchanged if it did not, or has not said so. Also of a zeroed struct. */
void script_tls_end(struct script_tls *, char *why, size_t n);

#endif

/* SPDX-License-Identifier: MIT */
/* TLS to a collector, by GnuTLS. It is loaded only for an https endpoint, and only in a separate process. So everything
 * else starts as fast without it, and works on machines that lack it. */
#ifndef WEFT_SCRIPT_TLS_H
#define WEFT_SCRIPT_TLS_H

#include <sys/types.h>

#include "script/settings.h"

struct script_tls {
    pid_t process;      /* 0: none */
    int problems;       /* pipe with its reason for giving up */
};
/* Starts a process that takes over the connected socket `fd` (also on failure) and verifies the server. Returns a
 * socket, not blocking, for the plain bytes; -1 with errno. */
int script_tls_start(const struct script_settings *, int fd, struct script_tls *);
/* Ends the process. `why`: its reason for giving up; unchanged if it did not, or gave none. Also for a zeroed
 * struct. */
void script_tls_end(struct script_tls *, char *why, size_t n);

#endif

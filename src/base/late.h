/* SPDX-License-Identifier: MIT */
/* Shared libraries that are loaded when something of them is first called: what a program is linked with is loaded and
 * relocated each time it starts, also by those who only want its version. tools/late-link writes what stands in for a
 * library's functions meanwhile; whoever calls them sees no difference. Where it cannot (it knows x86-64), the library
 * is linked as usual. */
#ifndef WEFT_BASE_LATE_H
#define WEFT_BASE_LATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct late_library {
    const char *file;             /* as the linker names it: libcurl.so.4 */
    const char *const *functions; /* n names, */
    const void **slots;           /* and where each is, once it is loaded */
    size_t n;
    pthread_mutex_t lock;
    bool loaded;
};
/* Loads it, unless it is. By any thread. ERR_NOTFOUND: there is none, or another one; ERR_NOMEM. */
int late_load(struct late_library *, struct err *);
/* The same for who cannot be told: ends the program where it fails, as the linker does. */
void late_must(struct late_library *);

/* late_load for each of them. Whoever can tell an error asks before the first call. */
int late_archive(struct err *), late_curl(struct err *), late_gnutls(struct err *), late_hogweed(struct err *),
    late_microhttpd(struct err *), late_nats(struct err *), late_postgres(struct err *);

#endif

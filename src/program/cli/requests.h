/* SPDX-License-Identifier: MIT */
/* weft requests: found requests as tables, JSON and CSV. */
#ifndef WEFT_CLI_REQUESTS_H
#define WEFT_CLI_REQUESTS_H

#include "base/text.h"
#include "path/requests.h"

struct requests_shown {
    const struct requests *found;
    struct request_groups *groups;
    const struct path_local *local;
    size_t n;                    /* number of slowest requests to show */
    int64_t first;               /* zero of times in tables for people */
    const char *reference;       /* reference host asked for, or NULL */
};
void cli_requests_write(const struct requests_shown *, int format, struct text *out);

#endif

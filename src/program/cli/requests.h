/* SPDX-License-Identifier: MIT */
/* weft requests: what was found, as tables, JSON and CSV. */
#ifndef WEFT_CLI_REQUESTS_H
#define WEFT_CLI_REQUESTS_H

#include "base/text.h"
#include "path/requests.h"

struct requests_shown {
    const struct requests *found;
    struct request_groups *groups;
    const struct path_local *local;
    size_t n;                    /* so many of the slowest */
    int64_t first;               /* from when tables for people count */
    const char *reference;       /* whose clock was asked for, or NULL */
};
void requests_write(const struct requests_shown *, int format, struct text *out);

#endif

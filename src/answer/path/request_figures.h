/* SPDX-License-Identifier: MIT */
/* Private to the room: the figures of a group of like requests. */
#ifndef WEFT_PATH_REQUEST_FIGURES_H
#define WEFT_PATH_REQUEST_FIGURES_H

#include "path/request_parts.h"

/* A request that was looked at. */
struct request_looked {
    size_t request;
    uint64_t weight;               /* stands for so many */
    int64_t begin;
    struct request_profile profile;
    size_t group;
};
/* Those of one group, the fastest first; one at least. weight: of all of them. */
struct request_members { const struct request_looked *v; size_t n; uint64_t weight; };
/* What is told of the group lives as long as the arena. O(parts · what the profiles have) */
void request_figures_of(const struct request_parts *, const struct request_members *, struct arena *,
    struct request_group *out);

#endif

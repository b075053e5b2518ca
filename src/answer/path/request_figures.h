/* SPDX-License-Identifier: MIT */
/* Private to the room: figures of a group of similar requests. */
#ifndef WEFT_PATH_REQUEST_FIGURES_H
#define WEFT_PATH_REQUEST_FIGURES_H

#include "path/request_parts.h"

/* Examined request. */
struct request_looked {
    size_t request;
    uint64_t weight;               /* number of requests it represents */
    int64_t begin;
    struct request_profile profile;
    size_t group;
};
/* Members of one group, the fastest first; at least one. weight: sum over all of them. */
struct request_members { const struct request_looked *v; size_t n; uint64_t weight; };
/* Computes the figures; what they point to lives as long as the arena. O(parts · size of the profiles) */
void path_request_figures_of(const struct request_parts *, const struct request_members *, struct arena *,
    struct request_group *out);

#endif

/* SPDX-License-Identifier: MIT */
/* Totals of critical paths: by machine, name and state, with threads of one name together; or by container. */
#ifndef WEFT_CLI_CRITPATH_SUMS_H
#define WEFT_CLI_CRITPATH_SUMS_H

#include "base/json.h"
#include "base/map.h"
#include "base/mem.h"
#include "path/path.h"

struct critpath_sum {
    const char *host, *name; /* name of the threads, or of a container; "": none */
    int state;               /* 0 if by container, for all states together */
    int64_t duration, network; /* network: part of `duration` spent waiting for messages on their way */
};
struct critpath_sums {
    bool by_container;       /* sums by container, else by name and state; set before anything is added */
    VEC(struct critpath_sum) v;
    struct map numbers;      /* index by hash of machine, name and state */
    struct strings names;
    int64_t duration;        /* duration of all paths; equals the total of all sums */
    size_t paths;
};
void cli_critpath_sums_add(struct critpath_sums *, const struct path_source *, const struct path *);
/* Writes them, the largest first; `each`: also the mean per path. */
void cli_critpath_sums_write(struct critpath_sums *, int format, bool each, struct text *out);
/* Writes an array. */
void cli_critpath_sums_json(struct critpath_sums *, struct json *);
/* Writes two side by side, by the mean per path, the largest difference first. */
void cli_critpath_sums_compared_write(
    const struct critpath_sums *a, const struct critpath_sums *b, int format, struct text *out);
void cli_critpath_sums_compared_json(const struct critpath_sums *a, const struct critpath_sums *b, struct json *);
void cli_critpath_sums_fini(struct critpath_sums *);

#endif

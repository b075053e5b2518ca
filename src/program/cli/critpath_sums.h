/* SPDX-License-Identifier: MIT */
/* Totals of critical paths, by machine, name and state: threads of one name count together; or by container. */
#ifndef WEFT_CLI_CRITPATH_SUMS_H
#define WEFT_CLI_CRITPATH_SUMS_H

#include "base/json.h"
#include "base/map.h"
#include "base/mem.h"
#include "path/path.h"

struct critpath_sum {
    const char *host, *name; /* of threads, or of a container, "": none */
    int state;               /* by container: 0, they are all in one */
    int64_t duration, network; /* of it, waits for messages while these were under way */
};
struct critpath_sums {
    bool by_container;       /* else by name and state; set before anything is added */
    VEC(struct critpath_sum) v;
    struct map numbers;      /* by hash of machine, name and state */
    struct strings names;
    int64_t duration;        /* of all paths: what the sums sum to */
    size_t paths;
};
void critpath_sums_add(struct critpath_sums *, const struct path_source *, const struct path *);
/* The largest first; `each`: also the mean of a path. */
void critpath_sums_write(struct critpath_sums *, int format, bool each, struct text *out);
/* As an array. */
void critpath_sums_json(struct critpath_sums *, struct json *);
/* Two beside each other, by the mean of a path: what differs most first. */
void critpath_sums_compared_write(
    const struct critpath_sums *a, const struct critpath_sums *b, int format, struct text *out);
void critpath_sums_compared_json(const struct critpath_sums *a, const struct critpath_sums *b, struct json *);
void critpath_sums_fini(struct critpath_sums *);

#endif

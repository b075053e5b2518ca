/* SPDX-License-Identifier: MIT */
/* Private to the room: a node's answer to who asks what it is doing. */
#ifndef WEFT_CLUSTER_REPORT_H
#define WEFT_CLUSTER_REPORT_H

#include "cluster/status.h"

struct text; struct arena;

struct report {
    int state;                       /* enum cluster_node_state */
    const char *text, *release;
    int64_t now_ns;                  /* of its system clock */
    struct cluster_load load;
    struct cluster_disk disk;
};
void cluster_report_write(const struct report *, struct text *out);
/* What it points to lives in the arena. Bytes that follow what is known here are skipped. ERR_FORMAT. */
int cluster_report_read(struct arena *, const void *bytes, size_t n, struct report *out, struct err *e);
/* Of the file systems that hold these (NULL ends them, "" is left out) the one with least room. */
struct cluster_disk cluster_report_disk(const char *const *paths);

/* The answer to CLUSTER_LOAD, and a part of the above. */
void cluster_load_write(const struct cluster_load *, struct text *out);

#endif

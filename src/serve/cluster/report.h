/* SPDX-License-Identifier: MIT */
/* Private to the room: a node's answer to a question for its status. */
#ifndef WEFT_CLUSTER_REPORT_H
#define WEFT_CLUSTER_REPORT_H

#include "cluster/status.h"

struct text; struct arena;

struct report {
    int state;                       /* enum cluster_node_state */
    const char *text, *release;
    int64_t now_ns;                  /* time by its system clock */
    struct cluster_load load;
    struct cluster_disk disk;
};
void cluster_report_write(const struct report *, struct text *out);
/* Reads it; pointers lead into the arena. Unknown bytes at the end are skipped. ERR_FORMAT. */
int cluster_report_read(struct arena *, const void *bytes, size_t n, struct report *out, struct err *e);
/* Returns the file system with the least free space of those that hold these paths (terminated by NULL; "" is
 * skipped). */
struct cluster_disk cluster_report_disk(const char *const *paths);

/* Writes the answer to CLUSTER_LOAD, which is also part of a report. */
void cluster_load_write(const struct cluster_load *, struct text *out);

#endif

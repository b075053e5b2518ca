/* SPDX-License-Identifier: MIT */
/* A seat that one of many takes, each knowing of it by a table. Who sits there says so again every
 * SEAT_AGAIN_NS; who does not for SEAT_TTL_NS has lost it. */
#ifndef WEFT_CLUSTER_SEAT_H
#define WEFT_CLUSTER_SEAT_H

#include <stdint.h>

#include "base/err.h"

struct bus;
struct bus_table;

#define SEAT_AGAIN_NS INT64_C(2000000000)
#define SEAT_TTL_NS INT64_C(15000000000)

struct seat {
    struct bus_table *table;
    const char *name;        /* borrowed: also of the table and its key */
    uint64_t revision;       /* 0: not ours */
};
/* Zeroed on failure, which seat_close takes. */
int seat_open(struct bus *, const char *cluster, const char *name, struct seat *out, struct err *e);
void seat_close(struct seat *);
/* Sits down if it is free, or says that it is still taken. ERR_STALE: another sits there, or did so meanwhile. Other
 * errors: a broker that is away has nobody else sit down either. */
int seat_take(struct seat *, const char *who, struct err *e);
/* The seat is free at once, if it is ours. */
void seat_leave(struct seat *);
/* Who sits there; free(). ERR_NOTFOUND: nobody. */
int seat_ask(const struct seat *, char **who, struct err *e);

#endif

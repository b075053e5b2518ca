/* SPDX-License-Identifier: MIT */
/* Source of graphs held in memory, for tests: rows with intervals, each with its cause. */
#ifndef WEFT_TESTS_PATH_FAKE_H
#define WEFT_TESTS_PATH_FAKE_H

#include "base/mem.h"
#include "graph/graph.h"
#include "path/path.h"

struct fake_interval {
    int64_t begin, end;
    uint8_t state;
    int32_t cpu;
    bool polling, assumed;
    const char *detail;
    struct path_cause cause;   /* cause of its end */
};
struct fake_row {
    int32_t host, tid;
    const char *comm;
    VEC(struct fake_interval) intervals;
    struct path_cause origin;
};
struct fake {
    VEC(struct fake_row) rows; /* path_row.row is the index here */
    const char *const *hosts;
    uint64_t questions, limit; /* number of queries; a walk with more than the limit fails the test (0: no limit) */
};

struct path_source fake_source(struct fake *);
void fake_fini(struct fake *);
int32_t fake_add_row(struct fake *, int32_t host, int32_t tid, const char *comm);
/* Appends an interval; it begins at the end of the last one if begin < 0. */
struct fake_interval *fake_add(struct fake *, int32_t row, int64_t begin, int64_t end, uint8_t state);
void fake_cause(struct fake *, struct fake_interval *, uint8_t kind, int32_t from, int64_t ts);

#endif

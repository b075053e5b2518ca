/* SPDX-License-Identifier: MIT */
/* Private to state: a single chunk, with its own rows, names and numbers. */
#ifndef WEFT_STATE_CHUNK_H
#define WEFT_STATE_CHUNK_H

#include "state/reader.h"

int state_chunk_open(const char *path, const struct store *in, struct state_chunk **out, struct err *e);
void state_chunk_close(struct state_chunk *);
int state_chunk_intact(const struct state_chunk *, struct err *e);
void state_chunk_populate(const struct state_chunk *);

/* First checkpoint from `from` on that is at t or later. */
size_t state_chunk_checkpoints(const struct state_chunk *, size_t from, int64_t t);
/* Events numbered below … above are at from … to, unless the file is wrong. head: before the first checkpoint;
 * otherwise `below` is one. */
struct state_stretch {
    bool head;
    uint64_t below, above;
    int64_t from, to;
};
/* Number of events before t, from < t <= to; sets *exact to false if it is an estimate. */
uint64_t state_stretch_count(const struct state_stretch *, int64_t t, bool *exact);

size_t state_chunk_latencies(const struct state_chunk *, int kind);
void state_chunk_latency(const struct state_chunk *, int kind, size_t i, struct state_latency *out);
size_t state_chunk_latency_find(const struct state_chunk *, int kind, int64_t t);
size_t state_chunk_latency_names(const struct state_chunk *, int kind);
void state_chunk_latency_histogram(const struct state_chunk *, int kind, size_t first, size_t end, int64_t width,
    size_t n, uint64_t *counts);

#endif

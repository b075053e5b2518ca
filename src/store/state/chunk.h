/* SPDX-License-Identifier: MIT */
/* Private to state: the functions of state.h for a single chunk, with its own rows, names and numbers. */
#ifndef WEFT_STATE_CHUNK_H
#define WEFT_STATE_CHUNK_H

#include "state/reader.h"

int state_chunk_open(const char *path, const struct store *in, struct state_chunk **out, struct err *e);
void state_chunk_close(struct state_chunk *);
int state_chunk_intact(const struct state_chunk *, struct err *e);
void state_chunk_populate(const struct state_chunk *);
void state_chunk_span(const struct state_chunk *, int64_t *begin, int64_t *end);

size_t state_chunk_rows(const struct state_chunk *, int kind);
void state_chunk_row(const struct state_chunk *, int kind, size_t i, struct state_row *out);
int64_t state_chunk_find_row(const struct state_chunk *, int kind, int32_t number);
size_t state_chunk_sample(const struct state_chunk *, int kind, size_t row, const int64_t *times, size_t n,
    struct state_interval *out);
bool state_chunk_at(const struct state_chunk *, int kind, size_t row, int64_t t, struct state_interval *out);
int32_t state_chunk_thread_cpu(const struct state_chunk *, size_t row, int64_t t, int32_t near);

/* Values of a row of counters; for a thread or a CPU: the time that it ran. */
void state_chunk_counter_values(const struct state_chunk *, int row_kind, size_t row, const int64_t *times, size_t n,
    int64_t *values);

size_t state_chunk_files(const struct state_chunk *);
void state_chunk_file(const struct state_chunk *, size_t i, struct state_file *out);

void state_chunk_event_counts(const struct state_chunk *, const int64_t *times, size_t n, uint64_t *counts,
    bool *exact);
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
uint64_t state_chunk_events(const struct state_chunk *);
size_t state_chunk_losses(const struct state_chunk *);
void state_chunk_loss(const struct state_chunk *, size_t i, struct state_loss *out);

size_t state_chunk_latencies(const struct state_chunk *, int kind);
void state_chunk_latency(const struct state_chunk *, int kind, size_t i, struct state_latency *out);
size_t state_chunk_latency_find(const struct state_chunk *, int kind, int64_t t);
size_t state_chunk_latency_names(const struct state_chunk *, int kind);
const char *state_chunk_latency_name(const struct state_chunk *, int kind, size_t name);
void state_chunk_latency_figures(const struct state_chunk *, int kind, size_t first, size_t end, struct figures *out);
void state_chunk_latency_histogram(const struct state_chunk *, int kind, size_t first, size_t end, int64_t width,
    size_t n, uint64_t *counts);

#endif

/* SPDX-License-Identifier: MIT */
/* Private to state: intervals of a row of the file, of any kind. */
#ifndef WEFT_STATE_SAMPLE_H
#define WEFT_STATE_SAMPLE_H

#include "state/reader.h"

/* t is within the span, whose last instant counts as the one before it. */
void sample_at(const struct state_chunk *, const struct state_disk_row *, int64_t t, struct state_interval *out);
/* What the row itself has at t, within the span or not: a CPU's row does not say what its thread does. */
void sample_plain(const struct state_chunk *, const struct state_disk_row *, int64_t t, struct state_interval *out);
/* The row's entry in force at t, which is not before the first one. end: INT64_MAX when it is the last. A CPU's row
 * does not say what its thread does. */
void sample_entry(const struct state_chunk *, const struct state_disk_row *, int64_t t, struct state_interval *out);
/* Threads that have no entry at a time in this chunk are asked for elsewhere. */
struct sample_others {
    void (*thread_at)(const struct sample_others *, int32_t thread, int64_t t, struct state_interval *out);
};
/* Adds to the `found` there are. The times are all within entries. others: NULL: there is no other chunk. */
size_t sample_entries(const struct state_chunk *, const struct state_disk_row *, const struct sample_others *,
    const int64_t *times, size_t n, struct state_interval *out, size_t found);
/* A CPU that a thread has does what the thread does: the part of the thread's state that lies within the CPU's. */
void sample_compose(const struct state_interval *doing, struct state_interval *out);
static inline bool sample_shows_thread(const struct state_interval *v)
{
    return v->value == STATE_ACTIVE && v->thread >= 0;
}
/* As state_sample. */
size_t sample_states(const struct state_chunk *, const struct state_disk_row *, const int64_t *times, size_t n,
    struct state_interval *out);

#endif

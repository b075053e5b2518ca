/* SPDX-License-Identifier: MIT */
/* Private to state: intervals of a row of the file, of any kind. */
#ifndef WEFT_STATE_SAMPLE_H
#define WEFT_STATE_SAMPLE_H

#include "state/reader.h"

/* Entry of the row in force at t, which is not before the first one. end: INT64_MAX if it is the last. Does not include
 * the state of a CPU's thread. */
void state_sample_entry(const struct state_chunk *, const struct state_disk_row *, int64_t t,
    struct state_interval *out);
/* All chunks, for threads without an entry at a time in this chunk. */
struct sample_others {
    void (*thread_at)(const struct sample_others *, int32_t thread, int64_t t, struct state_interval *out);
};
/* Appends to the `found` intervals. All times are within entries. */
size_t state_sample_entries(const struct state_chunk *, const struct state_disk_row *, const struct sample_others *,
    const int64_t *times, size_t n, struct state_interval *out, size_t found);
/* Composes the state of a CPU: the part of its thread's state that lies within the CPU's interval. */
void state_sample_compose(const struct state_interval *doing, struct state_interval *out);
static inline bool sample_shows_thread(const struct state_interval *v)
{
    return v->value == STATE_ACTIVE && v->thread >= 0;
}

#endif

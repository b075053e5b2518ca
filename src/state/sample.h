/* Private to state: intervals of a row of the file, of any kind. */
#ifndef WEFT_STATE_SAMPLE_H
#define WEFT_STATE_SAMPLE_H

#include "state/reader.h"

/* t is within the span, whose last instant counts as the one before it. */
void sample_at(const struct state_store *, const struct state_disk_row *, int64_t t, struct state_interval *out);
/* What the row itself has at t, within the span or not: a CPU's row does not say what its thread does. */
void sample_plain(const struct state_store *, const struct state_disk_row *, int64_t t, struct state_interval *out);
/* As state_sample. */
size_t sample_states(const struct state_store *, const struct state_disk_row *, const int64_t *times, size_t n,
    struct state_interval *out);

#endif

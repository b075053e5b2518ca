/* SPDX-License-Identifier: MIT */
/* Private to state: bytes that a thread read, or wrote: rows of STATE_IO_READ and STATE_IO_WRITTEN. (thread_io.c) The
 * row itself has the bytes moved without a file; those moved through files are in the files' rows, counted when each
 * use ends. */
#ifndef WEFT_STATE_THREAD_IO_H
#define WEFT_STATE_THREAD_IO_H

#include "state/row.h"

/* Step: the interval between two changes of a sum: [begin, end); INT64_MIN, INT64_MAX: no change before, after. */
struct io_step { int64_t begin, end; };
/* Step of the row, or of one of its files, that contains t. */
struct io_step state_thread_io_step(const struct state_chunk *, const struct state_disk_row *, int way, int64_t t);

/* End of the last use that moved something, in all of a file's row; INT64_MIN: none did. */
int64_t state_thread_io_last(const struct state_chunk *, const struct state_disk_row *, int way);

/* Query for some times: bytes moved since the time before, and optionally the nearest steps around each. Uses are
 * assigned to the times. */
struct io_query {
    const int64_t *times;
    size_t n;
    int64_t *bytes;
    struct state_interval *around; /* NULL: not requested */
    unsigned shift;              /* shift of the index, which is made on demand */
    uint32_t *first;             /* index: first time in each stretch of 1 << shift ns, from the first time on */
};
void state_io_query_fini(struct io_query *);
/* First of the times that is not before t; t is behind the first of all. */
size_t state_io_query_from(struct io_query *, int64_t t);
/* Adds the uses of a file's row that end behind time `from` - 1 (0: behind time 0), and not behind the last time;
 * *bytes: what they moved. `to`: time from which on the row says nothing. Returns false, without effect, if there are
 * many more uses than times [from, to). */
bool state_thread_io_show(const struct state_chunk *, const struct state_disk_row *, int way, struct io_query *,
    size_t from, size_t to, uint64_t *bytes);

#endif

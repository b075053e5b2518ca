/* Private to state: bytes that a thread read, or wrote: rows of STATE_IO_READ and STATE_IO_WRITTEN. (thread_io.c) The
 * row itself has the bytes that the thread moved through no file; those that it moved through files are in the files'
 * rows, counted when each use is over. */
#ifndef WEFT_STATE_THREAD_IO_H
#define WEFT_STATE_THREAD_IO_H

#include "state/row.h"

/* Entries of the row and of the rows of its files: not fewer than the row has steps. */
size_t thread_io_entries(const struct state_store *, const struct state_disk_row *);
/* Bytes up to each of the (ascending) times. O(n + files, and of each file its uses between the times or, where they
 * are many more than the times, n). */
void thread_io_values(const struct state_store *, const struct state_disk_row *, const int64_t *times, size_t n,
    int64_t *values);
/* The same as intervals, as state_sample; the times are within the span and before its end. */
size_t thread_io_sample(const struct state_store *, const struct state_disk_row *, const int64_t *times, size_t n,
    struct state_interval *out);
/* As state_range; the times are within the span and before its end. */
size_t thread_io_range(const struct state_store *, const struct state_disk_row *, int64_t begin, int64_t end,
    struct state_interval *out, size_t max);

#endif

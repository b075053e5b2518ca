/* SPDX-License-Identifier: MIT */
/* Private to state: bytes that a thread read, or wrote: rows of STATE_IO_READ and STATE_IO_WRITTEN. (thread_io.c) The
 * row itself has the bytes that the thread moved through no file; those that it moved through files are in the files'
 * rows, counted when each use is over. */
#ifndef WEFT_STATE_THREAD_IO_H
#define WEFT_STATE_THREAD_IO_H

#include "state/row.h"

/* Entries of the row and of the rows of its files: not fewer than the row has steps. */
size_t thread_io_entries(const struct state_chunk *, const struct state_disk_row *);
/* Bytes up to each of the (ascending) times. O(n + files, and of each file its uses between the times or, where they
 * are many more than the times, n). */
void thread_io_values(const struct state_chunk *, const struct state_disk_row *, const int64_t *times, size_t n,
    int64_t *values);
/* Between which of its steps a time is: [begin, end); INT64_MIN, INT64_MAX: there is none. */
struct io_step { int64_t begin, end; };
/* Of the row, or one of its files. */
struct io_step thread_io_step(const struct state_chunk *, const struct state_disk_row *, int way, int64_t t);

/* When the last use ended, of all of a file's row, that moved something; INT64_MIN: none did. */
int64_t thread_io_last(const struct state_chunk *, const struct state_disk_row *, int way);

/* What is asked of some times: how many bytes were moved since the time before, and, if that is wanted, around each the
 * steps that are next to it. Uses are led to the times. */
struct io_query {
    const int64_t *times;
    size_t n;
    int64_t *bytes;
    struct state_interval *around; /* NULL: nobody wants to know */
    unsigned shift;              /* of the index, which is made when it is needed: */
    uint32_t *first;             /* by stretch of 1 << shift ns from the first time on: the first of the times there */
};
void io_query_fini(struct io_query *);
/* The first of the times that is not before t, which is behind the first of all. */
size_t io_query_from(struct io_query *, int64_t t);
/* Adds the uses of a file's row that end behind time `from` - 1 (0: behind time 0), and not behind the last time;
 * *bytes: what they moved. `to`: from that time on the row says nothing. False where they are many more than the times
 * [from, to): then nothing is done. */
bool thread_io_show(const struct state_chunk *, const struct state_disk_row *, int way, struct io_query *, size_t from,
    size_t to, uint64_t *bytes);

/* A row of a chunk, or of a list of them (list_io.c): its own counter, which is number 0, and its files. */
struct io_source {
    const void *of, *row;
    int64_t begin, end;          /* the span */
    uint32_t n_rows;
    /* Bytes up to each of the (ascending) times; and, if they are wanted, cuts the intervals around the times to the
     * steps that are next to them. */
    void (*ask)(const struct io_source *, const int64_t *times, size_t n, int64_t *values,
        struct state_interval *around);
    int64_t (*first)(const struct io_source *, uint32_t row); /* entry of one of its rows; INT64_MAX: there is none */
    struct io_step (*step)(const struct io_source *, uint32_t row, int64_t t);
};
struct io_source thread_io_source(const struct state_chunk *, const struct state_disk_row *);
/* Intervals, as state_sample; the times are within the span and before its end. */
size_t thread_io_sample(const struct io_source *, const int64_t *times, size_t n, struct state_interval *out);
/* As state_range; the times are within the span and before its end. */
size_t thread_io_range(const struct io_source *, int64_t begin, int64_t end, struct state_interval *out, size_t max);

#endif

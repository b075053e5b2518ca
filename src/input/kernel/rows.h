/* SPDX-License-Identifier: MIT */
/* Rows of a host: the lives of threads in its chunks. Rows are only added: a row is never reused for another life, and
 * later knowledge extends it. Included by kernel/kernel.h; docs/formats/rows.md. */
#ifndef WEFT_KERNEL_ROWS_H
#define WEFT_KERNEL_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err; struct kernel_tracker;

/* Life as far as its host's chunks show it. Times in ns, the host's clock. */
struct kernel_row {
    int32_t tid;             /* first tid; 0: an idle thread */
    int32_t idle_cpu;        /* CPU of an idle thread, else -1 */
    int32_t later_tid;       /* tid since `renumbered` (by exec in another than the first thread), else -1 */
    int64_t renumbered;
    int64_t birth;           /* time of its fork; KERNEL_UNBORN: existed before the first chunk that knows it */
    int64_t first, last;     /* range in which it is known to live */
    int64_t death;           /* KERNEL_UNDEAD: its death was not seen */
    uint64_t id;             /* permanent public id: below 2^52, never 0 */
    const char *name;        /* last name; "": unknown. Valid until the next save or close */
};
#define KERNEL_UNBORN INT64_MIN
#define KERNEL_UNDEAD INT64_MAX

struct kernel_rows;
/* Opens the rows kept in a directory, which must exist; without files there are no rows. host: hash of the host's
 * identity (each boot is another), from which ids are made. Only one process at a time may change them. Reads no rows:
 * O(log rows). ERR_FORMAT: damaged, or files are missing; ERR_STALE: another version or another host. */
int kernel_rows_open(const char *directory, uint64_t host, struct kernel_rows **out, struct err *e);
void kernel_rows_close(struct kernel_rows *);
/* Number of rows, which are numbered from 0. */
int32_t kernel_rows_count(const struct kernel_rows *);
/* False: no such row. */
bool kernel_rows_get(const struct kernel_rows *, int32_t row, struct kernel_row *out);
/* Row with that id, or KERNEL_NO_ROW. O(log² rows) */
int32_t kernel_rows_find(const struct kernel_rows *, uint64_t id);

/* Chunk that was built completely (kernel_tracker_carry_rows or _finish). */
struct kernel_rows_chunk {
    const struct kernel_tracker *tracker;
    int64_t begin, until;    /* ns: all its contents happened in [begin, until) */
    const int32_t *carried;  /* host's rows of those carried into it (kernel_tracker_carried) */
    const int32_t *before;   /* n_before rows of the host, the result of an earlier resolve of the chunk */
    size_t n_before;
};
/* Maps a chunk's rows to the host's: *rows, one for each of the tracker's. Chunks come in any order, and again when
 * they are rebuilt. A life that was not carried is
 * - a life that is known to have begun then;
 * - else the last earlier life of its tid, unless that is known to be over, or this one was seen to begin: the time
 *   in between was not observed;
 * - else the next life of its tid, if its begin was not seen, nor the death of this one before: a chunk may come
 *   after those that follow it. The row gets the birth and keeps its number and id;
 * - else new. If a chunk shows a birth or a death in between, one row becomes two: the row is the life that began
 * first. See kernel_rows_ended. O(rows of the chunk · log² rows). ERR_LIMIT: more than 2^31 rows. */
int kernel_rows_resolve(struct kernel_rows *, const struct kernel_rows_chunk *, int32_t *rows, struct err *e);
/* Rows that ended, according to the last resolved chunk, before times at which other chunks refer to them: they are
 * another life there. These must be resolved again, in order: later chunks with one of these rows, and chunks that
 * follow one which is now left by other state (its carry, and the host's rows in it). Valid until the next resolve. */
size_t kernel_rows_ended(const struct kernel_rows *, const int32_t **rows);
/* Saves all that was resolved or, on failure, nothing. A row costs O(log rows), over all saves. */
int kernel_rows_save(struct kernel_rows *, struct err *e);
/* Returns an error unless all that was read was intact (store_intact). */
int kernel_rows_intact(const struct kernel_rows *, struct err *e);
/* Reads and checks all files. */
int kernel_rows_check(const char *directory, uint64_t host, struct err *e);

#endif

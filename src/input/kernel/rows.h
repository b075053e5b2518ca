/* SPDX-License-Identifier: MIT */
/* The rows of a host: which lives of threads its chunks speak of. Rows only grow: one that was given is never given to
 * another life, and what is found out later extends it. Included by kernel/kernel.h; docs/formats/rows.md. */
#ifndef WEFT_KERNEL_ROWS_H
#define WEFT_KERNEL_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err; struct kernel_tracker;

/* A life as far as its host's chunks tell. Times in ns, the host's clock. */
struct kernel_row {
    int32_t tid;             /* that it had first; 0: an idle thread */
    int32_t idle_cpu;        /* of an idle thread, else -1 */
    int32_t later_tid;       /* since `renumbered` (it called exec and was not its process' first thread), else -1 */
    int64_t renumbered;
    int64_t birth;           /* of its fork; KERNEL_UNBORN: it was there before the first chunk that knows it */
    int64_t first, last;     /* known to live */
    int64_t death;           /* KERNEL_UNDEAD: it was not seen to die */
    uint64_t id;             /* below 2^52, never 0: by which others know it, for ever */
    const char *name;        /* its last one; "": unknown. Until the next save or close */
};
#define KERNEL_UNBORN INT64_MIN
#define KERNEL_UNDEAD INT64_MAX

struct kernel_rows;
/* Those that are kept in a directory, which must exist; none yet: no error. host: hash of who the host is (each boot is
 * another), from which ids are made. One process at a time may change them. Reads no rows: O(log rows). ERR_FORMAT:
 * damaged, or files are missing; ERR_STALE: another version or another host's. */
int kernel_rows_open(const char *directory, uint64_t host, struct kernel_rows **out, struct err *e);
void kernel_rows_close(struct kernel_rows *);
/* How many there are: rows are numbered from 0. */
int32_t kernel_rows_count(const struct kernel_rows *);
/* False: there is no such row. */
bool kernel_rows_get(const struct kernel_rows *, int32_t row, struct kernel_row *out);
/* The row with that id, or KERNEL_NO_ROW. O(log² rows) */
int32_t kernel_rows_find(const struct kernel_rows *, uint64_t id);

/* A chunk that was built, to its end (kernel_tracker_carry_rows or _finish). */
struct kernel_rows_chunk {
    const struct kernel_tracker *tracker;
    int64_t begin, until;    /* ns: all that it tells of happened in [begin, until) */
    const int32_t *carried;  /* the host's rows of those that were carried into it (kernel_tracker_carried) */
    const int32_t *before;   /* when it was resolved before: n_before rows of the host that came out then */
    size_t n_before;
};
/* Which rows of the host a chunk's are: *rows, one for each of the tracker's. Chunks come in any order, and again each
 * time they are built anew. A life that was not carried is
 * - the one that is known to have begun then;
 * - else the last one of its tid before, unless that is known to be over, or this one was seen to begin: nobody saw
 *   what happened in between;
 * - else the next one of its tid, if nobody saw that begin, and this one was not seen to die before: a chunk comes
 *   after those that follow it. The row gets the birth and keeps its number and id;
 * - else new.
 * Where a chunk tells of a birth or a death in between, what was one row is two from then on: the row is the life that
 * began first. See kernel_rows_ended.
 * O(rows of the chunk · log² rows). ERR_LIMIT: more than 2^31 rows. */
int kernel_rows_resolve(struct kernel_rows *, const struct kernel_rows_chunk *, int32_t *rows, struct err *e);
/* Rows that ended, as the chunk resolved last told, before times at which other chunks speak of them: they hold another
 * life there. To be resolved again, in order, are the chunks behind that have one of these rows, and those behind a
 * chunk where not the same leaves it as before (its carry, and the host's rows in it). Until the next resolve. */
size_t kernel_rows_ended(const struct kernel_rows *, const int32_t **rows);
/* Keeps what was resolved: all of it or, on failure, nothing. A row costs O(log rows), over all saves. */
int kernel_rows_save(struct kernel_rows *, struct err *e);
/* Was all that was read what was written (store_intact)? */
int kernel_rows_intact(const struct kernel_rows *, struct err *e);
/* Reads and checks all files. */
int kernel_rows_check(const char *directory, uint64_t host, struct err *e);

#endif

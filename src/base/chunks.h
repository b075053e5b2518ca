/* SPDX-License-Identifier: MIT */
/* A host's history is a list of chunks in order of time; each has stores of its own, whose rows (threads) are numbered
 * from 0. This says which rows of which chunks are the same row of the host. */
#ifndef WEFT_BASE_CHUNKS_H
#define WEFT_BASE_CHUNKS_H

#include <stddef.h>
#include <stdint.h>

struct store; struct chunk_rows;

/* One chunk as the reader of a store gets it. An item (an interval, a packet, a call) is in the chunk in which it was
 * decided, and may have begun before `begin`. */
struct chunk {
    const char *path;       /* of the file */
    int64_t begin, end;     /* the cuts: it was made of what happened in [begin, end); ns, the host's clock */
    const int32_t *rows;    /* by row of the chunk: the row of the host; NULL: the same */
    size_t n_rows;          /* in rows */
    struct chunk_rows *list; /* of the first: of all the list's chunks, for chunk_rows_new; or NULL */
    const struct store *in; /* which the store is a part of, while it is opened; NULL: it has the file for itself */
};

/* Row `row` of chunk number `chunk`. */
struct chunk_place { uint32_t chunk; int32_t row; };

/* Borrows nothing. Only where there is a single chunk its `rows` may be NULL. Which places a row has is found out when
 * that is first asked: O(rows of all chunks). Any number of threads may ask. Where the list says its rows, they are
 * these, once more: all who open it have them in common. */
struct chunk_rows *chunk_rows_new(const struct chunk *, size_t n);
/* The last of its users frees it. */
void chunk_rows_free(struct chunk_rows *);
/* For who makes a list: of n chunks with so many rows, which are to be filled in before anybody asks. */
struct chunk_rows *chunk_rows_blank(const size_t *n_rows, size_t n);
int32_t *chunk_rows_fill(struct chunk_rows *, size_t chunk);
/* All are below n_rows. */
void chunk_rows_filled(struct chunk_rows *, size_t n_rows);
/* Rows of the host: one more than the greatest number; 0 where they are those of the only chunk. */
size_t chunk_rows_count(const struct chunk_rows *);
/* By row of the chunk: the row of the host; NULL: the same. */
const int32_t *chunk_rows_of(const struct chunk_rows *, size_t chunk);
/* In how many chunks a row of the host is, and where: in order of time. O(1) */
size_t chunk_rows_places(const struct chunk_rows *, int32_t host_row);
struct chunk_place chunk_rows_place(const struct chunk_rows *, int32_t host_row, size_t i);
/* All of them: how many, and where they are until chunk_rows_free; *only may be what they point to. */
size_t chunk_rows_all(const struct chunk_rows *, int32_t host_row, struct chunk_place *only,
    const struct chunk_place **out);

#endif

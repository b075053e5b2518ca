/* SPDX-License-Identifier: MIT */
/* A host's history is a list of chunks in order of time. Each chunk has its own stores, whose rows (threads) are
 * numbered from 0. This maps rows of chunks to rows of the host. */
#ifndef WEFT_BASE_CHUNKS_H
#define WEFT_BASE_CHUNKS_H

#include <stddef.h>
#include <stdint.h>

struct store; struct chunk_rows;

/* Chunk, as passed to the reader of a store. An item (an interval, a packet, a call) is in the chunk in which it was
 * decided, and may have begun before `begin`. */
struct chunk {
    const char *path;       /* path of the file */
    int64_t begin, end;     /* cuts: the chunk was made from events in [begin, end); ns, the host's clock */
    const int32_t *rows;    /* row of the host by row of the chunk; NULL: the same */
    size_t n_rows;          /* number of `rows` */
    struct chunk_rows *list; /* first chunk only: rows of all the list's chunks, for chunk_rows_new; or NULL */
    const struct store *in; /* store around this one, while it is opened; NULL: the store has its own file */
};

/* Row `row` of chunk number `chunk`. */
struct chunk_place { uint32_t chunk; int32_t row; };

/* Borrows nothing. `rows` may be NULL only if there is a single chunk. The places of rows are computed at the first
 * request: O(rows of all chunks). Thread-safe. If the list has its rows (`list`), returns another reference to those:
 * all who open the list share them. */
struct chunk_rows *chunk_rows_new(const struct chunk *, size_t n);
/* Drops a reference; the last one frees. */
void chunk_rows_free(struct chunk_rows *);
/* Rows of a new list of n chunks, with so many rows each. The caller fills them in (chunk_rows_fill) before anybody
 * reads them. */
struct chunk_rows *chunk_rows_blank(const size_t *n_rows, size_t n);
int32_t *chunk_rows_fill(struct chunk_rows *, size_t chunk);
/* Ends filling in. The caller promises that all rows are below n_rows. */
void chunk_rows_filled(struct chunk_rows *, size_t n_rows);
/* Number of rows of the host: the greatest row plus one; 0 if they are the rows of the only chunk. */
size_t chunk_rows_count(const struct chunk_rows *);
/* Row of the host by row of the chunk; NULL: the same. */
const int32_t *chunk_rows_of(const struct chunk_rows *, size_t chunk);
/* Number of chunks that a row of the host is in; the i-th place of it, in order of time. O(1) */
size_t chunk_rows_places(const struct chunk_rows *, int32_t host_row);
struct chunk_place chunk_rows_place(const struct chunk_rows *, int32_t host_row, size_t i);
/* Number of places of a row; *out: the places, valid until chunk_rows_free. *out may point to *only. */
size_t chunk_rows_all(const struct chunk_rows *, int32_t host_row, struct chunk_place *only,
    const struct chunk_place **out);

#endif

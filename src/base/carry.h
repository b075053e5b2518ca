/* SPDX-License-Identifier: MIT */
/* State of builders at a cut of a recording, kept so that the next chunk is built without the earlier ones. A builder
 * has one function that visits all of its open state. The way of the carry decides what a visit does, so saved and
 * loaded state cannot differ by construction:
 *
 *
 *     MARK  marks the rows that the state refers to;
 *     SAVE  writes the state: equal state gives equal bytes, whatever led to it;
 *     LOAD  fills a new builder from bytes, which may be anything.
 *
 * Rows are threads of the host (kernel/kernel.h) by their number in the chunk. Only rows that the state refers to
 * continue in the next chunk. They get new numbers there, in an order that does not depend on where the cuts were. */
#ifndef WEFT_BASE_CARRY_H
#define WEFT_BASE_CARRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/text.h"

enum carry_way { CARRY_MARK, CARRY_SAVE, CARRY_LOAD };

struct carry {
    enum carry_way way;
    bool damaged;            /* LOAD: the bytes are invalid; all later reads give 0 */
    struct text bytes;       /* SAVE */
    const uint8_t *at, *end; /* LOAD */
    VEC(uint8_t) marked;     /* MARK: by row */
    VEC(int32_t) numbers;    /* SAVE: by row: its number in the next chunk; -1: not carried */
    size_t n_rows;           /* SAVE, LOAD: rows carried */
};

/* Begins with MARK. */
void carry_init(struct carry *);
/* Goes from MARK to SAVE. `rows` are carried, in this order, and include every marked row. */
void carry_save(struct carry *, const int32_t *rows, size_t n);
/* Begins with LOAD of saved bytes, which are borrowed. n_rows: number of rows carried. */
void carry_load(struct carry *, const void *bytes, size_t n, size_t n_rows);
/* Ends LOAD. ERR_FORMAT: the bytes were invalid, or were not read to their end. */
int carry_loaded(const struct carry *, struct err *);
/* SAVE: hash of the bytes saved so far. */
uint64_t carry_hash(const struct carry *);
void carry_fini(struct carry *);

static inline bool carry_is_marked(const struct carry *c, int32_t row)
{
    return row >= 0 && (size_t)row < c->marked.n && c->marked.v[row];
}

/* ---- visits ---- */

/* Visits the n bytes of one or more numbers. Structs with padding are not allowed: padding bytes are undefined. */
void carry_bytes(struct carry *, void *, size_t n);
#define carry_number(c, p) carry_bytes((c), (p), sizeof *(p))
void carry_bool(struct carry *, bool *);
/* A number below `limit`; otherwise the bytes are damaged. */
void carry_below(struct carry *, uint8_t *, unsigned limit);
/* A row; -1: none. */
void carry_row(struct carry *, int32_t *row);
/* A string, saved by its text: string numbers differ between chunks. */
void carry_string(struct carry *, struct strings *, uint32_t *number);
/* Number of items, each of at least `least_bytes`: LOAD returns the saved number, the other ways return n. */
size_t carry_count(struct carry *, size_t n, size_t least_bytes);
/* Makes the array as long as the saved one, with zeroed items, which the caller visits. */
#define carry_vec(c, a, least_bytes) \
    do { \
        size_t carry_n = carry_count((c), (a)->n, (least_bytes)); \
        if ((c)->way == CARRY_LOAD) { \
            (a)->n = 0; \
            vec_reserve((a), carry_n); \
            if (carry_n) \
                memset((a)->v, 0, carry_n * sizeof *(a)->v); \
            (a)->n = carry_n; \
        } \
    } while (0)
/* Keys and values of a map, by key. value: visits a value; NULL: values are numbers. */
void carry_map(struct carry *, struct map *, void (*value)(struct carry *, uint64_t *value, void *arg), void *arg);

#endif

/* SPDX-License-Identifier: MIT */
/* What builders know at a cut of a recording, kept so that the next chunk is built without the earlier ones. A builder
 * has one function that visits all of its open state; the way of the carry decides what a visit does, so that what is
 * saved and what is loaded cannot differ:
 *
 *     MARK  names the rows that the state speaks of;
 *     SAVE  writes the state: the same state gives the same bytes, whatever led to it;
 *     LOAD  fills a new builder from bytes, which may be anything.
 *
 * Rows are threads of the host (kernel/kernel.h) by their number in the chunk. Only some live on in the next chunk, and
 * get new numbers there: those that the state speaks of, in an order that does not depend on where cuts were. */
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
    bool damaged;            /* LOAD: the bytes make no sense; everything after reads as 0 */
    struct text bytes;       /* SAVE */
    const uint8_t *at, *end; /* LOAD */
    VEC(uint8_t) marked;     /* MARK: by row */
    VEC(int32_t) numbers;    /* SAVE: by row: in the next chunk, -1: it is not carried */
    size_t n_rows;           /* SAVE, LOAD: carried */
};

/* Begins with MARK. */
void carry_init(struct carry *);
/* From MARK to SAVE: `rows` are carried, in this order; every marked row is among them. */
void carry_save(struct carry *, const int32_t *rows, size_t n);
/* Begins with LOAD: what was saved. n_rows: how many rows were carried. The bytes are borrowed. */
void carry_load(struct carry *, const void *bytes, size_t n, size_t n_rows);
/* LOAD: was all of it read, and did it make sense? ERR_FORMAT: no. */
int carry_loaded(const struct carry *, struct err *);
/* SAVE: of what was saved so far. */
uint64_t carry_hash(const struct carry *);
void carry_fini(struct carry *);

static inline bool carry_is_marked(const struct carry *c, int32_t row)
{
    return row >= 0 && (size_t)row < c->marked.n && c->marked.v[row];
}

/* ---- visits ---- */

/* The n bytes of a number, or of numbers. Not of structs with padding, whose bytes could be anything. */
void carry_bytes(struct carry *, void *, size_t n);
#define carry_number(c, p) carry_bytes((c), (p), sizeof *(p))
void carry_bool(struct carry *, bool *);
/* A number below `limit`: else the bytes are damaged. */
void carry_below(struct carry *, uint8_t *, unsigned limit);
/* A row; -1: none. */
void carry_row(struct carry *, int32_t *row);
/* A string by its text: the numbers of the strings of two chunks differ. */
void carry_string(struct carry *, struct strings *, uint32_t *number);
/* How many items come, each of which takes at least `least_bytes`: LOAD gives what was saved, else n. */
size_t carry_count(struct carry *, size_t n, size_t least_bytes);
/* Makes the array as long as the one that was saved, its items zeroed; they are visited by the caller. */
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
/* Keys and values of a map, by key. value: visits a value; NULL: it is a number. */
void carry_map(struct carry *, struct map *, void (*value)(struct carry *, uint64_t *value, void *arg), void *arg);

#endif

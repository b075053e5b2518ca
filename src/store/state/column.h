/* SPDX-License-Identifier: MIT */
/* Private to state: up to 128 values of a column, packed in the smallest way. Each can be read without the others. */
#ifndef WEFT_STATE_COLUMN_H
#define WEFT_STATE_COLUMN_H

#include "state/pack.h"

enum { COLUMN_VALUES = 128, COLUMN_ENTRIES = 64 };
enum column_way {
    COLUMN_PLAIN,            /* differences to the base */
    COLUMN_LINE,             /* differences to a line through the base: for values that grow evenly */
    COLUMN_SPLIT,            /* low bits of all differences to the base, high bits of the few that have any */
    COLUMN_TABLE,            /* distinct differences, at most 64, and an index per value */
};
/* Form of a column, in 32 bits. */
enum { COLUMN_OFFSET_BITS = 13, COLUMN_BASE_BITS = 3, COLUMN_WIDTH_BITS = 6, COLUMN_WAY_BITS = 2 };
struct column_form {
    uint32_t offset : COLUMN_OFFSET_BITS; /* position of its bytes in the block */
    uint32_t base : COLUMN_BASE_BITS;     /* bytes of the base: 0 to 6, or 7 for 8 */
    uint32_t width : COLUMN_WIDTH_BITS;   /* bits of each value: 0 to 56, or 63 for 64 */
    uint32_t more : COLUMN_WIDTH_BITS;    /* SPLIT: width of the high bits; TABLE: width of an entry of the table */
    uint32_t way : COLUMN_WAY_BITS;
    uint32_t reserved : 2;
};
_Static_assert(sizeof(struct column_form) == 4, "fixed width");

/* Limits: bytes that state_column_put writes, which may also change some bytes behind them; distance behind the begin
 * of a column's bytes that is read, whatever they and its form contain. */
enum { COLUMN_MOST_BYTES = 8 * (COLUMN_VALUES + 3), COLUMN_SPARE = 8 + COLUMN_VALUES / 8 + 2 * 8 * COLUMN_VALUES + 8 };

/* Packs n values, 1 to 128, in the best of the given ways (bits 1 << way; PLAIN always). They are stored as differences
 * to `from`. Returns the bytes used; sets all of the form except its offset. */
size_t state_column_put(uint8_t *to, const int64_t *v, size_t n, int64_t from, unsigned ways, struct column_form *);

/* Column of n values for reading: its bytes, and the arguments of state_column_put. */
struct column {
    const uint8_t *bytes;    /* bytes behind the base */
    int64_t base;
    size_t n;
    struct column_form form;
};
static inline struct column column_open(const uint8_t *bytes, size_t n, int64_t from, struct column_form f)
{
    unsigned base_bytes = f.base < 7 ? f.base : 8, unused = 64 - 8 * base_bytes;
    uint64_t base;
    memcpy(&base, bytes, sizeof base);
    base = f.base ? (uint64_t)((int64_t)(base << unused) >> unused) : 0;
    return (struct column){bytes + base_bytes, (int64_t)((uint64_t)from + base), n, f};
}
int64_t state_column_get(const struct column *, size_t i);
void state_column_take(const struct column *, int64_t *out);
/* Returns the defect of a column, or NULL. `end`: end of the readable bytes; sets the end of the column's bytes. */
const char *state_column_defect(const uint8_t *bytes, size_t n, struct column_form, const uint8_t *end,
    const uint8_t **own_end);

#endif

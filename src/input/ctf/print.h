/* SPDX-License-Identifier: MIT */
/* Private to ctf: events as text. The declarations of an event class are compiled once into a *plan*, a list of
 * operations. Each operation writes a literal ("{ prev_comm = ", with everything constant) and then a value read at the
 * cursor. Printing an event runs its plan. */
#ifndef WEFT_CTF_PRINT_H
#define WEFT_CTF_PRINT_H

#include "base/text.h"
#include "ctf/ctf.h"
#include "ctf/schema.h"

enum print_code {
    /* -- move the cursor, write nothing -- */
    /* start of the packet, header, contexts, payload, plus a */
    PRINT_AT_PACKET, PRINT_AT_HEADER, PRINT_AT_CONTEXT, PRINT_AT_PAYLOAD,
    PRINT_ALIGN,             /* align to a multiple of a bits */
    PRINT_SKIP,              /* a bits */
    PRINT_SKIP_STRING,
    PRINT_SKIP_MANY,         /* a bits b times; flag: times the length in slot b */
    PRINT_REMEMBER,          /* store the integer at the cursor in slot a; does not move */
    PRINT_REMEMBER_ANY,      /* PRINT_REMEMBER for any kind of integer */
    PRINT_SKIP_OTHER,        /* value of a kind that only CTF 2 has; lists: as PRINT_CHARS */
    /* -- write literal and value -- */
    PRINT_LITERAL,
    /* whole bytes, little endian: decimal, hexadecimal */
    PRINT_U8, PRINT_U16, PRINT_U32, PRINT_U64, PRINT_S8, PRINT_S16, PRINT_S32, PRINT_S64,
    PRINT_X8, PRINT_X16, PRINT_X32, PRINT_X64,
    PRINT_INT,               /* integers of any other shape */
    PRINT_ENUM,              /* flag: a label has several ranges; b: start of their order in the plan */
    PRINT_FLOAT, PRINT_STRING,
    PRINT_CHARS,             /* text of at most a bytes; flag: of the length in slot b */
    PRINT_OTHER,             /* value of a kind that only CTF 2 has; lists: as PRINT_CHARS */
    /* -- write literal and run a part of the plan -- */
    PRINT_LOOP,              /* body up to operation b, a times; flag: count in slot a */
    /* a operations PRINT_OPTION follow; continues at b; flag: writes text if nothing is selected */
    PRINT_CHOOSE,
    PRINT_OPTION,            /* body from operation a up to b */
};

struct print_op {
    uint8_t code;
    bool flag;
    uint32_t literal, literal_n; /* bytes in the plan's literals */
    uint32_t a, b;
    const struct ctf_type *type;
};

struct print_plan {
    struct print_op *ops;
    uint32_t n;
    uint32_t *ranges;        /* numbers of ranges of enumerations, grouped by label */
    char *literals;          /* PRINT_SHORT more bytes are readable after the last one */
    bool json;               /* values as JSON; else as babeltrace2 shows them */
    bool has_clock;
};

/* Makes the plan of the class for a format, without the source's host and the time stamp. print_plan_free() it. */
struct print_plan *print_plan_new(const struct ctf_event_class *, enum ctf_print_format, bool has_clock);
void print_plan_free(struct print_plan *);
void print_plan_run(const struct print_plan *, const struct ctf_event *, struct text *out);
/* Returns whether the type maps any integer to a clock. */
bool print_has_clock(const struct ctf_type *);

/* ---- values: written at `o`, the new end is returned ---- */

/* Reserved room: the caller provides PRINT_ROOM bytes; for strings the size given below. */
enum { PRINT_ROOM = 512, PRINT_SHORT = 32 };
char *print_u64(char *o, uint64_t v);
char *print_nine(char *o, uint32_t v);               /* nine digits, with leading zeros */
char *print_text_int(char *o, const struct ctf_type *, int64_t v);
char *print_text_string(char *o, const char *s, size_t n);  /* needs 4 n + 2 */
char *print_json_string(char *o, const char *s, size_t n);  /* needs 6 n + 2 */
char *print_text_float(char *o, double v);
char *print_json_float(char *o, double v, bool single);
/* Calls `label` for every label of the enumeration that contains v, in order of first declaration. `order`: numbers of
 * the ranges, grouped by label; NULL: each range has its own label. */
void print_labels(const struct ctf_type *, int64_t v, const uint32_t *order, void (*label)(void *arg, const char *),
    void *arg);

/* Bits [pos, pos + n) of the packet as an unsigned number, n <= 64. */
static inline uint64_t print_bits(const uint8_t *data, uint64_t pos, unsigned n, bool big_endian)
{
    const uint8_t *p = data + (pos >> 3);
    unsigned shift = (unsigned)pos & 7;
    uint64_t v;
    memcpy(&v, p, 8);
    if (n == 0)
        return 0;
    if (big_endian) {
        v = __builtin_bswap64(v) << shift;
        if (shift)
            v |= (uint64_t)p[8] >> (8 - shift);
        return v >> (64 - n);
    }
    v >>= shift;
    if (shift)
        v |= (uint64_t)p[8] << (64 - shift);
    return n == 64 ? v : v & (((uint64_t)1 << n) - 1);
}

static inline const struct ctf_type *print_int_type(const struct ctf_type *t)
{
    return t->kind == CTF_ENUM ? t->u.enumeration.container : t;
}

/* Value of an integer or enumeration at pos, sign-extended. */
static inline int64_t print_int_at(const struct ctf_type *type, const uint8_t *data, uint64_t pos)
{
    const struct ctf_type *t = print_int_type(type);
    unsigned n = (unsigned)t->size_bits;
    uint64_t v = print_bits(data, pos, n, t->big_endian);
    if (t->is_signed && n && n < 64)
        v = (uint64_t)((int64_t)(v << (64 - n)) >> (64 - n));
    return (int64_t)v;
}

#endif

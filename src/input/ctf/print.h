/* SPDX-License-Identifier: MIT */
/* Private to ctf: events as text. The declarations of an event class are compiled once into a *plan*, a list of
 * operations that each write a literal ("{ prev_comm = ", with everything that does not change) and then a value read
 * at the cursor. Printing an event runs its plan. */
#ifndef WEFT_CTF_PRINT_H
#define WEFT_CTF_PRINT_H

#include "base/text.h"
#include "ctf/ctf.h"
#include "ctf/schema.h"

enum print_code {
    /* -- move the cursor, write nothing -- */
    /* to a + the start of the packet, header, contexts, payload */
    PRINT_AT_PACKET, PRINT_AT_HEADER, PRINT_AT_CONTEXT, PRINT_AT_PAYLOAD,
    PRINT_ALIGN,             /* to the next multiple of a bits */
    PRINT_SKIP,              /* a bits */
    PRINT_SKIP_STRING,
    PRINT_SKIP_MANY,         /* a bits b times; flag: times the length in slot b */
    PRINT_REMEMBER,          /* the integer at the cursor into slot a; does not move */
    PRINT_REMEMBER_ANY,      /* the same of any kind of integer */
    PRINT_SKIP_OTHER,        /* a value of a kind that only CTF 2 has; lists: as PRINT_CHARS */
    /* -- write literal and value -- */
    PRINT_LITERAL,
    /* whole bytes, little endian: decimal, hexadecimal */
    PRINT_U8, PRINT_U16, PRINT_U32, PRINT_U64, PRINT_S8, PRINT_S16, PRINT_S32, PRINT_S64,
    PRINT_X8, PRINT_X16, PRINT_X32, PRINT_X64,
    PRINT_INT,               /* any other integer */
    PRINT_ENUM,              /* flag: a label stands for several ranges; from b on their order in the plan */
    PRINT_FLOAT, PRINT_STRING,
    PRINT_CHARS,             /* text of a bytes at most; flag: of the length in slot b */
    PRINT_OTHER,             /* a value of a kind that only CTF 2 has; lists: as PRINT_CHARS */
    /* -- write literal and run a part of the plan -- */
    PRINT_LOOP,              /* body up to operation b, a times; flag: as often as slot a says */
    /* a operations PRINT_OPTION follow; goes on at b; flag: writes that nothing is chosen */
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
    uint32_t *ranges;        /* numbers of ranges of enumerations: those of one label follow each other */
    char *literals;          /* PRINT_SHORT more bytes can be read behind the last one */
    bool json;               /* values as JSON; else as babeltrace2 shows them */
    bool has_clock;
};

/* Plan of the class for a format. The host of the source and the time stamp are not in it. print_plan_free() it. */
struct print_plan *print_plan_new(const struct ctf_event_class *, enum ctf_print_format, bool has_clock);
void print_plan_free(struct print_plan *);
void print_plan_run(const struct print_plan *, const struct ctf_event *, struct text *out);
/* Does the type map any integer to a clock? */
bool print_has_clock(const struct ctf_type *);

/* ---- values: written at `o`, the new end is returned ---- */

/* The caller has made room for PRINT_ROOM bytes; for strings as each says. */
enum { PRINT_ROOM = 512, PRINT_SHORT = 32 };
char *print_u64(char *o, uint64_t v);
char *print_nine(char *o, uint32_t v);               /* with leading zeros */
char *print_text_int(char *o, const struct ctf_type *, int64_t v);
char *print_text_string(char *o, const char *s, size_t n);  /* needs 4 n + 2 */
char *print_json_string(char *o, const char *s, size_t n);  /* needs 6 n + 2 */
char *print_text_float(char *o, double v);
char *print_json_float(char *o, double v, bool single);
/* Calls `label` for every label of the enumeration that v has, in order of first declaration. `order`: numbers of the
 * ranges, those of one label behind each other; NULL: each has a label of its own. */
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

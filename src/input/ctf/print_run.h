/* SPDX-License-Identifier: MIT */
/* Private to ctf: running print plan. */
#ifndef WEFT_CTF_PRINT_RUN_H
#define WEFT_CTF_PRINT_RUN_H

#include "ctf/decode.h"
#include "ctf/print.h"

struct print_run {
    const struct print_plan *plan;
    const uint8_t *data;
    uint64_t pos; /* bits from the packet's start */
    uint64_t header, context, payload;
    struct text *out;
    char *limit; /* bound that a literal must end and a value must start before */
    uint64_t slots[CTF_SLOTS];
};

/* Writers of values at `o`; each returns the new end. */
char *print_put_string(struct print_run *, char *o, const char *s, size_t n);
char *print_put_enum(struct print_run *, char *o, const struct print_op *, int64_t v);
char *print_i64(char *o, int64_t v);
/* Writes a value of a kind that only CTF 2 has (PRINT_OTHER), and moves past it. */
char *print_other(struct print_run *, const struct print_op *, char *o);

#endif

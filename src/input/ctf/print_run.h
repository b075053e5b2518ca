/* SPDX-License-Identifier: MIT */
/* Private to ctf: a print plan while it runs. */
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
    char *limit; /* a literal must end and a value must start before here */
    uint64_t slots[CTF_SLOTS];
};

/* Values at `o`, of which the new end is returned. */
char *print_put_string(struct print_run *, char *o, const char *s, size_t n);
char *print_put_enum(struct print_run *, char *o, const struct print_op *, int64_t v);
char *print_i64(char *o, int64_t v);
/* What only CTF 2 has: writes it (PRINT_OTHER) and goes behind it. */
char *print_other(struct print_run *, const struct print_op *, char *o);

#endif

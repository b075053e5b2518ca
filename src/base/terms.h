/* SPDX-License-Identifier: MIT */
/* What the cells of a table's row must show: regular expressions by column. */
#ifndef WEFT_BASE_TERMS_H
#define WEFT_BASE_TERMS_H

#include <stdbool.h>

#include "base/regex.h"
#include "base/text.h"

enum { TERMS_MOST = 64 };    /* more are left out */
struct term {
    size_t column;
    const char *plain;       /* a text that is looked for as it stands, which is faster; NULL: the expression */
    struct regex *regex;
};
struct terms {               /* zero-initialise; one owner */
    size_t n;
    bool impossible;         /* set by the owner: a term is about a column that is not there, so no row fits */
    struct text cell;
    struct term v[TERMS_MOST];
};
/* A pattern that cannot be compiled is looked for as it stands. It is borrowed as long as the terms live. */
void terms_add(struct terms *, size_t column, const char *pattern);
bool term_fits(const struct term *, const char *cell);
/* Does each find something in its cell of the row? False without any. `cell` appends the cell's text. */
bool terms_fit(struct terms *, void (*cell)(void *arg, size_t row, size_t column, struct text *out), void *arg,
    size_t row);
void terms_fini(struct terms *);

#endif

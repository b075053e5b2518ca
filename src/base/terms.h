/* SPDX-License-Identifier: MIT */
/* Conditions on the cells of a table's row: regular expressions by column. */
#ifndef WEFT_BASE_TERMS_H
#define WEFT_BASE_TERMS_H

#include <stdbool.h>

#include "base/regex.h"
#include "base/text.h"

enum { TERMS_MOST = 64 };    /* limit; more are ignored */
struct term {
    size_t column;
    const char *plain;       /* text that is searched literally, which is faster; NULL: use the expression */
    struct regex *regex;
};
struct terms {               /* zero-initialise; one owner */
    size_t n;
    bool impossible;         /* set by the owner: a term refers to an absent column, so no row matches */
    struct text cell;
    struct term v[TERMS_MOST];
};
/* Adds a term. A pattern that does not compile is searched literally. It is borrowed while the terms live. */
void terms_add(struct terms *, size_t column, const char *pattern);
bool term_fits(const struct term *, const char *cell);
/* Returns whether each term matches its cell of the row; false without terms. `cell` appends the cell's text. */
bool terms_fit(struct terms *, void (*cell)(void *arg, size_t row, size_t column, struct text *out), void *arg,
    size_t row);
void terms_fini(struct terms *);

#endif

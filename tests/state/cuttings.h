/* SPDX-License-Identifier: MIT */
/* Comparison of lists of chunks with the store of one pass, over random cuttings. */
#ifndef WEFT_TESTS_STATE_CUTTINGS_H
#define WEFT_TESTS_STATE_CUTTINGS_H

#include "cuts.h"
#include "maker.h"
#include "same.h"

enum { CUTTINGS_MOST_CUTS = 12 };
struct cuttings {
    void (*same)(struct pair *);
    uint64_t seed;
    int rounds;                  /* number of cuttings of each trace */
};
/* Returns WEFT_CUTS, or the usual number. */
int cuttings_rounds(int usual);
/* Compares a trace, unless WEFT_ONLY names others. For cuts_each. */
void cuttings_compare(const struct cuts_trace *, const char *name, void *cuttings);
/* Compares a made trace, and frees its maker. */
void cuttings_compare_made(struct cuttings *, const char *what, uint64_t number, struct maker *);

#endif

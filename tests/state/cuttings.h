/* SPDX-License-Identifier: MIT */
/* Lists of chunks beside the store of one pass, over random cuttings. */
#ifndef WEFT_TESTS_STATE_CUTTINGS_H
#define WEFT_TESTS_STATE_CUTTINGS_H

#include "cuts.h"
#include "maker.h"
#include "same.h"

enum { CUTTINGS_MOST_CUTS = 12 };
struct cuttings {
    void (*same)(struct pair *);
    uint64_t seed;
    int rounds;                  /* cuttings of each trace */
};
/* WEFT_CUTS, or what is usual. */
int cuttings_rounds(int usual);
/* Of a trace; nothing when WEFT_ONLY names others. For cuts_each. */
void cuttings_compare(const struct cuts_trace *, const char *name, void *cuttings);
/* Of a made trace, whose maker is freed. */
void cuttings_compare_made(struct cuttings *, const char *what, uint64_t number, struct maker *);

#endif

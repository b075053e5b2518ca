/* SPDX-License-Identifier: MIT */
/* Whether two nets say the same, to the last bit. */
#ifndef WEFT_TESTS_INDEX_FAR_SAME_H
#define WEFT_TESTS_INDEX_FAR_SAME_H

#include "clock/clock.h"

/* By what is written of them: their stores, and all that they tell. what: for who reads that they differ. */
void far_same_nets(const struct clock_net *, const struct clock_net *, const char *what);

#endif

/* SPDX-License-Identifier: MIT */
/* Comparison of two nets, to the last bit. */
#ifndef WEFT_TESTS_INDEX_FAR_SAME_H
#define WEFT_TESTS_INDEX_FAR_SAME_H

#include "clock/clock.h"

/* Compares the nets by their stores and all their answers. what: name for failure messages. */
void far_same_nets(const struct clock_net *, const struct clock_net *, const char *what);

#endif

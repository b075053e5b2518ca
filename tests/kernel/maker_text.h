/* SPDX-License-Identifier: MIT */
/* Made traces from text. */
#ifndef WEFT_TESTS_KERNEL_MAKER_TEXT_H
#define WEFT_TESTS_KERNEL_MAKER_TEXT_H

#include "maker.h"

/* Adds events: "CPU TIME KIND ARGUMENT…; CPU TIME KIND …". Kinds are the names of maker_event in lower case; arguments
 * those of the function of maker.h that adds this kind, in its order. A switch says how the thread is left as ps does
 * (R, S, D, T, Z, I for idle, P for preempted), or by a number. Fails on what it does not understand. */
void maker_text(struct maker *, const char *events);

#endif

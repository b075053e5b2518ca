/* SPDX-License-Identifier: MIT */
/* Comparison of two flow stores through all their queries. */
#ifndef WEFT_TESTS_FLOW_SAME_H
#define WEFT_TESTS_FLOW_SAME_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "flow/flow.h"

/* Fails the test if the stores differ. rows: of the host. */
void same_stores(const struct flow_store *one, const struct flow_store *list, int32_t rows);
/* Checks a message found at the sender: if it was found only by its numbers, its routes lead there. */
void routes_must_lead(const struct flow_store *sender, const struct flow_message_key *);

#endif

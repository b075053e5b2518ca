/* SPDX-License-Identifier: MIT */
/* Whether two flow stores say the same through everything that can be asked of them. */
#ifndef WEFT_TESTS_FLOW_SAME_H
#define WEFT_TESTS_FLOW_SAME_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "flow/flow.h"

/* rows: of the host. Fails the test where they differ. */
void same_stores(const struct flow_store *one, const struct flow_store *list, int32_t rows);
/* The message was found at the sender: if only by its numbers, then its routes lead there. */
void routes_must_lead(const struct flow_store *sender, const struct flow_message_key *);

#endif

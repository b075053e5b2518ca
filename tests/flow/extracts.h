/* SPDX-License-Identifier: MIT */
/* Extracts of hosts' flows, as their collector receives them. */
#ifndef WEFT_TESTS_FLOW_EXTRACTS_H
#define WEFT_TESTS_FLOW_EXTRACTS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "flow/flow.h"

/* Returns a store of these flows, checked to be sound. *bytes: the size of its file is added. */
struct flow_store *extract_flows(const struct flow_store *, const uint32_t *flows, size_t n, uint64_t *bytes);
/* Sets, by host (NULL: none), the extract that the others need of it, selected by hashes and addresses alone. */
void extract_hosts(const struct flow_store *const *hosts, size_t n, struct flow_store **out, uint64_t *bytes);
/* Fails the test unless the extract and the store agree on these flows and the host. */
void same_extract(const struct flow_store *, const uint32_t *flows, size_t n, const struct flow_store *extract);

#endif

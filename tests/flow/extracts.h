/* SPDX-License-Identifier: MIT */
/* What hosts give away of their flows, as whoever collects it gets it. */
#ifndef WEFT_TESTS_FLOW_EXTRACTS_H
#define WEFT_TESTS_FLOW_EXTRACTS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "flow/flow.h"

/* These flows as a store of their own, which is sound, or the test fails. *bytes: those of its file are added. */
struct flow_store *extract_flows(const struct flow_store *, const uint32_t *flows, size_t n, uint64_t *bytes);
/* By host (NULL: none) what the others need of it, told by hashes and addresses alone. */
void extract_hosts(const struct flow_store *const *hosts, size_t n, struct flow_store **out, uint64_t *bytes);
/* Fails the test unless the extract says of these flows and of the host what the store says of them. */
void same_extract(const struct flow_store *, const uint32_t *flows, size_t n, const struct flow_store *extract);

#endif

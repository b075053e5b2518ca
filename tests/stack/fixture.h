/* SPDX-License-Identifier: MIT */
/* Builds the store of a user-space trace in one pass, as an index does. Shared by the tests of call stacks. */
#ifndef WEFT_TESTS_STATE_STACK_FIXTURE_H
#define WEFT_TESTS_STATE_STACK_FIXTURE_H

#include "base/err.h"
#include "stack/stack.h"

/* Finds one trace below `dir`, builds its store at `path` and opens it. */
int stack_fixture(const char *dir, const char *path, struct stack_store **out, struct err *e);

#endif

/* SPDX-License-Identifier: MIT */
/* Reads a recording by every way that room ftrace and its traces offer. */
#ifndef WEFT_TESTS_FTRACE_READ_ALL_H
#define WEFT_TESTS_FTRACE_READ_ALL_H

#include <stddef.h>
#include <stdint.h>

struct read_all { int code; size_t events, problems; };
/* The bytes as a file. Aborts where events were counted wrongly. */
struct read_all read_all(const uint8_t *data, size_t n);

#endif

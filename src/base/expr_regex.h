/* Private to base: regular expressions of the expression language. */
#ifndef WEFT_BASE_EXPR_REGEX_H
#define WEFT_BASE_EXPR_REGEX_H

#include <regex.h>

#include "base/err.h"

/* POSIX extended, without back references (they match in exponential time). Patterns come from clients of servers too, and the C library unfolds
 * repetitions while compiling ("((a+)+)+" doubles per level): more than 4096 unfolded parts are refused. regfree() it. */
int expr_regex_compile(const char *pattern, regex_t *out, struct err *e);

#endif

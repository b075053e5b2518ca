/* SPDX-License-Identifier: MIT */
/* Regular expressions in Perl's syntax, by the PCRE2 library. Clients of servers send patterns too, so compiling and
 * matching are bounded in time and memory. */
#ifndef WEFT_BASE_REGEX_H
#define WEFT_BASE_REGEX_H

#include <stddef.h>

#include "base/err.h"

struct regex; /* immutable: threads may share it */

/* UTF-8; "." matches any character, "$" the very end. ERR_ARG: not a regular expression; ERR_LIMIT: too large or too
 * deeply nested. Freed by regex_free. */
int regex_compile(const char *pattern, struct regex **out, struct err *e);
/* Searches the n bytes: 1 found, 0 not found, -1 given up: the pattern needs more than REGEX_STEPS steps on this
 * text. */
int regex_finds(const struct regex *, const char *text, size_t n);
/* Matches all of the n bytes. Returns as regex_finds. */
int regex_fits(const struct regex *, const char *text, size_t n);
/* Searches as regex_finds; *out: the range of the first group, or of the whole match if there is no group. 0 also if
 * that group took no part. */
struct regex_part { size_t begin, end; };
int regex_captures(const struct regex *, const char *text, size_t n, struct regex_part *out);
void regex_free(struct regex *); /* NULL-safe */

/* Choices tried per text: about a millisecond. */
enum { REGEX_STEPS = 100000 };

#endif

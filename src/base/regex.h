/* SPDX-License-Identifier: MIT */
/* Regular expressions: Perl's, by the PCRE2 library. Patterns come from clients of servers too, so compiling and
 * matching are bounded in time and memory. */
#ifndef WEFT_BASE_REGEX_H
#define WEFT_BASE_REGEX_H

#include <stddef.h>

#include "base/err.h"

struct regex; /* immutable: threads may share it */

/* UTF-8; "." fits any character, "$" the very end. ERR_ARG: no regular expression; ERR_LIMIT: too large or too deeply
 * nested. regex_free() it. */
int regex_compile(const char *pattern, struct regex **out, struct err *e);
/* Does it match any part of the n bytes? 1 yes, 0 no, -1 given up: the pattern needs more steps than REGEX_STEPS on
 * this text. */
int regex_finds(const struct regex *, const char *text, size_t n);
/* Does it match all of the n bytes? As regex_finds. */
int regex_fits(const struct regex *, const char *text, size_t n);
/* As regex_finds; what its first group took, or all that it matched where it has no group. 0 also where that group took
 * no part. */
struct regex_part { size_t begin, end; };
int regex_captures(const struct regex *, const char *text, size_t n, struct regex_part *out);
void regex_free(struct regex *); /* NULL is fine */

/* Choices tried per text: about a millisecond. */
enum { REGEX_STEPS = 100000 };

#endif

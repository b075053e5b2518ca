/* SPDX-License-Identifier: MIT */
/* Properties of paths on which users rely, checked for a path of any source:
 * - The path with a later beginning is the end of the path with an earlier one.
 * - The piece of a path inside a wait is the path of what ended the wait, queried for that piece alone.
 * - A walk that is stopped and resumed, or whose answers come late and in any order, gives the same path. */
#ifndef WEFT_TESTS_PATH_APART_H
#define WEFT_TESTS_PATH_APART_H

#include "path/path.h"

struct apart_count { size_t pieces, rounds; };

void apart_seed(uint64_t);
/* Checks the path of its row up to the requested end. Fails the test, naming `world`, if a property is violated.
 * `stops`: checks the last property too, which takes as many queries as the path has segments, several times. */
void apart_check(const struct path_source *, const char *world, const struct path *, bool stops, struct apart_count *);
/* Returns whether both agree on [begin, end]. `links`: compared too, if they end after `begin`. */
bool apart_same(const struct path *, const struct path *, int64_t begin, int64_t end, bool links);

#endif

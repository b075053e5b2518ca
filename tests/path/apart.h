/* SPDX-License-Identifier: MIT */
/* What a path promises whoever takes it apart, checked for a path of any source:
 * - The path with a later beginning is the end of the path with an earlier one.
 * - The piece of a path inside a wait is the path of what ended the wait, asked for that piece alone.
 * - A walk that is stopped and resumed, or whose answers come late and in any order, gives the same path. */
#ifndef WEFT_TESTS_PATH_APART_H
#define WEFT_TESTS_PATH_APART_H

#include "path/path.h"

struct apart_count { size_t pieces, rounds; };

void apart_seed(uint64_t);
/* The path, of its row up to the end that was asked for. Fails the test, naming `world`, where a promise is broken.
 * `stops`: the last one is looked at too, which takes as many questions as the path has segments, several times. */
void apart_check(const struct path_source *, const char *world, const struct path *, bool stops, struct apart_count *);
/* Do both say the same of [begin, end]? `links`: compared too, where they end behind `begin`. */
bool apart_same(const struct path *, const struct path *, int64_t begin, int64_t end, bool links);

#endif

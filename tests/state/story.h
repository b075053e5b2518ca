/* SPDX-License-Identifier: MIT */
/* Made kernel traces of arbitrary events. */
#ifndef WEFT_TESTS_STATE_STORY_H
#define WEFT_TESTS_STATE_STORY_H

#include "maker.h"

/* Makes n events, the same for the same seed. */
struct maker *story_random(uint64_t seed, size_t n);
/* Makes events of few threads, two of them of one process. They use few files again and again, often several times in
 * one ns; they get other names, run other programs, and events are lost. */
struct maker *story_files(uint64_t seed, size_t n);

#endif

/* SPDX-License-Identifier: MIT */
/* Translator of metadata for tests and benchmarks: the streams of a trace are the same bits in CTF 1.8 and CTF 2. */
#ifndef WEFT_TESTS_CTF2_METADATA_H
#define WEFT_TESTS_CTF2_METADATA_H

#include <stddef.h>

#include "base/err.h"

struct text;

/* Appends to `out`, in CTF 2, what metadata of CTF 1.8 declare. Writes them as LTTng does: without the first underscore
 * of names and labels, the clock's UUID as its uid. */
int ctf2_metadata_from(const char *tsdl, size_t n, struct text *out, struct err *e);
/* Replaces a metadata file. */
int ctf2_metadata_replace(const char *path, struct err *e);

#endif

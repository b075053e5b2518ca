/* SPDX-License-Identifier: MIT */
/* Compression of files (Zstandard) for transfer between machines. */
#ifndef WEFT_BASE_PACK_H
#define WEFT_BASE_PACK_H

#include <stdint.h>

#include "base/err.h"

/* Compresses the whole of `from` to the begin of `to`. ERR_IO. */
int pack_file(int from, int to, struct err *e);
/* Safe for any input. ERR_FORMAT: not made by pack_file; ERR_LIMIT: more than `most` bytes. */
int unpack_file(int from, int to, uint64_t most, struct err *e);

#endif

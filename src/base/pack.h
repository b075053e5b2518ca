/* SPDX-License-Identifier: MIT */
/* Files in fewer bytes (Zstandard), to be sent from machine to machine. */
#ifndef WEFT_BASE_PACK_H
#define WEFT_BASE_PACK_H

#include <stdint.h>

#include "base/err.h"

/* From the one's beginning to the other's. ERR_IO. */
int pack_file(int from, int to, struct err *e);
/* Whatever it holds. ERR_FORMAT: pack_file did not make it; ERR_LIMIT: it would be more than `most` bytes. */
int unpack_file(int from, int to, uint64_t most, struct err *e);

#endif

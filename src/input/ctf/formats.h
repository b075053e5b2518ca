/* SPDX-License-Identifier: MIT */
/* Private to ctf: pieces of one trace, some in CTF 1.8 and some in CTF 2. */
#ifndef WEFT_CTF_FORMATS_H
#define WEFT_CTF_FORMATS_H

#include "ctf/trace.h"

/* Whether the trace's schema reads the packets of a piece as they were recorded, where the piece's own metadata are in
 * the other format. ERR_UNSUPPORTED: they declare something else. O(types) */
int ctf_piece_agrees(const struct ctf_trace *, size_t piece, struct err *e);
/* All pieces; a remark where they are in two formats. */
int ctf_pieces_agree(struct ctf_trace *, struct err *e);

#endif

/* SPDX-License-Identifier: MIT */
/* Private to ctf: pieces of one trace, some in CTF 1.8 and some in CTF 2. */
#ifndef WEFT_CTF_FORMATS_H
#define WEFT_CTF_FORMATS_H

#include "ctf/trace.h"

/* Checks that the trace's schema reads the packets of a piece as they were recorded, if the piece's own metadata are in
 * the other format. ERR_UNSUPPORTED: they declare something else. O(types) */
int ctf_piece_agrees(const struct ctf_trace *, size_t piece, struct err *e);
/* Checks all pieces; adds a remark if they are in two formats. */
int ctf_pieces_agree(struct ctf_trace *, struct err *e);
/* Compares references by slot: the same slot is the same field of equal types, since slots are numbered in the order of
 * need. */
bool ctf_refs_equal(const struct ctf_ref *, const struct ctf_ref *);

#endif

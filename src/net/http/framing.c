/* SPDX-License-Identifier: MIT */
#include "http/framing.h"

#include <stddef.h>

/* Size that the library's buffer does not reach: what lies farther away is not in it. */
enum { BUFFER_BYTES = 64 << 10 };

/* True: the line with the chunk's size stands right before `piece`. It begins at the buffer's begin, or behind the line
 * end of the chunk before. */
static bool is_framed(const struct framing *f, const char *piece)
{
    const char *line = piece - 2;
    if (line < f->head_end || piece[-1] != '\n')
        return true; /* line of another kind */
    if (*line != '\r')
        return false;
    while (line > f->head_end && line[-1] != '\n')
        line--;
    if (line == f->head_end)
        return true;
    const char *chunk_end = line - 2;
    return chunk_end >= f->head_end && *chunk_end == '\r' && (chunk_end == f->head_end || chunk_end == f->last_end);
}

bool http_framing_take(struct framing *f, const char *piece, unsigned long n)
{
    /* A piece at the buffer's begin continues a chunk, or its line is no longer there. */
    bool shows_line = f->head_end && piece > f->head_end && piece - f->head_end < BUFFER_BYTES;
    bool sound = !shows_line || is_framed(f, piece);
    f->last_end = piece + n;
    return sound;
}

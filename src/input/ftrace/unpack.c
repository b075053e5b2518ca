/* SPDX-License-Identifier: MIT */
/* Blocks that trace-cmd compressed. */
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "ftrace/file.h"

static bool from_zlib(const uint8_t *from, size_t n, uint8_t *to, size_t to_n)
{
    uLongf got = to_n;
    return uncompress(to, &got, from, n) == Z_OK && got == to_n;
}

/* Reads a frame, also without the magic number, which some versions of trace-cmd leave out. */
static bool from_zstd(const uint8_t *from, size_t n, uint8_t *to, size_t to_n)
{
    static const uint8_t magic[] = {0x28, 0xb5, 0x2f, 0xfd};
    ZSTD_DStream *z = ZSTD_createDStream();
    ZSTD_outBuffer out = {to, to_n, 0};
    ZSTD_inBuffer in = {magic, sizeof magic, 0};
    bool bare = n < sizeof magic || memcmp(from, magic, sizeof magic) != 0;
    size_t left = z ? ZSTD_initDStream(z) : 0;
    if (z && bare && !ZSTD_isError(left))
        left = ZSTD_decompressStream(z, &out, &in);
    in = (ZSTD_inBuffer){from, n, 0};
    while (z && !ZSTD_isError(left) && left && (in.pos < in.size || out.pos < out.size)) {
        size_t before = in.pos + out.pos;
        left = ZSTD_decompressStream(z, &out, &in);
        if (in.pos + out.pos == before)
            break;
    }
    ZSTD_freeDStream(z);
    return z && left == 0 && out.pos == to_n;
}

int ftrace_unpack(enum ftrace_compression how, const uint8_t *from, size_t n, uint8_t *to, size_t to_n, struct err *e)
{
    bool ok = how == FTRACE_ZLIB ? from_zlib(from, n, to, to_n) : how == FTRACE_ZSTD && from_zstd(from, n, to, to_n);
    return ok ? 0 : err_set(e, ERR_FORMAT, "%zu compressed bytes are damaged", n);
}

/* SPDX-License-Identifier: MIT */
#include "base/pack.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include <zstd.h>

#include "base/mem.h"

enum { LEVEL = 1, MOST_WINDOW_LOG = 23 /* limit for foreign input: 8 MiB of memory */ };

/* Input and output buffer of a stream. */
struct pipe {
    int from, to;
    uint64_t at, written, most;
    ZSTD_inBuffer in;
    ZSTD_outBuffer out;
};

static struct pipe pipe_of(int from, int to, size_t in, size_t out, uint64_t most)
{
    struct pipe p = {.from = from, .to = to, .most = most};
    p.in.src = mem_alloc(in);
    p.out.dst = mem_alloc(out);
    p.out.size = out;
    return p;
}

static void pipe_fini(struct pipe *p)
{
    free((void *)p->in.src);
    free(p->out.dst);
}

/* Reads more; *end: there is no more. */
static int fill(struct pipe *p, size_t room, bool *end, struct err *e)
{
    ssize_t n;
    do
        n = pread(p->from, (void *)p->in.src, room, (off_t)p->at);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return err_sys(e, "reading a file to be sent");
    *end = n == 0;
    p->at += (uint64_t)n;
    p->in.size = (size_t)n;
    p->in.pos = 0;
    return 0;
}

static int drain(struct pipe *p, struct err *e)
{
    if (p->written + p->out.pos > p->most)
        return err_set(e, ERR_LIMIT, "more bytes than are taken from another machine");
    for (size_t at = 0; at < p->out.pos;) {
        ssize_t n = pwrite(p->to, (char *)p->out.dst + at, p->out.pos - at, (off_t)p->written);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return err_sys(e, "writing a file that was sent");
        at += (size_t)n;
        p->written += (uint64_t)n;
    }
    p->out.pos = 0;
    return 0;
}

int pack_file(int from, int to, struct err *e)
{
    size_t room = ZSTD_CStreamInSize();
    struct pipe p = pipe_of(from, to, room, ZSTD_CStreamOutSize(), UINT64_MAX);
    ZSTD_CCtx *z = ZSTD_createCCtx();
    bool end = false;
    int rc = z ? 0 : err_set(e, ERR_NOMEM, "no memory to pack a file");
    if (!rc)
        ZSTD_CCtx_setParameter(z, ZSTD_c_compressionLevel, LEVEL);
    for (size_t left = 1; !rc && (!end || left);) {
        if (!end && p.in.pos == p.in.size)
            rc = fill(&p, room, &end, e);
        if (rc)
            break;
        left = ZSTD_compressStream2(z, &p.out, &p.in, end ? ZSTD_e_end : ZSTD_e_continue);
        rc = ZSTD_isError(left) ? err_set(e, ERR_NOMEM, "packing a file: %s", ZSTD_getErrorName(left)) : drain(&p, e);
    }
    ZSTD_freeCCtx(z);
    pipe_fini(&p);
    return rc;
}

int unpack_file(int from, int to, uint64_t most, struct err *e)
{
    size_t room = ZSTD_DStreamInSize(), left = 1;
    struct pipe p = pipe_of(from, to, room, ZSTD_DStreamOutSize(), most);
    ZSTD_DCtx *z = ZSTD_createDCtx();
    bool end = false, more = false; /* more: output is left without further input */
    int rc = z ? 0 : err_set(e, ERR_NOMEM, "no memory to unpack a file");
    if (!rc)
        ZSTD_DCtx_setParameter(z, ZSTD_d_windowLogMax, MOST_WINDOW_LOG);
    while (!rc) {
        if (p.in.pos == p.in.size && !more)
            rc = fill(&p, room, &end, e);
        if (rc || end)
            break;
        left = ZSTD_decompressStream(z, &p.out, &p.in);
        more = left && p.out.pos == p.out.size;
        rc = ZSTD_isError(left) ? err_set(e, ERR_FORMAT, "what was sent is damaged: %s", ZSTD_getErrorName(left))
                                : drain(&p, e);
    }
    if (!rc && left)
        rc = err_set(e, ERR_FORMAT, "what was sent ends too early");
    ZSTD_freeDCtx(z);
    pipe_fini(&p);
    return rc;
}

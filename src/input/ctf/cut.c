/* SPDX-License-Identifier: MIT */
/* Byte ranges of a trace's files that are needed for a range of time: they are copied if only that range is wanted. */
#include <stdlib.h>

#include "base/order.h"
#include "ctf/trace.h"

/* Bytes kept of a file; first > last: none. */
struct kept_bytes {
    uint64_t first, last; /* positions of packets */
};

static bool is_within(const struct ctf_packet *p, int64_t begin, int64_t end)
{
    return !(p->flags & CTF_PACKET_TIMED) || (p->begin <= end && p->end >= begin);
}

static void keep(struct kept_bytes *k, const struct ctf_packet *p)
{
    k->first = p->offset < k->first ? p->offset : k->first;
    k->last = p->offset > k->last ? p->offset : k->last;
}

/* Keeps the neighbours, too: a packet's losses are known from the one before, and some tracers write events after the
 * end of their packet. */
static void keep_of_stream(const struct ctf_stream *s, int64_t begin, int64_t end, struct kept_bytes *kept)
{
    for (size_t i = 0; i < s->packets.n; i++) {
        const struct ctf_packet *p = &s->packets.v[i];
        if (!is_within(p, begin, end))
            continue;
        keep(&kept[p->file], p);
        if (i)
            keep(&kept[p[-1].file], p - 1);
        if (i + 1 < s->packets.n)
            keep(&kept[p[1].file], p + 1);
    }
}

/* Sets, by file, the begin of the first packet after the kept ones, or the file's end. */
static void find_ends(const struct ctf_trace *t, const struct kept_bytes *kept, uint64_t *ends)
{
    for (size_t i = 0; i < t->files.n; i++)
        ends[i] = t->files.v[i].size;
    for (size_t i = 0; i < t->streams.n; i++)
        for (size_t k = 0; k < t->streams.v[i].packets.n; k++) {
            const struct ctf_packet *p = &t->streams.v[i].packets.v[k];
            if (p->offset > kept[p->file].last && p->offset < ends[p->file])
                ends[p->file] = p->offset;
        }
}

static int by_place(const void *pa, const void *pb)
{
    const struct ctf_cut *a = pa, *b = pb;
    return order_of(a->dir, b->dir) ?: strcmp(a->name, b->name);
}

size_t ctf_trace_cut(const struct ctf_trace *t, int64_t begin, int64_t end, struct ctf_cut **out)
{
    struct kept_bytes *kept = mem_alloc((t->files.n + 1) * sizeof *kept);
    uint64_t *ends = mem_alloc((t->files.n + 1) * sizeof *ends);
    size_t n = 0;
    *out = mem_alloc((t->files.n + 1) * sizeof **out);
    for (size_t i = 0; i < t->files.n; i++)
        kept[i] = (struct kept_bytes){UINT64_MAX, 0};
    for (size_t i = 0; i < t->streams.n; i++)
        keep_of_stream(&t->streams.v[i], begin, end, kept);
    find_ends(t, kept, ends);
    for (size_t i = 0; i < t->files.n; i++)
        if (kept[i].first <= kept[i].last)
            (*out)[n++] = (struct ctf_cut){
                t->files.v[i].piece, t->files.v[i].name, kept[i].first, ends[i] - kept[i].first, t->files.v[i].size};
    if (n)
        qsort(*out, n, sizeof **out, by_place);
    free(kept);
    free(ends);
    return n;
}

/* SPDX-License-Identifier: MIT */
/* Packets that were recorded once and are there twice: in archives and snapshots that overlap, and in copied files. */
#include <stdlib.h>

#include "base/order.h"
#include "ctf/trace.h"

/* ---- packets of one stream ---- */

static bool same_bytes(struct ctf_trace *t, const struct ctf_packet *p, const struct ctf_packet *q)
{
    struct file_map windows[2] = {0};
    if (t->fed) /* the bytes of those that were read are gone */
        return p->digest == q->digest;
    const uint8_t *a = ctf_packet_data(t, p, &windows[0], &t->why), *b = ctf_packet_data(t, q, &windows[1], &t->why);
    bool same = a && b && !memcmp(a, b, (p->content_bits + 7) / 8);
    file_map_close(&windows[0]);
    file_map_close(&windows[1]);
    return same;
}

/* Returns whether two packets are the same. Packets of one directory without a number and with begin = end are not
 * compared by their bytes: a tracer may write several equal ones. */
static bool is_same(struct ctf_trace *t, const struct ctf_packet *p, const struct ctf_packet *q, bool one_piece)
{
    bool mended = (p->flags | q->flags) & CTF_PACKET_MENDED;
    if (p->begin != q->begin || (!mended && p->end != q->end) || p->content_bits != q->content_bits ||
        p->seq != q->seq || p->discarded != q->discarded)
        return false;
    if (one_piece && !(p->flags & CTF_PACKET_HAS_SEQ) && p->begin == p->end)
        return false;
    return same_bytes(t, p, q);
}

static void note_copy(struct ctf_trace *t, const struct ctf_packet *p)
{
    ctf_remark_add(
        &t->problems, "%s: a packet is in its directory twice; the copy is skipped", t->files.v[p->file].path);
}

enum { COPIES_LOOKED_AT = 8 }; /* of those with equal begin: damaged files may have any number */

bool ctf_packet_is_copy(struct ctf_trace *t, const struct ctf_packet *p, const struct ctf_packet *v, size_t n)
{
    for (size_t i = n, looked_at = 0; i > 0 && v[i - 1].begin >= p->begin && looked_at < COPIES_LOOKED_AT; i--) {
        bool one_piece = t->files.v[p->file].piece == t->files.v[v[i - 1].file].piece;
        looked_at += v[i - 1].begin == p->begin;
        if (!is_same(t, p, &v[i - 1], one_piece))
            continue;
        if (one_piece) /* else rotations and snapshots that overlap, as they may */
            note_copy(t, p);
        return true;
    }
    return false;
}

/* ---- copies of files whose streams are told apart by nothing but the files' names ---- */

/* Packets of one file, in the order in which they were found. */
struct part {
    uint32_t stream, file, piece;
    size_t first, n;
};

static const struct ctf_packet *packets_of(const struct ctf_trace *t, const struct part *p)
{
    return &t->streams.v[p->stream].packets.v[p->first];
}

/* Parts that may be copies of each other come together, the longest first. */
static int by_head(const void *a, const void *b, void *trace)
{
    const struct part *p = a, *q = b;
    const struct ctf_packet *x = packets_of(trace, p), *y = packets_of(trace, q);
    int order = order_of(p->piece, q->piece) ?: order_of(x->begin, y->begin);
    order = order ?: order_of(x->content_bits, y->content_bits);
    order = order ?: order_of(q->n, p->n);
    return order ?: order_of(p->file, q->file);
}

/* Is `p` the beginning of `q`, or all of it? Not where no time passes: a tracer may write several such streams. */
static bool is_copy_of(struct ctf_trace *t, const struct part *p, const struct part *q)
{
    const struct ctf_packet *x = packets_of(t, p), *y = packets_of(t, q);
    bool passes = false;
    if (p->piece != q->piece || p->n > q->n || t->streams.v[p->stream].plan != t->streams.v[q->stream].plan)
        return false;
    for (size_t i = 0; i < p->n; i++) {
        passes |= x[i].begin != x[i].end;
        if (!(x[i].flags & y[i].flags & CTF_PACKET_TIMED) || !is_same(t, &x[i], &y[i], false))
            return false;
    }
    return passes;
}

typedef VEC(struct part) part_list;

static void find_parts(const struct ctf_trace *t, part_list *out)
{
    for (uint32_t i = 0; i < t->streams.n; i++) {
        const struct ctf_stream *s = &t->streams.v[i];
        for (size_t k = 0; k < s->packets.n && !s->has_instance && s->cpu < 0; k++) {
            uint32_t file = s->packets.v[k].file;
            if (k == 0 || file != s->packets.v[k - 1].file)
                vec_push(out, ((struct part){i, file, t->files.v[file].piece, k, 0}));
            out->v[out->n - 1].n++;
        }
    }
}

/* Keeps the packets of the stream but those of the file. */
static void drop_part(struct ctf_trace *t, const struct part *p)
{
    struct ctf_stream *s = &t->streams.v[p->stream];
    size_t n = 0;
    for (size_t i = 0; i < s->packets.n; i++)
        if (s->packets.v[i].file == p->file)
            note_copy(t, &s->packets.v[i]);
        else
            s->packets.v[n++] = s->packets.v[i];
    s->packets.n = n;
}

static void drop_empty_streams(struct ctf_trace *t)
{
    size_t n = 0;
    for (size_t i = 0; i < t->streams.n; i++)
        if (t->streams.v[i].packets.n)
            t->streams.v[n++] = t->streams.v[i];
        else
            vec_free(&t->streams.v[i].packets);
    t->streams.n = n;
}

void ctf_streams_drop_copies(struct ctf_trace *t)
{
    part_list parts = {0};
    VEC(struct part) copies = {0};
    find_parts(t, &parts);
    if (parts.n > 1)
        qsort_r(parts.v, parts.n, sizeof *parts.v, by_head, t);
    for (size_t i = 1; i < parts.n; i++) {
        const struct part *p = &parts.v[i];
        for (size_t k = i; k > 0 && i - k < COPIES_LOOKED_AT; k--)
            if (is_copy_of(t, p, &parts.v[k - 1])) {
                vec_push(&copies, *p);
                break;
            }
    }
    for (size_t i = 0; i < copies.n; i++)
        drop_part(t, &copies.v[i]);
    if (copies.n) {
        uint64_t parts_dropped[2] = {t->fingerprint, copies.n};
        t->fingerprint = map_hash(parts_dropped, sizeof parts_dropped); /* of what is read */
        drop_empty_streams(t);
    }
    vec_free(&parts);
    vec_free(&copies);
}

/* SPDX-License-Identifier: MIT */
/* Cuts a recorded trace into rotation archives, as LTTng would have written them had it been told to rotate at these
 * moments: cut_trace TRACE OUT SEED CUTS
 * Makes OUT/000-00, …: by piece of time and directory of the trace. Packets are cut between two events; each part says
 * when it begins and ends, and all of a stream are numbered anew. Half of the moments are those of events (or the
 * nanosecond behind), the others any. Prints the moments. Packets that cannot be cut (another layout than LTTng's, or
 * something was lost in them) lie as a whole where they begin. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/map.h"
#include "base/order.h"
#include "ctf/trace.h"

enum { MOST_CUTS = 900 };

struct place {
    int64_t ts;
    uint64_t bits; /* begin of its header */
};
struct stream {
    const struct ctf_stream *s;
    VEC(struct place) events; /* events of all its packets */
    VEC(size_t) first;        /* first event by packet; one more at the end */
};
struct cutter {
    struct ctf_trace *trace;
    const char *out;
    int64_t cuts[MOST_CUTS + 2]; /* numbers between the least and the greatest one */
    size_t parts;
    VEC(struct stream) streams;
    VEC(int64_t) times; /* times of all events */
};

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "cut_trace: %s: %s\n", what, why);
    exit(1);
}

/* ---- reading ---- */

static const uint8_t *bytes_of(const struct cutter *c, const struct ctf_packet *p)
{
    const struct ctf_file *f = &c->trace->files.v[p->file];
    if (!f->map.data)
        fail(f->path, "is not kept in memory");
    return f->map.data + p->offset;
}

static void read_packet(struct cutter *c, struct stream *to, const struct ctf_packet *p)
{
    struct ctf_decoder d = {0};
    struct ctf_event ev;
    if (!ctf_packet_open(c->trace, to->s, p, bytes_of(c, p), &d))
        return;
    while (ctf_decode(&d, &ev, 1)) {
        vec_push(&to->events, ((struct place){ev.ts, ev.payload_bits - ev.header_back}));
        vec_push(&c->times, ev.ts);
    }
}

static void read_streams(struct cutter *c)
{
    for (size_t i = 0; i < c->trace->streams.n; i++) {
        struct stream to = {.s = &c->trace->streams.v[i]};
        for (size_t k = 0; k < to.s->packets.n; k++) {
            vec_push(&to.first, to.events.n);
            read_packet(c, &to, &to.s->packets.v[k]);
        }
        vec_push(&to.first, to.events.n);
        vec_push(&c->streams, to);
    }
}

/* ---- moments ---- */

static int by_value(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return order_of(*x, *y);
}

static void choose(struct cutter *c, uint64_t seed, size_t n)
{
    int64_t begin, end;
    size_t unique = 1;
    if (n > MOST_CUTS)
        fail("the trace", "cannot be cut so often");
    if (!c->times.n || !ctf_trace_span(c->trace, &begin, &end))
        n = 0;
    for (size_t i = 1; i <= n; i++) {
        uint64_t r = seed = map_mix(seed + 0x9e3779b97f4a7c15u), span = (uint64_t)end - (uint64_t)begin;
        bool of_event = r & 1;
        c->cuts[i] = begin + (int64_t)((r >> 2) % (span + 1));
        if (of_event)
            c->cuts[i] = c->times.v[(r >> 2) % c->times.n] + (int64_t)(r >> 1 & 1);
    }
    qsort(c->cuts + 1, n, sizeof *c->cuts, by_value);
    c->cuts[0] = INT64_MIN;
    for (size_t i = 1; i <= n; i++)
        if (c->cuts[i] > c->cuts[unique - 1])
            c->cuts[unique++] = c->cuts[i];
    for (size_t i = 1; i < unique; i++)
        printf("%" PRId64 "\n", c->cuts[i]);
    c->parts = unique;
    c->cuts[unique] = INT64_MAX;
}

/* ---- packets ---- */

/* Numbers of LTTng's packet context, in bytes from the packet's begin. */
struct head {
    size_t begin, end, content, size, seq, events;
};

static uint64_t get(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static uint64_t packet_bytes(const struct cutter *c, const struct ctf_packet *p)
{
    const struct ctf_file *f = &c->trace->files.v[p->file];
    uint64_t next = f->map.size;
    for (size_t i = 0; i < c->trace->streams.n; i++) {
        const struct ctf_stream *s = &c->trace->streams.v[i];
        for (size_t k = 0; k < s->packets.n; k++)
            if (s->packets.v[k].file == p->file && s->packets.v[k].offset > p->offset && s->packets.v[k].offset < next)
                next = s->packets.v[k].offset;
    }
    return next - p->offset;
}

/* Returns whether the packet has LTTng's layout, and finds its head. */
static bool find_head(const struct cutter *c, const struct ctf_packet *p, struct head *h)
{
    static const uint8_t magic[4] = {0xC1, 0x1F, 0xFC, 0xC1};
    const uint8_t *data = bytes_of(c, p);
    uint64_t size = packet_bytes(c, p);
    if (memcmp(data, magic, sizeof magic) || size < 88)
        return false;
    for (size_t at = 24; at <= 32; at += 8) {
        *h = (struct head){at, at + 8, at + 16, at + 24, p->flags & CTF_PACKET_HAS_SEQ ? at + 32 : 0,
            p->flags & CTF_PACKET_HAS_SEQ ? at + 52 : at + 44};
        if (get(data + h->content) == p->content_bits && get(data + h->size) == size * 8 &&
            get(data + h->end) - get(data + h->begin) == (uint64_t)p->end - (uint64_t)p->begin &&
            (!h->seq || get(data + h->seq) == p->seq))
            return true;
    }
    return false;
}

static bool can_be_cut(const struct stream *s, size_t i)
{
    const struct ctf_packet *p = &s->s->packets.v[i];
    bool loses = p->flags & CTF_PACKET_HAS_DISCARDED && p->discarded != (i ? p[-1].discarded : 0);
    if (loses || !(p->flags & CTF_PACKET_TIMED) ||
        p->flags & (CTF_PACKET_OPEN_END | CTF_PACKET_UNCLOSED | CTF_PACKET_MENDED))
        return false;
    for (size_t k = s->first.v[i]; k < s->first.v[i + 1]; k++) {
        const struct place *e = &s->events.v[k];
        if (e->bits % 8 || e->ts < p->begin || e->ts > p->end || (k > s->first.v[i] && e->ts < e[-1].ts))
            return false;
    }
    return true;
}

/* ---- writing ---- */

/* The archive's directory for a directory of the trace, with its declarations. */
static void make_dir(const struct cutter *c, size_t part, uint32_t piece, char *dir, size_t room)
{
    char path[1200], *text;
    size_t n;
    snprintf(dir, room, "%s/%03zu-%02u", c->out, part, piece);
    if (mkdir(dir, 0777))
        return;
    snprintf(path, sizeof path, "%s/metadata", c->trace->pieces.v[piece].dir);
    if (file_read(path, 1 << 30, &text, &n, NULL))
        fail(path, "cannot be read");
    snprintf(path, sizeof path, "%s/metadata", dir);
    FILE *to = fopen(path, "wb");
    if (!to || fwrite(text, 1, n, to) != n || fclose(to))
        fail(path, "cannot be written");
    free(text);
}

static FILE *append(const struct cutter *c, size_t part, const struct ctf_file *f)
{
    char dir[900], path[1200];
    make_dir(c, part, f->piece, dir, sizeof dir);
    snprintf(path, sizeof path, "%s/%s", dir, f->name);
    FILE *to = fopen(path, "ab");
    if (!to)
        fail(path, "cannot be written");
    return to;
}

struct piece {
    size_t part;
    uint64_t from, to;  /* bits of its events */
    int64_t begin, end; /* cycles since the packet's begin */
};

/* The head of the packet, and those of its events. */
static void put(const struct cutter *c, const struct ctf_packet *p, const struct head *h, uint64_t seq, struct piece x)
{
    const uint8_t *data = bytes_of(c, p);
    uint8_t head[128];
    size_t n_head = h->events, n = (size_t)(x.to - x.from) / 8;
    uint64_t began = get(data + h->begin), bits = (n_head + n) * 8;
    uint64_t values[5] = {began + (uint64_t)x.begin, began + (uint64_t)x.end, bits, bits, seq};
    memcpy(head, data, n_head);
    memcpy(head + h->begin, values, h->seq ? 40 : 32);
    FILE *to = append(c, x.part, &c->trace->files.v[p->file]);
    if (fwrite(head, 1, n_head, to) != n_head || fwrite(data + x.from / 8, 1, n, to) != n || fclose(to))
        fail(c->out, "cannot be written");
}

static void put_whole(const struct cutter *c, const struct ctf_packet *p, uint64_t more, size_t part)
{
    const uint8_t *data = bytes_of(c, p);
    uint64_t n = packet_bytes(c, p);
    struct head h;
    FILE *to = append(c, part, &c->trace->files.v[p->file]);
    bool numbered = more && find_head(c, p, &h) && h.seq;
    uint64_t seq = p->seq + more, head = numbered ? h.seq : 0;
    if (fwrite(data, 1, head, to) != head || (numbered && fwrite(&seq, 1, sizeof seq, to) != sizeof seq))
        fail(c->out, "cannot be written");
    head += numbered ? sizeof seq : 0;
    if (fwrite(data + head, 1, n - head, to) != n - head || fclose(to))
        fail(c->out, "cannot be written");
}

static size_t part_at(const struct cutter *c, int64_t t)
{
    size_t i = 0;
    while (i + 1 < c->parts && c->cuts[i + 1] <= t)
        i++;
    return i;
}

/* Returns how many packets there are more than before. */
static uint64_t cut_packet(const struct cutter *c, const struct stream *s, size_t i, uint64_t more)
{
    const struct ctf_packet *p = &s->s->packets.v[i];
    size_t part = part_at(c, p->begin), last = part_at(c, p->end), at = s->first.v[i];
    struct head h;
    bool laid_out = part < last && can_be_cut(s, i) && find_head(c, p, &h);
    uint64_t from = laid_out ? h.events * 8 : 0;
    if (!laid_out || (at < s->first.v[i + 1] && s->events.v[at].bits != from)) {
        put_whole(c, p, more, part);
        return more;
    }
    for (int64_t begin = p->begin; part <= last; part++) {
        while (at < s->first.v[i + 1] && s->events.v[at].ts < c->cuts[part + 1])
            at++;
        uint64_t to = part < last ? at < s->first.v[i + 1] ? s->events.v[at].bits : p->content_bits / 8 * 8
                                  : (p->content_bits + 7) / 8 * 8;
        int64_t end = part < last ? c->cuts[part + 1] : p->end;
        put(c, p, &h, p->seq + more, (struct piece){part, from, to, begin - p->begin, end - p->begin});
        more += part < last;
        from = to;
        begin = end;
    }
    return more;
}

int main(int argc, char **argv)
{
    struct ctf_group *groups;
    size_t n;
    struct err e = {0};
    struct cutter c = {0};
    if (argc != 5)
        return fprintf(stderr, "usage: cut_trace TRACE OUT SEED CUTS\n"), 2;
    if (ctf_discover(argv[1], &groups, &n, &e) || n != 1)
        fail(argv[1], n > 1 ? "holds several traces" : "holds no trace");
    struct ctf_schemas *schemas = ctf_schemas_new();
    if (ctf_trace_open(&groups[0], schemas, &c.trace, &e))
        fail(argv[1], "cannot be opened");
    c.out = argv[2];
    read_streams(&c);
    choose(&c, strtoull(argv[3], NULL, 10), strtoull(argv[4], NULL, 10));
    for (size_t i = 0; i < c.streams.n; i++)
        for (size_t k = 0, more = 0; k < c.streams.v[i].s->packets.n; k++)
            more = cut_packet(&c, &c.streams.v[i], k, more);
    if (!c.times.n)
        make_dir(&c, 0, 0, (char[900]){0}, 900); /* empty recording */
    for (size_t i = 0; i < c.streams.n; i++) {
        vec_free(&c.streams.v[i].events);
        vec_free(&c.streams.v[i].first);
    }
    vec_free(&c.streams);
    vec_free(&c.times);
    ctf_trace_close(c.trace);
    ctf_schemas_free(schemas);
    ctf_groups_free(groups, n);
    return 0;
}

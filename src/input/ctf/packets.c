/* SPDX-License-Identifier: MIT */
/* Finds packets, by LTTng's index files, else by the packets' own heads, and assigns them to streams. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "ctf/trace.h"

/* ---- heads ---- */

struct packet_head {
    const struct ctf_stream_plan *plan;
    uint64_t instance_id, packet_bits, content_bits; /* content_bits <= packet_bits; both limited to the file */
    bool has_instance, cut, unclosed, last;          /* last: no size given, the packet is the rest of the file */
    bool uuid_differs;
    enum ctf_stop why; /* reason for HEAD_BAD */
    struct ctf_decoder d;
};

enum head_error {
    HEAD_OK,
    HEAD_CUT,
    HEAD_MAGIC,
    HEAD_UUID,
    HEAD_STREAM,
    HEAD_SIZE,
    HEAD_UNREADABLE,
    HEAD_LONG,
    HEAD_BAD
};

static const struct ctf_stream_plan *plan_of(const struct ctf_trace *t, const struct ctf_run *r)
{
    const struct ctf_schema *s = t->schema;
    bool has_id = r->seen & 1u << CTF_ROLE_STREAM_ID;
    if (!has_id && !s->is_ctf2)
        return s->n_streams ? t->plans[0] : NULL;
    const struct ctf_stream_class *sc = ctf_schema_stream(s, has_id ? r->values[CTF_ROLE_STREAM_ID] : 0);
    return sc ? t->plans[sc - s->streams] : NULL;
}

/* Sets sizes as given, completes each by the other, and limits them to the file. */
static enum head_error head_sizes(struct packet_head *h, uint64_t room_bits)
{
    const struct ctf_run *r = &h->d.run;
    bool has_packet = r->seen & 1u << CTF_ROLE_PACKET_SIZE, has_content = r->seen & 1u << CTF_ROLE_CONTENT_SIZE;
    uint64_t packet = r->values[CTF_ROLE_PACKET_SIZE], content = r->values[CTF_ROLE_CONTENT_SIZE];
    if (!has_packet)
        packet = has_content ? content : 0;
    if (!has_content)
        content = packet;
    if ((!has_packet && !has_content) || packet == 0) {
        h->last = true;
        packet = room_bits;
        h->unclosed = has_packet || has_content;
        if (!has_content || content == 0)
            content = packet;
    }
    if (packet % 8 || packet < h->d.pos || content > packet)
        return HEAD_SIZE;
    if (packet > room_bits) {
        h->cut = true;
        packet = room_bits;
    }
    if (content == 0) {
        h->unclosed = true;
        content = packet;
    }
    h->packet_bits = packet;
    h->content_bits = content < packet ? content : packet;
    return h->content_bits < h->d.pos ? HEAD_SIZE : HEAD_OK;
}

/* Returns the error of a head; only for HEAD_CUT can more bytes help. */
static enum head_error head_failed(struct packet_head *h, enum ctf_stop why)
{
    h->why = why;
    return why == CTF_STOP_CUT ? HEAD_CUT : why == CTF_STOP_UNREADABLE ? HEAD_UNREADABLE : HEAD_BAD;
}

/* Maximum size of a head with lists. Fields of the packet's head that events refer to are looked up for each event. If
 * that means reading a list element by element, the list must be short: else a file of a few MB takes hours. */
enum { LONG_HEAD_BYTES = 512 };

/* Reads a head. `most`: maximum of bytes that header and context may take. */
static enum head_error head_read_within(
    const struct ctf_trace *t, const struct ctf_file *f, uint64_t offset, uint64_t most, struct packet_head *h)
{
    const uint8_t *data = f->map.data + offset;
    uint64_t room = (f->map.size - offset) * 8, end = most < room / 8 ? most * 8 : room, slots[CTF_SLOTS];
    struct ctf_run r = {.data = data, .end = end, .slots = slots};
    const struct ctf_metadata *md = &t->pieces.v[f->piece].md;
    memset(h, 0, offsetof(struct packet_head, d));
    uint64_t behind = t->packet_header ? ctf_program_run(t->packet_header, &r, 0) : 0;
    if (CTF_RUN_FAILED(behind))
        return head_failed(h, CTF_RUN_STOPPED(behind));
    if (r.seen & 1u << CTF_ROLE_MAGIC && (uint32_t)r.values[CTF_ROLE_MAGIC] != 0xC1FC1FC1)
        return HEAD_MAGIC;
    if (r.seen & 1u << CTF_ROLE_UUID && md->has_uuid && !(r.values[CTF_ROLE_UUID] & 7))
        h->uuid_differs = memcmp(data + r.values[CTF_ROLE_UUID] / 8, md->uuid, 16) != 0;
    if (h->uuid_differs && t->schema->is_ctf2)
        return HEAD_UUID;
    h->has_instance = r.seen & 1u << CTF_ROLE_INSTANCE_ID;
    h->instance_id = h->has_instance ? r.values[CTF_ROLE_INSTANCE_ID] : 0;
    h->plan = plan_of(t, &r);
    if (!h->plan)
        return HEAD_STREAM;
    h->d.cycles = 0;
    if (!ctf_decoder_open(&h->d, h->plan, data, end, end))
        return head_failed(h, h->d.stop);
    if (h->plan->long_heads && h->d.pos > LONG_HEAD_BYTES * 8)
        return HEAD_LONG;
    return head_sizes(h, room);
}

static enum head_error head_read(
    const struct ctf_trace *t, const struct ctf_file *f, uint64_t offset, struct packet_head *h)
{
    return head_read_within(t, f, offset, UINT64_MAX, h);
}

/* ---- streams ---- */

/* Criterion that separates streams of a class: the instance id, else the CPU, else the file's name. */
enum told_by { BY_INSTANCE, BY_CPU, BY_NAME };

static enum told_by told_by(const struct ctf_stream_key *k)
{
    return k->has_instance ? BY_INSTANCE : k->plan->has_begin && k->cpu >= 0 ? BY_CPU : BY_NAME;
}

static uint64_t hash_key(const struct ctf_stream_key *k, const char *name)
{
    enum told_by by = told_by(k);
    uint64_t parts[3] = {k->plan->sc->id, by,
        by == BY_INSTANCE  ? k->instance_id
            : by == BY_CPU ? (uint64_t)k->cpu
                           : map_hash(name, strlen(name))};
    return map_hash(parts, sizeof parts);
}

void ctf_streams_find_again(struct ctf_trace *t)
{
    for (size_t i = 0; i < t->streams.n; i++) {
        const struct ctf_stream *s = &t->streams.v[i];
        uint64_t key = hash_key(&(struct ctf_stream_key){s->plan, s->instance_id, s->has_instance, s->cpu}, s->name),
                 *at;
        bool fresh;
        while (at = map_put(&t->stream_by, key, &fresh), !fresh)
            key++;
        *at = i + 1;
    }
}

static bool is_stream(const struct ctf_stream *s, const struct ctf_file *f, const struct ctf_stream_key *k)
{
    if (s->plan != k->plan || s->has_instance != k->has_instance)
        return false;
    switch (told_by(k)) {
    case BY_INSTANCE: return s->instance_id == k->instance_id;
    case BY_CPU: return s->cpu == k->cpu;
    default: return !strcmp(s->name, f->name);
    }
}

static size_t find_stream(struct ctf_trace *t, const struct ctf_file *f, const struct ctf_stream_key *k)
{
    bool fresh;
    uint64_t key = hash_key(k, f->name), *at;
    while (at = map_put(&t->stream_by, key, &fresh), !fresh) {
        if (is_stream(&t->streams.v[*at - 1], f, k))
            return *at - 1;
        key++; /* hash collision */
    }
    *at = t->streams.n + 1;
    struct ctf_stream s = {.plan = k->plan,
        .name = f->name,
        .path = f->path,
        .instance_id = k->instance_id,
        .has_instance = k->has_instance,
        .cpu = k->cpu};
    if (t->appending) {
        s.growth = ctf_stream_growth_new();
        s.timed = s.begins_ascend = s.ends_ascend = k->plan->has_begin;
        s.tracks = 1;
        s.begin = INT64_MAX;
        s.end = INT64_MIN;
    }
    vec_push(&t->streams, s);
    return t->streams.n - 1;
}

/* Stores the stream's state before the file. */
static void touch(struct ctf_trace *t, size_t stream)
{
    const struct ctf_stream *s = &t->streams.v[stream];
    for (size_t i = 0; i < t->touched.n; i++)
        if (t->touched.v[i].stream == stream)
            return;
    struct ctf_touched touched = {(uint32_t)stream, s->packets.n, s->bytes};
    vec_push(&t->touched, touched);
}

struct ctf_stream *ctf_stream_for(struct ctf_trace *t, const struct ctf_file *f, const struct ctf_stream_key *k)
{
    size_t i = find_stream(t, f, k);
    if (t->finder)
        touch(t, i);
    return &t->streams.v[i];
}

static struct ctf_stream *stream_of(struct ctf_trace *t, const struct ctf_file *f, const struct packet_head *h)
{
    return ctf_stream_for(t, f, &(struct ctf_stream_key){h->plan, h->instance_id, h->has_instance, h->d.cpu});
}

static void set_times(struct ctf_trace *t, const struct ctf_file *f, const struct ctf_stream *s, struct ctf_packet *p,
    uint64_t begin, uint64_t end)
{
    struct ctf_clock_rate rate = ctf_trace_rate(t, f->piece, s->plan->sc);
    bool fits; /* misfits are reported by readers of the events */
    p->begin = ctf_clock_ns(&rate, begin, &fits);
    p->end = ctf_clock_ns(&rate, end, &fits);
    p->flags |= CTF_PACKET_TIMED;
    if (end < begin && s->plan->sc->is_ctf2)
        ctf_problem_add(
            &t->problems, "%s: packet at byte %llu: it ends before it begins", f->path, (unsigned long long)p->offset);
    if (end < begin) {
        p->end = p->begin;
        p->flags |= CTF_PACKET_OPEN_END;
    }
}

/* Returns the clock after a packet: all its fields mapped to the clock advance it. */
static uint64_t clock_behind(const struct ctf_trace *t, const struct ctf_stream *s, const struct ctf_packet *p)
{
    struct ctf_event ev[64];
    struct ctf_decoder *d = mem_zalloc(sizeof *d);
    if (ctf_packet_open(t, s, p, t->files.v[p->file].map.data + p->offset, d)) /* the file is mapped during the scan */
        while (ctf_decode(d, ev, 64))
            ;
    uint64_t cycles = d->cycles;
    free(d);
    return cycles;
}

/* Sets the packet's times. If a begin time has only the low bits of the clock, the rest comes from the packet before:
 * the events between must be read. */
static void time_packet(struct ctf_trace *t, const struct ctf_file *f, struct ctf_stream *s, struct ctf_packet *p,
    const struct packet_head *h)
{
    const struct ctf_run *r = &h->d.run;
    bool has_end = r->seen & 1u << CTF_ROLE_END;
    uint64_t begin = r->values[CTF_ROLE_BEGIN], end = has_end ? r->values[CTF_ROLE_END] : begin;
    p->cycles = s->cycles;
    if (s->plan->begin_bits < 64) {
        begin = ctf_clock_extend(s->cycles, begin, s->plan->begin_bits);
        end = s->cycles = clock_behind(t, s, p);
    } else if (has_end) {
        end = ctf_clock_extend(begin, end, s->plan->end_bits);
    }
    set_times(t, f, s, p, begin, end);
    if (!has_end)
        p->flags |= CTF_PACKET_OPEN_END;
}

static void push(struct ctf_trace *t, struct ctf_stream *s, struct ctf_packet *p)
{
    if (s->growth)
        ctf_packet_append(t, s, p);
    else
        vec_push(&s->packets, *p);
}

static void add_packet(
    struct ctf_trace *t, uint32_t file, struct ctf_stream *s, uint64_t offset, const struct packet_head *h)
{
    const struct ctf_run *r = &h->d.run;
    struct ctf_packet p = {.offset = offset, .content_bits = h->content_bits, .file = file, .cpu = h->d.cpu};
    if (h->unclosed)
        p.flags |= CTF_PACKET_UNCLOSED | CTF_PACKET_OPEN_END;
    if (s->plan->has_begin)
        time_packet(t, &t->files.v[file], s, &p, h);
    if (r->seen & 1u << CTF_ROLE_SEQUENCE) {
        p.seq = r->values[CTF_ROLE_SEQUENCE];
        p.flags |= CTF_PACKET_HAS_SEQ;
    }
    if (r->seen & 1u << CTF_ROLE_DISCARDED) {
        p.discarded = r->values[CTF_ROLE_DISCARDED];
        p.flags |= CTF_PACKET_HAS_DISCARDED;
    }
    s->bytes += h->packet_bits / 8;
    push(t, s, &p);
}

/* ---- scanning ---- */

static const char *const head_texts[] = {
    [HEAD_CUT] = "the packet's header does not fit the file",
    [HEAD_MAGIC] = "no packet starts here (wrong magic number)",
    [HEAD_UUID] = "the packet is of another trace (its UUID is not the metadata's)",
    [HEAD_STREAM] = "the metadata declare no such stream",
    [HEAD_SIZE] = "the packet's sizes make no sense",
    [HEAD_LONG] =
        "the packet's header and context take more than 512 bytes, with a list, text or integer of any size that must "
        "be read byte by byte: each event would take too long",
    [HEAD_UNREADABLE] = "the metadata declare a packet header that cannot be read",
    [HEAD_BAD] = "the packet's header or context cannot be read",
};

/* Limit of the table of packets, unless the file is larger: above it, packets would be smaller than their own entries,
 * which no tracer writes. */
enum { TABLE_BYTES = 1 << 30 };
/* Maximum size of a head after damage: it limits the cost of the search per page. */
enum { FOUND_HEAD_BYTES = 4096 };

/* Continues after a damaged head at the next page that starts with a good one: tracers write packets in whole pages. */
static bool resync(const struct ctf_trace *t, const struct ctf_file *f, uint64_t *offset, struct packet_head *h)
{
    if (!t->packet_header)
        return false;
    for (uint64_t at = (*offset / 4096 + 1) * 4096; at < f->map.size; at += 4096) {
        if (head_read_within(t, f, at, FOUND_HEAD_BYTES, h) != HEAD_OK || h->uuid_differs ||
            !(t->pieces.v[f->piece].md.has_uuid))
            continue;
        *offset = at;
        return true;
    }
    return false;
}

/* Returns whether, in a growing trace, the end of the file is the beginning of a packet that is still being written. */
static bool not_yet(const struct ctf_trace *t, const struct ctf_file *f, uint64_t offset, enum head_error he,
    const struct packet_head *h)
{
    if (!t->growing || f->fed)
        return false;
    if (he == HEAD_OK)
        return h->cut || h->last || (h->unclosed && offset + h->packet_bits / 8 == f->map.size);
    uint64_t left = f->map.size - offset, at = 0;
    while (at < left && at < FOUND_HEAD_BYTES && !f->map.data[offset + at])
        at++;
    return he == HEAD_CUT || at == left || at == FOUND_HEAD_BYTES;
}

void ctf_packets_scan(struct ctf_trace *t, uint32_t file)
{
    struct ctf_file *f = &t->files.v[file];
    struct ctf_stream *s = NULL;
    uint64_t offset = f->scanned, n = 0;
    struct packet_head h;
    while (offset < f->map.size) {
        uint64_t table = n++ * sizeof(struct ctf_packet);
        if (table > TABLE_BYTES && table > f->map.size) {
            ctf_problem_add(&t->problems,
                "%s: byte %llu: the packets are so small that their table would take more memory than %d MiB and than "
                "the file; the rest of the file is skipped",
                f->path, (unsigned long long)offset, TABLE_BYTES >> 20);
            return;
        }
        enum head_error he = head_read(t, f, offset, &h);
        f->scanned = offset;
        if (not_yet(t, f, offset, he, &h))
            return;
        f->scanned = f->map.size;
        if (he != HEAD_OK) {
            uint64_t bad = offset;
            const char *why = he == HEAD_BAD ? ctf_stop_text(h.why) : "";
            bool more = resync(t, f, &offset, &h);
            ctf_problem_add(&t->problems, "%s: byte %llu: %s%s%s; %llu bytes skipped", f->path, (unsigned long long)bad,
                head_texts[he], *why ? ": " : "", why, (unsigned long long)((more ? offset : f->map.size) - bad));
            if (!more)
                return;
        }
        if (h.uuid_differs)
            ctf_remark_add(&t->problems,
                "%s: packets of another trace (their UUID is not the metadata's); read all the same", f->path);
        if (h.cut)
            ctf_problem_add(&t->problems,
                "%s: byte %llu: the last packet is cut off by the end of the file; what is there is read", f->path,
                (unsigned long long)offset);
        if (!s || s->plan != h.plan || (h.has_instance && s->instance_id != h.instance_id))
            s = stream_of(t, f, &h);
        add_packet(t, file, s, offset, &h);
        if (h.last || h.cut)
            return;
        offset += h.packet_bits / 8;
    }
}

/* ---- index files ---- */

static uint64_t be64(const uint8_t *p)
{
    uint64_t v = 0;
    for (int i = 0; i < 8; i++)
        v = v << 8 | p[i];
    return v;
}

static uint32_t be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

uint64_t ctf_index_file_bytes(const uint8_t *data, size_t n)
{
    uint32_t entry_bytes = n >= CTF_INDEX_HEAD_BYTES ? be32(data + 12) : 0;
    uint64_t bytes = 0;
    for (size_t at = CTF_INDEX_HEAD_BYTES; entry_bytes >= 56 && n - at >= entry_bytes; at += entry_bytes)
        bytes = be64(data + at) + be64(data + at + 8) / 8;
    return bytes;
}

bool ctf_index_parse(const uint8_t *data, size_t n, uint64_t file_bytes, struct ctf_index *out)
{
    memset(out, 0, sizeof *out);
    if (n < CTF_INDEX_HEAD_BYTES || be32(data) != 0xC1F1DCC1 || be32(data + 4) != 1)
        return false;
    uint32_t entry_bytes = be32(data + 12);
    out->has_instance_and_seq = be32(data + 8) >= 1 && entry_bytes >= 72;
    if (entry_bytes < 56 || entry_bytes > 4096 || (n - CTF_INDEX_HEAD_BYTES) % entry_bytes || n == CTF_INDEX_HEAD_BYTES)
        return false;
    uint64_t expected = 0;
    for (const uint8_t *p = data + CTF_INDEX_HEAD_BYTES; p < data + n; p += entry_bytes) {
        struct ctf_index_entry e = {
            be64(p), be64(p + 8), be64(p + 16), be64(p + 24), be64(p + 32), be64(p + 40), be64(p + 48), 0, 0};
        if (out->has_instance_and_seq) {
            e.instance_id = be64(p + 56);
            e.seq = be64(p + 64);
        }
        bool sane = e.offset == expected && e.packet_bits % 8 == 0 && e.packet_bits &&
            e.packet_bits / 8 <= file_bytes - expected && e.content_bits && e.content_bits <= e.packet_bits &&
            e.begin <= e.end;
        if (!sane) {
            vec_free(&out->entries);
            return false;
        }
        expected += e.packet_bits / 8;
        vec_push(&out->entries, e);
    }
    if (expected == file_bytes)
        return true;
    vec_free(&out->entries);
    return false;
}

/* Returns whether the head of a packet agrees with its index entry. */
static bool agrees(
    const struct ctf_trace *t, const struct ctf_file *f, const struct ctf_index_entry *e, struct packet_head *h)
{
    if (head_read(t, f, e->offset, h) != HEAD_OK || h->cut || h->unclosed || h->last || h->uuid_differs)
        return false;
    const struct ctf_run *r = &h->d.run;
    return h->packet_bits == e->packet_bits && h->content_bits == e->content_bits && h->plan->sc->id == e->stream_id &&
        r->values[CTF_ROLE_BEGIN] == e->begin && r->values[CTF_ROLE_END] == e->end;
}

static bool load_index(const struct ctf_trace *t, const struct ctf_file *f, struct ctf_index *out)
{
    char *path = mem_printf("%.*s/index/%s.idx", (int)(f->name - f->path - 1), f->path, f->name);
    struct file_map map;
    int rc = file_map_open(path, &map, NULL);
    free(path);
    if (rc)
        return false;
    bool ok = ctf_index_parse(map.data, map.size, f->map.size, out);
    file_map_close(&map);
    return ok;
}

/* Reads packets from the index; true if it has all packets of the file. */
static bool by_index(struct ctf_trace *t, uint32_t file)
{
    const struct ctf_file *f = &t->files.v[file];
    struct ctf_index index;
    struct packet_head first, last;
    if (!load_index(t, f, &index))
        return false;
    const struct ctf_index_entry *e = index.entries.v;
    size_t n = index.entries.n;
    bool ok = agrees(t, f, &e[0], &first) && agrees(t, f, &e[n - 1], &last) && last.plan == first.plan &&
        last.d.cpu == first.d.cpu && first.plan->has_begin && first.plan->begin_bits == 64 &&
        (first.plan->has_seq || first.has_instance ? index.has_instance_and_seq : true);
    for (size_t i = 0; i < n && ok; i++)
        ok = e[i].stream_id == e[0].stream_id && e[i].instance_id == e[0].instance_id;
    if (ok) {
        struct ctf_stream *s = stream_of(t, f, &first);
        vec_reserve(&s->packets, n);
        for (size_t i = 0; i < n; i++) {
            struct ctf_packet p = {.offset = e[i].offset,
                .content_bits = e[i].content_bits,
                .file = file,
                .cpu = first.d.cpu,
                .discarded = e[i].discarded,
                .seq = e[i].seq};
            set_times(t, f, s, &p, e[i].begin, e[i].end);
            p.flags |= (s->plan->has_discarded ? CTF_PACKET_HAS_DISCARDED : 0) |
                (s->plan->has_seq ? CTF_PACKET_HAS_SEQ : 0);
            s->bytes += e[i].packet_bits / 8;
            push(t, s, &p);
        }
    }
    vec_free(&index.entries);
    return ok;
}

void ctf_packets_feed(struct ctf_trace *t, uint32_t file, const uint8_t *data, size_t n)
{
    struct ctf_file *f = &t->files.v[file];
    uint64_t before = f->size;
    f->map = (struct file_map){.data = data, .size = n};
    f->scanned = 0;
    ctf_packets_scan(t, file);
    f->map = (struct file_map){0};
    f->size = before + n;
}

enum {
    COPIED_BYTES = 1 << 16
}; /* maximum size of files that are read rather than mapped for the scan: that is
                                  * faster */

int ctf_packets_find(struct ctf_trace *t, uint32_t file, struct err *e)
{
    struct ctf_file *f = &t->files.v[file];
    struct err why = {0};
    t->touched.n = 0;
    f->kept = file_map_room();
    int rc = f->kept || f->size > COPIED_BYTES ? file_map_open(f->path, &f->map, &why)
                                               : file_map_copy(f->path, 0, f->size, &f->map, &why);
    if (rc == ERR_NOMEM || rc == ERR_LIMIT) /* an error, since the trace would silently lack data */
        return err_set(e, rc, "%s", why.text);
    if (rc) {
        ctf_problem_add(&t->problems, "%s", why.text);
        return 0;
    }
    if (t->growing && f->map.size > f->size) /* later data may need metadata that were not read yet */
        f->map.size = (size_t)f->size;
    if (f->map.size && f->scanned == 0 && by_index(t, file))
        f->scanned = f->map.size;
    else
        ctf_packets_scan(t, file);
    rc = file_map_intact(&f->map, e);
    if (!f->kept)
        file_map_close(&f->map);
    return rc;
}

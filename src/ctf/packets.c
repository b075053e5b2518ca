/* Finds packets: by LTTng's index files, else by the packets' own heads. Then makes streams of them. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/order.h"
#include "ctf/trace.h"

/* ---- heads ---- */

struct packet_head {
    const struct ctf_stream_plan *plan;
    uint64_t instance_id, packet_bits, content_bits; /* content_bits <= packet_bits; both cut to the file */
    bool has_instance, cut, unclosed, last;          /* last: no size given, the packet is the rest of the file */
    bool uuid_differs;
    struct ctf_decoder d;
};

enum head_error { HEAD_OK, HEAD_CUT, HEAD_MAGIC, HEAD_STREAM, HEAD_SIZE, HEAD_UNREADABLE };

static const struct ctf_stream_plan *plan_of(const struct ctf_trace *t, const struct ctf_run *r)
{
    const struct ctf_schema *s = t->schema;
    if (!(r->seen & 1u << CTF_ROLE_STREAM_ID))
        return s->n_streams ? t->plans[0] : NULL;
    const struct ctf_stream_class *sc = ctf_schema_stream(s, r->values[CTF_ROLE_STREAM_ID]);
    return sc ? t->plans[sc - s->streams] : NULL;
}

/* Sizes as given, completed by each other, and cut to what the file has. */
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

/* `most`: bytes that header and context may take. */
static enum head_error head_read_within(
    const struct ctf_trace *t, const struct ctf_file *f, uint64_t offset, uint64_t most, struct packet_head *h)
{
    const uint8_t *data = f->map.data + offset;
    uint64_t room = (f->map.size - offset) * 8, end = most < room / 8 ? most * 8 : room, slots[CTF_SLOTS];
    struct ctf_run r = {.data = data, .end = end, .slots = slots};
    const struct ctf_metadata *md = &t->pieces.v[f->piece].md;
    memset(h, 0, offsetof(struct packet_head, d));
    if (t->packet_header && CTF_RUN_FAILED(ctf_program_run(t->packet_header, &r, 0)))
        return HEAD_CUT;
    if (r.seen & 1u << CTF_ROLE_MAGIC && (uint32_t)r.values[CTF_ROLE_MAGIC] != 0xC1FC1FC1)
        return HEAD_MAGIC;
    if (r.seen & 1u << CTF_ROLE_UUID && md->has_uuid && !(r.values[CTF_ROLE_UUID] & 7))
        h->uuid_differs = memcmp(data + r.values[CTF_ROLE_UUID] / 8, md->uuid, 16) != 0;
    h->has_instance = r.seen & 1u << CTF_ROLE_INSTANCE_ID;
    h->instance_id = h->has_instance ? r.values[CTF_ROLE_INSTANCE_ID] : 0;
    h->plan = plan_of(t, &r);
    if (!h->plan)
        return HEAD_STREAM;
    h->d.cycles = 0;
    if (!ctf_decoder_open(&h->d, h->plan, data, end, end))
        return h->d.stop == CTF_STOP_UNREADABLE ? HEAD_UNREADABLE : HEAD_CUT;
    return head_sizes(h, room);
}

static enum head_error head_read(
    const struct ctf_trace *t, const struct ctf_file *f, uint64_t offset, struct packet_head *h)
{
    return head_read_within(t, f, offset, UINT64_MAX, h);
}

/* ---- streams ---- */

/* What tells streams of a class apart: the instance id, else the CPU, else the file's name. */
enum told_by { BY_INSTANCE, BY_CPU, BY_NAME };

static enum told_by told_by(const struct packet_head *h)
{
    return h->has_instance ? BY_INSTANCE : h->plan->has_begin && h->d.cpu >= 0 ? BY_CPU : BY_NAME;
}

static uint64_t stream_key(const struct ctf_file *f, const struct packet_head *h)
{
    enum told_by by = told_by(h);
    uint64_t parts[3] = {h->plan->sc->id, by,
        by == BY_INSTANCE  ? h->instance_id
            : by == BY_CPU ? (uint64_t)h->d.cpu
                           : map_hash(f->name, strlen(f->name))};
    return map_hash(parts, sizeof parts);
}

static bool is_stream(const struct ctf_stream *s, const struct ctf_file *f, const struct packet_head *h)
{
    if (s->plan != h->plan || s->has_instance != h->has_instance)
        return false;
    switch (told_by(h)) {
    case BY_INSTANCE: return s->instance_id == h->instance_id;
    case BY_CPU: return s->cpu == h->d.cpu;
    default: return !strcmp(s->name, f->name);
    }
}

static struct ctf_stream *stream_for(struct ctf_trace *t, const struct ctf_file *f, const struct packet_head *h)
{
    bool fresh;
    uint64_t key = stream_key(f, h), *at;
    while (at = map_put(&t->stream_by, key, &fresh), !fresh) {
        if (is_stream(&t->streams.v[*at - 1], f, h))
            return &t->streams.v[*at - 1];
        key++; /* another one has this hash */
    }
    *at = t->streams.n + 1;
    struct ctf_stream s = {.plan = h->plan,
        .name = f->name,
        .path = f->path,
        .instance_id = h->instance_id,
        .has_instance = h->has_instance,
        .cpu = h->d.cpu};
    vec_push(&t->streams, s);
    return &t->streams.v[t->streams.n - 1];
}

static void set_times(const struct ctf_trace *t, const struct ctf_file *f, const struct ctf_stream *s,
    struct ctf_packet *p, uint64_t begin, uint64_t end)
{
    struct ctf_clock_rate rate = ctf_trace_rate(t, f->piece, s->plan->sc);
    bool fits; /* who reads the events tells when it does not */
    p->begin = ctf_clock_ns(&rate, begin, &fits);
    p->end = ctf_clock_ns(&rate, end, &fits);
    p->flags |= CTF_PACKET_TIMED;
    if (end < begin) {
        p->end = p->begin;
        p->flags |= CTF_PACKET_OPEN_END;
    }
}

/* The clock behind a packet: all its fields that are mapped to the clock carry it on. */
static uint64_t clock_behind(const struct ctf_trace *t, const struct ctf_stream *s, const struct ctf_packet *p)
{
    struct ctf_event ev[64];
    struct ctf_decoder *d = mem_zalloc(sizeof *d);
    if (ctf_packet_open(
            t, s, p, t->files.v[p->file].map.data + p->offset, d)) /* the file is mapped while it is scanned */
        while (ctf_decode(d, ev, 64))
            ;
    uint64_t cycles = d->cycles;
    free(d);
    return cycles;
}

/* Where a begin time is the low bits of the clock, the rest is known from the packet before: the events between must be
 * read. */
static void time_packet(const struct ctf_trace *t, const struct ctf_file *f, struct ctf_stream *s, struct ctf_packet *p,
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
    vec_push(&s->packets, p);
}

/* ---- scanning ---- */

static const char *const head_texts[] = {
    [HEAD_CUT] = "the packet's header does not fit the file",
    [HEAD_MAGIC] = "no packet starts here (wrong magic number)",
    [HEAD_STREAM] = "the metadata declare no such stream",
    [HEAD_SIZE] = "the packet's sizes make no sense",
    [HEAD_UNREADABLE] = "the metadata declare a packet header that cannot be read",
};

/* The table of packets may take as much memory as the file has bytes, and this much in any case: beyond, packets are
 * smaller than their own entry, which no tracer writes. */
enum { TABLE_BYTES = 1 << 30 };
/* After damage a head is believed up to here: looking for one costs so much per page at most. */
enum { FOUND_HEAD_BYTES = 4096 };

/* Tracers write packets in whole pages: after a damaged head the next page that starts with a good one is where reading
 * goes on. */
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

static void scan(struct ctf_trace *t, uint32_t file)
{
    const struct ctf_file *f = &t->files.v[file];
    struct ctf_stream *s = NULL;
    uint64_t offset = 0, n = 0;
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
        if (he != HEAD_OK) {
            uint64_t bad = offset;
            bool more = resync(t, f, &offset, &h);
            ctf_problem_add(&t->problems, "%s: byte %llu: %s; %llu bytes skipped", f->path, (unsigned long long)bad,
                head_texts[he], (unsigned long long)((more ? offset : f->map.size) - bad));
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
            s = stream_for(t, f, &h);
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

bool ctf_index_parse(const uint8_t *data, size_t n, uint64_t file_bytes, struct ctf_index *out)
{
    memset(out, 0, sizeof *out);
    if (n < 16 || be32(data) != 0xC1F1DCC1 || be32(data + 4) != 1)
        return false;
    uint32_t entry_bytes = be32(data + 12);
    out->has_instance_and_seq = be32(data + 8) >= 1 && entry_bytes >= 72;
    if (entry_bytes < 56 || entry_bytes > 4096 || (n - 16) % entry_bytes || n == 16)
        return false;
    uint64_t expected = 0;
    for (const uint8_t *p = data + 16; p < data + n; p += entry_bytes) {
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

/* Does the head of a packet say what its index entry says? */
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
    char *path = NULL;
    struct file_map map;
    if (asprintf(&path, "%.*s/index/%s.idx", (int)(f->name - f->path - 1), f->path, f->name) < 0)
        return false;
    int rc = file_map_open(path, &map, NULL);
    free(path);
    if (rc)
        return false;
    bool ok = ctf_index_parse(map.data, map.size, f->map.size, out);
    file_map_close(&map);
    return ok;
}

/* True when the index gave all packets of the file. */
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
        struct ctf_stream *s = stream_for(t, f, &first);
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
            vec_push(&s->packets, p);
        }
    }
    vec_free(&index.entries);
    return ok;
}

enum { COPIED_BYTES = 1 << 16 }; /* files up to this are read faster than mapped for a look */

int ctf_packets_find(struct ctf_trace *t, uint32_t file, struct err *e)
{
    struct ctf_file *f = &t->files.v[file];
    struct err why = {0};
    f->kept = file_map_room();
    int rc = f->kept || f->size > COPIED_BYTES ? file_map_open(f->path, &f->map, &why)
                                               : file_map_copy(f->path, 0, f->size, &f->map, &why);
    if (rc == ERR_NOMEM || rc == ERR_LIMIT) /* without it the trace would look as if it had less */
        return err_set(e, rc, "%s", why.text);
    if (rc) {
        ctf_problem_add(&t->problems, "%s", why.text);
        return 0;
    }
    if (f->map.size && !by_index(t, file))
        scan(t, file);
    rc = file_map_intact(&f->map, e);
    if (!f->kept)
        file_map_close(&f->map);
    return rc;
}

/* ---- order and copies ---- */

static int by_time(const void *a, const void *b)
{
    const struct ctf_packet *p = a, *q = b;
    int order = order_of(p->begin, q->begin);
    order = order ? order : order_of(p->seq, q->seq);
    order = order ? order : order_of(p->file, q->file);
    return order ? order : order_of(p->offset, q->offset);
}

static bool same_packet(struct ctf_trace *t, const struct ctf_packet *p, const struct ctf_packet *q)
{
    if (t->files.v[p->file].piece == t->files.v[q->file].piece || p->begin != q->begin || p->end != q->end ||
        p->content_bits != q->content_bits || p->seq != q->seq || p->discarded != q->discarded)
        return false;
    struct file_map windows[2] = {0};
    const uint8_t *a = ctf_packet_data(t, p, &windows[0], &t->why), *b = ctf_packet_data(t, q, &windows[1], &t->why);
    bool same = a && b && !memcmp(a, b, (p->content_bits + 7) / 8);
    file_map_close(&windows[0]);
    file_map_close(&windows[1]);
    return same;
}

/* Overlapping snapshots hold the same packets; sorted, copies are neighbours (those with equal begin and sequence
 * number). */
static void drop_copies(struct ctf_trace *t, struct ctf_stream *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->packets.n; i++) {
        const struct ctf_packet *p = &s->packets.v[i];
        bool copy = false;
        for (size_t j = n; j > 0 && n - j < 8 && s->packets.v[j - 1].begin == p->begin && !copy; j--)
            copy = same_packet(t, &s->packets.v[j - 1], p);
        if (!copy)
            s->packets.v[n++] = *p;
    }
    s->packets.n = n;
}

/* ---- times that tracers write wrong ---- */

static int64_t env_number(const struct ctf_trace *t, const char *name)
{
    const struct ctf_env *env;
    size_t n = ctf_trace_env(t, &env);
    for (size_t i = 0; i < n; i++)
        if (!strcmp(env[i].name, name))
            return env[i].is_string ? strtoll(env[i].string, NULL, 10) : env[i].number;
    return 0;
}

struct quirks {
    bool event_after_packet, no_end, event_before_packet;
};

static bool older(int64_t a0, int64_t a1, int64_t a2, int64_t b0, int64_t b1, int64_t b2)
{
    return a0 != b0 ? a0 < b0 : a1 != b1 ? a1 < b1 : a2 < b2;
}

/* Versions as babeltrace2's release notes and documentation of its ctf plugin give them. */
static struct quirks quirks_of(const struct ctf_trace *t)
{
    struct quirks q = {0};
    const char *tracer = ctf_trace_env_string(t, "tracer_name");
    int64_t major = env_number(t, "tracer_major"), minor = env_number(t, "tracer_minor"),
            patch = env_number(t, "tracer_patch");
    if (!patch)
        patch = env_number(t, "tracer_patchlevel");
    if (!tracer)
        return q;
    if (!strcmp(tracer, "lttng-ust")) {
        q.no_end = true;
        q.event_after_packet = older(major, minor, patch, 2, 11, 0);
    } else if (!strcmp(tracer, "lttng-modules")) {
        q.no_end = true;
        q.event_after_packet = older(major, minor, patch, 2, 11, 0) && !(major == 2 && minor == 10 && patch >= 10) &&
            !(major == 2 && minor == 9 && patch >= 13);
    } else if (!strcmp(tracer, "barectf")) {
        q.event_before_packet = older(major, minor, patch, 2, 3, 1);
    }
    return q;
}

/* First and last event times of a packet; false when it has no events. */
static bool event_times(struct ctf_trace *t, const struct ctf_stream *s, const struct ctf_packet *p, bool only_first,
    int64_t *first, int64_t *last)
{
    struct ctf_event ev[64];
    static const struct ctf_decoder fresh;
    struct ctf_decoder d = fresh;
    struct file_map window = {0};
    const uint8_t *data = ctf_packet_data(t, p, &window, &t->why);
    size_t n, total = 0;
    if (data)
        ctf_packet_open(t, s, p, data, &d);
    while (data && (n = ctf_decode(&d, ev, only_first ? 1 : 64)) > 0) {
        if (total == 0)
            *first = ev[0].ts;
        *last = ev[n - 1].ts;
        total += n;
        if (only_first)
            break;
    }
    file_map_close(&window);
    return total > 0;
}

static void mend_times(struct ctf_trace *t, struct ctf_stream *s, struct quirks q)
{
    for (size_t i = 0; i < s->packets.n; i++) {
        struct ctf_packet *p = &s->packets.v[i], *next = i + 1 < s->packets.n ? p + 1 : NULL;
        int64_t first, last;
        if (q.event_before_packet && i > 0 && event_times(t, s, p, true, &first, &last)) {
            if (first < p->begin)
                p->begin = first;
            p[-1].end = p->begin;
        }
        bool no_end = p->flags & CTF_PACKET_OPEN_END;
        if (!q.event_after_packet && !no_end)
            continue;
        if (next) {
            if (next->begin > p->end)
                p->end = next->begin;
        } else if (event_times(t, s, p, false, &first, &last) && last > p->end) {
            p->end = last;
        }
        p->flags &= (uint8_t)~CTF_PACKET_OPEN_END;
    }
}

/* ---- losses ---- */

/* By how much a counter of `bits` bits grew; 0 when it went back (another run of the tracer, packets out of order). */
static uint64_t counter_delta(uint64_t from, uint64_t to, unsigned bits)
{
    uint64_t mask = bits >= 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1, delta = (to - from) & mask;
    return delta > mask / 2 ? 0 : delta;
}

static void add_loss(struct ctf_stream *s, struct ctf_packet *p, enum ctf_item item, struct ctf_loss loss)
{
    struct ctf_loss_item l = {.loss = loss, .item = (uint8_t)item, .ts = loss.begin};
    if (p->flags & CTF_PACKET_TIMED && l.ts > p->begin)
        l.ts = p->begin;
    if (!p->n_losses)
        p->loss = (uint32_t)s->losses.n;
    p->n_losses++;
    vec_push(&s->losses, l);
    *(item == CTF_LOST_EVENTS ? &s->lost_events : &s->lost_packets) += loss.count;
}

/* The first packet's counter counts losses only when nothing was recorded before it. */
static void find_losses(struct ctf_stream *s)
{
    for (size_t i = 0; i < s->packets.n; i++) {
        struct ctf_packet *p = &s->packets.v[i];
        const struct ctf_packet *before = i ? p - 1 : NULL;
        bool known = before != NULL && s->timed;
        int64_t begin = known ? before->end : p->begin;
        uint64_t count = 0;
        if (p->flags & CTF_PACKET_HAS_DISCARDED) {
            if (before)
                count = counter_delta(before->discarded, p->discarded, s->plan->discarded_bits);
            else if (!(p->flags & CTF_PACKET_HAS_SEQ) || p->seq == 0)
                count = p->discarded;
        }
        if (count)
            add_loss(s, p, CTF_LOST_EVENTS,
                (struct ctf_loss){begin, p->end > begin ? p->end : begin, count, known, s->timed});
        if (before && p->flags & CTF_PACKET_HAS_SEQ &&
            (count = counter_delta(before->seq, p->seq, s->plan->seq_bits)) > 1)
            add_loss(s, p, CTF_LOST_PACKETS,
                (struct ctf_loss){begin, p->begin > begin ? p->begin : begin, count - 1, known, s->timed});
    }
}

/* ---- tracks ---- */

enum { TRACKS_MAX = 8 };

/* A packet goes to the first track that has ended when it begins; beyond TRACKS_MAX at once, times may step back. */
static void assign_tracks(struct ctf_stream *s)
{
    int64_t ends[TRACKS_MAX];
    s->tracks = 1;
    ends[0] = INT64_MIN;
    for (size_t i = 0; i < s->packets.n && s->timed; i++) {
        struct ctf_packet *p = &s->packets.v[i];
        uint32_t track = 0;
        while (track < s->tracks && ends[track] > p->begin)
            track++;
        if (track == s->tracks) {
            if (s->tracks < TRACKS_MAX)
                s->tracks++;
            else
                track = 0;
        }
        ends[track] = p->end;
        p->track = (uint8_t)track;
    }
}

/* ---- CPUs ---- */

/* A stream of a tracer that numbers them is one CPU's buffer: a packet that says another is damaged. So is, in any
 * stream, a number that no machine has. What most packets say holds. */
static void agree_on_cpu(struct ctf_trace *t, struct ctf_stream *s)
{
    size_t votes = 0, differ = 0;
    for (size_t i = 0; i < s->packets.n; i++) {
        int32_t cpu = s->packets.v[i].cpu;
        if (votes == 0)
            s->cpu = cpu;
        votes = s->cpu == cpu ? votes + 1 : votes - 1;
    }
    for (size_t i = 0; i < s->packets.n; i++)
        differ += s->packets.v[i].cpu != s->cpu;
    if (!differ || differ * 2 >= s->packets.n)
        return;
    for (size_t i = 0; i < s->packets.n; i++) {
        struct ctf_packet *p = &s->packets.v[i];
        if (p->cpu == s->cpu || (!s->has_instance && p->cpu >= 0 && p->cpu < CTF_MOST_CPUS))
            continue;
        ctf_problem_add(&t->problems,
            "%s: packet at byte %llu: its cpu_id is %d, that of the other packets of the stream %d, which is taken",
            t->files.v[p->file].path, (unsigned long long)p->offset, p->cpu, s->cpu);
        p->cpu = s->cpu;
    }
}

/* ---- all streams ---- */

static void finish_stream(struct ctf_trace *t, struct ctf_stream *s, struct quirks q)
{
    agree_on_cpu(t, s);
    s->timed = s->packets.n > 0;
    for (size_t i = 0; i < s->packets.n; i++)
        if (!(s->packets.v[i].flags & CTF_PACKET_TIMED))
            s->timed = false;
    if (s->timed) {
        qsort(s->packets.v, s->packets.n, sizeof *s->packets.v, by_time);
        drop_copies(t, s);
        mend_times(t, s, q);
    }
    find_losses(s);
    assign_tracks(s);
    s->begin = INT64_MAX;
    s->end = INT64_MIN;
    for (size_t i = 0; i < s->packets.n && s->timed; i++) {
        const struct ctf_packet *p = &s->packets.v[i];
        s->begin = p->begin < s->begin ? p->begin : s->begin;
        s->end = p->end > s->end ? p->end : s->end;
    }
}

/* As babeltrace2 orders streams at equal times: by class, then by instance id; streams without one in the order of
 * their paths. */
static int by_identity(const void *a, const void *b)
{
    const struct ctf_stream *p = a, *q = b;
    int order = order_of(p->plan->sc->id, q->plan->sc->id);
    if (!order && p->has_instance && q->has_instance)
        order = order_of(p->instance_id, q->instance_id);
    return order ? order : strcmp(p->path, q->path);
}

int ctf_packets_finish(struct ctf_trace *t, struct err *e)
{
    struct quirks q = quirks_of(t);
    for (size_t i = 0; i < t->streams.n; i++)
        finish_stream(t, &t->streams.v[i], q);
    if (t->streams.n > 1)
        qsort(t->streams.v, t->streams.n, sizeof *t->streams.v, by_identity);
    map_fini(&t->stream_by);
    if (t->why.code && e)
        *e = t->why;
    return t->why.code;
}

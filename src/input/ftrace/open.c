/* SPDX-License-Identifier: MIT */
/* Opening a recording: which packets its pages become, and making them. */
#include "ftrace/ftrace.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "ftrace/pages.h"

/* Pages that become one packet at most, and bytes of it from which it gets no further page. */
enum { PAGES_PER_PACKET = 16, PACKET_BYTES = 1 << 20 };
enum { MOST_BLOCK = 32 << 20, MOST_RATIO = 4096, MOST_KEPT = 64 << 20, MOST_METADATA = 256 << 20 };

/* A compressed block, or all data of a CPU. */
struct block {
    uint64_t offset; /* bytes in the file */
    uint32_t packed; /* bytes; of a compressed one */
    uint64_t whole;
};
/* Place of a packet's pages. */
struct place {
    uint32_t block, page, n;
};

struct stream {
    const char *name;
    size_t buffer;
    struct ftrace_cpu cpu;
    VEC(struct block) blocks;
    VEC(struct place) places;
    VEC(struct ctf_made_packet) packets; /* packets at these places */
    struct ftrace_tally tally;
    uint64_t uncounted; /* losses whose number is unknown */
    struct err damage;  /* damage of the blocks; code 0: none */
    /* The block unpacked last. Kept while all of them take little memory. */
    pthread_mutex_t lock;
    uint8_t *kept;
    size_t kept_block;
};

struct reader {
    struct ftrace_file file;
    struct stream *streams;
    size_t n;
    atomic_size_t kept_bytes;
};

static struct ftrace_times times_of(const struct ftrace_file *f, const struct stream *s)
{
    const struct ftrace_buffer *b = &f->buffers.v[s->buffer];
    const char *clock = b->clock && *b->clock ? b->clock : f->clock;
    bool is_tsc = clock && !strcmp(clock, "x86-tsc");
    struct ftrace_times t = {.mult = is_tsc ? f->tsc_mult : 0, .shift = f->tsc_shift};
    if ((size_t)s->cpu.cpu < f->n_shifts)
        t.to_host = &f->shifts[s->cpu.cpu];
    return t;
}

/* ---- blocks ---- */

static void close_reader(void *arg)
{
    struct reader *r = arg;
    for (size_t i = 0; i < r->n; i++) {
        struct stream *s = &r->streams[i];
        vec_free(&s->blocks);
        vec_free(&s->places);
        vec_free(&s->packets);
        free(s->kept);
        pthread_mutex_destroy(&s->lock);
    }
    free(r->streams);
    ftrace_file_close(&r->file);
    free(r);
}

/* Finds the compressed blocks of a CPU. */
static void find_packed(const struct ftrace_file *f, struct stream *s, uint64_t size)
{
    struct ftrace_bytes b = {f->map.data + s->cpu.offset, size, 0, f->big, false};
    uint64_t n = ftrace_number(&b, 4);
    for (uint64_t i = 0; i < n && !s->damage.code; i++) {
        struct block one = {.packed = (uint32_t)ftrace_number(&b, 4)};
        one.whole = ftrace_number(&b, 4);
        one.offset = s->cpu.offset + b.at;
        if (!ftrace_take(&b, one.packed))
            err_set(&s->damage, ERR_FORMAT, "block %llu of %llu is cut off; it and those behind it are not read",
                (unsigned long long)i + 1, (unsigned long long)n);
        else if (one.whole > MOST_BLOCK || one.whole / MOST_RATIO > one.packed)
            err_set(&s->damage, ERR_FORMAT,
                "block %llu of %llu claims %llu bytes, more than any; it and those behind it are not read",
                (unsigned long long)i + 1, (unsigned long long)n, (unsigned long long)one.whole);
        else
            vec_push(&s->blocks, one);
    }
}

static void find_blocks(const struct ftrace_file *f, struct stream *s)
{
    uint64_t room = s->cpu.offset < f->map.size ? f->map.size - s->cpu.offset : 0, size = s->cpu.size;
    const struct ftrace_buffer *b = &f->buffers.v[s->buffer];
    if (size > room) {
        err_set(&s->damage, ERR_FORMAT, "the file ends before byte %llu of its %llu; what is there is read",
            (unsigned long long)room, (unsigned long long)size);
        size = room;
    }
    if (!size)
        return;
    if (b->compressed) {
        s->damage.code = 0;
        find_packed(f, s, size);
    } else {
        vec_push(&s->blocks, ((struct block){.offset = s->cpu.offset, .whole = size}));
    }
}

/* Reserves so many bytes for an unpacked block that is kept. False: all kept blocks would take too much. */
static bool may_keep(struct reader *r, uint64_t bytes)
{
    size_t now = atomic_load(&r->kept_bytes);
    do
        if (now + bytes > MOST_KEPT)
            return false;
    while (!atomic_compare_exchange_weak(&r->kept_bytes, &now, now + bytes));
    return true;
}

static void drop_kept(struct reader *r, struct stream *s)
{
    if (s->kept)
        atomic_fetch_sub(&r->kept_bytes, s->blocks.v[s->kept_block].whole);
    free(s->kept);
    s->kept = NULL;
}

/* The bytes of a block; *mine: to be freed, or NULL. The caller holds the stream's lock. */
static const uint8_t *block_data(struct reader *r, struct stream *s, size_t i, uint8_t **mine, struct err *e)
{
    const struct block *b = &s->blocks.v[i];
    const uint8_t *from = r->file.map.data + b->offset;
    *mine = NULL;
    if (!r->file.buffers.v[s->buffer].compressed)
        return from;
    if (s->kept && s->kept_block == i)
        return s->kept;
    drop_kept(r, s);
    uint8_t *data = mem_try(1, b->whole + 1);
    if (!data) {
        err_set(e, ERR_NOMEM, "%s: no memory for a block of %llu bytes", r->file.path, (unsigned long long)b->whole);
        return NULL;
    }
    if (ftrace_unpack(r->file.compression, from, b->packed, data, b->whole, e)) {
        err_wrap(e, "%s: byte %llu", r->file.path, (unsigned long long)b->offset);
        free(data);
        return NULL;
    }
    if (may_keep(r, b->whole)) {
        s->kept = data;
        s->kept_block = i;
    } else {
        *mine = data;
    }
    return data;
}

/* ---- packets ---- */

/* Writes the events of a packet's pages. */
static void put_pages(const struct reader *r, const struct stream *s, const uint8_t *data, uint32_t n,
    struct ftrace_sink *sink, struct ftrace_tally *tally)
{
    const struct ftrace_buffer *b = &r->file.buffers.v[s->buffer];
    struct ftrace_times times = times_of(&r->file, s);
    for (uint32_t i = 0; i < n; i++) {
        struct ftrace_page page;
        if (ftrace_page_open(&r->file, data + (uint64_t)i * b->page_bytes, b->page_bytes, &page))
            ftrace_page_put(&r->file, &page, times, sink, tally);
        else
            tally->damaged++;
    }
}

static int make_packet(void *arg, size_t stream, size_t packet, uint8_t *out, uint64_t bytes, struct err *e)
{
    struct reader *r = arg;
    struct stream *s = &r->streams[stream];
    const struct place *p = &s->places.v[packet];
    struct ftrace_sink sink = {.out = out, .room = bytes};
    struct ftrace_tally tally = {.first = UINT64_MAX};
    uint8_t *mine;
    int rc = 0;
    ftrace_put_context(&sink, &s->packets.v[packet], s->cpu.cpu, r->file.big);
    pthread_mutex_lock(&s->lock);
    const uint8_t *data = block_data(r, s, p->block, &mine, e);
    if (data)
        put_pages(r, s, data + (uint64_t)p->page * r->file.buffers.v[s->buffer].page_bytes, p->n, &sink, &tally);
    else
        rc = e ? e->code : ERR_IO;
    pthread_mutex_unlock(&s->lock);
    free(mine);
    if (!rc && (sink.over || sink.n != bytes))
        rc = err_set(e, ERR_LOST, "%s: changed while it was read; open it anew", r->file.path);
    return rc;
}

/* A packet while its pages are read. */
struct collecting {
    struct place place;
    struct ctf_made_packet packet;
    struct ftrace_sink sink;
    struct ftrace_tally tally;
    uint64_t discarded;
};

static void add_tally(struct ftrace_tally *to, const struct ftrace_tally *from)
{
    to->events += from->events;
    to->unknown += from->unknown;
    to->cut += from->cut;
    to->damaged += from->damaged;
    to->unknown_id = from->unknown ? from->unknown_id : to->unknown_id;
}

/* Pages without events become no packet; what was lost before them is told by the next one. Each damage counts as a
 * lost event: nothing is known of the time from there to the next packet. */
static void end_packet(const struct reader *r, struct stream *s, struct collecting *c)
{
    add_tally(&s->tally, &c->tally);
    if (c->tally.events) {
        struct ftrace_sink context = {0};
        c->packet.begin = c->tally.first;
        c->packet.end = c->tally.last;
        c->packet.discarded = c->discarded;
        ftrace_put_context(&context, &c->packet, 0, r->file.big);
        c->packet.bytes = context.n + c->sink.n;
        vec_push(&s->packets, c->packet);
        vec_push(&s->places, c->place);
    }
    *c = (struct collecting){.tally = {.first = UINT64_MAX}, .discarded = c->discarded};
}

static void add_page(
    const struct reader *r, struct stream *s, struct collecting *c, const uint8_t *data, size_t block, uint32_t i)
{
    const struct ftrace_buffer *b = &r->file.buffers.v[s->buffer];
    const uint8_t *bytes = data + (uint64_t)i * b->page_bytes;
    struct ftrace_page page;
    bool ok = ftrace_page_open(&r->file, bytes, b->page_bytes, &page);
    if (c->place.n && (!ok || page.missed || c->place.n == PAGES_PER_PACKET || c->sink.n >= PACKET_BYTES))
        end_packet(r, s, c);
    c->discarded += page.missed;
    s->uncounted += page.missed && !page.missed_counted;
    if (!ok) {
        s->tally.damaged++;
        c->discarded++;
        return;
    }
    if (!c->place.n) {
        c->place = (struct place){(uint32_t)block, i, 0};
        c->packet.offset = s->blocks.v[block].offset + (b->compressed ? 0 : (uint64_t)i * b->page_bytes);
    }
    c->place.n++;
    ftrace_page_put(&r->file, &page, times_of(&r->file, s), &c->sink, &c->tally);
    if (c->tally.damaged) {
        end_packet(r, s, c);
        c->discarded++;
    }
}

static void read_stream(void *arg, size_t i)
{
    struct reader *r = arg;
    struct stream *s = &r->streams[i];
    uint32_t page_bytes = r->file.buffers.v[s->buffer].page_bytes;
    struct collecting c = {.tally = {.first = UINT64_MAX}};
    find_blocks(&r->file, s);
    for (size_t k = 0; k < s->blocks.n; k++) {
        struct err why = {0};
        uint8_t *mine;
        const uint8_t *data = block_data(r, s, k, &mine, &why);
        uint64_t n = s->blocks.v[k].whole / page_bytes;
        for (uint64_t page = 0; data && page < n && page < UINT32_MAX; page++)
            add_page(r, s, &c, data, k, (uint32_t)page);
        end_packet(r, s, &c);
        free(mine);
        bool in_part = data && s->blocks.v[k].whole % page_bytes && !s->damage.code;
        if (!data)
            s->damage = why;
        s->tally.damaged += in_part;
        c.discarded += !data || in_part;
    }
    drop_kept(r, s);
}

/* ---- problems ---- */

static void tell(struct ftrace_file *f, const struct stream *s)
{
    const struct ftrace_tally *t = &s->tally;
    if (s->damage.code)
        ftrace_problem(f, "%s: %s: %s", f->path, s->name, s->damage.text);
    if (t->damaged)
        ftrace_problem(f, "%s: %s: %llu damaged page%s; events from the damage to the end of the page are not read",
            f->path, s->name, (unsigned long long)t->damaged, t->damaged == 1 ? "" : "s");
    if (t->unknown)
        ftrace_problem(f, "%s: %s: %llu event%s without format (the last of type %u); not read", f->path, s->name,
            (unsigned long long)t->unknown, t->unknown == 1 ? "" : "s", t->unknown_id);
    if (t->cut)
        ftrace_problem(f, "%s: %s: %llu event%s shorter than the format; not read", f->path, s->name,
            (unsigned long long)t->cut, t->cut == 1 ? "" : "s");
    if (s->uncounted)
        ftrace_remark(f, "%s: %s: the kernel did not count how many events were lost, %llu time%s; each counts as 1",
            f->path, s->name, (unsigned long long)s->uncounted, s->uncounted == 1 ? "" : "s");
}

static void tell_clock(struct ftrace_file *f, const struct ftrace_buffer *b)
{
    const char *clock = b->clock && *b->clock ? b->clock : f->clock;
    bool is_tsc = clock && !strcmp(clock, "x86-tsc"), is_counter = clock && !strcmp(clock, "counter");
    if (is_counter)
        ftrace_remark(
            f, "%s: its clock only counts events (counter): times are no times, record with -C mono", f->path);
    if (is_tsc && !f->tsc_mult)
        ftrace_remark(
            f, "%s: its clock is x86-tsc of unknown rate: 1 tick is shown as 1 ns; record with -C mono", f->path);
}

/* Reports what recordings of LTTng have and these cannot. */
static void tell_limits(struct ftrace_file *f)
{
    bool packets = false;
    for (size_t i = 0; i < f->events.n; i++)
        packets |= !strcmp(f->events.v[i].name, "net_dev_queue") || !strcmp(f->events.v[i].name, "netif_receive_skb");
    if (packets)
        ftrace_remark(f,
            "%s: its packets have no addresses: waits for the network are shown as blocked, and other machines' clocks "
            "cannot be found by them",
            f->path);
}

/* ---- opening ---- */

static void make_streams(struct reader *r)
{
    struct ftrace_file *f = &r->file;
    size_t n = 0;
    for (size_t i = 0; i < f->buffers.n; i++)
        n += f->buffers.v[i].cpus.n;
    r->streams = mem_zalloc((n + 1) * sizeof *r->streams);
    for (size_t i = 0; i < f->buffers.n; i++) {
        const struct ftrace_buffer *b = &f->buffers.v[i];
        tell_clock(f, b);
        for (size_t k = 0; k < b->cpus.n; k++) {
            struct stream *s = &r->streams[r->n++];
            s->buffer = i;
            s->cpu = b->cpus.v[k];
            s->name = arena_printf(&f->arena, "%s%scpu%d", b->name, *b->name ? "/" : "", s->cpu.cpu);
            pthread_mutex_init(&s->lock, NULL);
        }
    }
}

static int make_trace(struct reader *r, struct ctf_schemas *schemas, struct ctf_trace **out, struct err *e)
{
    size_t metadata_bytes;
    char *metadata;
    int rc = ftrace_metadata(&r->file, MOST_METADATA, &metadata, &metadata_bytes, e);
    if (rc)
        return rc;
    struct ctf_made_stream *streams = mem_zalloc((r->n + 1) * sizeof *streams);
    for (size_t i = 0; i < r->n; i++) {
        const struct stream *s = &r->streams[i];
        streams[i] = (struct ctf_made_stream){s->name, s->buffer, s->cpu.size, s->cpu.cpu, s->packets.v, s->packets.n};
    }
    struct ctf_made made = {.path = r->file.path,
        .metadata = metadata,
        .metadata_bytes = metadata_bytes,
        .map = &r->file.map,
        .streams = streams,
        .n = r->n,
        .problems = r->file.problems.v,
        .n_problems = r->file.problems.n,
        .maker = {r, make_packet, close_reader}};
    rc = ctf_trace_make(&made, schemas, out, e);
    free(streams);
    free(metadata);
    return rc;
}

int ftrace_trace_open(const char *path, struct ctf_schemas *schemas, struct ctf_trace **out, struct err *e)
{
    struct reader *r = mem_zalloc(sizeof *r);
    *out = NULL;
    int rc = ftrace_file_open(path, &r->file, e);
    if (!rc && !r->file.events.n)
        rc = err_set(e, ERR_FORMAT, "%s: has no formats of events, without which nothing of it can be read", path);
    if (!rc) {
        tell_limits(&r->file);
        ftrace_plan(&r->file);
        make_streams(r);
        pool_run(r->n, 0, read_stream, r);
        for (size_t i = 0; i < r->n; i++)
            tell(&r->file, &r->streams[i]);
        rc = file_map_intact(&r->file.map, e);
    }
    rc = rc ? rc : make_trace(r, schemas, out, e);
    if (rc)
        close_reader(r);
    return rc;
}

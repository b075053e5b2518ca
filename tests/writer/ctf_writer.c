/* SPDX-License-Identifier: MIT */
/* Writes traces in the layout of LTTng's consumer daemon: docs/formats/ctf-writer.md. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/text.h"
#include "ctf2_metadata.h"
#include "ctf_writer.h"

enum {
    PACKET_HEADER_BYTES = 4 + 16 + 4 + 8,
    PACKET_CONTEXT_BYTES = 6 * 8 + 4,
    CONTENT_START = PACKET_HEADER_BYTES + PACKET_CONTEXT_BYTES,
    DEFAULT_PACKET_BYTES = 64 * 1024,
    MIN_PACKET_BYTES = 256,
    MAX_PACKET_BYTES = 1 << 30,
    INDEX_ENTRY_BYTES = 9 * 8,
    COMPACT_IDS = 31,
    LARGE_IDS = 65535, /* id that is the escape to the extended form */
};

struct stream {
    uint8_t *packet;      /* packet_bytes long; NULL until the first event */
    size_t used_bytes;    /* 0: no open packet */
    uint64_t begin, last; /* cycles: begin of the open packet, newest event of the stream */
    uint64_t sequence, discarded;
    uint64_t file_bytes;
    struct text index; /* entries, written on close */
};

struct ctf_writer {
    char *dir;
    uint64_t freq;
    int64_t clock_offset_ns;
    size_t packet_bytes;
    uint32_t cpus;
    uint8_t uuid[16];
    bool index_files, big_endian, large_header;
    struct stream *streams;
};

/* ---- bytes in the trace's order ---- */

static void store(uint8_t *p, uint64_t v, unsigned bytes, bool big_endian)
{
    for (unsigned i = 0; i < bytes; i++)
        p[big_endian ? bytes - 1 - i : i] = (uint8_t)(v >> (8 * i));
}

static uint8_t *append(const struct ctf_writer *w, uint8_t *p, uint64_t v, unsigned bytes)
{
    store(p, v, bytes, w->big_endian);
    return p + bytes;
}

static int write_file(const char *path, int flags, const void *data, size_t n, struct err *e)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0666);
    if (fd < 0)
        return err_sys(e, "cannot create %s", path);
    for (size_t done = 0; done < n;) {
        ssize_t got = write(fd, (const char *)data + done, n - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            err_sys(e, "cannot write %s", path);
            close(fd);
            return e ? e->code : ERR_IO;
        }
        done += (size_t)got;
    }
    if (close(fd) != 0)
        return err_sys(e, "cannot write %s", path);
    return ERR_OK;
}

/* ---- metadata ---- */

static const char clockless_types[] = "typealias integer { size = 8; align = 8; signed = false; } := uint8_t;\n"
                                      "typealias integer { size = 16; align = 8; signed = false; } := uint16_t;\n"
                                      "typealias integer { size = 32; align = 8; signed = false; } := uint32_t;\n"
                                      "typealias integer { size = 64; align = 8; signed = false; } := uint64_t;\n"
                                      "typealias integer { size = 8; align = 8; signed = true; } := int8_t;\n"
                                      "typealias integer { size = 16; align = 8; signed = true; } := int16_t;\n"
                                      "typealias integer { size = 32; align = 8; signed = true; } := int32_t;\n"
                                      "typealias integer { size = 64; align = 8; signed = true; } := int64_t;\n"
                                      "typealias integer { size = 64; align = 8; signed = false; } := unsigned long;\n"
                                      "typealias integer { size = 5; align = 1; signed = false; } := uint5_t;\n";

static void put_uuid(struct text *t, const uint8_t *u)
{
    for (int i = 0; i < 16; i++)
        text_printf(t, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", u[i]);
}

static void put_quoted(struct text *t, const char *s)
{
    text_putc(t, '"');
    for (; *s; s++) {
        if (*s == '"' || *s == '\\')
            text_putc(t, '\\');
        if (*s == '\n')
            text_puts(t, "\\n");
        else
            text_putc(t, *s);
    }
    text_putc(t, '"');
}

static bool is_number(const char *s)
{
    if (*s == '-')
        s++;
    size_t n = strspn(s, "0123456789");
    return n > 0 && n < 19 && s[n] == '\0' && (s[0] != '0' || n == 1);
}

static void put_env(struct text *t, const struct ctf_writer_options *o)
{
    text_puts(t, "env {\n\thostname = ");
    put_quoted(t, o->hostname ? o->hostname : "");
    text_puts(t, ";\n");
    for (const char *const *v = o->env; v && *v; v++) {
        const char *equals = strchr(*v, '=');
        if (!equals)
            continue;
        text_putc(t, '\t');
        text_put(t, *v, (size_t)(equals - *v));
        text_puts(t, " = ");
        if (is_number(equals + 1))
            text_puts(t, equals + 1);
        else
            put_quoted(t, equals + 1);
        text_puts(t, ";\n");
    }
    text_puts(t, "};\n\n");
}

/* Computes seconds and cycles of the clock's offset. Readers get times back to the nanosecond if the frequency allows
 * it. */
static void split_offset(const struct ctf_writer *w, int64_t *seconds, uint64_t *cycles)
{
    int64_t s = w->clock_offset_ns / 1000000000, ns = w->clock_offset_ns % 1000000000;
    if (ns < 0) {
        s--;
        ns += 1000000000;
    }
    *seconds = s;
    *cycles = (uint64_t)((unsigned __int128)ns * w->freq / 1000000000);
}

static void put_clock(struct text *t, const struct ctf_writer *w)
{
    int64_t seconds;
    uint64_t cycles;
    split_offset(w, &seconds, &cycles);
    text_puts(t, "clock {\n\tname = \"monotonic\";\n\tuuid = \"");
    put_uuid(t, w->uuid);
    text_printf(t,
        "\";\n\tdescription = \"Monotonic Clock\";\n\tfreq = %llu;\n\toffset_s = %lld;\n\toffset = %llu;\n};\n\n",
        (unsigned long long)w->freq, (long long)seconds, (unsigned long long)cycles);
    static const struct {
        int bits, align;
    } mapped[] = {{27, 1}, {32, 8}, {64, 8}};
    for (size_t i = 0; i < sizeof mapped / sizeof *mapped; i++)
        text_printf(t,
            "typealias integer { size = %d; align = %d; signed = false; map = clock.monotonic.value; } := "
            "uint%d_clock_monotonic_t;\n",
            mapped[i].bits, mapped[i].align, mapped[i].bits);
}

static void put_header(struct text *t, bool large)
{
    text_printf(t,
        "struct event_header {\n\tenum : %s { compact = 0 ... %d, extended = %d } id;\n\tvariant <id> {\n"
        "\t\tstruct {\n\t\t\t%s timestamp;\n\t\t} compact;\n",
        large ? "uint16_t" : "uint5_t", (large ? LARGE_IDS : COMPACT_IDS) - 1, large ? LARGE_IDS : COMPACT_IDS,
        large ? "uint32_clock_monotonic_t" : "uint27_clock_monotonic_t");
    text_puts(t,
        "\t\tstruct {\n\t\t\tuint32_t id;\n\t\t\tuint64_clock_monotonic_t timestamp;\n\t\t} extended;\n\t} v;\n"
        "} align(8);\n\n");
}

static int write_metadata(const struct ctf_writer *w, const struct ctf_writer_options *o, struct err *e)
{
    struct text t = {.fd = -1};
    text_puts(&t, "/* CTF 1.8 */\n\n");
    text_puts(&t, clockless_types);
    text_puts(&t, "\ntrace {\n\tmajor = 1;\n\tminor = 8;\n\tuuid = \"");
    put_uuid(&t, w->uuid);
    text_printf(&t,
        "\";\n\tbyte_order = %s;\n\tpacket.header := struct {\n\t\tuint32_t magic;\n\t\tuint8_t uuid[16];\n"
        "\t\tuint32_t stream_id;\n\t\tuint64_t stream_instance_id;\n\t};\n};\n\n",
        w->big_endian ? "be" : "le");
    put_env(&t, o);
    put_clock(&t, w);
    text_puts(&t,
        "\nstruct packet_context {\n\tuint64_clock_monotonic_t timestamp_begin;\n"
        "\tuint64_clock_monotonic_t timestamp_end;\n"
        "\tuint64_t content_size;\n\tuint64_t packet_size;\n\tuint64_t packet_seq_num;\n"
        "\tunsigned long events_discarded;\n"
        "\tuint32_t cpu_id;\n};\n\n");
    put_header(&t, w->large_header);
    text_puts(&t,
        "stream {\n\tid = 0;\n\tevent.header := struct event_header;\n\tpacket.context := struct packet_context;\n");
    if (o->event_context)
        text_printf(&t, "\tevent.context := struct {\n%s\n\t};\n", o->event_context);
    text_puts(&t, "};\n\n");
    text_puts(&t, o->tsdl ? o->tsdl : "");
    text_putc(&t, '\n');
    struct text other = {.fd = -1}, *written = o->ctf2 ? &other : &t;
    char *path = mem_printf("%s/metadata", w->dir);
    int r = o->ctf2 ? ctf2_metadata_from(t.v, t.n, &other, e) : ERR_OK;
    if (r == ERR_OK)
        r = write_file(path, O_TRUNC, written->v, written->n, e);
    free(path);
    text_fini(&other);
    text_fini(&t);
    return r;
}

/* ---- packets ---- */

static int make_dir(const char *path, struct err *e)
{
    return mkdir(path, 0777) != 0 && errno != EEXIST ? err_sys(e, "cannot create %s", path) : ERR_OK;
}

static void free_writer(struct ctf_writer *w)
{
    for (uint32_t i = 0; i < w->cpus; i++) {
        free(w->streams[i].packet);
        text_fini(&w->streams[i].index);
    }
    free(w->streams);
    free(w->dir);
    free(w);
}

int ctf_writer_open(const char *dir, const struct ctf_writer_options *o, struct ctf_writer **out, struct err *e)
{
    *out = NULL;
    uint32_t packet_bytes = o->packet_bytes ? o->packet_bytes : DEFAULT_PACKET_BYTES;
    if (o->cpus == 0 || packet_bytes < MIN_PACKET_BYTES || packet_bytes > MAX_PACKET_BYTES)
        return err_set(e, ERR_ARG, "a trace needs at least 1 CPU and packets of %d to %d bytes", MIN_PACKET_BYTES,
            MAX_PACKET_BYTES);
    struct ctf_writer *w = mem_zalloc(sizeof *w);
    w->dir = mem_strdup(dir);
    w->freq = o->freq ? o->freq : 1000000000;
    w->clock_offset_ns = o->clock_offset_ns;
    w->packet_bytes = packet_bytes;
    w->cpus = o->cpus;
    memcpy(w->uuid, o->uuid, sizeof w->uuid);
    w->index_files = o->index_files;
    w->big_endian = o->big_endian;
    w->large_header = o->large_header;
    w->streams = mem_zalloc(sizeof *w->streams * o->cpus);
    for (uint32_t i = 0; i < o->cpus; i++)
        w->streams[i].index.fd = -1;
    int r = make_dir(dir, e);
    if (r == ERR_OK)
        r = write_metadata(w, o, e);
    if (r != ERR_OK) {
        free_writer(w);
        return r;
    }
    *out = w;
    return ERR_OK;
}

static void open_packet(struct ctf_writer *w, struct stream *s, uint64_t begin)
{
    if (!s->packet)
        s->packet = mem_alloc(w->packet_bytes);
    memset(s->packet, 0, w->packet_bytes);
    s->used_bytes = CONTENT_START;
    s->begin = begin;
}

static void add_index_entry(struct stream *s, size_t packet_bytes, uint32_t cpu)
{
    uint64_t fields[9] = {
        s->file_bytes, packet_bytes * 8, s->used_bytes * 8, s->begin, s->last, s->discarded, 0, cpu, s->sequence};
    for (size_t i = 0; i < 9; i++)
        store((uint8_t *)text_room(&s->index, 8), fields[i], 8, true), s->index.n += 8;
}

static int close_packet(struct ctf_writer *w, uint32_t cpu, struct err *e)
{
    struct stream *s = &w->streams[cpu];
    uint8_t *p = append(w, s->packet, 0xc1fc1fc1, 4);
    memcpy(p, w->uuid, 16);
    p = append(w, p + 16, 0, 4);
    p = append(w, p, cpu, 8);
    p = append(w, p, s->begin, 8);
    p = append(w, p, s->last, 8);
    p = append(w, p, s->used_bytes * 8, 8);
    p = append(w, p, w->packet_bytes * 8, 8);
    p = append(w, p, s->sequence, 8);
    p = append(w, p, s->discarded, 8);
    append(w, p, cpu, 4);
    char path[4096];
    if (snprintf(path, sizeof path, "%s/channel0_%u", w->dir, cpu) >= (int)sizeof path)
        return err_set(e, ERR_LIMIT, "%s: the path is too long", w->dir);
    int r = write_file(path, s->file_bytes ? O_APPEND : O_TRUNC, s->packet, w->packet_bytes, e);
    if (r != ERR_OK)
        return r;
    if (w->index_files)
        add_index_entry(s, w->packet_bytes, cpu);
    s->file_bytes += w->packet_bytes;
    s->sequence++;
    s->used_bytes = 0;
    return ERR_OK;
}

/* ---- events ---- */

static int to_cycles(const struct ctf_writer *w, int64_t ts_ns, uint64_t *out)
{
    /* Base of the cycles: readers add the clock's whole seconds and its rest as cycles, so the cycle count starts
     * there. */
    int64_t seconds;
    uint64_t rest;
    split_offset(w, &seconds, &rest);
    __int128 since_ns = (__int128)ts_ns - (__int128)seconds * 1000000000;
    /* Next whole cycle: a reader rounds down, and gets the same nanosecond back if a cycle is no longer than one. */
    __int128 cycles = (since_ns * (__int128)w->freq + 999999999) / 1000000000 - (__int128)rest;
    if (since_ns < 0 || cycles < 0 || cycles > UINT64_MAX)
        return -1;
    *out = (uint64_t)cycles;
    return 0;
}

/* Writes the header of an event at p; returns its size, at most 14 bytes. */
static size_t put_event_header(
    const struct ctf_writer *w, uint8_t *p, const struct stream *s, uint64_t id, uint64_t cycles)
{
    unsigned time_bits = w->large_header ? 32 : 27;
    uint64_t escape = w->large_header ? LARGE_IDS : COMPACT_IDS;
    uint64_t before = s->used_bytes == CONTENT_START ? s->begin : s->last;
    bool compact = id < escape && cycles - before < (uint64_t)1 << time_bits;
    uint64_t first = compact ? id : escape, low = cycles & (((uint64_t)1 << time_bits) - 1);
    uint8_t *start = p;
    if (w->large_header) {
        p = append(w, p, first, 2);
        if (compact)
            return (size_t)(append(w, p, low, 4) - start);
    } else {
        if (compact)
            return (size_t)(append(w, p, w->big_endian ? first << 27 | low : low << 5 | first, 4) - start);
        *p++ = (uint8_t)(w->big_endian ? first << 3 : first);
    }
    p = append(w, p, id, 4);
    return (size_t)(append(w, p, cycles, 8) - start);
}

int ctf_writer_event(
    struct ctf_writer *w, uint32_t cpu, uint64_t id, int64_t ts_ns, const void *payload, size_t bytes, struct err *e)
{
    enum { HEADER_MAX = 14 };
    if (cpu >= w->cpus || id > UINT32_MAX)
        return err_set(e, ERR_ARG, "no CPU %u or event id beyond 32 bits", cpu);
    struct stream *s = &w->streams[cpu];
    uint64_t cycles;
    if (to_cycles(w, ts_ns, &cycles) != 0)
        return err_set(e, ERR_ARG, "time %lld lies before the clock's start", (long long)ts_ns);
    if (cycles < s->last)
        return err_set(e, ERR_ARG, "time %lld lies before an earlier event of CPU %u", (long long)ts_ns, cpu);
    if (bytes > w->packet_bytes - CONTENT_START - HEADER_MAX)
        return err_set(e, ERR_LIMIT, "an event of %zu bytes does not fit into a packet of %zu", bytes, w->packet_bytes);
    if (s->used_bytes && s->used_bytes + HEADER_MAX + bytes > w->packet_bytes) {
        int r = close_packet(w, cpu, e);
        if (r != ERR_OK)
            return r;
    }
    if (!s->used_bytes)
        open_packet(w, s, cycles);
    s->used_bytes += put_event_header(w, s->packet + s->used_bytes, s, id, cycles);
    if (bytes)
        memcpy(s->packet + s->used_bytes, payload, bytes);
    s->used_bytes += bytes;
    s->last = cycles;
    return ERR_OK;
}

int ctf_writer_lose(struct ctf_writer *w, uint32_t cpu, uint64_t events, uint64_t packets, struct err *e)
{
    if (cpu >= w->cpus)
        return err_set(e, ERR_ARG, "no CPU %u", cpu);
    struct stream *s = &w->streams[cpu];
    if (!s->used_bytes)
        open_packet(w, s, s->last);
    s->discarded += events;
    int r = close_packet(w, cpu, e);
    s->sequence += packets;
    return r;
}

static int write_index(const struct ctf_writer *w, uint32_t cpu, struct err *e)
{
    const struct stream *s = &w->streams[cpu];
    char path[4096];
    if (snprintf(path, sizeof path, "%s/index", w->dir) >= (int)sizeof path - 32)
        return err_set(e, ERR_LIMIT, "%s: the path is too long", w->dir);
    int r = make_dir(path, e);
    if (r != ERR_OK)
        return r;
    snprintf(path + strlen(path), 32, "/channel0_%u.idx", cpu);
    uint8_t header[16];
    static const uint32_t words[4] = {0xc1f1dcc1, 1, 1, INDEX_ENTRY_BYTES};
    for (size_t i = 0; i < 4; i++)
        store(header + 4 * i, words[i], 4, true);
    r = write_file(path, O_TRUNC, header, sizeof header, e);
    return r == ERR_OK ? write_file(path, O_APPEND, s->index.v, s->index.n, e) : r;
}

int ctf_writer_close(struct ctf_writer *w, struct err *e)
{
    int r = ERR_OK;
    for (uint32_t cpu = 0; cpu < w->cpus && r == ERR_OK; cpu++) {
        if (w->streams[cpu].used_bytes)
            r = close_packet(w, cpu, e);
        if (r == ERR_OK && w->index_files && w->streams[cpu].file_bytes)
            r = write_index(w, cpu, e);
    }
    free_writer(w);
    return r;
}

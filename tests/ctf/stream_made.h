/* SPDX-License-Identifier: MIT */
/* Metadata in pieces, packets of bytes, and reading them. Shared by the tests of streams made by hand. */
#ifndef WEFT_TESTS_STREAM_MADE_H
#define WEFT_TESTS_STREAM_MADE_H

#include "stream_helpers.h"

static struct bytes b;

static inline void start_bytes(bool big)
{
    memset(&b, 0, sizeof b);
    b.big = big;
}

/* ---- metadata ---- */

#define TYPES \
    "/* CTF 1.8 */\n" \
    "typealias integer { size = 8; align = 8; } := uint8_t; " \
    "typealias integer { size = 16; align = 8; } := uint16_t;\n" \
    "typealias integer { size = 32; align = 8; } := uint32_t; " \
    "typealias integer { size = 64; align = 8; } := uint64_t;\n" \
    "typealias integer { size = 32; align = 8; signed = true; } := int32_t;\n" \
    "typealias integer { size = 5; align = 1; } := uint5_t;\n"
#define CLOCK(freq, offset) \
    "clock { name = c; freq = " #freq "; offset = " #offset "; };\n" \
    "typealias integer { size = 27; align = 1; map = clock.c.value; } := uint27_clock;\n" \
    "typealias integer { size = 32; align = 8; map = clock.c.value; } := uint32_clock;\n" \
    "typealias integer { size = 64; align = 8; map = clock.c.value; } := uint64_clock;\n"
#define TRACE(order) \
    "trace { major = 1; minor = 8; byte_order = " order "; uuid = \"00112233-4455-6677-8899-aabbccddeeff\";\n" \
    " packet.header := struct { uint32_t magic; uint8_t uuid[16]; uint32_t stream_id; }; };\n"
#define CONTEXT \
    "struct context { uint64_clock timestamp_begin; uint64_clock timestamp_end; " \
    "uint64_t content_size; uint64_t packet_size;\n" \
    " uint32_t events_discarded; uint32_t cpu_id; };\n"
#define COMPACT \
    "struct header { enum : uint5_t { compact = 0 ... 30, extended = 31 } id;\n" \
    " variant <id> { struct { uint27_clock timestamp; } compact; " \
    "struct { uint32_t id; uint64_clock timestamp; } extended; } v; } align(8);\n"
#define LARGE \
    "struct header { enum : uint16_t { compact = 0 ... 65534, extended = 65535 } id;\n" \
    " variant <id> { struct { uint32_clock timestamp; } compact; " \
    "struct { uint32_t id; uint64_clock timestamp; } extended; } v; } align(8);\n"
#define STREAM "stream { id = 0; event.header := struct header; packet.context := struct context; };\n"
#define EVENT(id, name, fields) \
    "event { name = \"" name "\"; id = " #id "; stream_id = 0; fields := struct { " fields " }; };\n"

static const uint8_t uuid[16] = {0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77,
    0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff};

/* Appends the head of a packet as declared by TRACE and CONTEXT: 64 bytes. Returns the packet's begin. */
static inline size_t begin_packet(uint64_t begin, uint64_t end, uint32_t discarded, uint32_t cpu)
{
    size_t at = b.n;
    put(&b, 0xC1FC1FC1, 4);
    memcpy(b.v + b.n, uuid, 16);
    b.n += 16;
    put(&b, 0, 4);
    put(&b, begin, 8);
    put(&b, end, 8);
    put(&b, 0, 8);
    put(&b, 0, 8);
    put(&b, discarded, 4);
    put(&b, cpu, 4);
    return at;
}

/* Sets the sizes; `padding` bytes follow the content. */
static inline void end_packet(size_t at, size_t padding)
{
    uint64_t content = b.n - at;
    patch(&b, at + 40, content * 8, 8);
    patch(&b, at + 48, (content + padding) * 8, 8);
    b.n += padding;
}

static inline void compact(uint32_t id, uint32_t ts)
{
    if (b.big)
        put(&b, id << 27 | (ts & 0x7ffffff), 4);
    else
        put(&b, id | ts << 5, 4);
}

static inline void extended(uint32_t id, uint64_t ts, int escape_bytes)
{
    put(&b, escape_bytes == 1 ? (b.big ? 31u << 3 : 31u) : 65535u, escape_bytes);
    put(&b, id, 4);
    put(&b, ts, 8);
}

/* ---- reading ---- */

static struct opened o;
static event_vec all;

static inline void read_made(const char *dir)
{
    char path[1200];
    snprintf(path, sizeof path, "%s/%s", scratch, dir);
    open_all(&o, path);
    all = read_all(o.merge);
}

static inline void done(void)
{
    vec_free(&all);
    close_all(&o);
}

static inline void read_bytes(const char *dir, const char *metadata)
{
    write_text(dir, "metadata", metadata);
    write_file(dir, "stream", b.v, b.n);
    read_made(dir);
}

static inline int64_t field(size_t event, const char *path)
{
    struct ctf_access a;
    bool present;
    if (event >= all.n)
        fail_msg("only %zu events", all.n);
    assert_true(ctf_access_find(all.v[event].cls, CTF_PAYLOAD, path, &a));
    int64_t slow = ctf_read_slow(&all.v[event], &a, &present);
    assert_true(present);
    assert_true(ctf_read_int(&all.v[event], &a) == slow);
    return slow;
}

static inline bool absent(size_t event, const char *path)
{
    struct ctf_access a;
    bool present = true;
    assert_true(ctf_access_find(all.v[event].cls, CTF_PAYLOAD, path, &a));
    ctf_read_slow(&all.v[event], &a, &present);
    return !present;
}

static inline void check_string(size_t event, const char *path, const char *s)
{
    struct ctf_access a;
    size_t n;
    assert_true(ctf_access_find(all.v[event].cls, CTF_PAYLOAD, path, &a));
    const char *got = ctf_read_string(&all.v[event], &a, &n);
    assert_non_null(got);
    assert_int_equal(n, strlen(s));
    assert_memory_equal(got, s, n);
}

static inline bool problem_says(const char *text)
{
    const struct ctf_problem *p;
    size_t n = ctf_merge_problems(o.merge, &p);
    for (size_t i = 0; i < n; i++)
        if (strstr(p[i].text, text))
            return true;
    n = ctf_trace_problems(o.sources[0].trace, &p);
    for (size_t i = 0; i < n; i++)
        if (strstr(p[i].text, text))
            return true;
    return false;
}

static inline size_t problem_count(void)
{
    const struct ctf_problem *p;
    return ctf_merge_problems(o.merge, &p) + ctf_trace_problems(o.sources[0].trace, &p);
}

/* ---- the plain kind ---- */

#define PLAIN TYPES TRACE("le") CLOCK(1000000000, 0) CONTEXT COMPACT STREAM EVENT(1, "one", "uint32_t x;")

static inline void plain_packet(uint64_t begin, uint64_t end, uint32_t discarded, uint32_t cpu, int events)
{
    size_t at = begin_packet(begin, end, discarded, cpu);
    for (int i = 0; i < events; i++) {
        compact(1, (uint32_t)(begin + (end - begin) * (uint64_t)i / (uint64_t)events));
        put(&b, (uint64_t)(begin + (uint64_t)i), 4);
    }
    end_packet(at, 40);
}

#endif

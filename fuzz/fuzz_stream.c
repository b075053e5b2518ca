/* SPDX-License-Identifier: MIT */
/* Fuzz: a stream file under one of a few metadata. Input: one byte (which metadata), then the stream. All that is read
 * is also looked at. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctf/ctf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

#define TYPES \
    "/* CTF 1.8 */\n" \
    "typealias integer { size = 8; align = 8; } := uint8_t; typealias integer { size = 16; align = 8; } := " \
    "uint16_t;\n" \
    "typealias integer { size = 32; align = 8; } := uint32_t; typealias integer { size = 64; align = 8; } := " \
    "uint64_t;\n" \
    "typealias integer { size = 5; align = 1; } := uint5_t; clock { name = c; freq = 1000000000; };\n" \
    "typealias integer { size = 27; align = 1; map = clock.c.value; } := uint27_clock;\n" \
    "typealias integer { size = 32; align = 8; map = clock.c.value; } := uint32_clock;\n" \
    "typealias integer { size = 64; align = 8; map = clock.c.value; } := uint64_clock;\n"
#define EVENTS \
    "event { name = fixed; id = 0; stream_id = 0; fields := struct { uint32_t x; uint64_t y; }; };\n" \
    "event { name = text; id = 1; stream_id = 0; fields := struct { string s; uint8_t n; uint16_t list[n]; " \
    "uint64_t m; string many[m]; }; };\n" \
    "event { name = choice; id = 2; stream_id = 0; fields := struct { enum : uint8_t { a, b = 1 ... 9, c = 10 ... " \
    "255 } t;\n" \
    "  variant <t> { uint32_t a; string b; struct { } c; } v; uint64_t m; struct { uint8_t k; uint8_t l[k]; " \
    "variant <t> { struct { } a; uint8_t b; string c; } w; } deep[m];\n" \
    "  integer { size = 3; } p; integer { size = 13; signed = true; } q; uint8_t end; }; };\n" \
    "event { name = bits; id = 3; stream_id = 0; fields := struct { integer { size = 3; } p; integer { size = 61; " \
    "byte_order = be; } q; }; };\n"
#define HEADER(order) \
    "trace { major = 1; minor = 8; byte_order = " order \
    "; packet.header := struct { uint32_t magic; uint32_t stream_id; }; };\n"
#define CONTEXT \
    " packet.context := struct { uint64_clock timestamp_begin; uint64_clock timestamp_end; uint32_t content_size; " \
    "uint32_t packet_size;\n" \
    "  uint8_t packet_seq_num; uint8_t events_discarded; uint8_t cpu_id; };"

static const char *const metadata[] = {
    TYPES HEADER(
        "le") "stream { id = 0; event.header := struct { enum : uint5_t { compact = 0 ... 30, extended = 31 } id;\n"
              " variant <id> { struct { uint27_clock timestamp; } compact; struct { uint32_t id; uint64_clock "
              "timestamp; } extended; } v; } align(8);\n" CONTEXT " };\n" EVENTS,
    TYPES HEADER(
        "be") "stream { id = 0; event.header := struct { enum : uint16_t { compact = 0 ... 65534, extended = 65535 "
              "} id;\n"
              " variant <id> { struct { uint32_clock timestamp; } compact; struct { uint32_t id; uint64_clock "
              "timestamp; } extended; } v; } align(8);\n" CONTEXT " };\n" EVENTS,
    TYPES HEADER("le") "stream { id = 0; event.header := struct { uint8_t id; uint16_t seq; uint32_clock timestamp; "
                       "};" CONTEXT " };\n" EVENTS,
    TYPES "trace { major = 1; minor = 8; byte_order = le; }; stream { id = 0; event.header := struct { integer { size "
          "= 2;"
          " } id; }; };\n" EVENTS,
    TYPES
    "trace { major = 1; minor = 8; byte_order = be; }; stream { packet.context := struct { uint8_t k; string name; "
    "uint32_t content_size; };\n"
    " event.header := struct { integer { size = 3; } many; }; event.context := struct { string who; uint8_t "
    "list[stream.packet.context.k]; }; };\n"
    "event { name = e; fields := struct { integer { size = 7; } list[stream.event.header.many]; }; };\n",
    TYPES
    "trace { major = 1; minor = 8; byte_order = le; }; stream { }; event { name = e; fields := struct { uint8_t n; "
    "struct { } nothing[n]; string s[n]; }; };\n",
};
enum { KINDS = sizeof metadata / sizeof metadata[0] };

static char dir[KINDS][64];
static struct ctf_schemas *schemas;
static uint64_t sink;

static void write_file(const char *directory, const char *name, const void *data, size_t n)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, n, f) != n)
        abort();
    fclose(f);
}

static void clean(void)
{
    for (int i = 0; i < KINDS; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/stream", dir[i]);
        unlink(path);
        snprintf(path, sizeof path, "%s/metadata", dir[i]);
        unlink(path);
        rmdir(dir[i]);
    }
    ctf_schemas_free(schemas);
}

static void prepare(void)
{
    schemas = ctf_schemas_new();
    for (int i = 0; i < KINDS; i++) {
        snprintf(dir[i], sizeof dir[i], "%s/weft-fuzz-XXXXXX", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
        if (!mkdtemp(dir[i]))
            abort();
        write_file(dir[i], "metadata", metadata[i], strlen(metadata[i]));
    }
    atexit(clean);
}

static void leaf(void *arg, const struct ctf_value *v)
{
    sink += v->v.u;
    for (size_t i = 0; v->s && i < v->len; i++)
        sink += (uint8_t)v->s[i];
}
static void compound(void *arg, const struct ctf_value *v)
{
    sink += v->len;
}

static void use_event(const struct ctf_event *ev)
{
    static const char *const paths[] = {"x", "y", "s", "list", "v.a", "v.b", "m", "p", "q", "end", "deep"};
    const struct ctf_visitor v = {leaf, compound, compound, NULL};
    for (int s = 0; s < CTF_SCOPES; s++)
        ctf_visit(ev, (enum ctf_scope)s, &v);
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        struct ctf_access a;
        size_t n;
        if (!ctf_access_find(ev->cls, CTF_PAYLOAD, paths[i], &a))
            continue;
        sink += (uint64_t)ctf_read_int(ev, &a);
        const char *s = ctf_read_string(ev, &a, &n);
        if (s && n)
            sink += (uint8_t)s[n - 1];
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (!schemas)
        prepare();
    if (n == 0)
        return 0;
    char *dirs[1] = {dir[data[0] % KINDS]};
    struct ctf_group group = {dirs, 1};
    struct ctf_source source = {0};
    struct ctf_merge *m;
    struct ctf_event ev[8];
    struct err e = {0};
    size_t got, events = 0;
    write_file(dirs[0], "stream", data + 1, n - 1);
    if (ctf_trace_open(&group, schemas, &source.trace, &e))
        abort(); /* the metadata are good */
    if (ctf_merge_new(&source, 1, (struct ctf_window){INT64_MIN, INT64_MAX}, -1, &m, &e))
        abort();
    while ((got = ctf_merge_next(m, ev, 8)) > 0) {
        for (size_t i = 0; i < got; i++)
            use_event(&ev[i]);
        events += got;
    }
    if (events > n * 8 + 4096)
        abort(); /* each event has a bit of its own */
    ctf_merge_seek(m, events / 2, &e);
    ctf_merge_free(m);
    ctf_trace_close(source.trace);
    return 0;
}

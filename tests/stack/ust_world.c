/* SPDX-License-Identifier: MIT */
#include "ust_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctf/ctf.h"
#include "ctf_writer.h"

enum {
    ENTER,
    EXIT,
    FAST_ENTER,
    FAST_EXIT,
    NAMED,
    MESSAGE,
    BIN_INFO,
    DLOPEN,
    DLCLOSE,
    MALLOC,
    CALLOC,
    REALLOC,
    FREE,
    DUMP
};

#define EVENT(name, id, fields) \
    "event { name = \"" name "\"; id = " #id "; stream_id = 0; loglevel = 12; fields := struct { " fields " }; };\n"
#define HEX(name) "integer { size = 64; align = 8; signed = 0; base = 16; } " name "; "
static const char tsdl[] = EVENT("lttng_ust_cyg_profile:func_entry", 0, HEX("_addr") HEX("_call_site")) EVENT(
    "lttng_ust_cyg_profile:func_exit", 1, HEX("_addr") HEX("_call_site")) EVENT("lttng_ust_cyg_profile_fast:func_entry",
    2, HEX("_addr")) EVENT("lttng_ust_cyg_profile_fast:func_exit", 3, "")
    EVENT("lttng_ust_cyg_profile:func_entry", 4, HEX("_addr") "string _name;") EVENT(
        "lttng_ust_tracef:event", 5, "string _msg;") EVENT("lttng_ust_statedump:bin_info", 6,
        HEX("_baddr") "uint64_t _memsz; string _path; uint8_t _is_pic; uint8_t _has_build_id; uint8_t _has_debug_link;")
        EVENT("lttng_ust_dl:dlopen", 7, HEX("_baddr") "uint64_t _memsz; string _path;")
            EVENT("lttng_ust_dl:dlclose", 8, HEX("_baddr"))
                EVENT("lttng_ust_libc:malloc", 9, "uint64_t _size; " HEX("_ptr"))
                    EVENT("lttng_ust_libc:calloc", 10, "uint64_t _nmemb; uint64_t _size; " HEX("_ptr"))
                        EVENT("lttng_ust_libc:realloc", 11, HEX("_in_ptr") "uint64_t _size; " HEX("_ptr"))
                            EVENT("lttng_ust_libc:free", 12, HEX("_ptr")) EVENT("lttng_ust_statedump:start", 13, "");
static const char contexts[] =
    "int32_t _vpid; int32_t _vtid; integer { size = 8; align = 8; signed = 1; encoding = UTF8; } _procname[17];";

static void check(int rc, const struct err *e)
{
    if (rc) {
        fprintf(stderr, "ust_world: %s\n", e->text);
        abort();
    }
}

void ust_create(struct ust *u, const char *dir, const char *host, bool bare)
{
    static const char *const env[] = {"domain=ust", "tracer_name=lttng-ust", "tracer_major=2", "tracer_minor=13", NULL},
                             *const process_env[] = {"domain=ust", "tracer_name=lttng-ust", "tracer_major=2",
                                 "tracer_minor=13", "vpid=321", NULL};
    struct ctf_writer_options o = {.hostname = host,
        .tsdl = tsdl,
        .env = bare ? process_env : env,
        .freq = 1000000000,
        .clock_offset_ns = UST_START,
        .packet_bytes = 4096,
        .cpus = UST_CPUS,
        .uuid = {7, 7, 7, (uint8_t)bare},
        .index_files = true,
        .event_context = bare ? NULL : contexts};
    struct err e = {0};
    *u = (struct ust){.pid = 100, .tid = 100, .name = "app", .bare = bare};
    check(ctf_writer_open(dir, &o, &u->writer, &e), &e);
}

void ust_close(struct ust *u)
{
    struct err e = {0};
    check(ctf_writer_close(u->writer, &e), &e);
}

void ust_lose(struct ust *u, uint64_t events)
{
    struct err e = {0};
    check(ctf_writer_lose(u->writer, u->cpu, events, 0, &e), &e);
}

/* ---- events ---- */

struct payload {
    uint8_t v[512];
    size_t n;
};

static struct payload begin(const struct ust *u)
{
    struct payload p = {.n = 0};
    if (!u->bare) {
        memcpy(p.v, &u->pid, 4);
        memcpy(p.v + 4, &u->tid, 4);
        strncpy((char *)p.v + 8, u->name, 16);
        p.n = 25;
    }
    return p;
}

static void put(struct payload *p, uint64_t v, size_t bytes)
{
    memcpy(p->v + p->n, &v, bytes);
    p->n += bytes;
}

static void put_text(struct payload *p, const char *s)
{
    memcpy(p->v + p->n, s, strlen(s) + 1);
    p->n += strlen(s) + 1;
}

static void end(struct ust *u, int64_t t, int id, const struct payload *p)
{
    struct err e = {0};
    check(ctf_writer_event(u->writer, u->cpu, (uint64_t)id, UST_START + t, p->v, p->n, &e), &e);
}

/* Events of nothing but 64-bit numbers. */
static void numbers(struct ust *u, int64_t t, int id, const uint64_t *v, size_t n)
{
    struct payload p = begin(u);
    for (size_t i = 0; i < n; i++)
        put(&p, v[i], 8);
    end(u, t, id, &p);
}

void ust_enter_from(struct ust *u, int64_t t, uint64_t address, uint64_t site)
{
    numbers(u, t, ENTER, (uint64_t[]){address, site}, 2);
}
void ust_exit_to(struct ust *u, int64_t t, uint64_t address, uint64_t site)
{
    numbers(u, t, EXIT, (uint64_t[]){address, site}, 2);
}
void ust_enter(struct ust *u, int64_t t, uint64_t address)
{
    ust_enter_from(u, t, address, address + 1);
}
void ust_exit(struct ust *u, int64_t t, uint64_t address)
{
    ust_exit_to(u, t, address, address + 1);
}
void ust_fast_enter(struct ust *u, int64_t t, uint64_t address)
{
    numbers(u, t, FAST_ENTER, &address, 1);
}
void ust_fast_exit(struct ust *u, int64_t t)
{
    numbers(u, t, FAST_EXIT, NULL, 0);
}
void ust_dump(struct ust *u, int64_t t)
{
    numbers(u, t, DUMP, NULL, 0);
}
void ust_dlclose(struct ust *u, int64_t t, uint64_t base)
{
    numbers(u, t, DLCLOSE, &base, 1);
}
void ust_malloc(struct ust *u, int64_t t, uint64_t bytes, uint64_t result)
{
    numbers(u, t, MALLOC, (uint64_t[]){bytes, result}, 2);
}
void ust_calloc(struct ust *u, int64_t t, uint64_t count, uint64_t bytes, uint64_t result)
{
    numbers(u, t, CALLOC, (uint64_t[]){count, bytes, result}, 3);
}
void ust_realloc(struct ust *u, int64_t t, uint64_t old, uint64_t bytes, uint64_t result)
{
    numbers(u, t, REALLOC, (uint64_t[]){old, bytes, result}, 3);
}
void ust_free(struct ust *u, int64_t t, uint64_t address)
{
    numbers(u, t, FREE, &address, 1);
}

void ust_named_enter(struct ust *u, int64_t t, uint64_t address, const char *name)
{
    struct payload p = begin(u);
    put(&p, address, 8);
    put_text(&p, name);
    end(u, t, NAMED, &p);
}

void ust_message(struct ust *u, int64_t t, const char *text)
{
    struct payload p = begin(u);
    put_text(&p, text);
    end(u, t, MESSAGE, &p);
}

static void library(struct ust *u, int64_t t, int id, uint64_t base, uint64_t bytes, const char *path, int pic)
{
    struct payload p = begin(u);
    put(&p, base, 8);
    put(&p, bytes, 8);
    put_text(&p, path);
    if (pic >= 0)
        put(&p, (uint64_t)pic, 3);
    end(u, t, id, &p);
}

void ust_bin_info(struct ust *u, int64_t t, uint64_t base, uint64_t bytes, const char *path, bool pic)
{
    library(u, t, BIN_INFO, base, bytes, path, pic);
}
void ust_dlopen(struct ust *u, int64_t t, uint64_t base, uint64_t bytes, const char *path)
{
    library(u, t, DLOPEN, base, bytes, path, -1);
}

/* ---- whole traces ---- */

/* The second process, on the other CPU: a program that is loaded where it was linked for. */
static void write_tool(struct ust *u)
{
    u->cpu = 1;
    u->pid = u->tid = 200;
    u->name = "tool";
    ust_enter(u, 3000, 0x400800);
    ust_enter(u, 3100, 0x400900);
    ust_bin_info(u, 3150, 0x400000, 0x1000, "/usr/bin/tool", false);
    ust_enter(u, 3200, 0x400a00);
    ust_exit(u, 3400, 0x400800); /* the two above were left by longjmp */
    ust_exit(u, 3500, 0x400800); /* exit without entry */
    ust_enter(u, 4000, 0x400b00);
    ust_exit(u, 5600, 0x400b00); /* unknown whether of the same call: events were lost since */
}

void ust_write_sample(const char *dir, const char *host)
{
    struct ust u;
    ust_create(&u, dir, host, false);
    ust_bin_info(&u, 1000, 0x10000, 0x1000, "/opt/app/bin/app", true);
    ust_enter(&u, 2000, 0x10010);
    ust_enter(&u, 2100, 0x10020);
    ust_malloc(&u, 2150, 4096, 0x9000);
    u.tid = 101;
    ust_enter(&u, 2200, 0x10030);
    u.tid = 100;
    ust_exit(&u, 2500, 0x10020);
    ust_named_enter(&u, 2600, 0x10040, "parse(char const*)");
    ust_exit(&u, 2700, 0x10040);
    ust_dlopen(&u, 2800, 0x20000, 0x1000, "/opt/app/lib/plugin.so");
    ust_enter(&u, 2900, 0x20100);
    ust_exit(&u, 2950, 0x20100);
    ust_message(&u, 2960, "half way");
    ust_free(&u, 2970, 0x9000);
    ust_lose(&u, 0);
    u.tid = 101;
    u.name = "worker";
    ust_enter(&u, 5000, 0x10050);
    ust_exit(&u, 5200, 0x10050);
    u.tid = 100;
    u.name = "app";
    ust_calloc(&u, 5300, 10, 100, 0xa000);
    ust_enter(&u, 6000, 0x10060);
    ust_lose(&u, 5); /* lost between 2970 and 5000, or at 6000 */
    ust_enter(&u, 7000, 0x10070);
    ust_message(&u, 8000, "end");
    write_tool(&u);
    ust_close(&u);
}

void ust_write_killed(const char *dir, const char *host)
{
    struct ust u;
    ust_create(&u, dir, host, false);
    u.pid = u.tid = 300;
    u.name = "other";
    ust_malloc(&u, 20000, 100, 0x9000);
    u.pid = u.tid = 11;
    u.name = "beta";
    ust_malloc(&u, 31000, 4096, 0xa000);
    u.pid = u.tid = 300;
    u.name = "other";
    ust_malloc(&u, 90000, 100, 0xb000);
    ust_close(&u);
}

static void dump(struct ust *u, int64_t t, int32_t thread, uint64_t base, const char *program)
{
    int32_t own = u->tid;
    u->tid = thread;
    ust_dump(u, t);
    ust_bin_info(u, t + 10, base, 0x1000, program, true);
    ust_bin_info(u, t + 20, 0x90000, 0x1000, "/lib/libc.so", true);
    u->tid = own;
}

/* 102, 103 are LTTng-UST's own threads. The second exec is of a program whose one has the number of the one before. */
void ust_write_exec(const char *dir)
{
    struct ust u;
    ust_create(&u, dir, "made", false);
    dump(&u, 100, 102, 0x10000, "/bin/first");
    ust_enter(&u, 200, 0x10010);
    ust_enter(&u, 300, 0x10020);
    ust_malloc(&u, 310, 4096, 0x9000);
    u.tid = 101;
    ust_enter(&u, 350, 0x10030);
    ust_malloc(&u, 360, 100, 0xa000);
    u.tid = 100;
    dump(&u, 400, 102, 0x10000, "/bin/first"); /* state dump on demand: changes nothing */
    ust_exit(&u, 450, 0x10020);
    dump(&u, 500, 103, 0x10000, "/bin/second");
    ust_enter(&u, 600, 0x10010);
    ust_malloc(&u, 610, 50, 0x9000);
    ust_free(&u, 620, 0xa000);
    dump(&u, 700, 103, 0x20000, "/bin/third");
    ust_enter(&u, 800, 0x20010);
    ust_exit(&u, 900, 0x20010);
    ust_exit(&u, 950, 0x10010);
    ust_close(&u);
}

void ust_write_deep(const char *dir, int levels)
{
    struct ust u;
    int64_t t = 0;
    ust_create(&u, dir, "made", false);
    for (int i = 0; i < levels; i++)
        ust_enter(&u, ++t, 0x10010);
    for (int i = 0; i < levels; i++)
        ust_exit(&u, ++t, 0x10010);
    ust_close(&u);
}

static uint32_t next(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    return *state ^= *state << 5;
}

void ust_write_random(const char *dir, uint32_t seed, int n, bool lossy)
{
    enum { THREADS = 6, DEEPEST = 12 };
    uint64_t stacks[THREADS][DEEPEST];
    int depths[THREADS] = {0};
    bool closed[UST_CPUS] = {false};
    struct ust u;
    int64_t t = 0;
    ust_create(&u, dir, "made", false);
    for (int i = 0; i < n; i++) {
        uint32_t r = next(&seed), thread = r % THREADS;
        int *depth = &depths[thread];
        t += (r >> 8) % 64 ? (r >> 8) % 1000 : (int64_t)(r >> 8) * 4000; /* now and then longer than 32 bits hold */
        u.pid = thread < 4 ? 100 : 200;
        u.tid = 100 + (int32_t)thread;
        u.cpu = next(&seed) % UST_CPUS;
        t += lossy;
        if (lossy && i > 100 && next(&seed) % 64 == 0) {
            ust_lose(&u, closed[u.cpu] ? next(&seed) % 3 : 0);
            closed[u.cpu] = true;
        }
        u.name = i > n / 2 && thread == 1 ? "renamed" : thread < 4 ? "app" : "tool";
        uint64_t address = 0x1000 + next(&seed) % 40 * 16;
        uint32_t what = next(&seed) % 100;
        if (what >= 96) {
            uint64_t memory = 0x9000 + next(&seed) % 30 * 64;
            if (what == 96)
                ust_realloc(&u, t, memory, next(&seed) % 5000, next(&seed) % 8 ? memory + 64 : 0);
            else if (what == 97)
                ust_free(&u, t, memory);
            else
                ust_malloc(&u, t, next(&seed) % 5000, memory);
        } else if (what == 0) {
            ust_exit(&u, t, 0x7777);
        } else if (what == 1 && *depth > 1) {
            *depth -= 2;
            ust_exit(&u, t, stacks[thread][*depth]);
        } else if (*depth < DEEPEST && (what < 52 || !*depth)) {
            stacks[thread][(*depth)++] = address;
            ust_enter(&u, t, address);
        } else {
            ust_exit(&u, t, stacks[thread][--*depth]);
        }
    }
    ust_close(&u);
}

/* SPDX-License-Identifier: MIT */
#include "bus/frame.h"

#include <endian.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "bus/bus.h"

static const uint8_t magic[2] = {'w', 'b'};

static uint32_t get32(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return le32toh(v);
}

static uint64_t get64(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return le64toh(v);
}

static void put32(uint8_t *p, uint32_t v)
{
    v = htole32(v);
    memcpy(p, &v, sizeof v);
}

static void put64(uint8_t *p, uint64_t v)
{
    v = htole64(v);
    memcpy(p, &v, sizeof v);
}

/* Checks that the counts are possible for one part of a message. */
static int check_counts(const struct frame *f, struct err *e)
{
    if (f->part >= f->parts)
        return err_set(e, ERR_FORMAT, "frame: part %" PRIu32 " of %" PRIu32, f->part, f->parts);
    if (f->parts == 1 ? f->whole_bytes != f->n : f->whole_bytes < f->parts || f->n == 0 || f->n >= f->whole_bytes)
        return err_set(e, ERR_FORMAT, "frame: part %" PRIu32 " of %" PRIu32 " has %zu bytes of %" PRIu64, f->part,
            f->parts, f->n, f->whole_bytes);
    return 0;
}

int bus_frame_read(const void *data, size_t n, struct frame *out, struct err *e)
{
    const uint8_t *p = data;
    if (n < FRAME_BYTES || memcmp(p, magic, sizeof magic) != 0)
        return err_set(e, ERR_FORMAT, "frame: %zu bytes that do not begin as a message of weft does", n);
    if (p[2] != FRAME_VERSION)
        return err_set(
            e, ERR_UNSUPPORTED, "frame: version %u, but this weft knows %d: update the older one", p[2], FRAME_VERSION);
    if (p[3] < FRAME_QUESTION || p[3] > FRAME_SIGNED_REFUSAL)
        return err_set(e, ERR_FORMAT, "frame: kind %u is none", p[3]);
    *out = (struct frame){.kind = p[3],
        .part = get32(p + 4),
        .parts = get32(p + 8),
        .number = (int32_t)get32(p + 12),
        .id = get64(p + 16),
        .whole_bytes = get64(p + 24),
        .data = p + FRAME_BYTES,
        .n = n - FRAME_BYTES};
    return check_counts(out, e);
}

void bus_frame_write(const struct frame *f, uint8_t out[FRAME_BYTES])
{
    memcpy(out, magic, sizeof magic);
    out[2] = FRAME_VERSION;
    out[3] = (uint8_t)f->kind;
    put32(out + 4, f->part);
    put32(out + 8, f->parts);
    put32(out + 12, (uint32_t)f->number);
    put64(out + 16, f->id);
    put64(out + 24, f->whole_bytes);
}

static int begin(struct assembly *a, const struct frame *f, uint64_t limit, struct err *e)
{
    if (f->part != 0)
        return err_set(e, ERR_FORMAT, "message: begins with part %" PRIu32, f->part);
    if (f->whole_bytes > limit)
        return err_set(
            e, ERR_LIMIT, "message of %" PRIu64 " bytes: at most %" PRIu64 " are taken", f->whole_bytes, limit);
    a->id = f->id;
    a->whole_bytes = f->whole_bytes;
    a->parts = f->parts;
    a->kind = f->kind;
    a->number = f->number;
    return 0;
}

static int check_next(const struct assembly *a, const struct frame *f, struct err *e)
{
    if (f->id != a->id || f->parts != a->parts || f->whole_bytes != a->whole_bytes || f->kind != a->kind)
        return err_set(e, ERR_FORMAT, "message: part %" PRIu32 " is another message's", f->part);
    if (f->part != a->next)
        return err_set(
            e, ERR_FORMAT, "message: part %" PRIu32 " came where part %" PRIu32 " was due", f->part, a->next);
    uint64_t rest = a->whole_bytes - a->n, parts_after = a->parts - a->next - 1;
    if (parts_after ? f->n > rest || rest - f->n < parts_after : f->n != rest)
        return err_set(e, ERR_FORMAT, "message: part %" PRIu32 " has %zu bytes, where %" PRIu64 " are missing", f->part,
            f->n, rest);
    return 0;
}

static int append(struct assembly *a, const struct frame *f, struct err *e)
{
    if (a->n + f->n > a->cap) {
        size_t cap = a->cap * 2 > a->n + f->n ? a->cap * 2 : a->n + f->n;
        if (cap > a->whole_bytes)
            cap = (size_t)a->whole_bytes;
        void *larger = mem_try_resize(a->data, cap);
        if (!larger)
            return err_set(e, ERR_NOMEM, "out of memory: a message of %" PRIu64 " bytes", a->whole_bytes);
        a->data = larger;
        a->cap = cap;
    }
    if (f->n)
        memcpy(a->data + a->n, f->data, f->n);
    a->n += f->n;
    return 0;
}

int bus_assembly_add(struct assembly *a, const struct frame *f, uint64_t limit, struct err *e)
{
    int rc = a->parts ? 0 : begin(a, f, limit, e);
    rc = rc ? rc : check_next(a, f, e);
    rc = rc ? rc : append(a, f, e);
    if (rc)
        return rc;
    a->next++;
    return a->next == a->parts;
}

void bus_assembly_free(struct assembly *a)
{
    free(a->data);
    *a = (struct assembly){0};
}

/* A length in one byte, then so many bytes, none of them 0. */
static bool read_name(const uint8_t **p, const uint8_t *end, const char **name, size_t *n)
{
    if (*p == end || (size_t)(end - *p) - 1 < **p || **p == 0)
        return false;
    *n = **p;
    *name = (const char *)*p + 1;
    *p += 1 + *n;
    return !memchr(*name, 0, *n);
}

int bus_beat_read(const struct frame *f, struct beat *out, struct err *e)
{
    const uint8_t *p = f->data, *end = f->data + f->n;
    if (f->parts != 1 || f->number <= 0 || !read_name(&p, end, &out->name, &out->name_n) ||
        !read_name(&p, end, &out->instance, &out->instance_n) || end - p > BUS_MAX_SAID)
        return err_set(e, ERR_FORMAT, "beat of %zu bytes: breaks the rules", f->n);
    out->said = p;
    out->said_n = (size_t)(end - p);
    return 0;
}

size_t bus_beat_bytes(const struct beat *b)
{
    return 2 + b->name_n + b->instance_n + b->said_n;
}

void bus_beat_write(const struct beat *b, uint8_t *out)
{
    *out++ = (uint8_t)b->name_n;
    memcpy(out, b->name, b->name_n);
    out += b->name_n;
    *out++ = (uint8_t)b->instance_n;
    memcpy(out, b->instance, b->instance_n);
    out += b->instance_n;
    if (b->said_n)
        memcpy(out, b->said, b->said_n);
}

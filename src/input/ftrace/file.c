/* SPDX-License-Identifier: MIT */
/* The layout of a trace.dat file, versions 6 and 7. */
#include "ftrace/file.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_CPUS = 8192, MOST_BUFFERS = 1 << 10, MOST_SECTIONS = 1 << 12 };
enum { MOST_SECTIONS_BYTES = 256 << 20 };
enum { LEAST_PAGE = 256, MOST_PAGE = 1 << 20 };

static struct ftrace_bytes bytes_at(const struct ftrace_file *f, uint64_t offset, uint64_t n)
{
    uint64_t size = f->map.size, left = offset < size ? size - offset : 0;
    return (struct ftrace_bytes){f->map.data + (offset < size ? offset : size), n < left ? n : left, 0, f->big, false};
}

static bool is_page(uint64_t n)
{
    return n >= LEAST_PAGE && n <= MOST_PAGE && (n & (n - 1)) == 0;
}

static int cut_off(const struct ftrace_file *f, const char *what, struct err *e)
{
    return err_set(e, ERR_FORMAT,
        "%s: the file ends before %s (byte %zu): it was cut off, or trace-cmd did not finish "
        "it; copy it again",
        f->path, what, f->map.size);
}

static int only_latency(const struct ftrace_file *f, struct err *e)
{
    return err_set(e, ERR_UNSUPPORTED,
        "%s: has the text of a latency tracer, no events; record events (trace-cmd record -e …)", f->path);
}

/* Takes a CPU of a buffer. Data of CPUs do not overlap: a damaged table must not have a file read a thousand times.
 * Each takes at least a small page, so that many of them need a large file. */
static void add_cpu(struct ftrace_file *f, struct ftrace_buffer *buffer, uint64_t cpu, uint64_t offset, uint64_t size)
{
    uint64_t bytes = bytes_at(f, offset, size).n;
    bytes = bytes < LEAST_PAGE ? LEAST_PAGE : bytes;
    if (!size || cpu >= MOST_CPUS)
        return;
    if (bytes > f->map.size - f->claimed || f->cpu_owner[cpu] == f->tables) {
        f->cpus_refused++;
        return;
    }
    f->claimed += bytes;
    f->cpu_owner[cpu] = f->tables;
    vec_push(&buffer->cpus, ((struct ftrace_cpu){(int32_t)cpu, offset, size}));
}

/* ---- version 6: parts one after the other ---- */

/* The places of one buffer's CPUs. */
static void read_places(struct ftrace_file *f, struct ftrace_bytes *b, const char *name)
{
    struct ftrace_buffer buffer = {.name = name, .page_bytes = f->page_bytes};
    f->tables++;
    for (uint32_t i = 0; i < f->cpus && i < MOST_CPUS; i++) {
        uint64_t offset = ftrace_number(b, 8), size = ftrace_number(b, 8);
        if (!b->bad)
            add_cpu(f, &buffer, i, offset, size);
    }
    if (b->bad)
        ftrace_problem(f, "%s: byte %zu: the table of CPUs of buffer '%.60s' is cut off", f->path,
            (size_t)(b->v + b->at - f->map.data), name);
    vec_push(&f->buffers, buffer);
}

static bool is_flyrecord(struct ftrace_bytes *b)
{
    const uint8_t *type = ftrace_take(b, 10);
    return type && !memcmp(type, "flyrecord", 10);
}

struct named_offset {
    uint64_t offset;
    const char *name;
};

static bool read_options_6(struct ftrace_file *f, struct ftrace_bytes *b, struct named_offset *others, size_t *n)
{
    for (unsigned id; (id = (unsigned)ftrace_number(b, 2)) && !b->bad;) {
        uint64_t size = ftrace_number(b, 4);
        const uint8_t *v = ftrace_take(b, size);
        struct ftrace_bytes option = {v, size, 0, f->big, false};
        if (v && id == 3 && *n < MOST_BUFFERS) {
            others[*n].offset = ftrace_number(&option, 8);
            others[*n].name = ftrace_string(&option);
            *n += !option.bad;
        } else if (v) {
            ftrace_read_option(f, id, option);
        }
    }
    return !b->bad;
}

static int read_buffers_6(struct ftrace_file *f, struct ftrace_bytes *b, struct err *e)
{
    struct named_offset *others = mem_zalloc(sizeof *others * MOST_BUFFERS);
    size_t n = 0;
    int rc = 0;
    f->cpus = (uint32_t)ftrace_number(b, 4);
    uint32_t cpus = f->cpus;
    if (b->n - b->at >= 10 && !b->bad && !memcmp(b->v + b->at, "options  ", 10)) {
        ftrace_take(b, 10);
        read_options_6(f, b, others, &n);
    }
    f->cpus = cpus; /* number of places, whatever the option of that name says */
    if (b->bad)
        rc = cut_off(f, "the places of the events", e);
    else if (!is_flyrecord(b))
        rc = b->bad ? cut_off(f, "the places of the events", e) : only_latency(f, e);
    if (!rc)
        read_places(f, b, "");
    for (size_t i = 0; i < n && !rc; i++) {
        struct ftrace_bytes at = bytes_at(f, others[i].offset, UINT64_MAX);
        if (is_flyrecord(&at))
            read_places(f, &at, others[i].name);
        else
            ftrace_problem(f, "%s: byte %llu: no buffer '%.60s' is there; it is not read", f->path,
                (unsigned long long)others[i].offset, others[i].name);
    }
    free(others);
    return rc;
}

static int read_6(struct ftrace_file *f, struct ftrace_bytes *b, struct err *e)
{
    ftrace_read_headers(f, b);
    if (!b->bad)
        ftrace_read_ftrace_events(f, b);
    if (!b->bad)
        ftrace_read_event_formats(f, b);
    if (b->bad)
        return cut_off(f, "the formats of its events", e);
    ftrace_take(b, ftrace_number(b, 4)); /* kallsyms */
    ftrace_take(b, ftrace_number(b, 4)); /* formats of trace_printk */
    ftrace_take(b, ftrace_number(b, 8)); /* names of commands */
    return b->bad ? cut_off(f, "the places of the events", e) : read_buffers_6(f, b, e);
}

/* ---- version 7: sections and options ---- */

/* Counts bytes of a section to be read: damaged options may name a large one any number of times. */
static bool may_read(struct ftrace_file *f, uint64_t bytes)
{
    if (bytes <= MOST_SECTIONS_BYTES - f->section_bytes) {
        f->section_bytes += bytes;
        return true;
    }
    ftrace_problem(f, "%s: the options name sections of more than %u MiB", f->path, MOST_SECTIONS_BYTES >> 20);
    return false;
}

/* Content of the section at `offset`; *owned: to be freed, or NULL. */
static bool section(struct ftrace_file *f, uint64_t offset, unsigned want, struct ftrace_bytes *out, uint8_t **owned)
{
    struct ftrace_bytes b = bytes_at(f, offset, UINT64_MAX);
    unsigned id = (unsigned)ftrace_number(&b, 2), flags = (unsigned)ftrace_number(&b, 2);
    struct err why = {0};
    ftrace_number(&b, 4);
    uint64_t size = ftrace_number(&b, 8);
    *owned = NULL;
    if (b.bad || id != want)
        return false;
    if (!(flags & 1)) {
        *out = bytes_at(f, offset + 16, size);
        return may_read(f, out->n);
    }
    uint64_t packed = ftrace_number(&b, 4), whole = ftrace_number(&b, 4);
    const uint8_t *from = ftrace_take(&b, packed);
    if (!from || !may_read(f, whole) || !(*owned = mem_try(1, whole + 1)))
        return false;
    if (ftrace_unpack(f->compression, from, packed, *owned, whole, &why)) {
        ftrace_problem(f, "%s: section %u at byte %llu: %s", f->path, want, (unsigned long long)offset, why.text);
        free(*owned);
        return false;
    }
    *out = (struct ftrace_bytes){*owned, whole, 0, f->big, false};
    return true;
}

static void read_part(struct ftrace_file *f, uint64_t offset, unsigned id, const char *what,
    void (*read)(struct ftrace_file *, struct ftrace_bytes *))
{
    struct ftrace_bytes b;
    uint8_t *owned;
    if (section(f, offset, id, &b, &owned)) {
        read(f, &b);
        free(owned);
    } else {
        ftrace_problem(
            f, "%s: byte %llu: the section with %s cannot be read", f->path, (unsigned long long)offset, what);
    }
}

static void read_buffer_7(struct ftrace_file *f, struct ftrace_bytes *b)
{
    uint64_t at = ftrace_number(b, 8);
    const char *name = ftrace_string(b), *clock = ftrace_string(b);
    struct ftrace_bytes head = bytes_at(f, at, 16);
    unsigned id = (unsigned)ftrace_number(&head, 2), flags = (unsigned)ftrace_number(&head, 2);
    struct ftrace_buffer buffer = {.name = arena_strdup(&f->arena, name),
        .clock = arena_strdup(&f->arena, clock),
        .page_bytes = (uint32_t)ftrace_number(b, 4),
        .compressed = flags & 1};
    uint64_t n = ftrace_number(b, 4);
    f->tables++;
    bool ok = is_page(buffer.page_bytes) && f->buffers.n < MOST_BUFFERS;
    for (uint64_t i = 0; ok && i < n && i < MOST_CPUS && !b->bad; i++) {
        uint64_t cpu = ftrace_number(b, 4), offset = ftrace_number(b, 8), size = ftrace_number(b, 8);
        if (!b->bad)
            add_cpu(f, &buffer, cpu, offset, size);
    }
    ok = ok && !b->bad;
    if (!ok || head.bad || id != 3)
        ftrace_problem(
            f, "%s: byte %llu: the description of buffer '%.60s' is damaged", f->path, (unsigned long long)at, name);
    if (ok)
        vec_push(&f->buffers, buffer);
    else
        vec_free(&buffer.cpus);
}

enum { HEADER_INFO = 16, FTRACE_EVENTS = 17, EVENT_FORMATS = 18, LATENCY = 22 };

/* Reads the options of a section. Pass 0 reads only the page header, which tells the kernel's long for formats. */
static void read_options_7(struct ftrace_file *f, const struct ftrace_bytes *all, unsigned pass, uint64_t *next)
{
    struct ftrace_bytes b = *all;
    while (b.at < b.n) {
        unsigned id = (unsigned)ftrace_number(&b, 2);
        uint64_t size = ftrace_number(&b, 4);
        const uint8_t *v = ftrace_take(&b, size);
        struct ftrace_bytes option = {v, size, 0, f->big, false};
        if (!v)
            return;
        if (id == 0) {
            *next = ftrace_number(&option, 8);
            return;
        }
        if (pass == 0 && id == HEADER_INFO)
            read_part(f, ftrace_number(&option, 8), id, "the page header's format", ftrace_read_headers);
        else if (pass == 1 && id == FTRACE_EVENTS)
            read_part(f, ftrace_number(&option, 8), id, "formats of ftrace's own events", ftrace_read_ftrace_events);
        else if (pass == 1 && id == EVENT_FORMATS)
            read_part(f, ftrace_number(&option, 8), id, "formats of events", ftrace_read_event_formats);
        else if (pass == 1 && id == 3)
            read_buffer_7(f, &option);
        else if (pass == 1 && id == LATENCY)
            f->has_latency = true;
        else if (pass == 1)
            ftrace_read_option(f, id, option);
    }
}

static int read_7(struct ftrace_file *f, struct ftrace_bytes *b, struct err *e)
{
    f->compression_name = ftrace_string(b);
    ftrace_string(b);
    uint64_t first = ftrace_number(b, 8);
    f->compression = !strcmp(f->compression_name, "none") ? FTRACE_NONE
        : !strcmp(f->compression_name, "zlib")            ? FTRACE_ZLIB
        : !strcmp(f->compression_name, "zstd")            ? FTRACE_ZSTD
                                                          : FTRACE_OTHER;
    if (b->bad)
        return cut_off(f, "its sections", e);
    if (f->compression == FTRACE_OTHER)
        return err_set(e, ERR_UNSUPPORTED,
            "%s: is compressed with '%.40s'; zlib and zstd are read: trace-cmd convert --compression zstd", f->path,
            f->compression_name);
    f->commit_at = 8;
    f->commit_bytes = f->long_bytes;
    f->data_at = 8 + f->commit_bytes;
    for (unsigned pass = 0; pass < 2; pass++) {
        uint64_t at = first;
        for (size_t i = 0; at && i < MOST_SECTIONS; i++) {
            struct ftrace_bytes options;
            uint8_t *owned;
            uint64_t next = 0;
            if (!section(f, at, 0, &options, &owned)) {
                if (pass)
                    ftrace_problem(f, "%s: byte %llu: the file's options end early: no options section is there",
                        f->path, (unsigned long long)at);
                break;
            }
            read_options_7(f, &options, pass, &next);
            free(owned);
            if (pass && next && next <= at)
                ftrace_problem(f, "%s: byte %llu: the next options section is said to lie before it, and is not read",
                    f->path, (unsigned long long)at);
            at = next > at ? next : 0; /* trace-cmd appends them */
        }
    }
    if (f->has_latency && !f->buffers.n)
        return only_latency(f, e);
    if (f->has_latency)
        ftrace_remark(f, "%s: the text of a latency tracer is not read", f->path);
    if (f->buffers.n)
        return 0;
    return cut_off(f, !first || first >= f->map.size ? "its options" : "the places of the events", e);
}

/* ---- versions 6 and 7 ---- */

static int by_id(const void *a, const void *b)
{
    const struct ftrace_event *p = a, *q = b;
    return p->id < q->id ? -1 : p->id > q->id;
}

static bool same_common(const ftrace_fields *a, const ftrace_fields *b)
{
    bool same = a->n == b->n;
    for (size_t i = 0; i < a->n && same; i++)
        same = a->v[i].offset == b->v[i].offset && a->v[i].size == b->v[i].size && !strcmp(a->v[i].name, b->v[i].name);
    return same;
}

/* The common fields of most events are those of the first; an event with others is not read. */
static void settle_events(struct ftrace_file *f)
{
    size_t n = 0;
    if (f->events.n)
        qsort(f->events.v, f->events.n, sizeof *f->events.v, by_id);
    for (size_t i = 0; i < f->events.n; i++) {
        struct ftrace_event *ev = &f->events.v[i];
        bool twice = n && f->events.v[n - 1].id == ev->id,
             fits = !n || same_common(&f->events.v[0].common, &ev->common);
        if (!twice && fits) {
            f->events.v[n++] = *ev;
            continue;
        }
        ftrace_problem(f, "%s: event '%.60s' has %s; it is not read", f->path, ev->name,
            twice ? "the id of another one" : "other common fields than the events before it");
        ftrace_event_fini(ev);
    }
    f->events.n = n;
    for (size_t i = 0; n && i < f->events.v[0].common.n; i++)
        if (strcmp(f->events.v[0].common.v[i].name, "common_type"))
            vec_push(&f->common, f->events.v[0].common.v[i]);
    f->n_ids = n ? f->events.v[n - 1].id + 1 : 0;
    f->by_id = arena_new(&f->arena, struct ftrace_event *, f->n_ids + 1);
    for (size_t i = 0; i < n; i++)
        f->by_id[f->events.v[i].id] = &f->events.v[i];
}

static int read_begin(struct ftrace_file *f, struct ftrace_bytes *b, struct err *e)
{
    ftrace_take(b, 10);
    const char *version = ftrace_string(b);
    f->version = (unsigned)strtoul(version, NULL, 10);
    f->big = b->big = ftrace_number(b, 1) == 1;
    f->long_bytes = (unsigned)ftrace_number(b, 1);
    f->page_bytes = (uint32_t)ftrace_number(b, 4);
    if (b->bad)
        return cut_off(f, "its header", e);
    if (f->version != 6 && f->version != 7)
        return err_set(e, ERR_UNSUPPORTED,
            "%s: is of version %.20s of trace.dat; 6 and 7 are read: trace-cmd convert --file-version 7", f->path,
            version);
    if ((f->long_bytes != 4 && f->long_bytes != 8) || !is_page(f->page_bytes))
        return err_set(e, ERR_FORMAT, "%s: its header is damaged: longs of %u bytes, pages of %u", f->path,
            f->long_bytes, f->page_bytes);
    return 0;
}

int ftrace_file_open(const char *path, struct ftrace_file *f, struct err *e)
{
    *f = (struct ftrace_file){0};
    f->path = arena_strdup(&f->arena, path);
    int rc = file_map_open(path, &f->map, e);
    if (rc)
        return rc;
    struct ftrace_bytes b = bytes_at(f, 0, UINT64_MAX);
    f->cpu_owner = arena_new(&f->arena, uint32_t, MOST_CPUS);
    rc = read_begin(f, &b, e);
    if (!rc)
        rc = f->version == 6 ? read_6(f, &b, e) : read_7(f, &b, e);
    if (!rc && (f->time_at + 8 > f->data_at || f->commit_at + f->commit_bytes > f->data_at || f->data_at >= LEAST_PAGE))
        rc = err_set(e, ERR_UNSUPPORTED, "%s: pages of this layout are not read", path);
    if (f->cpus_refused)
        ftrace_problem(f, "%s: CPUs are listed twice in a buffer, or their data overlap; those of %zu are not read",
            path, f->cpus_refused);
    if (!rc)
        settle_events(f);
    return rc;
}

void ftrace_file_close(struct ftrace_file *f)
{
    for (size_t i = 0; i < f->events.n; i++)
        ftrace_event_fini(&f->events.v[i]);
    for (size_t i = 0; i < f->buffers.n; i++)
        vec_free(&f->buffers.v[i].cpus);
    vec_free(&f->events);
    vec_free(&f->buffers);
    vec_free(&f->common);
    vec_free(&f->problems);
    file_map_close(&f->map);
    arena_fini(&f->arena);
}

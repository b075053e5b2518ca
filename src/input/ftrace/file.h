/* SPDX-License-Identifier: MIT */
/* Private to ftrace: the sections and options of a trace.dat file. */
#ifndef WEFT_FTRACE_FILE_H
#define WEFT_FTRACE_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "base/mem.h"
#include "ctf/made.h"

/* Bytes read one after the other. `bad` is set by a read beyond the end, and stays. */
struct ftrace_bytes { const uint8_t *v; size_t n, at; bool big, bad; };
uint64_t ftrace_number(struct ftrace_bytes *, unsigned bytes); /* 1, 2, 4 or 8; 0 when bad */
/* The next n bytes, or NULL. */
const uint8_t *ftrace_take(struct ftrace_bytes *, uint64_t n);
/* Up to and with the next NUL; "" when bad. */
const char *ftrace_string(struct ftrace_bytes *);
static inline uint64_t ftrace_load(const uint8_t *p, unsigned bytes, bool big)
{
    uint64_t v = 0;
    for (unsigned i = 0; i < bytes; i++)
        v |= (uint64_t)p[big ? bytes - 1 - i : i] << 8 * i;
    return v;
}

/* INT: 1, 2, 4 or 8 bytes. ARRAY: `size / element` elements. LIST: a word tells offset (low 16 bits) and size of the
 * elements. TAIL: the rest of the record. */
enum ftrace_kind { FTRACE_INT, FTRACE_ARRAY, FTRACE_LIST, FTRACE_TAIL };
struct ftrace_field {
    const char *name;
    uint32_t offset, size;   /* bytes in the record */
    uint8_t kind;
    uint8_t element;         /* bytes: 1, 2, 4, 8 */
    bool is_signed, is_text, is_pointer;
    bool relative;           /* LIST: the offset counts from the word's end */
};
typedef VEC(struct ftrace_field) ftrace_fields;
struct ftrace_event {
    uint32_t id;
    const char *name;
    ftrace_fields common, own;
    struct ftrace_op *ops; size_t n_ops; /* plan.c */
};

struct ftrace_cpu { int32_t cpu; uint64_t offset, size; };
/* Ring buffer; name: "" of the top one. */
struct ftrace_buffer {
    const char *name, *clock;
    uint32_t page_bytes;
    bool compressed;
    VEC(struct ftrace_cpu) cpus;
};

enum ftrace_compression { FTRACE_NONE, FTRACE_ZLIB, FTRACE_ZSTD, FTRACE_OTHER };
typedef VEC(struct ctf_made_problem) ftrace_problems;

/* Relation of a guest's CPU to its host's clock: host time = (time · scaling >> fraction) + offset. */
struct ftrace_shift {
    struct ftrace_sample { uint64_t time, offset, scaling, fraction; } *samples;
    size_t n;
    bool interpolate;        /* offsets change linearly from sample to sample */
};

struct ftrace_file {
    const char *path;
    struct file_map map;
    struct arena arena;      /* memory of the fields below */
    bool big;
    unsigned version, long_bytes; /* long_bytes: the kernel's, once the page header is known */
    uint32_t page_bytes;
    enum ftrace_compression compression;
    const char *compression_name;
    /* Offsets in a page of its time, its commit word and its data. */
    uint32_t time_at, commit_at, commit_bytes, data_at;
    VEC(struct ftrace_event) events;
    struct ftrace_event **by_id; uint32_t n_ids;
    ftrace_fields common;    /* fields that all events have, but for the event's id */
    VEC(struct ftrace_buffer) buffers;
    uint32_t cpus;
    uint64_t claimed;        /* bytes of the data of all CPUs */
    uint32_t tables;         /* tables of CPUs that were found */
    uint32_t *cpu_owner;     /* by CPU: number of the last table that has it, counted from 1 */
    size_t cpus_refused;
    const char *uname, *tool, *clock; /* texts of options, or NULL; clock: the chosen one of the list */
    uint64_t trace_id;
    bool has_trace_id;
    int64_t offset_ns;       /* added to all times */
    uint32_t tsc_mult, tsc_shift;
    struct ftrace_shift *shifts; size_t n_shifts; /* indexed by CPU */
    uint64_t host_id;        /* trace id of the host's recording, with shifts */
    bool has_guests, has_latency; /* has_latency: the text of a latency tracer */
    uint64_t section_bytes;  /* bytes of the sections that were read */
    ftrace_problems problems;
    size_t n_told[2];        /* problems; remarks */
};

void ftrace_problem(struct ftrace_file *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void ftrace_remark(struct ftrace_file *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Opens the file and reads all but the events. */
int ftrace_file_open(const char *path, struct ftrace_file *out, struct err *e);
void ftrace_file_close(struct ftrace_file *);

/* sections.c: what the parts hold, of both versions. */
void ftrace_read_headers(struct ftrace_file *, struct ftrace_bytes *);
void ftrace_read_ftrace_events(struct ftrace_file *, struct ftrace_bytes *);
void ftrace_read_event_formats(struct ftrace_file *, struct ftrace_bytes *);
/* An option of one version; those that both have. False: it is none. */
bool ftrace_read_option(struct ftrace_file *, unsigned id, struct ftrace_bytes);

/* shift.c: the option TIME_SHIFT. */
void ftrace_read_shift(struct ftrace_file *, struct ftrace_bytes);
uint64_t ftrace_shifted(const struct ftrace_shift *, uint64_t time);

/* format.c: one line "field:TYPE NAME; offset:N; size:N; signed:N;". False: it is none. */
bool ftrace_field_parse(struct arena *, const char *line, size_t n, unsigned long_bytes, struct ftrace_field *out);
/* The text of a `format` file. False: it is none. */
bool ftrace_event_parse(struct arena *, const char *text, size_t n, unsigned long_bytes, struct ftrace_event *out);
void ftrace_event_fini(struct ftrace_event *);

/* unpack.c: exactly `to_n` bytes of what is packed; ERR_FORMAT. */
int ftrace_unpack(enum ftrace_compression, const uint8_t *from, size_t n, uint8_t *to, size_t to_n, struct err *e);

#endif

/* SPDX-License-Identifier: MIT */
/* Private to stack: layout of the stack store's sections (docs/formats/stacks.md), little endian with natural
 * alignment; and the open store as its files share it. */
#ifndef WEFT_STACK_FORMAT_H
#define WEFT_STACK_FORMAT_H

#include "base/store.h"
#include "stack/stack.h"

enum { STACK_VERSION = 4, STACK_HOW_BITS = 2, STACK_MOST_FUNCTIONS = 1 << 29 };
#define STACK_LONG UINT32_MAX
#define STACK_NO_STREAM UINT32_MAX

struct stack_disk_process { int32_t pid; uint32_t name; };
struct stack_disk_thread {
    int64_t begin, end;
    uint32_t process;
    int32_t tid, cpu;
    uint32_t first_row, rows;
    uint32_t first_name, names;  /* index in "renames" */
    uint32_t stream;             /* stream if tid is -1; else STACK_NO_STREAM */
    uint64_t first_value, values; /* index in "memory" */
};
struct stack_disk_stream { uint64_t class_id, instance_id; int32_t cpu; uint32_t name; };
struct stack_disk_rename { int64_t time; uint32_t name, reserved; };
/* below: time of calls one level below the first call, in earlier chunks */
struct stack_disk_row { uint64_t first_call, calls; int64_t below; };
struct stack_disk_function { uint64_t address; uint32_t process, name; }; /* name 0: no library known yet */
struct stack_disk_library { uint64_t begin, end; uint32_t process, path, absolute, reserved; };
/* duration STACK_LONG: in "long". what: function << STACK_HOW_BITS | enum stack_how */
struct stack_disk_call { int64_t begin; uint32_t duration, what; };
/* Figures of the WHOLE calls of a function in a tile (tiles.h): total ns; ns without the calls below; sum of the
 * squares (low and high half); number; the tile's shortest and longest of these calls. */
struct stack_disk_figures { int64_t sum, self; uint64_t squares[2]; uint32_t function, n, least, most; };
struct stack_disk_long { uint64_t call; int64_t duration; };
struct stack_disk_value { int64_t time, bytes; };
struct stack_disk_loss { int64_t begin, end; uint64_t count; int32_t cpu; uint32_t reserved; };

/* Open file, with its own numbers for processes, threads, rows and functions. */
struct stack_chunk {
    struct store *file;
    const struct stack_totals *totals;
    const char *text; size_t n_text;
    const uint32_t *names; size_t n_names;       /* begin of each name in the text; 0 is "" */
    const struct stack_disk_process *processes; size_t n_processes;
    const struct stack_disk_thread *threads; size_t n_threads;
    const struct stack_disk_stream *streams; size_t n_streams;
    const struct stack_disk_rename *renames; size_t n_renames;
    const struct stack_disk_row *rows; size_t n_rows;
    const struct stack_disk_function *functions; size_t n_functions;
    const struct stack_disk_library *libraries; size_t n_libraries;
    const struct stack_disk_call *calls; size_t n_calls;
    const struct stack_disk_long *longs; size_t n_longs;
    const uint64_t *tiles; size_t n_tiles;       /* begin of the figures of each tile, and end of the last ones */
    const struct stack_disk_figures *figures; size_t n_figures;
    const uint64_t *whole; size_t n_whole;       /* by tile of level 0: WHOLE calls of the row before it */
    const struct stack_disk_value *memory; size_t n_memory;
    const struct stack_disk_loss *losses; size_t n_losses;
    int64_t begin, end;                          /* span of all events and calls; begin > end: none */
    uint64_t *first_tile, *first_finest;         /* by row: index in tiles, and in whole */
    bool *has_below;                             /* by row: the next row is of the same thread */
    uint32_t *function_of;                       /* by function: number in the store */
};

static inline const char *stack_text(const struct stack_chunk *s, uint32_t name) { return s->text + s->names[name]; }
static inline enum stack_how stack_how_of(const struct stack_disk_call *c)
{
    return (enum stack_how)(c->what & ((1U << STACK_HOW_BITS) - 1));
}

/* chunk.c. Opens and checks a file; `s` must be closed in any case. */
int stack_chunk_open(struct stack_chunk *s, const struct chunk *, struct err *e);
void stack_chunk_close(struct stack_chunk *);
/* Finds what readers look up by row. The chunk must hold rows, threads and calls. */
void stack_chunk_find_rows(struct stack_chunk *);
/* Returns the duration of a call marked STACK_LONG. */
int64_t stack_long_duration(const struct stack_chunk *, uint64_t call);
static inline int64_t stack_end_of(const struct stack_chunk *s, const struct stack_disk_call *c)
{
    int64_t duration = c->duration != STACK_LONG ? c->duration : stack_long_duration(s, (uint64_t)(c - s->calls));
    return (int64_t)((uint64_t)c->begin + (uint64_t)duration);
}
/* Returns one of all calls, its function by the chunk's number. */
static inline struct stack_call stack_call_of(const struct stack_chunk *s, const struct stack_disk_call *c)
{
    uint32_t function = c->what >> STACK_HOW_BITS;
    return (struct stack_call){c->begin, stack_end_of(s, c), function < s->n_functions ? function : 0,
        (uint8_t)(s->n_functions ? stack_how_of(c) : STACK_UNKNOWN)};
}

/* names.c: appends the position of an address in a library that begins at `begin`. */
struct text;
void stack_put_address(struct text *, const char *path, bool absolute, uint64_t begin, uint64_t address);

#endif

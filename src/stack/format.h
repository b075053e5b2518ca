/* Private to stack: the layout of the stack store's sections (docs/formats/stacks.md), little endian with natural
 * alignment; and an open store. */
#ifndef WEFT_STACK_FORMAT_H
#define WEFT_STACK_FORMAT_H

#include "base/store.h"
#include "stack/stack.h"

enum { STACK_VERSION = 3, STACK_HOW_BITS = 2, STACK_MOST_FUNCTIONS = 1 << 29 };
#define STACK_LONG UINT32_MAX

struct stack_disk_process { int32_t pid; uint32_t name; };
struct stack_disk_thread {
    int64_t begin, end;
    uint32_t process;
    int32_t tid, cpu;
    uint32_t first_row, rows;
    uint32_t first_name, names;  /* in "renames" */
    uint32_t reserved;
    uint64_t first_value, values; /* in "memory" */
};
struct stack_disk_rename { int64_t time; uint32_t name, reserved; };
struct stack_disk_row { uint64_t first_call, calls; };
struct stack_disk_function { uint64_t address; uint32_t process, name; };
/* duration STACK_LONG: in "long". what: function << STACK_HOW_BITS | enum stack_how */
struct stack_disk_call { int64_t begin; uint32_t duration, what; };
/* Of the WHOLE calls of a function in a tile (tiles.h): ns in all, without the calls below, sum of squared distances
 * from their mean, how many, and which of the tile's calls took least and most. */
struct stack_disk_figures { int64_t sum, self; double spread; uint32_t function, n, least, most; };
struct stack_disk_long { uint64_t call; int64_t duration; };
struct stack_disk_value { int64_t time, bytes; };
struct stack_disk_loss { int64_t begin, end; uint64_t count; int32_t cpu; uint32_t reserved; };

struct stack_store {
    struct store *file;
    const struct stack_totals *totals;
    const char *text; size_t n_text;
    const uint32_t *names; size_t n_names;       /* where they begin in the text; 0 is "" */
    const struct stack_disk_process *processes; size_t n_processes;
    const struct stack_disk_thread *threads; size_t n_threads;
    const struct stack_disk_rename *renames; size_t n_renames;
    const struct stack_disk_row *rows; size_t n_rows;
    const struct stack_disk_function *functions; size_t n_functions;
    const struct stack_disk_call *calls; size_t n_calls;
    const struct stack_disk_long *longs; size_t n_longs;
    const uint64_t *tiles; size_t n_tiles;       /* where the figures of each begin, and where the last ones end */
    const struct stack_disk_figures *figures; size_t n_figures;
    const uint64_t *whole; size_t n_whole;       /* by tile of level 0: WHOLE calls of the row before it */
    const struct stack_disk_value *memory; size_t n_memory;
    const struct stack_disk_loss *losses; size_t n_losses;
    uint32_t *first_thread;                      /* by process; one more than there are */
    uint64_t *first_tile, *first_finest;         /* by row: in tiles, in whole */
    bool *has_below;                             /* by row: the next one is of the same thread */
};

static inline const char *stack_text(const struct stack_store *s, uint32_t name) { return s->text + s->names[name]; }
static inline enum stack_how stack_how_of(const struct stack_disk_call *c)
{
    return (enum stack_how)(c->what & ((1U << STACK_HOW_BITS) - 1));
}
/* How long a call took that says STACK_LONG. (store.c) */
int64_t stack_long_duration(const struct stack_store *, uint64_t call);
/* One of all calls. */
static inline struct stack_call stack_call_at(const struct stack_store *s, uint64_t call)
{
    const struct stack_disk_call *c = &s->calls[call];
    int64_t duration = c->duration != STACK_LONG ? c->duration : stack_long_duration(s, call);
    uint32_t function = c->what >> STACK_HOW_BITS;
    return (struct stack_call){c->begin, (int64_t)((uint64_t)c->begin + (uint64_t)duration),
        function < s->n_functions ? function : 0,
        (uint8_t)(s->n_functions ? stack_how_of(c) : STACK_UNKNOWN)};
}

#endif

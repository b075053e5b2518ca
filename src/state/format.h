/* Private to state: the layout of the store's sections (docs/formats/states.md), and what a reader keeps. Little endian, natural alignment. */
#ifndef WEFT_STATE_FORMAT_H
#define WEFT_STATE_FORMAT_H

#include "base/store.h"
#include "state/pack.h"
#include "state/state.h"

enum {
    STATE_VERSION = 1,
    STATE_BLOCK = 128,          /* entries of a block, values of a column's block */
    STATE_GRID_SHARE = 8,       /* a grid bucket per so many entries at least */
    STATE_EVENTS_SHARE = 64,    /* a checkpoint per so many events */
    STATE_COUNTER_ROWS = 16,    /* row kinds from here on: counters */
    STATE_ROW_KINDS = STATE_COUNTER_ROWS + STATE_COUNTER_KINDS,
    STATE_MOST_WIDTH = 56,      /* a value of more bits gets 64 */
};

struct state_disk_totals {
    int64_t begin, end;
    uint64_t events;
    int64_t last_event;
};

/* What an entry's number means. The first STATE_VALUES are the plain values. */
struct state_disk_code {
    uint32_t name;
    int32_t cpu;
    uint8_t value, reserved[3];
};

/* A row: entries (time, number) with ascending times; each is in force until the next. Numbers, by kind:
 *   CPU: 2 * code, or 2 * thread + 1. CPU_THREAD: thread + 1, 0 unknown. Counters: the cumulative value. Others: code. */
struct state_disk_row {
    int64_t begin, end;
    uint64_t first_block, n;
    uint64_t first_grid;
    uint32_t n_grid;
    uint32_t name;
    int32_t number;
    uint8_t kind;
    uint8_t lead;               /* value before the first entry */
    uint8_t shift;              /* a grid bucket is 1 << shift ns long */
    uint8_t idle;               /* THREAD: an idle thread */
};

/* 128 entries of one row (the last block of a row: fewer). At bytes[position]: n times as differences to base, time_width bits each, up to a whole
 * byte; then n numbers as differences to least, number_width bits each. */
struct state_disk_block {
    int64_t base, least;
    int64_t before;             /* THREAD: ns it ran before base; CPU_THREAD: ns the CPU was busy before base; else 0 */
    uint64_t position;
    uint8_t time_width, number_width;
    uint16_t n;
    uint32_t reserved;
};

/* 128 values of a column (the last block: fewer): differences to base. */
struct state_disk_head {
    int64_t base;
    uint64_t position;          /* low 56 bits: byte; high 8 bits: width in bits */
};

struct state_disk_column { uint64_t first_head, n; };

enum state_latency_column { STATE_BEGIN, STATE_DURATION, STATE_RET, STATE_LATENCY_THREAD, STATE_LATENCY_CPU, STATE_LATENCY_CODE, STATE_LATENCY_COLUMNS };
/* Column 0: every 64th event's time. Then six columns per kind of latency. */
enum { STATE_COLUMN_EVENTS, STATE_COLUMN_LATENCIES, STATE_COLUMNS = STATE_COLUMN_LATENCIES + STATE_LATENCY_KINDS * STATE_LATENCY_COLUMNS };
/* Returns of system calls fit into few bits, but for addresses. Column RET holds ret + 4096 when that is in [0, FAR), else FAR + index into `far`. */
enum { STATE_RET_BIAS = 4096, STATE_RET_FAR = 1 << 24 };

struct state_disk_loss {
    int64_t begin, end;
    uint64_t count;
    int32_t cpu;
    uint32_t reserved;
};
_Static_assert(sizeof(struct state_disk_totals) == 32, "fixed width");
_Static_assert(sizeof(struct state_disk_code) == 12, "fixed width");
_Static_assert(sizeof(struct state_disk_row) == 56, "fixed width");
_Static_assert(sizeof(struct state_disk_block) == 40, "fixed width");
_Static_assert(sizeof(struct state_disk_head) == 16, "fixed width");
_Static_assert(sizeof(struct state_disk_loss) == 32, "fixed width");

struct state_code {             /* a code as readers want it */
    const char *name;           /* or NULL */
    int32_t cpu;
    uint8_t value;
};

struct state_store {
    struct store *file;
    const struct state_disk_totals *totals;
    const struct state_disk_row *rows;
    const struct state_disk_block *blocks;
    const uint32_t *grid;
    const struct state_disk_code *disk_codes;
    const struct state_disk_column *columns;
    const struct state_disk_head *heads;
    const int64_t *far;
    const struct state_disk_loss *losses;
    const uint32_t *names;      /* where each name begins in `text`; name 0 is "" */
    const char *text;
    const uint8_t *bytes;       /* readable 8 bytes beyond its end */
    size_t n_rows, n_blocks, n_grid, n_codes, n_columns, n_heads, n_far, n_losses, n_names, n_text, n_bytes;
    size_t first[STATE_ROW_KINDS + 1]; /* rows by kind: first[kind] up to first[kind + 1] */
    struct state_code *codes;
};

/* NULL when all is sound, else what is wrong. Fills first[]. (check.c) */
const char *state_defect(struct state_store *);

static inline const char *state_name(const struct state_store *s, uint32_t name) { return s->text + s->names[name]; }
static inline bool state_running(uint8_t value) { return value == STATE_USERMODE || value == STATE_SYSCALL || value == STATE_INTERRUPTED; }
/* Value i of a column. */
static inline int64_t state_column_at(const struct state_store *s, size_t column, size_t i)
{
    const struct state_disk_head *h = &s->heads[s->columns[column].first_head + i / STATE_BLOCK];
    return (int64_t)((uint64_t)h->base + pack_get(s->bytes + (h->position & (UINT64_MAX >> 8)), i % STATE_BLOCK, (uint8_t)(h->position >> 56)));
}

#endif

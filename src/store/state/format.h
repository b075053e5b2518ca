/* SPDX-License-Identifier: MIT */
/* Private to state: the layout of the store's sections (docs/formats/states.md). Little endian, natural alignment. */
#ifndef WEFT_STATE_FORMAT_H
#define WEFT_STATE_FORMAT_H

#include "base/file.h"
#include "base/store.h"
#include "state/column.h"
#include "state/state.h"

enum {
    STATE_VERSION = 13,
    STATE_SECTIONS = 21,
    STATE_CELL = 16,            /* limit of values in a cell: entries, or pairs of them */
    STATE_CELL_ENTRIES = 2 * STATE_CELL,
    STATE_CELL_PACKED = 53,
    /* Flag in a cell's number_width: some numbers are below 0; 0, -1, 1, -2, 2 … are stored as 0, 1, 2, 3, 4 … */
    STATE_FOLDED = 128,
    /* Flag in a cell's n: it holds pairs. */
    STATE_PAIRED = 128,
    /* Flag in a paired cell's n: some second entries are 1, so numbers are stored as 2 * number + the second
     * entry's. */
    STATE_RESTS = 64,
    STATE_CELLS = 8,            /* cells of a block (the last block of a row: fewer) */
    STATE_BLOCK = COLUMN_VALUES, /* rows of a table's block */
    STATE_EVENTS_SHARE = 64,    /* number of events per checkpoint */
    STATE_ROW_KINDS = STATE_COUNTER_ROWS + STATE_COUNTER_KINDS,
    STATE_LINE_KINDS = 2,       /* IRQ_LINE, SOFTIRQ_VECTOR: not in the file (lines.h) */
};
_Static_assert((int)COLUMN_SPARE <= (int)FILE_SPARE_BYTES, "a block at the very end of the file can be read");

/* Direction of bytes of threads: rows of IO_READ and IO_WRITTEN, uses of files. */
enum { STATE_WAY_READ, STATE_WAY_WRITTEN, STATE_WAYS };

struct state_disk_totals {
    int64_t begin, end;
    uint64_t events;
    int64_t last_event;
    uint64_t events_before;     /* events in the chunks before this one */
};

/* Index of the chunk's first event that has a checkpoint: every 64th event of the host has one. */
static inline uint64_t state_first_checkpoint(const struct state_disk_totals *t)
{
    return -t->events_before % STATE_EVENTS_SHARE;
}

/* Meaning of an entry's number. The first STATE_VALUES codes are the plain values. of, ref: source of names that may
 * become known, or change, in a later chunk: the interrupt with that number, requests (disk << TYPE_BITS | type). */
enum state_code_of { STATE_CODE_ITSELF, STATE_CODE_IRQ, STATE_CODE_REQUEST, STATE_CODE_OFS };
struct state_disk_code {
    uint32_t name;
    int32_t cpu;
    uint8_t value, of, reserved[2];
    uint32_t ref;
};

/* BORN, DIED: begin and end of the row are those of a thread's life. GOES: the row continues in the next chunk, whose
 * entries begin where this one's end. */
enum state_row_flag { STATE_ROW_BORN = 1, STATE_ROW_DIED = 2, STATE_ROW_GOES = 4, STATE_ROW_FLAGS = 7 };

/* A row: entries (time, number) with ascending times; each is in force until the next. Numbers, by kind:
 * - CPU: 2 * code, or 2 * thread + 1
 * - CPU_THREAD: thread + 1, 0 unknown
 * - counters: the cumulative value
 * - FUTEX_USER: state_futex_number
 * - FUTEX_WAITS, FUTEX_WAKES: index among rows of FUTEX_USER + 1, 0 none
 * - IRQ_HANDLERS: 2 * code, + 1 when it was not seen to end
 * - others: code */
struct state_disk_row {
    int64_t begin, end;
    int64_t first;              /* time of the first entry; 0 without entries */
    union {
        int64_t least;          /* counters that may fall: the minimum, if below 0; else 0 */
        struct { uint32_t first_file, n_files; }; /* IO_READ, IO_WRITTEN: items in `through` */
    };
    uint64_t n;
    uint64_t first_grid;
    uint32_t first_block;
    uint32_t n_cells;
    uint32_t n_grid;
    uint32_t name;
    int32_t number;
    uint8_t kind;
    uint8_t lead;               /* value before the first entry */
    uint8_t shift;              /* length of a grid bucket: 1 << shift ns */
    uint8_t idle;               /* THREAD: an idle thread */
    int32_t thread;             /* FUTEX_USER: row of the thread; else -1 */
    uint8_t waits;              /* FUTEX_USER: at least once */
    uint8_t flags;              /* enum state_row_flag */
    uint8_t reserved[2];
};

/* Up to 16 consecutive entries of a row, in one cache line. `packed` has n times as differences to base, time_width
 * bits each, up to a whole byte: those of the second entry and all behind it, and the cell's end; then n numbers,
 * number_width bits each. A row's last cell ends with the row; its last difference is meaningless. The unpacked fields
 * come last: reading a packed value reads a few bytes beyond it, which stay in the cache line this way.
 *
 * A paired cell (head: cell.h) has up to 16 pairs of entries: a number that is not below 0, then 0 or 1. Times and
 * numbers are those of pairs. From the next whole byte on come n durations, those of the first entries. */
struct state_disk_cell {
    uint8_t packed[STATE_CELL_PACKED];
    uint8_t n, time_width, number_width;
    int64_t base;               /* time of the first entry */
};

enum state_latency_column {
    STATE_BEGIN, STATE_DURATION, STATE_RET, STATE_LATENCY_THREAD, STATE_LATENCY_CPU, STATE_LATENCY_CODE,
    STATE_LATENCY_COLUMNS
};
/* Biased return values of system calls, which fit into few bits, except addresses. Column RET holds ret + 4096 if that
 * is in [0, FAR), else FAR + index into `far`. */
enum { STATE_RET_BIAS = 4096, STATE_RET_FAR = 1 << 24 };

/* Block of 128 rows of a table (the last block: fewer), one column behind the other. */
struct state_disk_head {
    int64_t first;              /* first value of column 0, its values are relative to it; other columns: to 0 */
    uint64_t position;          /* position of the bytes */
    struct column_form columns[STATE_LATENCY_COLUMNS];
};

/* Table 0: time of every 64th event, a single column. The others: latencies of each kind. */
struct state_disk_table {
    uint64_t first_head, n;
    uint64_t early;             /* number of those aside that come before all that were opened in the chunk in time */
    int64_t from;               /* lower limit of the begins of the latter; INT64_MIN: there is no chunk before */
};
enum { STATE_TABLE_EVENTS, STATE_TABLE_LATENCIES, STATE_TABLES = STATE_TABLE_LATENCIES + STATE_LATENCY_KINDS };

/* Flag in the rank of a latency that was opened after others that began later. */
#define STATE_RANK_LATE (UINT64_C(1) << 63)

/* Latency that took too long for the table of its kind, or became known too long after its end; or an early one, which
 * began in an earlier chunk. Sorted by kind, then index. */
struct state_disk_aside {
    int64_t begin, duration, ret;
    uint64_t index;             /* position by begin in its kind, among those in the table and aside */
    uint64_t rank;              /* rank among those of the kind that begin in the same ns (series.h) */
    int32_t thread, cpu;
    uint32_t code;
    uint8_t kind, reserved[3];
};

/* Latency opened in the chunk and open at its end. This entry says where it belongs; the latency itself is stored, as
 * an early one, in the chunk in which it ends, if it does. Sorted by kind, then begin and rank. */
struct state_disk_open {
    int64_t begin;
    uint64_t rank, index;       /* index: number of the chunk's latencies before it */
    uint8_t kind, reserved[7];
};

/* First latency of each code that is not early. Sorted by kind, then index. */
struct state_disk_first {
    uint64_t index;
    uint32_t code;
    uint8_t kind, reserved[3];
};

/* Figures of the latencies of one name in a tile (tiles.h): number, total ns, sum of squares (low, then high bits),
 * minimum and maximum, and the index in the tile of the first minimum and maximum. */
struct state_disk_figures {
    int64_t sum, least, most;
    uint64_t squares[2];
    uint32_t code, n, least_at, most_at;
};

/* Subject of a row of STATE_FILE_ROWS; the row has the name. */
struct state_disk_file {
    int64_t bytes[STATE_WAYS];
    /* Bytes of the row's entries, up to the begin of the last one; if the row continues, up to its end. */
    int64_t counted[STATE_WAYS];
    int32_t thread;
    uint32_t reserved;
};

struct state_disk_loss {
    int64_t begin, end;
    uint64_t count;
    int32_t cpu;
    uint32_t reserved;
};
_Static_assert(sizeof(struct state_disk_totals) == 40, "fixed width");
_Static_assert(sizeof(struct state_disk_code) == 16, "fixed width");
_Static_assert(sizeof(struct state_disk_row) == 80, "fixed width");
_Static_assert(sizeof(struct state_disk_cell) == 64, "fixed width");
_Static_assert(sizeof(struct state_disk_head) == 40, "fixed width");
_Static_assert(sizeof(struct state_disk_table) == 32, "fixed width");
_Static_assert(sizeof(struct state_disk_aside) == 56, "fixed width");
_Static_assert(sizeof(struct state_disk_open) == 32, "fixed width");
_Static_assert(sizeof(struct state_disk_first) == 16, "fixed width");
_Static_assert(sizeof(struct state_disk_figures) == 56, "fixed width");
_Static_assert(sizeof(struct state_disk_loss) == 32, "fixed width");
_Static_assert(sizeof(struct state_disk_file) == 40, "fixed width");

/* Rows of counters that may fall and be below 0. */
static inline bool state_may_fall(int kind)
{
    return kind >= STATE_COUNTER_ROWS + STATE_MEMORY && kind < STATE_COUNTER_ROWS + STATE_IO_READ;
}
/* Rows of bytes moved by threads. */
static inline bool state_is_thread_io(int row_kind)
{
    return row_kind == STATE_COUNTER_ROWS + STATE_IO_READ || row_kind == STATE_COUNTER_ROWS + STATE_IO_WRITTEN;
}
/* Bytes that an entry of a row of files moved in that direction. */
static inline uint64_t state_file_bytes(int64_t number, int way)
{
    return (number & ((1 << STATE_FILE_USE_BITS) - 1)) == STATE_FILE_READ + way
         ? (uint64_t)number >> STATE_FILE_USE_BITS : 0;
}
/* Number of sums per block of a row. THREAD: ns that it ran before the block; CPU_THREAD: ns that the CPU was busy;
 * files: bytes read, and bytes written. */
static inline unsigned state_block_sums(int row_kind)
{
    return row_kind == STATE_THREAD || row_kind == STATE_CPU_THREAD ? 1 : row_kind == STATE_FILE_ROWS ? STATE_WAYS : 0;
}
/* Entries of FUTEX_USER rows: return value, operation, and whether the end was not seen. 0: no call; DOUBT: unknown
 * whether there is one. */
enum { STATE_FUTEX_OPERATIONS = 14, STATE_FUTEX_DOUBT = 15 << 1 };
/* value: STATE_FUTEX_WAIT, STATE_FUTEX_WAKE; STATE_NONE: neither */
struct state_futex_operation { const char *name; uint8_t value; };
/* Operations by Linux's numbers (futexes.c). */
extern const struct state_futex_operation state_futex_operations[STATE_FUTEX_OPERATIONS];
static inline int64_t state_futex_number(int64_t ret, uint8_t operation, bool cut)
{
    int64_t known = ret < INT32_MIN ? INT32_MIN : ret > INT32_MAX ? INT32_MAX : ret;
    return known * 32 + (operation + 1) * 2 + cut;
}
static inline int state_futex_operation(int64_t number) { return (int)(number >> 1 & 15) - 1; }
static inline bool state_running(uint8_t value)
{
    return value == STATE_USERMODE || value == STATE_SYSCALL || value == STATE_INTERRUPTED;
}
#endif

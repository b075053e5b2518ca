/* SPDX-License-Identifier: MIT */
/* Private to graph: state of the builder for each row and CPU while events arrive. */
#ifndef WEFT_GRAPH_BUILDER_H
#define WEFT_GRAPH_BUILDER_H

#include "base/map.h"
#include "graph/graph.h"
#include "graph/log.h"
#include "graph/losses.h"
#include "graph/stacks.h"
#include "kernel/kernel.h"

enum graph_now {
    GRAPH_NOW_UNSEEN, GRAPH_NOW_UNKNOWN, GRAPH_NOW_RUNNING, GRAPH_NOW_READY, GRAPH_NOW_WAITING, GRAPH_NOW_GONE
};

/* Ending of an interval: its state and the cause of its end. */
struct graph_ending {
    uint8_t state, cause;
    uint16_t detail;
    uint32_t arg;
    int64_t ts; /* time of the cause */
};

struct graph_building_row {
    int64_t since; /* begin of the part that is not in the log yet */
    struct graph_log log;
    uint8_t now;      /* enum graph_now */
    bool lost;        /* UNKNOWN because of a loss */
    bool has_pending; /* woken while still running: `pending` is the cause of a wait that may follow */
    bool amendable;   /* a switch at `since` ended its last wait without a wake, which may follow in that ns */
    bool held;        /* it started on another CPU before it was seen to leave held_cpu */
    uint16_t syscall; /* detail: system call in progress */
    uint16_t wait_detail;
    int32_t cpu; /* RUNNING */
    int32_t held_cpu;
    int64_t held_since, held_last, held_ts; /* ran on held_cpu since; last record of that CPU; started elsewhere */
    struct graph_ending pending;
};

struct graph_building_cpu {
    int64_t last_ts;
    int64_t last_change;        /* time of the last occupant */
    struct graph_log occupants; /* arg: row + 1 */
    int32_t current;
    bool heard;           /* had a record since the last loss */
    uint8_t absent;       /* enum graph_absent: its stream is missing, in [absent_from, absent_to) */
    int64_t absent_from, absent_to;
    bool lost;            /* no switch since the last loss */
    uint32_t block_frame; /* frame of the last block completion; 0 none */
    uint32_t block_dev;
};

/* Wake at `ts`, before the wait that it ended: interval number n of the row. */
struct graph_early_wake {
    int32_t row;
    uint32_t n;
    int64_t ts;
};

struct graph_builder {
    const struct kernel_tracker *tracker;
    bool is_cut; /* state was saved */
    int64_t now;
    VEC(struct graph_building_row) rows;
    VEC(struct graph_building_cpu) cpus;
    VEC(struct graph_loss) losses;
    VEC(struct graph_mark) marks;
    struct graph_stacks stacks;
    struct graph_windows windows; /* windows of losses */
    uint32_t n_absent;            /* number of absent CPUs */
    VEC(struct graph_early_wake) early_wakes;
    VEC(size_t) early_wake_of; /* SAVE: by row: index + 1 of its last early wake */
    VEC(uint8_t) over;         /* MARK: by row: nothing more can happen to it */
    VEC(uint8_t) carried;      /* SAVE: by row: continues in the next chunk */
    uint64_t wake0, next_wake; /* base of the arguments of causes by packets; a number greater than all so far */
    struct strings details;  /* number = detail */
    VEC(uint16_t) detail_of; /* detail + 1 by the tracker's string number */
    struct arena arena;
};

/* wake.c */
uint16_t graph_detail(struct graph_builder *, const char *s);
uint16_t graph_detail_of_string(struct graph_builder *, uint32_t string);
/* Ending of a wait according to its wake. `packet_wake`: see graph_builder_add; `call`: system call of the woken
 * thread. */
struct graph_ending graph_wake_ending(struct graph_builder *, const struct kernel_record *, uint64_t packet_wake,
    uint16_t call);

/* stacks.c: keeps the call stacks of a record, after it was processed. */
void graph_builder_stacks(struct graph_builder *, const struct kernel_record *);

/* absent.c: handles a missing stream; its CPU then has an event. */
void graph_builder_absent(struct graph_builder *, const struct kernel_record *);
void graph_builder_present(struct graph_builder *, uint32_t cpu);
void graph_builder_absent_again(struct graph_builder *); /* for the known ones, at the begin of a chunk */
/* Hull of the gaps between an event at `begin` and one at `end`, cut to them: losses and, unless the row surely
 * `stayed` where it was, absent CPUs. */
bool graph_builder_missing(const struct graph_builder *, int64_t begin, int64_t end, bool stayed, int64_t *from,
    int64_t *to);
/* builder.c: the current thread of the CPU is unknown after ts. */
void graph_builder_lose_current(struct graph_builder *, uint32_t cpu, int64_t ts);
struct graph_building_cpu *graph_builder_cpu(struct graph_builder *, uint32_t cpu);
/* Ends a row at `end`, unless it died before. */
void graph_builder_close_row(struct graph_builder *, int32_t row, int64_t end);
/* carry.c; valid after SAVE. */
static inline bool graph_builder_is_carried(const struct graph_builder *b, size_t row)
{
    return row < b->carried.n && b->carried.v[row];
}

#endif

/* SPDX-License-Identifier: MIT */
/* Private to graph: a growing series of intervals in memory, 12 bytes each, in blocks for few and many. Rows come up at
 * random among hundreds, so a row's memory has left the nearest cache by its next turn. Therefore all fields of an
 * entry are adjacent, and the log itself has what must be known of its last block and entry. */
#ifndef WEFT_GRAPH_LOG_H
#define WEFT_GRAPH_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

struct graph_logged {
    uint32_t begin; /* relative to the block's base */
    uint32_t arg;
    uint16_t detail;
    uint8_t kind;
};

struct graph_log_block {
    struct graph_log_block *next;
    int64_t base; /* begin of the first */
    uint32_t n;   /* number of entries of a block that is not the last */
    struct graph_logged v[];
};

struct graph_log {
    struct graph_log_block *head, *tail;
    int64_t base;        /* base of the tail */
    uint32_t n;          /* total entries */
    uint16_t used, room; /* entries used, and room, in the tail */
    struct graph_logged last;
};

struct graph_entry {
    int64_t begin;
    uint8_t state, cause;
    uint16_t detail; /* 0 none */
    uint32_t arg;    /* running: CPU; WAKEUP: row; PACKET: wake */
};

/* Begins must increase. An entry equal to the last one is not added. */
void graph_log_push(struct arena *, struct graph_log *, const struct graph_entry *);
/* Replaces state, cause, argument and detail of the last entry; it must not be a running one. */
void graph_log_amend(struct graph_log *, const struct graph_entry *);
/* Last entry of a log that has one. */
struct graph_entry graph_log_last(const struct graph_log *);
static inline uint32_t graph_log_block_size(const struct graph_log *log, const struct graph_log_block *b)
{
    return b == log->tail ? log->used : b->n;
}

#endif

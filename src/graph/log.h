/* Private to graph: a growing series of intervals in memory, 13 bytes each, in blocks that fit few and many. */
#ifndef WEFT_GRAPH_LOG_H
#define WEFT_GRAPH_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

struct graph_log_block {
    struct graph_log_block *next;
    int64_t base; /* begin of the first */
    uint16_t n, cap;
    uint16_t n_args, n_details, n_cpus;
    uint32_t *begin;  /* minus base; [cap], as the others */
    uint32_t *arg;    /* of those whose cause has one, in order */
    uint16_t *detail; /* of those with GRAPH_KIND_DETAIL */
    uint16_t *cpu;    /* of those running */
    uint8_t *kind;
};

struct graph_log {
    struct graph_log_block *head, *tail;
    uint32_t n;
};

struct graph_entry {
    int64_t begin;
    uint8_t state, cause;
    uint16_t detail; /* 0 none */
    uint16_t cpu;    /* running */
    uint32_t arg;    /* WAKEUP: row; PACKET: wake */
};

bool graph_cause_has_arg(unsigned cause);
/* Begins must increase. An entry that says the same as the last one is not added. */
void graph_log_push(struct arena *, struct graph_log *, const struct graph_entry *);
/* Replaces state, cause, argument and detail of the last entry; it must not be a running one. */
void graph_log_amend(struct graph_log *, const struct graph_entry *);

#endif

/* SPDX-License-Identifier: MIT */
/* Private to stack: a list of chunks as one store. */
#ifndef WEFT_STACK_LIST_H
#define WEFT_STACK_LIST_H

#include "base/arena.h"
#include "base/chunks.h"
#include "base/search.h"
#include "stack/format.h"

/* Part of a row in a chunk: one call or more. */
struct stack_part {
    const struct stack_chunk *chunk;
    const struct stack_disk_call *calls; /* array of n calls */
    uint64_t n, row;         /* row: number in the chunk */
    uint64_t first, whole;   /* calls of the store's row before these, and WHOLE calls among them */
    int64_t begin;           /* begin of the first call */
};
struct stack_row {
    uint64_t calls;
    const struct stack_part *parts; size_t n_parts; /* in order of time */
};
struct stack_rename { int64_t time; const char *name; };
/* Part of a thread's memory in a chunk. */
struct stack_values { const struct stack_disk_value *v; uint64_t n; int64_t begin; };

struct stack_store {
    size_t n_chunks;
    struct stack_chunk *chunks;          /* one extra, without a file: UNKNOWN calls between chunks */
    struct stack_totals totals;
    struct stack_process *processes; size_t n_processes;
    struct stack_thread *threads; size_t n_threads;
    struct stack_rename *renames; size_t *first_rename;   /* first_rename: by thread, one extra */
    struct stack_values *values; size_t *first_values;    /* first_values: by thread, one extra */
    struct stack_row *rows; size_t n_rows;
    struct stack_part *parts;
    struct stack_function *functions; size_t n_functions;
    struct stack_loss *losses; size_t n_losses;
    struct arena names;                  /* names that are in no file */
};

/* Returns the part that holds call i of a row; it must exist. */
static inline const struct stack_part *stack_part_of(const struct stack_row *r, uint64_t i)
{
    return &r->parts[r->n_parts > 1 ? search_first(k, 1, r->n_parts, r->parts[k].first > i) - 1 : 0];
}
/* Returns call i, numbered in the store's row. */
static inline struct stack_call stack_part_call(const struct stack_part *p, uint64_t i)
{
    const struct stack_chunk *s = p->chunk;
    const struct stack_disk_call *c = &p->calls[i - p->first];
    uint32_t function = c->what >> STACK_HOW_BITS;
    bool known = function < s->n_functions && stack_how_of(c) != STACK_UNKNOWN;
    return (struct stack_call){c->begin, stack_end_of(s, c), known ? s->function_of[function] : 0,
        (uint8_t)(s->n_functions ? stack_how_of(c) : STACK_UNKNOWN)};
}

/* list.c. Joins the open chunks. Returns NULL, or the defect; *chunk: the chunk concerned. */
const char *stack_list_join(struct stack_store *, const struct chunk *, size_t *chunk);
void stack_list_free(struct stack_store *);

/* rows.c. Joins the calls of each level of each thread. `places`: parts of each thread, by time; first: by thread of
 * the store, one extra: begin of its places. Returns as stack_list_join. */
struct stack_place { uint32_t chunk, i; }; /* process or thread of a chunk */
const char *stack_list_rows(struct stack_store *, const struct chunk *, const struct stack_place *places,
    const size_t *first, size_t *chunk);
void stack_rows_free(struct stack_store *);

/* functions.c. Names the functions of all chunks. process_of: process of the store, by chunk and by process of the
 * chunk. */
void stack_list_functions(struct stack_store *, uint32_t *const *process_of);

#endif

/* SPDX-License-Identifier: MIT */
/* Builds the stacks of a user-space trace in chunks: at each cut the builder is thrown away, and made anew of what was
 * carried. Whatever goes wrong fails the test. */
#ifndef WEFT_TESTS_STACK_CUT_H
#define WEFT_TESTS_STACK_CUT_H

#include "base/carry.h"
#include "base/chunks.h"
#include "ctf/ctf.h"
#include "stack/stack.h"

struct cut_trace {
    struct ctf_schemas *schemas;
    struct ctf_trace *trace;
    VEC(int64_t) times;      /* of all items, in order */
};
/* Trace `number` of user space below a directory; false: there are fewer. */
bool cut_open(struct cut_trace *, const char *directory, size_t number);
void cut_close(struct cut_trace *);

enum { CUT_MOST = 12 };
struct cut_chunks {
    size_t n;
    struct chunk chunks[CUT_MOST + 1];
    char paths[CUT_MOST + 1][40];
    struct text carried[CUT_MOST]; /* from each into the next one */
};
#define CUT_ALL SIZE_MAX
/* n cuts, sorted: n + 1 chunks. Checks that what is loaded and saved again is the same bytes. skipped: the chunk that
 * was not recorded, CUT_ALL: none. */
void cut_build(const struct cut_trace *, const int64_t *at, size_t n, size_t skipped, struct cut_chunks *out);
/* Two recordings of one history, such as archives, as two chunks cut between them. */
void cut_build_two(const struct cut_trace *first, const struct cut_trace *second, int64_t at, struct cut_chunks *out);
/* without: a chunk that is not in the list. */
struct stack_store *cut_list(const struct cut_chunks *, size_t without);
void cut_free(struct cut_chunks *);

/* Loads the bytes at a cut and goes on to `end`; false: they were refused. */
bool cut_go_on(const struct cut_trace *, int64_t at, const void *bytes, size_t n);

/* Everything that can be asked of two stores is the same. */
void cut_same(const struct stack_store *, const struct stack_store *);
/* Random numbers: begin … end. */
int64_t cut_random(int64_t begin, int64_t end);
void cut_seed(uint64_t);

#endif

/* SPDX-License-Identifier: MIT */
/* Builder of a user-space trace's stacks in chunks: at each cut the builder is dropped, and rebuilt from the carried
 * state. Any failure fails the test. */
#ifndef WEFT_TESTS_STACK_CUT_H
#define WEFT_TESTS_STACK_CUT_H

#include "base/carry.h"
#include "base/chunks.h"
#include "ctf/ctf.h"
#include "stack/stack.h"

struct cut_trace {
    struct ctf_schemas *schemas;
    struct ctf_trace *trace;
    VEC(int64_t) times;      /* times of all items, in order */
};
/* Opens trace `number` of user space below a directory; false: there are fewer. */
bool cut_open(struct cut_trace *, const char *directory, size_t number);
void cut_close(struct cut_trace *);

enum { CUT_MOST = 12 };
struct cut_chunks {
    size_t n;
    struct chunk chunks[CUT_MOST + 1];
    char paths[CUT_MOST + 1][40];
    struct text carried[CUT_MOST]; /* state carried from each into the next one */
};
#define CUT_ALL SIZE_MAX
/* Builds with n cuts, sorted: n + 1 chunks. Checks that state loaded and saved again has the same bytes. skipped: the
 * chunk that was not recorded, CUT_ALL: none. */
void cut_build(const struct cut_trace *, const int64_t *at, size_t n, size_t skipped, struct cut_chunks *out);
/* Builds two recordings of one history, such as archives, as two chunks cut between them. */
void cut_build_two(const struct cut_trace *first, const struct cut_trace *second, int64_t at, struct cut_chunks *out);
/* Opens the list. without: a chunk that is left out. */
struct stack_store *cut_list(const struct cut_chunks *, size_t without);
void cut_free(struct cut_chunks *);

/* Loads the bytes at a cut and continues to `end`; false: they were refused. */
bool cut_go_on(const struct cut_trace *, int64_t at, const void *bytes, size_t n);

/* Compares all answers of two stores. */
void cut_same(const struct stack_store *, const struct stack_store *);
/* Returns a random number of begin … end. */
int64_t cut_random(int64_t begin, int64_t end);
void cut_seed(uint64_t);

#endif

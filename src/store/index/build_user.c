/* SPDX-License-Identifier: MIT */
/* The chunks of a user-space trace: call stacks. */
#include <stdlib.h>

#include "index/stores.h"

struct user_build {
    const struct index_files *files;
    struct stack_builder *stacks; /* builder of the chunk */
    struct store_place place;     /* place of its stores */
};

static int open_build(const struct index_files *f, void *with, void **out, struct err *e)
{
    struct user_build *b = mem_zalloc(sizeof *b);
    b->files = f;
    *out = b;
    return 0;
}

static void close_build(void *arg)
{
    struct user_build *b = arg;
    stack_builder_free(b->stacks);
    free(b);
}

static int extend(void *arg, struct err *e)
{
    struct user_build *b = arg;
    if (b->stacks)
        stack_builder_extend(b->stacks);
    return 0;
}

static int begin_chunk(void *arg, const struct index_chunk *chunk, struct store_place place,
    const struct index_known *before, struct err *e)
{
    struct user_build *b = arg;
    stack_builder_free(b->stacks); /* remains of a chunk that failed */
    b->place = place;
    b->stacks = stack_builder_new(b->files->trace);
    if (!before)
        return 0;
    struct carry c;
    carry_load(&c, before->carry, before->n_carry, before->n_leaving);
    stack_builder_carry(b->stacks, &c);
    int rc = carry_loaded(&c, e);
    carry_fini(&c);
    return rc;
}

static int feed(void *arg, const struct ctf_event *ev, size_t n, const int64_t *times, size_t n_times, struct err *e)
{
    struct user_build *b = arg;
    stack_builder_feed(b->stacks, ev, n);
    return 0;
}

static int cut(void *arg, const struct index_chunk *chunk, struct index_outcome *o, struct err *e)
{
    struct user_build *b = arg;
    struct carry c;
    carry_init(&c);
    stack_builder_carry(b->stacks, &c);
    carry_save(&c, NULL, 0);
    stack_builder_carry(b->stacks, &c);
    text_put(&o->carry, c.bytes.v, c.bytes.n);
    o->after = carry_hash(&c) | 1;
    carry_fini(&c);
    int rc = stack_builder_cut(b->stacks, chunk->end, b->place, chunk->key, e);
    stack_builder_free(b->stacks);
    b->stacks = NULL;
    return rc;
}

static int finish(void *arg, const struct index_chunk *chunk, struct index_outcome *o, struct err *e)
{
    struct user_build *b = arg;
    int rc = stack_builder_write(b->stacks, b->place, chunk->key, e);
    stack_builder_free(b->stacks);
    b->stacks = NULL;
    return rc;
}

static uint32_t began(const void *arg)
{
    return 0;
}

static int save(void *arg, struct err *e)
{
    return 0;
}

const struct index_kind index_user = {.batch = 512,
    .open = open_build,
    .close = close_build,
    .begin = begin_chunk,
    .feed = feed,
    .began = began,
    .cut = cut,
    .finish = finish,
    .extend = extend,
    .save = save};

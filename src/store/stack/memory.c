/* SPDX-License-Identifier: MIT */
/* Memory that threads allocated and have not freed. */
#include "stack/builder.h"

static void count(struct stack_runner *r, int64_t ts, int64_t bytes)
{
    int64_t held = r->memory.n ? r->memory.v[r->memory.n - 1].bytes : 0, sum;
    if (__builtin_add_overflow(held, bytes, &sum))
        return;
    if (r->memory.n && r->memory.v[r->memory.n - 1].time == ts)
        r->memory.v[r->memory.n - 1].bytes = sum;
    else
        vec_push(&r->memory, ((struct stack_disk_value){ts, sum}));
}

static size_t room_for_size(struct stack_builder *b)
{
    if (b->free_sizes.n)
        return b->free_sizes.v[--b->free_sizes.n];
    vec_push(&b->sizes, 0);
    return b->sizes.n - 1;
}

void stack_allocate(struct stack_builder *b, uint32_t thread, int64_t ts, uint64_t address, uint64_t bytes)
{
    struct stack_runner *r = &b->runners.v[thread];
    bool fresh;
    if (!address || bytes > INT64_MAX)
        return;
    uint64_t *index = map_put(&b->owners.v[r->owner].allocations, address, &fresh);
    if (fresh)
        *index = room_for_size(b) + 1;
    else /* freed without notice */
        count(r, ts, -b->sizes.v[*index - 1]);
    b->sizes.v[*index - 1] = (int64_t)bytes;
    count(r, ts, (int64_t)bytes);
}

void stack_release(struct stack_builder *b, uint32_t thread, int64_t ts, uint64_t address)
{
    struct stack_runner *r = &b->runners.v[thread];
    struct map *allocations = &b->owners.v[r->owner].allocations;
    if (!address)
        return;
    const uint64_t *index = map_find(allocations, address);
    if (!index) {
        b->totals.strange_frees++;
        return;
    }
    count(r, ts, -b->sizes.v[*index - 1]);
    vec_push(&b->free_sizes, (size_t)*index - 1);
    map_remove(allocations, address);
}

static void release_by_runners(struct stack_builder *b, uint32_t owner, int64_t ts)
{
    for (size_t i = 0; i < b->runners.n; i++) {
        struct stack_runner *r = &b->runners.v[i];
        if (r->owner == owner && r->memory.n && r->memory.v[r->memory.n - 1].bytes) {
            count(r, ts, -r->memory.v[r->memory.n - 1].bytes);
            r->active = true;
        }
    }
}

void stack_release_all(struct stack_builder *b, uint32_t owner, int64_t ts)
{
    struct map *allocations = &b->owners.v[owner].allocations;
    release_by_runners(b, owner, ts);
    for (size_t i = 0; i < allocations->cap; i++)
        if (allocations->used[i])
            vec_push(&b->free_sizes, (size_t)allocations->values[i] - 1);
    map_fini(allocations);
    *allocations = (struct map){0};
}

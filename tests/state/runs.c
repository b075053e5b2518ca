/* SPDX-License-Identifier: MIT */
#include "../base/test.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runs.h"

static void begin(void *arg, const struct cuts_chunk *c)
{
    struct run *r = arg;
    assert_true(r->n < RUNS_MOST_CHUNKS);
    /* Files that are not forced to a disk: there are thousands. */
    strcpy(r->paths[r->n], access("/dev/shm", W_OK) ? "/tmp/weft-state-XXXXXX" : "/dev/shm/weft-state-XXXXXX");
    close(mkstemp(r->paths[r->n]));
    r->builder = state_builder_new(c->tracker, store_file(r->paths[r->n++]), 1);
}

static void carry(void *arg, const struct cuts_chunk *c, struct carry *to)
{
    state_builder_carry(((struct run *)arg)->builder, to);
}

static void record(void *arg, const struct kernel_record *r)
{
    state_builder_add(((struct run *)arg)->builder, r);
}

static void events(void *arg, const int64_t *times, size_t n)
{
    state_builder_events(((struct run *)arg)->builder, times, n);
}

static void end_chunk(struct run *r, int rc, struct err *e)
{
    if (rc || state_check(r->paths[r->n - 1], NULL, e))
        fail_msg("%s", e->text);
    state_builder_free(r->builder);
}

static void cut(void *arg, const struct cuts_chunk *c, int64_t at)
{
    struct run *r = arg;
    struct err e = {0};
    end_chunk(r, state_builder_cut(r->builder, at, c->first, c->last, &e), &e);
}

static void finish(void *arg, const struct cuts_chunk *c)
{
    struct run *r = arg;
    struct err e = {0};
    end_chunk(r, state_builder_write(r->builder, c->first, c->last, &e), &e);
}

static const struct cuts_user user = {begin, carry, record, events, cut, finish, NULL};

void run_build(struct run *r, const struct cuts_trace *t, const int64_t *at, size_t n)
{
    *r = (struct run){0};
    cuts_run(t, at, n, &user, r, &r->cuts);
    for (size_t i = 0; i < r->n; i++)
        r->cuts.chunks[i].chunk.path = r->paths[i];
}

struct state_store *run_open(const struct run *r, size_t without)
{
    struct chunk v[RUNS_MOST_CHUNKS];
    size_t n = 0;
    struct err e = {0};
    struct state_store *s;
    for (size_t i = 0; i < r->n; i++)
        if (i != without)
            v[n++] = r->cuts.chunks[i].chunk;
    if (state_open_list(v, n, &s, &e))
        fail_msg("%s", e.text);
    return s;
}

void run_free(struct run *r)
{
    for (size_t i = 0; i < r->n; i++)
        unlink(r->paths[i]);
    cuts_free(&r->cuts);
}

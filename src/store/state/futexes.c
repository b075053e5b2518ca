/* SPDX-License-Identifier: MIT */
/* Rows of futexes: threads that wait, threads that wake, and how many do so at once. */
#include "state/builder.h"

const struct state_futex_operation state_futex_operations[STATE_FUTEX_OPERATIONS] = {{"WAIT", STATE_FUTEX_WAIT},
    {"WAKE", STATE_FUTEX_WAKE}, {"FD", STATE_NONE}, {"REQUEUE", STATE_FUTEX_WAKE}, {"CMP_REQUEUE", STATE_FUTEX_WAKE},
    {"WAKE_OP", STATE_FUTEX_WAKE}, {"LOCK_PI", STATE_FUTEX_WAIT}, {"UNLOCK_PI", STATE_FUTEX_WAKE},
    {"TRYLOCK_PI", STATE_NONE}, {"WAIT_BITSET", STATE_FUTEX_WAIT}, {"WAKE_BITSET", STATE_FUTEX_WAKE},
    {"WAIT_REQUEUE_PI", STATE_FUTEX_WAIT}, {"CMP_REQUEUE_PI", STATE_FUTEX_WAKE}, {"LOCK_PI2", STATE_FUTEX_WAIT}};

static bool waits(const struct state_builder_futex_call *c)
{
    return state_futex_operations[c->operation].value == STATE_FUTEX_WAIT;
}

static struct builder_tracks *tracks_of(struct state_builder *b, const struct state_builder_futex_call *c)
{
    return waits(c) ? &b->futex_waits : &b->futex_wakes;
}

uint32_t state_builder_futex_user_of(struct state_builder *b, int32_t thread, uint32_t code)
{
    uint64_t *index = map_put(&b->futex_user_of, (uint64_t)(uint32_t)thread << 32 | code, NULL);
    if (!*index) {
        vec_push(&b->futex_users, ((struct builder_futex_user){.code = code, .thread = thread}));
        *index = b->futex_users.n;
    }
    return (uint32_t)*index;
}

void state_builder_futex_call(struct state_builder *b, struct state_builder_futex_call *c, int32_t row, int64_t ts,
    uint32_t code, uint8_t operation)
{
    *c = (struct state_builder_futex_call){
        .since = ts, .user = state_builder_futex_user_of(b, row, code), .operation = operation};
    b->futex_users.v[c->user - 1].waits |= waits(c);
    c->track = state_builder_track_take(tracks_of(b, c), ts);
}

/* `until`: time of the next change of its row. */
static void push_call(
    struct state_builder *b, struct state_builder_futex_call *c, int64_t until, int64_t number, int64_t next)
{
    struct series *s = &b->futex_users.v[c->user - 1].series;
    until = until > c->since ? until : c->since;
    series_push(&b->pool, s, c->since, number);
    series_push(&b->pool, s, until, next);
    state_builder_track_leave(b, tracks_of(b, c), c->track, c->since, until, c->user);
}

static void end(struct state_builder *b, struct state_builder_futex_call *c, int64_t ts, int64_t number)
{
    if (c->user && c->doubtful)
        series_push(&b->pool, &b->futex_users.v[c->user - 1].series, ts, 0);
    else if (c->user)
        push_call(b, c, ts, number, 0);
    c->user = 0;
}

void state_builder_futex_return(struct state_builder *b, struct state_builder_futex_call *c, int64_t ts, int64_t ret)
{
    end(b, c, ts, state_futex_number(ret, c->operation, false));
}

void state_builder_futex_cut(struct state_builder *b, struct state_builder_futex_call *c, int64_t ts)
{
    end(b, c, ts, state_futex_number(0, c->operation, true));
}

void state_builder_futex_doubt(struct state_builder *b, struct state_builder_futex_call *c, int64_t ts)
{
    if (!c->user || c->doubtful)
        return;
    push_call(b, c, ts, state_futex_number(0, c->operation, true), STATE_FUTEX_DOUBT);
    c->doubtful = true;
}

void state_builder_futexes_finish(struct state_builder *b)
{
    for (size_t i = 0; i < b->threads.n; i++) {
        struct state_builder_futex_call *c = &b->threads.v[i].futex;
        if (!c->user || c->doubtful)
            continue;
        series_push(
            &b->pool, &b->futex_users.v[c->user - 1].series, c->since, state_futex_number(0, c->operation, true));
        series_push(&b->pool, &tracks_of(b, c)->v.v[c->track], c->since, c->user);
    }
}

/* SPDX-License-Identifier: MIT */
/* Parts of builders at a cut: codes, rows' last entries, latencies. */
#include "state/carry_parts.h"

#include <stdlib.h>

/* ---- codes ---- */

enum carried_code {
    CARRIED_VALUE,
    CARRIED_CALL,
    CARRIED_IRQ,
    CARRIED_IPI,
    CARRIED_VECTOR,
    CARRIED_LOCK,
    CARRIED_OTHER_LOCKS,
    CARRIED_REQUEST,
    CARRIED_CODES
};

static uint8_t kind_of(const struct state_builder_code *x)
{
    switch (x->kind) {
    case CODE_STRING: return x->value == STATE_SYSCALL ? CARRIED_CALL : CARRIED_IPI;
    case CODE_IRQ: return CARRIED_IRQ;
    case CODE_VECTOR: return CARRIED_VECTOR;
    case CODE_LOCK: return CARRIED_LOCK;
    case CODE_OTHER_LOCKS: return CARRIED_OTHER_LOCKS;
    case CODE_REQUEST: return CARRIED_REQUEST;
    default: return CARRIED_VALUE;
    }
}

static uint32_t irq_code(struct state_builder *b, bool numbered, uint32_t ref, int32_t cpu)
{
    uint32_t code = state_builder_irq_code(b, numbered, ref);
    return cpu < 0 ? code : state_builder_handler_code(b, code, cpu);
}

/* Finds a loaded code. */
static uint32_t find_code(struct state_carry *v, uint8_t kind, uint32_t ref, int32_t cpu, struct builder_lock lock)
{
    struct state_builder *b = v->b;
    switch (kind) {
    case CARRIED_VALUE: return ref;
    case CARRIED_CALL: return state_builder_text_code(b, ref);
    case CARRIED_IRQ:
    case CARRIED_IPI: return irq_code(b, kind == CARRIED_IRQ, ref, cpu);
    case CARRIED_VECTOR: return state_builder_vector_code(b, (uint16_t)ref);
    case CARRIED_LOCK: return state_builder_lock_code_of(b, lock);
    case CARRIED_OTHER_LOCKS: return state_builder_other_locks_code(b);
    default: return state_builder_request_code(b, ref);
    }
}

void state_carry_code(struct state_carry *v, uint32_t *code)
{
    struct carry *c = v->c;
    struct state_builder *b = v->b;
    if (c->way == CARRY_MARK)
        return;
    struct state_builder_code x = {0};
    struct builder_lock lock = {0};
    if (c->way == CARRY_SAVE)
        x = b->codes.v[*code];
    uint8_t kind = kind_of(&x);
    carry_below(c, &kind, CARRIED_CODES);
    if (kind == CARRIED_VALUE) {
        uint8_t value = x.value;
        carry_below(c, &value, STATE_VALUES);
        x.ref = value;
    } else if (kind == CARRIED_CALL || kind == CARRIED_IPI) {
        carry_string(c, &b->texts, &x.ref);
    } else if (kind == CARRIED_LOCK) {
        if (c->way == CARRY_SAVE)
            lock = b->locks.v[x.ref];
        carry_number(c, &lock.address);
        carry_number(c, &lock.tgid);
    } else if (kind == CARRIED_IRQ) {
        carry_number(c, &x.ref);
    } else if (kind == CARRIED_VECTOR) {
        state_carry_index(c, &x.ref, BUILDER_VECTORS);
    } else if (kind == CARRIED_REQUEST) {
        state_carry_index(c, &x.ref, b->requests.n << STATE_REQUEST_TYPE_BITS);
        if (c->way == CARRY_LOAD && (x.ref & ((1 << STATE_REQUEST_TYPE_BITS) - 1)) >= STATE_REQUESTS)
            state_carry_refuse(c);
    }
    if (kind == CARRIED_IRQ || kind == CARRIED_IPI)
        carry_number(c, &x.cpu);
    if (c->way == CARRY_LOAD)
        *code = c->damaged ? STATE_UNKNOWN : find_code(v, kind, x.ref, x.cpu, lock);
}

/* ---- rows ---- */

static uint16_t fixed_of(const struct series *s)
{
    return s->n > s->fixed + SERIES_CHANGE ? s->n - SERIES_CHANGE : s->fixed;
}

/* Counts all entries that may change, and the one before; the result does not depend on earlier cuts. */
size_t state_carry_kept(const struct series *s, int64_t renamed)
{
    size_t fixed = fixed_of(s), n = fixed ? s->n - fixed + 1 : s->n;
    while (n < s->n && n < SERIES_OPEN && s->v[s->n - n - 1].time >= renamed)
        n++;
    return n;
}

/* Returns whether the loaded entries are valid as the end of a row. */
static bool sound(const struct series *s)
{
    for (size_t i = 1; i < s->n; i++)
        if (s->v[i].time <= s->v[i - 1].time)
            return false;
    return s->fixed <= s->n && s->fixed >= s->past;
}

/* Carried part of a row: its last n entries. begin: its begin in the next chunk; INT64_MAX: unknown. past: there are
 * earlier entries, which the first one stands for; it does not change. */
struct carried_part {
    size_t n;
    int64_t begin;
    bool past, goes_on;
};

/* Sums, except those of files: their bytes count in the chunk that has the entries. */
static void carry_sums(struct state_carry *v, struct series *s, size_t gone)
{
    int64_t before[STATE_WAYS] = {0};
    if (s->sum == SERIES_NO_SUM || s->sum == SERIES_BYTES)
        return;
    if (v->c->way == CARRY_SAVE && s->n)
        state_series_sums_before(&v->b->pool, s, gone, before);
    carry_number(v->c, &before[0]);
    if (v->c->way == CARRY_LOAD)
        memcpy(s->before, before, sizeof before);
}

static size_t carry_entries(struct state_carry *v, struct series *s, size_t n, state_carry_entry *entry)
{
    struct carry *c = v->c;
    bool load = c->way == CARRY_LOAD;
    n = carry_count(c, n, sizeof(int64_t) + (entry ? 1 : sizeof(int64_t)));
    if (load && n > SERIES_OPEN) {
        state_carry_refuse(c);
        n = 0;
    }
    if (load) {
        state_series_reserve(s, n);
        s->n = (uint16_t)n;
    }
    for (size_t i = 0, gone = s->n - n; i < n; i++) {
        struct series_entry x = load ? (struct series_entry){0} : s->v[gone + i];
        carry_number(c, &x.time);
        if (entry)
            entry(v, &x.number);
        else
            carry_number(c, &x.number);
        if (load)
            s->v[i] = x;
    }
    return n;
}

static void carry_part(struct state_carry *v, struct series *s, struct carried_part part, state_carry_entry *entry)
{
    struct carry *c = v->c;
    size_t n = carry_entries(v, s, part.n, entry), gone = s->n - n;
    uint16_t fixed = fixed_of(s);
    fixed = fixed > gone ? (uint16_t)(fixed - gone) : part.past;
    carry_bool(c, &part.past);
    carry_number(c, &fixed);
    if (c->way == CARRY_SAVE && part.goes_on)
        vec_push(&v->b->saved, ((struct builder_saved){s, gone, part.begin}));
    carry_sums(v, s, gone);
    if (c->way != CARRY_LOAD)
        return;
    s->past = part.past;
    s->fixed = fixed;
    if (!sound(s)) {
        state_carry_refuse(c);
        s->n = s->fixed = 0;
        s->past = false;
    }
    state_series_take_last(s);
}

void state_carry_series(struct state_carry *v, struct series *s, int64_t renamed, state_carry_entry *entry)
{
    size_t n = state_carry_kept(s, renamed);
    int64_t begin = n ? s->v[s->n - n].time : INT64_MAX;
    carry_part(v, s, (struct carried_part){n, begin, s->past || n < s->n, true}, entry);
}

void state_carry_series_from(struct state_carry *v, struct series *s, int64_t from, int64_t next)
{
    size_t most = state_carry_kept(s, INT64_MAX), n = 0;
    while (n < most && s->v[s->n - n - 1].time >= from)
        n++;
    n += n < most;
    n -= n && s->v[s->n - n].number == s->lead;
    size_t gone = s->n - n;
    bool more = gone ? s->v[gone - 1].number != s->lead : s->past;
    bool past = n && (s->v[gone].time < from || (n == most && more));
    int64_t begin = n ? s->v[gone].time : next;
    carry_part(v, s, (struct carried_part){n, begin, past, begin < INT64_MAX}, NULL);
}

/* ---- latencies ---- */

void state_carry_latency(struct state_carry *v, int kind, uint64_t *handle)
{
    struct latency_series *l = &v->b->latencies[kind];
    bool open = *handle != 0;
    carry_bool(v->c, &open);
    if (v->c->way == CARRY_LOAD)
        *handle = 0;
    if (!open)
        return;
    struct latency x = {.progress = LATENCY_OPEN};
    uint64_t rank = 0;
    if (v->c->way != CARRY_LOAD) {
        x = *state_latency_of(l, *handle);
        rank = state_latency_rank(l, *handle);
    }
    carry_number(v->c, &x.begin);
    carry_number(v->c, &rank);
    carry_row(v->c, &x.thread);
    state_carry_code(v, &x.code);
    if (v->c->way == CARRY_LOAD)
        *handle = state_latency_reopen(l, &x, rank);
}

/* Visits the last begin of those opened in time, and the number with that begin. */
void state_carry_latency_order(struct carry *c, struct latency_series *l)
{
    int64_t last_begin = l->last_begin;
    uint64_t ranks = state_latency_ranks(l);
    carry_number(c, &last_begin);
    carry_number(c, &ranks);
    carry_number(c, &l->late);
    if (c->way == CARRY_LOAD)
        state_latency_go_on(l, last_begin, ranks);
}

/* ---- frames ---- */

/* Closed frames have no number in the next chunk. They get unique ones, in the order in which they are met. */
void state_carry_frame(struct state_carry *v, uint32_t *frame)
{
    uint32_t number = *frame, closed = 0;
    kernel_carry_frame(v->b->tracker, v->c, &number);
    if (v->c->way == CARRY_SAVE) {
        bool fresh;
        uint64_t *met = map_put(&v->frames, *frame, &fresh);
        if (fresh)
            *met = v->frames.n - 1;
        closed = (uint32_t)*met;
    }
    carry_number(v->c, &closed);
    if (v->c->way == CARRY_LOAD)
        *frame = number == KERNEL_CLOSED_FRAME ? KERNEL_CLOSED_FRAME - 1 - closed : number;
}

void state_carry_gaps(struct carry *c, builder_gaps *g, size_t most)
{
    carry_vec(c, g, 2 * sizeof(int64_t));
    if (g->n > most) {
        state_carry_refuse(c);
        g->n = 0;
    }
    for (size_t i = 0; i < g->n; i++) {
        carry_number(c, &g->v[i].begin);
        carry_number(c, &g->v[i].end);
    }
}

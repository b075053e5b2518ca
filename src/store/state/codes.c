/* SPDX-License-Identifier: MIT */
/* Codes: the pairs of value and name that entries of rows refer to. */
#include "state/builder.h"

const char *state_builder_vector_name(uint32_t vector)
{
    static const char *const names[] = {
        "HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"};
    return vector < sizeof names / sizeof *names ? names[vector] : NULL;
}

uint32_t state_builder_code(struct state_builder *b, struct state_builder_code code)
{
    vec_push(&b->codes, code);
    vec_push(&b->pool.flags[SERIES_RUNNING], state_running(code.value));
    return (uint32_t)b->codes.n - 1;
}

uint32_t state_builder_new_text(struct state_builder *b, uint32_t string)
{
    const char *const *strings;
    const char *text = string < kernel_tracker_strings(b->tracker, &strings) ? strings[string] : "";
    uint32_t number = strings_intern(&b->texts, text, strlen(text));
    state_builder_give_text(b, string, number);
    return number;
}

void state_builder_give_text(struct state_builder *b, uint32_t string, uint32_t text)
{
    while (b->text_of.n <= string)
        vec_push(&b->text_of, 0);
    b->text_of.v[string] = text + 1;
}

/* Code of a system call. */
uint32_t state_builder_text_code(struct state_builder *b, uint32_t text)
{
    uint64_t *code = map_put(&b->call_code_of, text, NULL);
    if (!*code)
        *code = state_builder_code(
            b, (struct state_builder_code){.value = STATE_SYSCALL, .kind = CODE_STRING, .cpu = -1, .ref = text});
    return (uint32_t)*code;
}

uint32_t state_builder_new_call_code(struct state_builder *b, uint32_t string)
{
    while (b->call_codes.n <= string)
        vec_push(&b->call_codes, 0);
    return b->call_codes.v[string] = state_builder_text_code(b, builder_text(b, string));
}

/* Interrupts have their number, those between processors their name. */
uint32_t state_builder_irq_code(struct state_builder *b, bool numbered, uint32_t number)
{
    uint64_t *code = map_put(&b->irq_codes, (uint64_t)numbered << 32 | number, NULL);
    if (!*code)
        *code = state_builder_code(
            b, (struct state_builder_code){STATE_IRQ, numbered ? CODE_IRQ : CODE_STRING, -1, number});
    return (uint32_t)*code;
}

uint32_t state_builder_handler_code(struct state_builder *b, uint32_t irq_code, int32_t cpu)
{
    uint64_t *code = map_put(&b->handler_codes, (uint64_t)irq_code << 32 | (uint32_t)cpu, NULL);
    if (!*code) {
        struct state_builder_code own = b->codes.v[irq_code];
        own.cpu = cpu;
        *code = state_builder_code(b, own);
    }
    return (uint32_t)*code;
}

uint32_t state_builder_vector_code(struct state_builder *b, uint16_t vector)
{
    uint16_t i = vector < BUILDER_VECTORS ? vector : BUILDER_VECTORS - 1;
    if (!b->vector_codes[i])
        b->vector_codes[i] = state_builder_code(b, (struct state_builder_code){STATE_SOFTIRQ, CODE_VECTOR, -1, i});
    return b->vector_codes[i];
}

/* Futexes are per process, since addresses are. Those above a limit, more than a reader can use, count as one. */
uint32_t state_builder_lock_code(struct state_builder *b, int32_t row, uint64_t address)
{
    const struct kernel_thread *threads;
    int32_t tgid = (size_t)row < kernel_tracker_threads(b->tracker, &threads) ? threads[row].tgid : -1;
    return state_builder_lock_code_of(b, (struct builder_lock){address, tgid});
}

uint32_t state_builder_lock_code_of(struct state_builder *b, struct builder_lock lock)
{
    enum { MOST_LOCKS = 4096 };
    uint64_t key = map_mix(lock.address) ^ (uint32_t)lock.tgid, *known = map_find(&b->lock_codes, key);
    if (known)
        return (uint32_t)*known;
    if (b->locks.n == MOST_LOCKS)
        return state_builder_other_locks_code(b);
    vec_push(&b->locks, lock);
    uint32_t code = state_builder_code(
        b, (struct state_builder_code){.kind = CODE_LOCK, .cpu = -1, .ref = (uint32_t)b->locks.n - 1});
    *map_put(&b->lock_codes, key, NULL) = code;
    return code;
}

uint32_t state_builder_other_locks_code(struct state_builder *b)
{
    if (!b->other_locks)
        b->other_locks = state_builder_code(b, (struct state_builder_code){.kind = CODE_OTHER_LOCKS, .cpu = -1});
    return b->other_locks;
}

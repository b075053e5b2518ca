/* Codes: the pairs of value and name that entries of rows refer to. */
#include "state/builder.h"

const char *builder_vector_name(uint32_t vector)
{
    static const char *const names[] = {
        "HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"};
    return vector < sizeof names / sizeof *names ? names[vector] : NULL;
}

uint32_t builder_code(struct state_builder *b, struct builder_code code)
{
    vec_push(&b->codes, code);
    vec_push(&b->pool.flags[SERIES_RUNNING], state_running(code.value));
    return (uint32_t)b->codes.n - 1;
}

uint32_t builder_new_call_code(struct state_builder *b, uint32_t string)
{
    while (b->call_codes.n <= string)
        vec_push(&b->call_codes, 0);
    b->call_codes.v[string] = builder_code(
        b, (struct builder_code){.value = STATE_SYSCALL, .kind = CODE_STRING, .cpu = -1, .ref = string});
    return b->call_codes.v[string];
}

/* Interrupts by number, those between processors by the string of their name. */
uint32_t builder_irq_code(struct state_builder *b, const struct kernel_record *r)
{
    bool numbered = r->kind == KERNEL_IRQ_ENTRY;
    uint64_t *code = map_put(&b->irq_codes, (uint64_t)numbered << 32 | r->ctx_number, NULL);
    if (!*code)
        *code = builder_code(b, (struct builder_code){STATE_IRQ, numbered ? CODE_IRQ : CODE_STRING, -1, r->ctx_number});
    return (uint32_t)*code;
}

uint32_t builder_vector_code(struct state_builder *b, uint16_t vector)
{
    uint16_t i = vector < BUILDER_VECTORS ? vector : BUILDER_VECTORS - 1;
    if (!b->vector_codes[i])
        b->vector_codes[i] = builder_code(b, (struct builder_code){STATE_SOFTIRQ, CODE_VECTOR, -1, i});
    return b->vector_codes[i];
}

/* Futexes by process, because addresses are. Beyond a number that nobody reads they count as one. */
uint32_t builder_lock_code(struct state_builder *b, int32_t row, uint64_t address)
{
    enum { MOST_LOCKS = 4096 };
    const struct kernel_thread *threads;
    int32_t tgid = (size_t)row < kernel_tracker_threads(b->tracker, &threads) ? threads[row].tgid : -1;
    uint64_t key = map_mix(address) ^ (uint32_t)tgid, *known = map_find(&b->lock_codes, key);
    if (known)
        return (uint32_t)*known;
    if (b->locks.n == MOST_LOCKS) {
        if (!b->other_locks)
            b->other_locks = builder_code(b, (struct builder_code){.kind = CODE_OTHER_LOCKS, .cpu = -1});
        return b->other_locks;
    }
    vec_push(&b->locks, ((struct builder_lock){address, tgid}));
    uint32_t code = builder_code(
        b, (struct builder_code){.kind = CODE_LOCK, .cpu = -1, .ref = (uint32_t)b->locks.n - 1});
    *map_put(&b->lock_codes, key, NULL) = code;
    return code;
}

#include "story.h"

enum { CPUS = 3, TIDS = 9 };

static uint64_t dice(uint64_t *state, uint64_t below)
{
    *state = *state * 6364136223846793005 + 1442695040888963407;
    return (*state >> 33) % below;
}

static void make_handler(struct maker *m, uint64_t *d, uint32_t cpu, int64_t ts)
{
    static const enum maker_event kinds[] = {M_SOFTIRQ_ENTRY, M_SOFTIRQ_EXIT, M_RESCHEDULE_ENTRY, M_RESCHEDULE_EXIT};
    unsigned what = (unsigned)dice(d, 6);
    if (what < 2)
        maker_irq(m, cpu, ts, what == 0, 1 + (int)dice(d, 3), dice(d, 40) ? "disk" : "another");
    else
        maker_number(m, cpu, ts, kinds[what - 2], what < 4 ? (int64_t)dice(d, 10) : 253);
}

static void make_disk(struct maker *m, uint64_t *d, uint32_t cpu, int64_t ts)
{
    uint32_t dev = 8 << 20 | (uint32_t)dice(d, 2);
    if (dice(d, 6))
        maker_block_complete(m, cpu, ts, dev);
    else
        maker_dump_disk(m, cpu, ts, dev, dice(d, 2) ? "sda" : "sdb");
}

/* All at random, also what no kernel does: threads on two CPUs at once, handlers that end without having begun. Often
 * several things happen in one ns; packets lose events. */
struct maker *story_random(uint64_t seed, size_t n)
{
    static const int64_t states[] = {0, 1, 2, 64, 32};
    struct maker *m = maker_new(CPUS, 0);
    int runs[CPUS] = {0};
    int64_t ts = 1000;
    uint64_t d = seed;
    for (size_t i = 0; i < n; i++) {
        uint32_t cpu = (uint32_t)dice(&d, CPUS);
        int tid = 1 + (int)dice(&d, TIDS), next = dice(&d, 4) ? tid : 0;
        ts += dice(&d, 3) ? (int64_t)dice(&d, 40) : 0;
        switch (dice(&d, 17)) {
        case 0:
        case 1:
        case 2:
        case 3:
            maker_switch(m, cpu, ts, dice(&d, 12) ? runs[cpu] : 1, states[dice(&d, 5)], next);
            runs[cpu] = next;
            break;
        case 4:
        case 5: maker_wake(m, cpu, ts, dice(&d, 2) ? M_WAKING : M_WAKEUP, tid, (int)cpu); break;
        case 6: maker_task(m, cpu, ts, dice(&d, 2) ? M_EXIT : M_FREE, dice(&d, 2) ? runs[cpu] : tid); break;
        case 7: maker_fork(m, cpu, ts, runs[cpu], 1 + TIDS + (int)dice(&d, TIDS), runs[cpu], -1); break;
        case 8:
        case 9:
        case 10: maker_number(m, cpu, ts, M_FUTEX_ENTRY, 4096 + (int64_t)dice(&d, 3)); break;
        case 11:
        case 12: maker_number(m, cpu, ts, M_FUTEX_EXIT, 0); break;
        case 13: dice(&d, 9) ? maker_cut(m, cpu, ts) : maker_lose(m, cpu, ts); break;
        case 14: make_disk(m, &d, cpu, ts); break;
        default: make_handler(m, &d, cpu, ts); break;
        }
    }
    return m;
}

/* SPDX-License-Identifier: MIT */
#include "story.h"

enum { CPUS = 3, TIDS = 9, USERS = 4 };

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

/* Makes random events, also impossible ones: threads on two CPUs at once, handlers that end without having begun. Often
 * several events have the same ns; packets lose events. */
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

/* ---- files ---- */

static void call_file(struct maker *m, uint64_t *d, uint32_t cpu, int64_t ts, int64_t fd)
{
    static const char *const paths[] = {"/a", "/b", "c"};
    static const enum maker_event calls[] = {
        M_READ_ENTRY, M_READ_ENTRY, M_WRITE_ENTRY, M_WRITE_ENTRY, M_CLOSE_ENTRY, M_DUP_ENTRY};
    size_t what = dice(d, 9);
    if (what < 3)
        maker_path(m, cpu, ts, paths[what]);
    else
        maker_number(m, cpu, ts, calls[what - 3], fd);
}

static void return_from_file(struct maker *m, uint64_t *d, uint32_t cpu, int64_t ts, int call)
{
    static const int64_t amounts[] = {100, 100, 7, 0, -5};
    int64_t ret = call == M_READ_ENTRY || call == M_WRITE_ENTRY ? amounts[dice(d, 5)]
        : call == M_CLOSE_ENTRY                                 ? 0
                                                                : 3 + (int64_t)dice(d, 4);
    maker_number(m, cpu, ts, (enum maker_event)(call + 1), ret);
}

/* Threads that use files: what each CPU runs (0: nothing), and each thread's call in progress, or M_EVENTS. */
struct users {
    struct maker *m;
    uint64_t d;
    int runs[CPUS], calls[1 + USERS];
};

static void run_user(struct users *u, uint32_t cpu, int64_t ts)
{
    int next = 1 + (int)dice(&u->d, USERS);
    for (int k = 0; k < CPUS; k++)
        if (u->runs[k] == next)
            return;
    maker_switch(u->m, cpu, ts, u->runs[cpu], 1, next);
    u->runs[cpu] = next;
}

static void use_file(struct users *u, uint32_t cpu, int64_t ts)
{
    int *call = &u->calls[u->runs[cpu]];
    if (!u->runs[cpu])
        return;
    if (*call == M_EVENTS) {
        size_t at = maker_events(u->m);
        call_file(u->m, &u->d, cpu, ts, 3 + (int64_t)dice(&u->d, 4));
        *call = maker_kind(u->m, at, &cpu, &ts);
    } else {
        return_from_file(u->m, &u->d, cpu, ts, *call);
        *call = M_EVENTS;
    }
}

static void rename_user(struct users *u)
{
    static const char *const names[] = {"one", "two"};
    int tid = 1 + (int)dice(&u->d, USERS);
    maker_name(u->m, tid, names[dice(&u->d, 2)]);
}

struct maker *story_files(uint64_t seed, size_t n)
{
    struct users u = {.m = maker_new(CPUS, 0), .d = seed};
    int64_t ts = 1000;
    for (int tid = 2; tid <= USERS; tid++)
        maker_fork(u.m, 0, ts, 1, tid, tid - tid % 2, -1);
    for (int tid = 1; tid <= USERS; tid++)
        u.calls[tid] = M_EVENTS;
    for (size_t i = 0; i < n; i++) {
        uint32_t cpu = (uint32_t)dice(&u.d, CPUS);
        size_t what = dice(&u.d, 40);
        ts += dice(&u.d, 3) ? (int64_t)dice(&u.d, 20) : 0;
        if (what == 0)
            dice(&u.d, 4) ? maker_cut(u.m, cpu, ts) : maker_lose(u.m, cpu, ts);
        else if (what == 1)
            maker_exec(u.m, cpu, ts, "/bin/x", u.runs[cpu], u.runs[cpu]);
        else if (what == 2)
            rename_user(&u);
        else if (what < 12)
            run_user(&u, cpu, ts);
        else
            use_file(&u, cpu, ts);
    }
    return u.m;
}

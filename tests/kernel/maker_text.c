/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "maker_text.h"

enum { MOST_WORDS = 10, LONGEST_EVENT = 160 };

/* One event in words; words that are missing are empty. */
struct event {
    struct maker *maker;
    uint32_t cpu;
    int64_t ts;
    char text[LONGEST_EVENT];
    const char *word[MOST_WORDS];
};

static int64_t number(const char *word)
{
    char *end = NULL;
    int64_t value = strtoll(word, &end, 0);
    if (end == word || *end)
        fail_msg("no number: '%s'", word);
    return value;
}

static int small(const char *word)
{
    return (int)number(word);
}

static int64_t state_of(const char *word)
{
    static const struct {
        char letter;
        int64_t state;
    } states[] = {{'R', 0}, {'S', 1}, {'D', 2}, {'T', 4}, {'Z', 0x20}, {'P', 0x100}, {'I', 0x402}};
    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        if (word[0] == states[i].letter && !word[1])
            return states[i].state;
    return number(word);
}

static int status_of(const char *word)
{
    if (!strcmp(word, "waiting"))
        return KERNEL_DUMPED_WAITING;
    if (!strcmp(word, "zombie"))
        return KERNEL_DUMPED_ZOMBIE;
    assert_string_equal(word, "runnable");
    return KERNEL_DUMPED_RUNNABLE;
}

static void add_switch(struct event *e, enum maker_event kind)
{
    maker_switch(e->maker, e->cpu, e->ts, small(e->word[0]), state_of(e->word[1]), small(e->word[2]));
}

static void add_wake(struct event *e, enum maker_event kind)
{
    maker_wake(e->maker, e->cpu, e->ts, kind, small(e->word[0]), small(e->word[1]));
}

static void add_fork(struct event *e, enum maker_event kind)
{
    maker_fork(e->maker, e->cpu, e->ts, small(e->word[0]), small(e->word[1]), small(e->word[2]), small(e->word[3]));
}

static void add_exec(struct event *e, enum maker_event kind)
{
    maker_exec(e->maker, e->cpu, e->ts, e->word[0], small(e->word[1]), small(e->word[2]));
}

static void add_task(struct event *e, enum maker_event kind)
{
    maker_task(e->maker, e->cpu, e->ts, kind, small(e->word[0]));
}

static void add_irq(struct event *e, enum maker_event kind)
{
    maker_irq(e->maker, e->cpu, e->ts, kind == M_IRQ_ENTRY, small(e->word[0]), *e->word[1] ? e->word[1] : NULL);
}

static void add_number(struct event *e, enum maker_event kind)
{
    maker_number(e->maker, e->cpu, e->ts, kind, number(e->word[0]));
}

static void add_plain(struct event *e, enum maker_event kind)
{
    maker_plain(e->maker, e->cpu, e->ts, kind);
}

static void add_block_complete(struct event *e, enum maker_event kind)
{
    maker_block_complete(e->maker, e->cpu, e->ts, (uint32_t)number(e->word[0]));
}

static void add_dump_thread(struct event *e, enum maker_event kind)
{
    maker_dump_thread(e->maker, e->cpu, e->ts, small(e->word[0]), small(e->word[1]), small(e->word[2]),
        status_of(e->word[3]), e->word[4]);
}

static void add_dump_ns(struct event *e, enum maker_event kind)
{
    maker_dump_ns(
        e->maker, e->cpu, e->ts, small(e->word[0]), small(e->word[1]), small(e->word[2]), (uint32_t)number(e->word[3]));
}

static void add_dump_disk(struct event *e, enum maker_event kind)
{
    maker_dump_disk(e->maker, e->cpu, e->ts, (uint32_t)number(e->word[0]), e->word[1]);
}

static const struct {
    const char *name;
    enum maker_event kind;
    void (*add)(struct event *, enum maker_event);
    int words; /* least */
} kinds[] = {
    {"switch", M_SWITCH, add_switch, 3},
    {"waking", M_WAKING, add_wake, 2},
    {"wakeup", M_WAKEUP, add_wake, 2},
    {"wakeup_new", M_WAKEUP_NEW, add_wake, 2},
    {"fork", M_FORK, add_fork, 4},
    {"exec", M_EXEC, add_exec, 3},
    {"exit", M_EXIT, add_task, 1},
    {"free", M_FREE, add_task, 1},
    {"irq_entry", M_IRQ_ENTRY, add_irq, 2},
    {"irq_exit", M_IRQ_EXIT, add_irq, 1},
    {"softirq_entry", M_SOFTIRQ_ENTRY, add_number, 1},
    {"softirq_exit", M_SOFTIRQ_EXIT, add_number, 1},
    {"hrtimer_entry", M_HRTIMER_ENTRY, add_number, 1},
    {"hrtimer_exit", M_HRTIMER_EXIT, add_number, 1},
    {"reschedule_entry", M_RESCHEDULE_ENTRY, add_number, 1},
    {"reschedule_exit", M_RESCHEDULE_EXIT, add_number, 1},
    {"local_timer_entry", M_LOCAL_TIMER_ENTRY, add_number, 1},
    {"local_timer_exit", M_LOCAL_TIMER_EXIT, add_number, 1},
    {"futex_entry", M_FUTEX_ENTRY, add_number, 1},
    {"futex_exit", M_FUTEX_EXIT, add_number, 1},
    {"net_entry", M_NET_ENTRY, add_plain, 0},
    {"net_exit", M_NET_EXIT, add_plain, 0},
    {"other", M_OTHER, add_plain, 0},
    {"block_complete", M_BLOCK_COMPLETE, add_block_complete, 1},
    {"dump_thread", M_DUMP_THREAD, add_dump_thread, 5},
    {"dump_ns", M_DUMP_NS, add_dump_ns, 4},
    {"dump_disk", M_DUMP_DISK, add_dump_disk, 2},
};

static void add(struct maker *m, const char *text, size_t n)
{
    struct event e = {.maker = m};
    const char *kind = NULL;
    int words = -3; /* behind CPU, time and kind */
    if (n >= sizeof e.text)
        fail_msg("too long: %s", text);
    memcpy(e.text, text, n);
    for (size_t i = 0; i < MOST_WORDS; i++)
        e.word[i] = "";
    char *rest = NULL;
    for (char *w = strtok_r(e.text, " ", &rest); w && words < MOST_WORDS; w = strtok_r(NULL, " ", &rest), words++)
        if (words == -3)
            e.cpu = (uint32_t)number(w);
        else if (words == -2)
            e.ts = number(w);
        else if (words == -1)
            kind = w;
        else
            e.word[words] = w;
    for (size_t i = 0; kind && i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(kinds[i].name, kind) && words >= kinds[i].words) {
            kinds[i].add(&e, kinds[i].kind);
            return;
        }
    fail_msg("no event: %.*s", (int)n, text);
}

void maker_text(struct maker *m, const char *events)
{
    while (*events) {
        size_t n = strcspn(events, ";");
        add(m, events, n);
        events += n + (events[n] == ';');
        events += strspn(events, " ");
    }
}

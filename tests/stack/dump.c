/* SPDX-License-Identifier: MIT */
/* stack_dump TRACE: prints the contents of a trace's call stack store, as lines for stack_truth.py. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fixture.h"

static const char *const hows[] = {"whole", "cut", "unknown"};

static void dump_thread(const struct stack_store *s, size_t i)
{
    struct stack_thread t;
    struct stack_process p;
    stack_thread(s, i, &t);
    stack_process(s, t.process, &p);
    printf("thread %d %d %s\n", p.pid, t.tid, t.name);
    for (uint32_t level = 0; level < t.rows; level++)
        for (size_t k = 0; k < stack_calls(s, t.first_row + level); k++) {
            struct stack_call c;
            struct stack_function f = {.name = "-"};
            stack_call(s, t.first_row + level, k, &c);
            if (c.how != STACK_UNKNOWN)
                stack_function(s, c.function, &f);
            printf("call %d %d %u %lld %lld %s %s\n", p.pid, t.tid, level, (long long)c.begin, (long long)c.end,
                hows[c.how], f.name);
        }
}

int main(int argc, char **argv)
{
    struct stack_store *s;
    struct err e = {0};
    char path[64];
    snprintf(path, sizeof path, "/tmp/weft-stacks-%d", getpid());
    if (argc != 2 || stack_fixture(argv[1], path, &s, &e)) {
        fprintf(stderr, "stack_dump: %s\n", argc == 2 ? e.text : "TRACE wanted");
        return 1;
    }
    unlink(path);
    const struct stack_totals *t = stack_totals(s);
    printf("totals %llu %llu %llu %llu\n", (unsigned long long)t->events, (unsigned long long)t->calls,
        (unsigned long long)t->strange_exits, (unsigned long long)t->missing_exits);
    for (size_t i = 0; i < stack_threads(s); i++)
        dump_thread(s, i);
    stack_close(s);
    return 0;
}

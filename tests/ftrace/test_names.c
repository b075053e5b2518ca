/* SPDX-License-Identifier: MIT */
/* The kernel's own names and fields of events, which ftrace records, mean what LTTng's do. */
#include <string.h>

#include "../base/test.h"
#include "ftrace/ftrace.h"
#include "kernel/kernel.h"
#include "maker.h"

struct seen {
    struct kernel_record records[64];
    size_t n;
};

static void sink(void *arg, const struct kernel_record *record)
{
    struct seen *s = arg;
    if (s->n < sizeof s->records / sizeof *s->records)
        s->records[s->n++] = *record;
}

static const struct kernel_record *find(const struct seen *s, int kind, size_t which)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->records[i].kind == kind && !which--)
            return &s->records[i];
    fail_msg("no record of kind %d", kind);
    return NULL;
}

static void test_names(void **state)
{
    /* lttng-modules' bits of: W, FWFSM (flush before, forced), RA, D, FF (a flush), N */
    static const uint32_t rwbs[] = {1, 1 | 1 << 10 | 1 << 9 | 1 << 5 | 1 << 6, 4 | 8, 2, 1 << 8 | 1 << 9, 0};
    struct ctf_trace *t;
    struct err e = {0};
    struct seen s = {0};
    struct kernel_binding *b;
    int64_t end;
    assert_int_equal(ftrace_trace_open(WEFT_SOURCE_ROOT "/fuzz/corpus/tracedat/names", NULL, &t, &e), 0);
    struct kernel_tracker *k = maker_run(t, sink, &s, &b, &end);
    assert_int_equal(find(&s, KERNEL_SWITCH, 0)->u.sw.leave, KERNEL_LEAVE_BLOCKED);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(find(&s, KERNEL_BLOCK_INSERT, i)->u.block.rwbs, rwbs[i]);
        assert_int_equal(find(&s, KERNEL_BLOCK_ISSUE, i)->u.block.rwbs, rwbs[3 + i]);
    }
    assert_int_equal(find(&s, KERNEL_SYSCALL_EXIT, 0)->u.syscall.ret, 12);
    assert_int_equal(find(&s, KERNEL_SYSCALL_ENTRY, 1)->u.syscall.futex, 0xabc0);
    find(&s, KERNEL_SYSCALL_EXIT, 1);
    assert_int_equal(find(&s, KERNEL_IPI_ENTRY, 0)->ctx, KERNEL_CTX_HRTIMER);
    find(&s, KERNEL_IPI_EXIT, 0);
    find(&s, KERNEL_NET_ENTRY, 0);
    find(&s, KERNEL_NET_EXIT, 0);
    assert_true(find(&s, KERNEL_FORK, 0)->u.fork.child >= 0);
    kernel_tracker_free(k);
    kernel_binding_free(b);
    ctf_trace_close(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

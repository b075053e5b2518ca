/* SPDX-License-Identifier: MIT */
/* Containers of threads, on made traces: state dumps, clone, unshare and fork, setns with and without contexts, names,
 * reused namespace numbers, cgroup namespaces. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "maker.h"

enum {
    NEW_CGROUP = 0x02000000,
    NEW_MOUNTS = 0x00020000,
    NEW_PID = 0x20000000,
    NEW_NET = 0x40000000,
    NEW_UTS = 0x04000000,
    NEW_ALL = NEW_PID | NEW_NET | NEW_UTS
};
static const uint32_t ROOT_PID = 4026531836, ROOT_NET = 4026531840, ROOT_UTS = 4026531838, ROOT_CGROUP = 4026531835;

struct run {
    struct maker_trace trace;
    struct kernel_binding *binding;
    struct kernel_tracker *tracker;
};

static void ignore(void *arg, const struct kernel_record *r) {}

static struct run run(struct maker *m)
{
    struct run r = {0};
    int64_t end;
    maker_open(m, SIZE_MAX, false, &r.trace);
    r.tracker = maker_run(r.trace.trace, ignore, NULL, &r.binding, &end);
    maker_free(m);
    return r;
}

static void done(struct run *r)
{
    kernel_tracker_free(r->tracker);
    kernel_binding_free(r->binding);
    maker_close(&r->trace);
}

static int32_t row_of(const struct run *r, int tid, int life)
{
    const struct kernel_thread *k;
    size_t n = kernel_tracker_threads(r->tracker, &k);
    for (size_t i = 0; i < n; i++)
        if (k[i].tid == tid && !life--)
            return (int32_t)i;
    fail_msg("no thread %d", tid);
    return -1;
}

static int32_t container(const struct run *r, int tid, int life)
{
    return kernel_tracker_container(r->tracker, row_of(r, tid, life));
}

/* "NAME pid_ns net_ns uts_ns first"; "-": none. Of the thread's latest life. */
static const char *told_of(const struct run *r, int tid, int life)
{
    static char text[120];
    const char *const *strings;
    struct kernel_container k;
    int32_t c = container(r, tid, life);
    if (c == KERNEL_NO_CONTAINER)
        return "-";
    kernel_tracker_strings(r->tracker, &strings);
    kernel_tracker_container_is(r->tracker, c, &k);
    snprintf(text, sizeof text, "%s %u %u %u %s", strings[k.name], k.pid_ns, k.net_ns, k.uts_ns, strings[k.first]);
    return text;
}

/* Makes the state dump of a process, with the machine's namespaces. */
static void dump(struct maker *m, int64_t ts, int tid, uint32_t pid_ns, uint32_t net_ns, uint32_t uts_ns)
{
    maker_dump_thread(m, 0, ts, tid, tid, 1, KERNEL_DUMPED_WAITING, "dumped");
    if (pid_ns != ROOT_PID)
        maker_dump_ns(m, 0, ts, tid, 3, 1, pid_ns);
    maker_dump_ns(m, 0, ts, tid, tid, 0, ROOT_PID);
    maker_dump_space(m, 0, ts, M_DUMP_NET, tid, net_ns);
    maker_dump_space(m, 0, ts, M_DUMP_UTS, tid, uts_ns);
}

static struct maker *machine(void)
{
    struct maker *m = maker_new(2, 0);
    dump(m, 10, 1, ROOT_PID, ROOT_NET, ROOT_UTS);
    dump(m, 11, 2, ROOT_PID, ROOT_NET, ROOT_UTS);
    dump(m, 12, 50, ROOT_PID, ROOT_NET, ROOT_UTS);
    return m;
}

static void call(struct maker *m, int64_t ts, enum maker_event entry, int64_t argument, int64_t ret)
{
    maker_number(m, 0, ts, entry, argument);
    maker_number(m, 0, ts + 1, entry + 1, ret);
}

static void set_name(struct maker *m, int64_t ts, const char *name, int64_t ret)
{
    maker_hostname(m, 0, ts, name);
    maker_number(m, 0, ts + 1, M_HOSTNAME_EXIT, ret);
}

static void statedump(void **state)
{
    struct maker *m = machine();
    dump(m, 20, 60, 111, 222, 333);
    dump(m, 21, 61, 112, 222, 333); /* second container of the same pod */
    dump(m, 22, 62, 113, ROOT_NET, ROOT_UTS);
    dump(m, 23, 63, ROOT_PID, 224, ROOT_UTS);
    dump(m, 24, 64, ROOT_PID, ROOT_NET, 334); /* own host name: no isolation */
    maker_fork_in(m, 0, 30, 62, 70, 70, 9, 113);
    struct run r = run(m);
    assert_string_equal(told_of(&r, 1, 0), "-");
    assert_string_equal(told_of(&r, 50, 0), "-");
    assert_string_equal(told_of(&r, 60, 0), " 111 222 333 dumped");
    assert_int_equal(container(&r, 61, 0), container(&r, 60, 0));
    assert_string_equal(told_of(&r, 62, 0), " 113 4026531840 0 dumped");
    assert_string_equal(told_of(&r, 63, 0), " 0 224 0 dumped");
    assert_string_equal(told_of(&r, 64, 0), "-");
    assert_int_equal(container(&r, 70, 0), container(&r, 62, 0));
    const struct kernel_thread *k;
    kernel_tracker_threads(r.tracker, &k);
    assert_int_equal(k[row_of(&r, 60, 0)].vtid, 3); /* innermost namespace, though the outer one was recorded last */
    assert_int_equal(k[row_of(&r, 60, 0)].pid_ns, 111);
    done(&r);
}

static void clone(void **state)
{
    struct maker *m = machine();
    maker_switch(m, 0, 100, 0, 0, 50);
    maker_number(m, 0, 110, M_CLONE_ENTRY, NEW_ALL);
    maker_fork_in(m, 0, 111, 50, 80, 80, 1, 500);
    maker_number(m, 0, 112, M_CLONE_EXIT, 80);
    maker_number(m, 0, 113, M_CLONE_ENTRY, 0);
    maker_fork_in(m, 0, 114, 50, 81, 81, 81, ROOT_PID);
    maker_number(m, 0, 115, M_CLONE_EXIT, 81);
    maker_switch(m, 0, 120, 50, 0, 80);
    set_name(m, 121, "pod-a", 0);
    maker_exec(m, 0, 124, "/usr/sbin/nginx", 80, 80);
    maker_number(m, 0, 125, M_CLONE_ENTRY, 0);
    maker_fork_in(m, 0, 126, 80, 82, 82, 2, 500);
    maker_number(m, 0, 127, M_CLONE_EXIT, 2); /* child's number inside */
    struct run r = run(m);
    assert_string_equal(told_of(&r, 80, 0), "pod-a 500 0 0 nginx");
    assert_int_equal(container(&r, 82, 0), container(&r, 80, 0));
    assert_string_equal(told_of(&r, 81, 0), "-");
    assert_string_equal(told_of(&r, 50, 0), "-");
    done(&r);
}

static void unshare_then_fork(void **state)
{
    struct maker *m = machine();
    maker_switch(m, 0, 100, 0, 0, 50);
    maker_fork(m, 0, 105, 50, 79, 79, 79);
    call(m, 107, M_UNSHARE_ENTRY, NEW_ALL, -1); /* failed call */
    maker_fork(m, 0, 109, 50, 78, 78, 78);
    call(m, 110, M_UNSHARE_ENTRY, NEW_ALL, 0);
    maker_fork_in(m, 0, 120, 50, 80, 80, 1, 500);
    maker_fork_in(m, 0, 121, 50, 81, 81, 2, 500);
    maker_switch(m, 0, 130, 50, 0, 81);
    set_name(m, 131, "not-allowed", -1);
    set_name(m, 133, "pod-b", 0);
    struct run r = run(m);
    assert_string_equal(told_of(&r, 79, 0), "-");
    assert_string_equal(told_of(&r, 78, 0), "-");
    assert_string_equal(told_of(&r, 80, 0), "pod-b 500 0 0 t50");
    assert_int_equal(container(&r, 81, 0), container(&r, 80, 0));
    assert_int_equal(container(&r, 50, 0), container(&r, 80, 0)); /* network of the pod */
    done(&r);
}

/* Checks a number recorded after its namespace was seen to be made; a thread that went there is identified by it. */
static void numbers_told_later(void **state)
{
    struct maker *m = machine();
    maker_switch(m, 0, 100, 0, 0, 50);
    call(m, 110, M_UNSHARE_ENTRY, NEW_NET | NEW_UTS, 0);
    set_name(m, 115, "late", 0);
    maker_dump_space(m, 0, 200, M_DUMP_NET, 1, ROOT_NET);
    maker_dump_thread(m, 0, 201, 40, 40, 1, KERNEL_DUMPED_WAITING, "nsenter");
    maker_dump_space(m, 0, 202, M_DUMP_NET, 40, 700); /* dump before the thread that made it */
    maker_dump_space(m, 0, 203, M_DUMP_NET, 50, 700);
    maker_dump_space(m, 0, 204, M_DUMP_UTS, 50, 800);
    struct run r = run(m);
    assert_string_equal(told_of(&r, 50, 0), "late 0 700 800 t50");
    assert_int_equal(container(&r, 40, 0), container(&r, 50, 0));
    done(&r);
}

static void setns(void **state)
{
    for (int with = 0; with < 2; with++) {
        struct maker *m = machine();
        dump(m, 20, 60, 111, 222, 333);
        maker_switch(m, 0, 100, 0, 0, 50);
        if (with)
            maker_spaces(m, 0, 101, ROOT_PID, ROOT_NET, ROOT_UTS, 0);
        call(m, 110, M_SETNS_ENTRY, NEW_NET, 0);
        if (with)
            maker_spaces(m, 0, 112, ROOT_PID, 222, ROOT_UTS, 0);
        maker_fork(m, 0, 120, 50, 80, 80, 80);
        call(m, 130, M_SETNS_ENTRY, NEW_PID, 0);
        maker_fork_in(m, 0, 140, 50, 81, 81, 9, 111);
        struct run r = run(m);
        int32_t pod = container(&r, 60, 0), none = KERNEL_NO_CONTAINER;
        assert_int_equal(container(&r, 50, 0), with ? pod : none);
        assert_int_equal(container(&r, 80, 0), with ? pod : none);
        assert_int_equal(container(&r, 81, 0), pod); /* known by its fork */
        done(&r);
    }
}

static void numbers_used_again(void **state)
{
    struct maker *m = machine();
    maker_switch(m, 0, 100, 0, 0, 50);
    for (int i = 0; i < 2; i++) {
        int64_t ts = 110 + 100 * i;
        maker_number(m, 0, ts, M_CLONE_ENTRY, NEW_ALL);
        maker_fork_in(m, 0, ts + 1, 50, 80, 80, 1, 500);
        maker_number(m, 0, ts + 2, M_CLONE_EXIT, 80);
        maker_switch(m, 0, ts + 10, 50, 0, 80);
        maker_spaces(m, 0, ts + 11, 500, 600, 700, 0);
        set_name(m, ts + 12, i ? "second" : "first", 0);
        maker_task(m, 0, ts + 20, M_EXIT, 80);
        maker_switch(m, 0, ts + 21, 80, 0x20, 50);
        maker_task(m, 0, ts + 22, M_FREE, 80);
    }
    struct run r = run(m);
    assert_string_equal(told_of(&r, 80, 0), "first 500 600 700 t80");
    assert_string_equal(told_of(&r, 80, 1), "second 500 600 700 t80");
    assert_int_not_equal(container(&r, 80, 0), container(&r, 80, 1));
    done(&r);
}

/* Checks reused numbers: the end of the first namespace was not seen; or it is known only by the state dump. */
static void numbers_used_again_unseen(void **state)
{
    struct maker *m = machine();
    dump(m, 20, 60, 111, ROOT_NET, 333);
    maker_switch(m, 0, 100, 0, 0, 50);
    maker_fork_in(m, 0, 110, 50, 80, 80, 1, 500);
    maker_fork_in(m, 0, 120, 50, 81, 81, 1, 500);
    maker_fork_in(m, 0, 121, 81, 82, 82, 2, 500);
    maker_switch(m, 0, 130, 50, 0, 60);
    maker_task(m, 0, 131, M_EXIT, 60);
    maker_switch(m, 0, 132, 60, 0x20, 50);
    dump(m, 140, 65, 111, ROOT_NET, 333);
    struct run r = run(m);
    assert_int_not_equal(container(&r, 80, 0), container(&r, 81, 0));
    assert_int_equal(container(&r, 82, 0), container(&r, 81, 0));
    assert_int_not_equal(container(&r, 60, 0), container(&r, 65, 0));
    done(&r);
}

/* Checks visits to a pod's network, as network plug-ins make them, with contexts alone; threads started there stay. */
static void visit(void **state)
{
    struct maker *m = machine();
    dump(m, 20, 60, 111, 222, 333);
    maker_switch(m, 0, 100, 0, 0, 50);
    maker_spaces(m, 0, 110, ROOT_PID, 222, ROOT_UTS, 0);
    maker_fork(m, 0, 120, 50, 80, 80, 80);
    maker_spaces(m, 0, 130, ROOT_PID, ROOT_NET, ROOT_UTS, 0);
    maker_fork(m, 0, 135, 50, 81, 81, 81);
    maker_task(m, 0, 140, M_EXIT, 50);
    struct run r = run(m);
    assert_string_equal(told_of(&r, 50, 0), "-");
    assert_string_equal(told_of(&r, 81, 0), "-");
    assert_int_equal(container(&r, 80, 0), container(&r, 60, 0));
    done(&r);
}

/* Checks a thread that left its container for an unknown one. */
static void setns_from_a_container(void **state)
{
    struct maker *m = machine();
    dump(m, 20, 60, ROOT_PID, 222, 333);
    maker_switch(m, 0, 100, 0, 0, 60);
    maker_fork(m, 0, 105, 60, 70, 70, 70);
    call(m, 110, M_SETNS_ENTRY, NEW_NET, 0);
    struct run r = run(m);
    assert_string_equal(told_of(&r, 60, 0), "-");
    assert_string_equal(told_of(&r, 70, 0), " 0 222 333 t60");
    done(&r);
}

/* Checks traces without clone and unshare: a fork's unknown parts stay unknown, and no container gets another's
 * name. */
static void calls_not_recorded(void **state)
{
    struct maker *m = maker_new(2, UINT64_C(1) << M_CLONE_ENTRY | UINT64_C(1) << M_UNSHARE_ENTRY);
    dump(m, 11, 2, ROOT_PID, ROOT_NET, ROOT_UTS);
    dump(m, 12, 50, 111, 222, 333);
    maker_switch(m, 0, 90, 0, 0, 50);
    set_name(m, 91, "outer", 0);
    maker_fork_in(m, 0, 100, 50, 80, 80, 4, 111);
    maker_fork_in(m, 0, 110, 50, 81, 81, 1, 500);
    struct run r = run(m);
    assert_string_equal(told_of(&r, 80, 0), "outer 111 222 333 t50");
    assert_string_equal(told_of(&r, 81, 0), " 500 0 0 t50");
    done(&r);
}

static void what_it_says_of_itself(void **state)
{
    static const char *const bad[] = {"weft-container", "weft-container ", "weft-container a b", "weft-container a\tb",
        "weft-span container x", "weft-container a-name-of-more-than-sixty-four-bytes-which-no-pod-or-container-has"};
    struct maker *m = machine();
    dump(m, 20, 60, 111, 222, 333);
    maker_switch(m, 0, 100, 0, 0, 50);
    maker_logger(m, 0, 101, "weft-container machine"); /* thread without container */
    maker_switch(m, 0, 110, 50, 0, 60);
    set_name(m, 111, "host-name", 0);
    maker_logger(m, 0, 113, "weft-container shop/cart-0\n");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        maker_logger(m, 0, 120 + (int64_t)i, bad[i]);
    struct run r = run(m);
    assert_string_equal(told_of(&r, 50, 0), "-");
    assert_string_equal(told_of(&r, 60, 0), "shop/cart-0 111 222 333 t60");
    done(&r);
}

/* ---- cgroup namespaces ---- */

/* "KIND NAME cgroup_ns first": which kind of namespace the container is. */
static const char *kind_of(const struct run *r, int tid)
{
    static char text[120];
    static const char *const kinds[KERNEL_SPACE_KINDS] = {"pid", "net", "uts", "cgroup"};
    const char *const *strings;
    struct kernel_container k;
    int32_t c = container(r, tid, 0);
    if (c == KERNEL_NO_CONTAINER)
        return "-";
    kernel_tracker_strings(r->tracker, &strings);
    kernel_tracker_container_is(r->tracker, c, &k);
    snprintf(text, sizeof text, "%s %s %u %s", kinds[k.kind], strings[k.name], k.cgroup_ns, strings[k.first]);
    return text;
}

static void dump_in(struct maker *m, int64_t ts, int tid, uint32_t pid_ns, uint32_t net_ns, uint32_t cgroup_ns)
{
    dump(m, ts, tid, pid_ns, net_ns, ROOT_UTS);
    maker_dump_space(m, 0, ts, M_DUMP_CGROUP, tid, cgroup_ns);
}

/* Pods that use the machine's network or pids, or both, and one that does not; the latter's engine is in none. */
static void cgroup_statedump(void **state)
{
    struct maker *m = machine();
    dump_in(m, 15, 51, ROOT_PID, ROOT_NET, ROOT_CGROUP);
    dump_in(m, 20, 60, ROOT_PID, ROOT_NET, 440);
    dump_in(m, 21, 61, ROOT_PID, ROOT_NET, 441);
    dump_in(m, 22, 62, ROOT_PID, 222, 442); /* two containers of a pod with the machine's pids */
    dump_in(m, 23, 63, ROOT_PID, 222, 443);
    dump_in(m, 24, 64, 111, ROOT_NET, 444);
    dump_in(m, 25, 65, 112, 223, 445);
    maker_fork(m, 0, 30, 60, 70, 70, 70);
    maker_fork(m, 0, 31, 51, 71, 71, 71);
    struct run r = run(m);
    assert_string_equal(kind_of(&r, 50), "-");
    assert_string_equal(kind_of(&r, 51), "-");
    assert_string_equal(kind_of(&r, 71), "-");
    assert_string_equal(kind_of(&r, 60), "cgroup  440 dumped");
    assert_int_equal(container(&r, 70, 0), container(&r, 60, 0));
    assert_int_not_equal(container(&r, 61, 0), container(&r, 60, 0));
    assert_string_equal(kind_of(&r, 62), "net  0 dumped");
    assert_int_equal(container(&r, 63, 0), container(&r, 62, 0));
    assert_string_equal(kind_of(&r, 64), "pid  0 dumped");
    assert_string_equal(kind_of(&r, 65), "net  0 dumped");
    done(&r);
}

/* Checks the order of runtimes: mounts and host name first, the cgroup namespace last; a service manager's private
 * mounts. */
static void cgroup_made(void **state)
{
    struct maker *m = machine();
    maker_fork(m, 0, 60, 50, 55, 55, 55);
    maker_fork(m, 0, 61, 50, 56, 56, 56);
    maker_switch(m, 0, 100, 0, 0, 55);
    call(m, 110, M_UNSHARE_ENTRY, NEW_MOUNTS | NEW_UTS, 0);
    set_name(m, 115, "exporter", 0);
    maker_switch(m, 0, 120, 55, 0, 56);
    call(m, 121, M_UNSHARE_ENTRY, NEW_MOUNTS, 0);
    maker_switch(m, 0, 130, 56, 0, 55);
    call(m, 140, M_UNSHARE_ENTRY, NEW_CGROUP, 0);
    maker_exec(m, 0, 150, "/bin/node_exporter", 55, 55);
    maker_number(m, 0, 160, M_CLONE_ENTRY, 0);
    maker_fork(m, 0, 161, 55, 81, 81, 81);
    maker_number(m, 0, 162, M_CLONE_EXIT, 81);
    maker_number(m, 0, 170, M_CLONE_ENTRY, NEW_MOUNTS);
    maker_fork(m, 0, 171, 55, 82, 82, 82);
    maker_number(m, 0, 172, M_CLONE_EXIT, 82);
    maker_number(m, 0, 173, M_CLONE_ENTRY, NEW_CGROUP);
    maker_fork(m, 0, 174, 55, 83, 83, 83);
    maker_number(m, 0, 175, M_CLONE_EXIT, 83);
    maker_dump_space(m, 0, 200, M_DUMP_CGROUP, 55, 440);
    struct run r = run(m);
    assert_string_equal(kind_of(&r, 55), "cgroup exporter 440 node_exporter");
    assert_int_equal(container(&r, 81, 0), container(&r, 55, 0));
    assert_int_equal(container(&r, 82, 0), container(&r, 55, 0));
    assert_int_not_equal(container(&r, 83, 0), container(&r, 55, 0)); /* the kernel shows no nesting */
    assert_string_equal(kind_of(&r, 50), "-");
    assert_string_equal(kind_of(&r, 56), "-");
    done(&r);
}

/* Checks that a thread that enters a pod's cgroup namespace alone is in the pod, whichever of the others it left. */
static void cgroup_within(void **state)
{
    static const uint32_t pids[] = {111, ROOT_PID, 111}, networks[] = {222, 222, ROOT_NET};
    for (int i = 0; i < 3; i++) {
        struct maker *m = machine();
        dump_in(m, 20, 60, pids[i], networks[i], 440);
        maker_switch(m, 0, 100, 0, 0, 50);
        call(m, 110, M_SETNS_ENTRY, NEW_CGROUP, 0);
        maker_fork(m, 0, 111, 50, 80, 80, 80);
        maker_spaces(m, 0, 112, ROOT_PID, ROOT_NET, ROOT_UTS, 440);
        maker_fork(m, 0, 113, 50, 81, 81, 81);
        struct run r = run(m);
        int32_t pod = container(&r, 60, 0);
        assert_int_not_equal(pod, KERNEL_NO_CONTAINER);
        assert_int_equal(container(&r, 50, 0), pod);
        assert_string_equal(kind_of(&r, 80), "-"); /* destination still unknown */
        assert_int_equal(container(&r, 81, 0), pod);
        done(&r);
    }
}

/* Checks a thread that left a container of which nothing else is recorded. */
static void cgroup_left(void **state)
{
    struct maker *m = machine();
    dump_in(m, 20, 60, ROOT_PID, ROOT_NET, 440);
    maker_switch(m, 0, 100, 0, 0, 60);
    maker_fork(m, 0, 105, 60, 70, 70, 70);
    maker_spaces(m, 0, 110, ROOT_PID, ROOT_NET, ROOT_UTS, ROOT_CGROUP);
    maker_logger(m, 0, 111, "weft-container nobody");
    maker_switch(m, 0, 120, 60, 0, 70);
    maker_logger(m, 0, 121, "weft-container shop/exporter");
    struct run r = run(m);
    assert_string_equal(kind_of(&r, 60), "-");
    assert_string_equal(kind_of(&r, 70), "cgroup shop/exporter 440 t60");
    done(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statedump),
        cmocka_unit_test(clone),
        cmocka_unit_test(unshare_then_fork),
        cmocka_unit_test(numbers_told_later),
        cmocka_unit_test(setns),
        cmocka_unit_test(numbers_used_again),
        cmocka_unit_test(numbers_used_again_unseen),
        cmocka_unit_test(visit),
        cmocka_unit_test(setns_from_a_container),
        cmocka_unit_test(calls_not_recorded),
        cmocka_unit_test(what_it_says_of_itself),
        cmocka_unit_test(cgroup_statedump),
        cmocka_unit_test(cgroup_made),
        cmocka_unit_test(cgroup_within),
        cmocka_unit_test(cgroup_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

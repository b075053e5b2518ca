/* SPDX-License-Identifier: MIT */
/* The memory that a process may use, in control groups of both versions. The files are as proc(5) and the kernel's
 * documentation of control groups describe them. */
#include "base/machine.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

#include "test.h"

static char top[] = "/tmp/weft-machine-XXXXXX";

static void put(const char *name, const char *text)
{
    char path[400], *slash;
    struct err e = {0};
    snprintf(path, sizeof path, "%s/%s", top, name);
    slash = strrchr(path, '/');
    *slash = '\0';
    assert_int_equal(file_make_dirs(path, &e), 0);
    *slash = '/';
    assert_int_equal(file_write(path, text, strlen(text), &e), 0);
}

static int begin(void **state)
{
    strcpy(top + sizeof top - 7, "XXXXXX");
    return mkdtemp(top) ? 0 : -1;
}

static int end(void **state)
{
    char command[100];
    snprintf(command, sizeof command, "rm -rf '%s'", top);
    return system(command);
}

static void version_2(void **state)
{
    put("proc/self/mountinfo",
        "22 1 0:21 / /proc rw - proc proc rw\n"
        "30 1 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n");
    put("proc/self/cgroup", "0::/system.slice/weft.service\n");
    assert_true(machine_group_limit(top) == UINT64_MAX);
    put("sys/fs/cgroup/system.slice/weft.service/memory.max", "max\n");
    assert_true(machine_group_limit(top) == UINT64_MAX);
    put("sys/fs/cgroup/system.slice/memory.max", "2147483648\n"); /* a group above */
    assert_true(machine_group_limit(top) == UINT64_C(2147483648));
    put("sys/fs/cgroup/system.slice/weft.service/memory.max", "536870912\n");
    assert_true(machine_group_limit(top) == UINT64_C(536870912));
    put("sys/fs/cgroup/user.slice/memory.max", "4096\n"); /* limits of other groups */
    assert_true(machine_group_limit(top) == UINT64_C(536870912));
}

static void version_1(void **state)
{
    put("proc/self/mountinfo",
        "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
        "36 31 0:33 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct\n"
        "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n");
    put("proc/self/cgroup", "4:memory:/job_7/step_0\n1:cpu,cpuacct:/other\n0::/\n");
    put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"); /* no limit */
    put("sys/fs/cgroup/memory/other/memory.limit_in_bytes", "4096\n");
    assert_true(machine_group_limit(top) == UINT64_C(9223372036854771712));
    put("sys/fs/cgroup/memory/job_7/memory.limit_in_bytes", "1073741824\n");
    assert_true(machine_group_limit(top) == UINT64_C(1073741824));
}

/* A container sees its own group mounted, under the name that it has outside; or, in a namespace, as the root. */
static void in_a_container(void **state)
{
    put("proc/self/mountinfo", "35 31 0:32 /docker/ab12 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
    put("proc/self/cgroup", "4:memory:/docker/ab12\n");
    put("sys/fs/cgroup/memory/memory.limit_in_bytes", "268435456\n");
    assert_true(machine_group_limit(top) == UINT64_C(268435456));
    put("proc/self/cgroup", "4:memory:/\n");
    assert_true(machine_group_limit(top) == UINT64_C(268435456));
    put("proc/self/mountinfo", "35 31 0:32 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n");
    put("proc/self/cgroup", "0::/\n");
    put("sys/fs/cgroup/memory.max", "134217728\n");
    assert_true(machine_group_limit(top) == UINT64_C(134217728));
}

static void nonsense(void **state)
{
    assert_true(machine_group_limit(top) == UINT64_MAX); /* missing /proc */
    put("proc/self/mountinfo", "\n - \n1 2 - cgroup2\n30 1 0:26 / /g - cgroup2\n35 31 0:32 / /sys - cgroup cgroup\n");
    put("proc/self/cgroup", "\n:\n0::\n4:memory\n0::relative\n");
    put("g/memory.max", "-5\n");
    assert_true(machine_group_limit(top) == UINT64_MAX);
    put("g/memory.max", "99999999999999999999999999\n");
    assert_true(machine_group_limit(top) == UINT64_MAX);
}

static void the_machine(void **state)
{
    uint64_t all = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    assert_true(machine_memory_bytes() > 0 && machine_memory_bytes() <= all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(version_2, begin, end),
        cmocka_unit_test_setup_teardown(version_1, begin, end),
        cmocka_unit_test_setup_teardown(in_a_container, begin, end),
        cmocka_unit_test_setup_teardown(nonsense, begin, end),
        cmocka_unit_test(the_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

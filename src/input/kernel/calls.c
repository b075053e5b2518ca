/* SPDX-License-Identifier: MIT */
/* Names of system calls in events with the number only. */
#include <stdio.h>
#include <string.h>

#include "kernel/tracker.h"

/* Numbers of common and waiting system calls, for events with the number only (x86-64:
 * arch/x86/entry/syscalls/syscall_64.tbl). */
static const struct {
    uint16_t number;
    const char *name;
} x86_64_calls[] = {{0, "read"}, {1, "write"}, {7, "poll"}, {15, "rt_sigreturn"}, {16, "ioctl"}, {19, "readv"},
    {20, "writev"}, {23, "select"}, {34, "pause"}, {35, "nanosleep"}, {42, "connect"}, {43, "accept"}, {44, "sendto"},
    {45, "recvfrom"}, {46, "sendmsg"}, {47, "recvmsg"}, {56, "clone"}, {57, "fork"}, {58, "vfork"}, {61, "wait4"},
    {72, "fcntl"}, {73, "flock"}, {74, "fsync"}, {75, "fdatasync"}, {130, "rt_sigsuspend"}, {158, "arch_prctl"},
    {162, "sync"}, {202, "futex"}, {208, "io_getevents"}, {230, "clock_nanosleep"}, {232, "epoll_wait"},
    {247, "waitid"}, {270, "pselect6"}, {271, "ppoll"}, {281, "epoll_pwait"}, {288, "accept4"}, {299, "recvmmsg"},
    {306, "syncfs"}, {318, "getrandom"}, {324, "membarrier"}, {332, "statx"}, {334, "rseq"}, {425, "io_uring_setup"},
    {426, "io_uring_enter"}, {435, "clone3"}, {436, "close_range"}, {437, "openat2"}, {439, "faccessat2"},
    {441, "epoll_pwait2"}, {449, "futex_waitv"}};

/* The environment does not name the machine, but these calls exist together only on x86-64. */
bool kernel_looks_like_x86_64(const struct ctf_trace *trace)
{
    static const char *const witnesses[] = {
        "syscall_entry_time", "syscall_entry_newfstatat", "syscall_entry_epoll_wait"};
    const struct ctf_event_class *const *classes;
    size_t n = ctf_trace_classes(trace, &classes), found = 0;
    for (size_t w = 0; w < sizeof witnesses / sizeof *witnesses; w++)
        for (size_t i = 0; i < n; i++)
            if (!strcmp(classes[i]->name ? classes[i]->name : "", witnesses[w])) {
                found++;
                break;
            }
    return found == sizeof witnesses / sizeof *witnesses;
}

uint32_t kernel_numbered_call(struct kernel_tracker *t, int64_t number)
{
    uint64_t *known = map_put(&t->numbered_calls, (uint64_t)number, NULL);
    if (*known)
        return (uint32_t)*known;
    char name[40];
    int n = snprintf(name, sizeof name, "syscall_%lld", (long long)number);
    for (size_t i = 0; t->x86_64 && i < sizeof x86_64_calls / sizeof *x86_64_calls; i++)
        if (x86_64_calls[i].number == number)
            n = snprintf(name, sizeof name, "%s", x86_64_calls[i].name);
    uint32_t s = strings_intern(&t->names, name, (size_t)n);
    *known = s;
    return s;
}

/* SPDX-License-Identifier: MIT */
/* System calls that use file descriptors: kinds, and names of the arguments that matter. */
#include <string.h>

#include "kernel/binding.h"

static const struct kernel_io_call calls[] = {
    {"read", KERNEL_IO_READ, {"fd"}, NULL},
    {"pread64", KERNEL_IO_READ, {"fd"}, NULL},
    {"readv", KERNEL_IO_READ, {"fd"}, NULL},
    {"preadv", KERNEL_IO_READ, {"fd"}, NULL},
    {"preadv2", KERNEL_IO_READ, {"fd"}, NULL},
    {"recv", KERNEL_IO_READ, {"fd"}, NULL},
    {"recvfrom", KERNEL_IO_READ, {"fd"}, NULL},
    {"recvmsg", KERNEL_IO_READ, {"fd"}, NULL},
    {"write", KERNEL_IO_WRITE, {"fd"}, NULL},
    {"pwrite64", KERNEL_IO_WRITE, {"fd"}, NULL},
    {"writev", KERNEL_IO_WRITE, {"fd"}, NULL},
    {"pwritev", KERNEL_IO_WRITE, {"fd"}, NULL},
    {"pwritev2", KERNEL_IO_WRITE, {"fd"}, NULL},
    {"send", KERNEL_IO_WRITE, {"fd"}, NULL},
    {"sendto", KERNEL_IO_WRITE, {"fd"}, NULL},
    {"sendmsg", KERNEL_IO_WRITE, {"fd"}, NULL},
    {"sendfile", KERNEL_IO_COPY, {"in_fd", "out_fd"}, NULL},
    {"sendfile64", KERNEL_IO_COPY, {"in_fd", "out_fd"}, NULL},
    {"splice", KERNEL_IO_COPY, {"fd_in", "fd_out"}, NULL},
    {"copy_file_range", KERNEL_IO_COPY, {"fd_in", "fd_out"}, NULL},
    {"open", KERNEL_IO_OPEN, {NULL, NULL, "flags"}, "filename"},
    {"openat", KERNEL_IO_OPEN, {"dfd", NULL, "flags"}, "filename"},
    {"openat2", KERNEL_IO_OPEN, {"dfd"}, "filename"},
    {"creat", KERNEL_IO_OPEN, {NULL}, "pathname"},
    {"close", KERNEL_IO_CLOSE, {"fd"}, NULL},
    {"close_range", KERNEL_IO_CLOSE, {"fd", "max_fd", "flags"}, NULL},
    {"dup", KERNEL_IO_DUP, {"fildes"}, NULL},
    {"dup2", KERNEL_IO_DUP, {"oldfd"}, NULL},
    {"dup3", KERNEL_IO_DUP, {"oldfd", NULL, "flags"}, NULL},
    {"fcntl", KERNEL_IO_FCNTL, {"fd", "cmd", "arg"}, NULL},
    {"fsync", KERNEL_IO_SYNC, {"fd"}, NULL},
    {"fdatasync", KERNEL_IO_SYNC, {"fd"}, NULL},
    {"syncfs", KERNEL_IO_SYNC, {"fd"}, NULL},
    {"sync_file_range", KERNEL_IO_SYNC, {"fd"}, NULL},
    {"lseek", KERNEL_IO_OTHER, {"fd"}, NULL},
    {"fstat", KERNEL_IO_OTHER, {"fd"}, NULL},
    {"newfstat", KERNEL_IO_OTHER, {"fd"}, NULL},
    {"fstatfs", KERNEL_IO_OTHER, {"fd"}, NULL},
    {"ftruncate", KERNEL_IO_OTHER, {"fd"}, NULL},
    {"fallocate", KERNEL_IO_OTHER, {"fd"}, NULL},
    {"fadvise64", KERNEL_IO_OTHER, {"fd"}, NULL},
    {"flock", KERNEL_IO_OTHER, {"fd"}, NULL},
    {"getdents", KERNEL_IO_OTHER, {"fd"}, NULL},
    {"getdents64", KERNEL_IO_OTHER, {"fd"}, NULL},
    {"ioctl", KERNEL_IO_OTHER, {"fd"}, NULL},
    {"socket", KERNEL_IO_HIDDEN, {NULL}, NULL},
    {"accept", KERNEL_IO_HIDDEN, {NULL}, NULL},
    {"accept4", KERNEL_IO_HIDDEN, {NULL}, NULL},
    {"epoll_create", KERNEL_IO_HIDDEN, {NULL}, NULL},
    {"epoll_create1", KERNEL_IO_HIDDEN, {NULL}, NULL},
    {"eventfd", KERNEL_IO_HIDDEN, {NULL}, NULL},
    {"eventfd2", KERNEL_IO_HIDDEN, {NULL}, NULL},
    {"timerfd_create", KERNEL_IO_HIDDEN, {NULL}, NULL},
    {"signalfd", KERNEL_IO_HIDDEN, {NULL}, NULL},
    {"signalfd4", KERNEL_IO_HIDDEN, {NULL}, NULL},
    {"inotify_init", KERNEL_IO_HIDDEN, {NULL}, NULL},
    {"inotify_init1", KERNEL_IO_HIDDEN, {NULL}, NULL},
    {"memfd_create", KERNEL_IO_HIDDEN, {NULL}, NULL},
    {"pidfd_open", KERNEL_IO_HIDDEN, {NULL}, NULL},
    {"perf_event_open", KERNEL_IO_HIDDEN, {NULL}, NULL},
    {"io_uring_setup", KERNEL_IO_HIDDEN, {NULL}, NULL},
    {"pipe", KERNEL_IO_PAIR, {NULL}, NULL},
    {"pipe2", KERNEL_IO_PAIR, {NULL}, NULL},
    {"socketpair", KERNEL_IO_PAIR, {NULL}, NULL},
};

const struct kernel_io_call *kernel_io_call(const char *name)
{
    for (size_t i = 0; name && i < sizeof calls / sizeof *calls; i++)
        if (calls[i].name[0] == name[0] && !strcmp(calls[i].name, name))
            return &calls[i];
    return NULL;
}

void kernel_io_pair(const struct ctf_event *ev, int32_t *first, int64_t *second)
{
    struct kernel_list fds = {.names = {"fildes", "usockvec"}};
    kernel_list_read(ev, &fds);
    *first = fds.n >= 2 ? (int32_t)fds.first[0] : -1;
    *second = fds.n >= 2 ? (int32_t)fds.first[1] : -1;
}

/* Letters of blk_fill_rwbs (block/blk-core.c) as lttng-modules' bits. The first F is a flush, or one before another
 * operation; a later one forces the unit's access. */
uint32_t kernel_rwbs(const struct ctf_event *ev, const struct kernel_plan *p)
{
    static const char letters[] = "WDRABSME";
    enum { FLUSH = 1 << 8, FORCED = 1 << 9, FLUSH_BEFORE = 1 << 10 };
    size_t n;
    const char *s = kernel_text(ev, p, 0, &n);
    uint32_t bits = 0;
    for (size_t i = 0; i < n; i++) {
        const char *at = s[i] && s[i] != 'F' ? strchr(letters, s[i]) : NULL;
        bits |= at ? 1u << (at - letters) : 0;
        if (s[i] == 'F' && i > 0)
            bits |= FORCED;
    }
    bool operation = n > 1 && (s[1] == 'W' || s[1] == 'R' || s[1] == 'D' || s[1] == 'N');
    if (n && s[0] == 'F')
        bits |= operation ? FLUSH_BEFORE : FLUSH;
    return bits;
}

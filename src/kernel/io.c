/* System calls that move bytes through file descriptors. */
#include <string.h>

#include "kernel/binding.h"

static const struct {
    const char *call;
    uint8_t io; /* enum kernel_io */
} calls[] = {
    {"read", KERNEL_IO_READ},
    {"pread64", KERNEL_IO_READ},
    {"readv", KERNEL_IO_READ},
    {"preadv", KERNEL_IO_READ},
    {"preadv2", KERNEL_IO_READ},
    {"recv", KERNEL_IO_READ},
    {"recvfrom", KERNEL_IO_READ},
    {"recvmsg", KERNEL_IO_READ},
    {"write", KERNEL_IO_WRITE},
    {"pwrite64", KERNEL_IO_WRITE},
    {"writev", KERNEL_IO_WRITE},
    {"pwritev", KERNEL_IO_WRITE},
    {"pwritev2", KERNEL_IO_WRITE},
    {"send", KERNEL_IO_WRITE},
    {"sendto", KERNEL_IO_WRITE},
    {"sendmsg", KERNEL_IO_WRITE},
    {"sendfile", KERNEL_IO_COPY},
    {"sendfile64", KERNEL_IO_COPY},
    {"splice", KERNEL_IO_COPY},
    {"copy_file_range", KERNEL_IO_COPY},
};

uint8_t kernel_io_of(const char *call)
{
    for (size_t i = 0; call && i < sizeof calls / sizeof *calls; i++)
        if (!strcmp(calls[i].call, call))
            return calls[i].io;
    return KERNEL_IO_NONE;
}

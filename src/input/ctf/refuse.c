/* SPDX-License-Identifier: MIT */
/* What a file is that was given in place of a trace's directory, and what to do with it. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctf/discover.h"

/* Files by the bytes that they begin with. */
static const struct kind {
    size_t at, n;
    const char *bytes, *what, *remedy;
} kinds[] = {
    {0, 8, "PERFILE2", "a recording of perf", "convert it: perf data convert --to-ctf=DIR -i FILE, and give DIR"},
    {0, 10, "\x17\x08\x44tracing", "a recording of trace-cmd (trace.dat)",
        "weft does not read this format; record with LTTng"},
    {0, 4, "\xd4\xc3\xb2\xa1", "captured packets (pcap)", NULL},
    {0, 4, "\xa1\xb2\xc3\xd4", "captured packets (pcap)", NULL},
    {0, 4, "\x4d\x3c\xb2\xa1", "captured packets (pcap)", NULL},
    {0, 4, "\xa1\xb2\x3c\x4d", "captured packets (pcap)", NULL},
    {0, 4, "\x0a\x0d\x0d\x0a", "captured packets (pcapng)", NULL},
    {257, 5, "ustar", "a tar archive", "unpack it (tar -xf FILE) and give the directory"},
    {0, 2, "\x1f\x8b", "compressed (gzip)", "unpack it (tar -xf FILE, or gunzip) and give the directory"},
    {0, 6, "\xfd\x37\x7a\x58\x5a\x00", "compressed (xz)", "unpack it (tar -xf FILE, or unxz) and give the directory"},
    {0, 4, "\x28\xb5\x2f\xfd", "compressed (zstd)", "unpack it (tar -xf FILE, or unzstd) and give the directory"},
    {0, 3, "BZh", "compressed (bzip2)", "unpack it (tar -xf FILE, or bunzip2) and give the directory"},
    {0, 4, "PK\x03\x04", "a zip archive", "unpack it (unzip FILE) and give the directory"},
    {0, 4, "\xc1\x1f\xfc\xc1", "a stream of a CTF trace", "give the directory that holds it and `metadata`"},
    {0, 4, "\xc1\xfc\x1f\xc1", "a stream of a CTF trace", "give the directory that holds it and `metadata`"},
    {0, 4, "\xc1\xdc\xf1\xc1", "an index of a CTF trace", "give the directory that holds `metadata`"},
    {0, 4, "\xc1\xf1\xdc\xc1", "an index of a CTF trace", "give the directory that holds `metadata`"},
};

/* The file's kind, or NULL. */
static const struct kind *kind_of(const char *path)
{
    char head[512];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd < 0 ? -1 : read(fd, head, sizeof head);
    if (fd >= 0)
        close(fd);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (n >= (ssize_t)(kinds[i].at + kinds[i].n) && memcmp(head + kinds[i].at, kinds[i].bytes, kinds[i].n) == 0)
            return &kinds[i];
    return NULL;
}

int ctf_refuse_file(const char *path, mode_t mode, struct err *e)
{
    if (!S_ISREG(mode))
        return err_set(e, ERR_NOTFOUND,
            "%s: no trace here: this is %s, not the directory of a trace; give the directory", path,
            S_ISFIFO(mode)       ? "a FIFO"
                : S_ISSOCK(mode) ? "a socket"
                                 : "a device");
    const struct kind *kind = kind_of(path);
    if (!kind)
        return err_set(e, ERR_NOTFOUND,
            "%s: no trace here: this is a file, not the directory of a trace; give the directory that holds `metadata`",
            path);
    return err_set(e, ERR_NOTFOUND, "%s: no trace here: this is %s, not the directory of a CTF trace; %s", path,
        kind->what,
        kind->remedy ? kind->remedy : "weft reads packets from kernel events (net_dev_queue, net_if_receive_skb)");
}

/* SPDX-License-Identifier: MIT */
/* Errors for files given in place of a trace's directory: their kind and a remedy. */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "ctf/discover.h"

enum { MOST_LOOKED_AT = 1000 }; /* entries of a directory without traces */

/* Kinds of files by their first bytes. */
static const struct kind {
    size_t at, n;
    const char *bytes, *what, *remedy;
} kinds[] = {
    {0, 8, "PERFILE2", "a recording of perf", "convert it: perf data convert --to-ctf=DIR -i FILE, and give DIR"},
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

static bool is_of_kind(const struct kind *k, const char *head, size_t n)
{
    return n >= k->at + k->n && memcmp(head + k->at, k->bytes, k->n) == 0;
}

/* Perfetto's file is a protobuf message Trace: repeated field 1 (TracePacket). Its services write one of a few fields
 * first into a packet. */
static bool is_perfetto(const char *head, size_t n)
{
    static const char *const first[] = {
        "\x18", "\x32", "\x40", "\x50", "\x52", "\x58", "\x8a\x02", "\xa2\x02", "\xca\x05"};
    size_t at = 1;
    if (n < 8 || head[0] != 0x0a)
        return false;
    while (at < 5 && head[at] & 0x80)
        at++;
    at++;
    for (size_t i = 0; i < sizeof first / sizeof *first; i++)
        if (!strncmp(head + at, first[i], strlen(first[i])))
            return true;
    return false;
}

/* Buffer of Event Tracing for Windows: 72 bytes of header that begin with its size, then an event's header. */
static bool is_etw(const char *head, size_t n)
{
    uint32_t size;
    if (n < 0x50)
        return false;
    memcpy(&size, head, sizeof size);
    return size >= 1024 && size <= 16 << 20 && size % 1024 == 0 && (head[0x4a] == 1 || head[0x4a] == 2) &&
        (unsigned char)head[0x4b] == 0xc0;
}

static bool is_chrome_json(const char *head, size_t n)
{
    size_t at = strspn(head, " \t\r\n");
    return (head[at] == '{' && strstr(head, "\"traceEvents\"")) ||
        (head[at] == '[' && strstr(head, "\"ph\"") && strstr(head, "\"ts\""));
}

/* COMM-PID [CPU] FLAGS TIME: EVENT: … */
static bool is_ftrace_text(const char *head, size_t n)
{
    if (!strncmp(head, "# tracer:", 9))
        return true;
    const char *end = strchr(head, '\n'), *cpu = strstr(head, " [");
    if (!end || !cpu || cpu > end || strspn(cpu + 2, "0123456789") < 3 || cpu[2 + strspn(cpu + 2, "0123456789")] != ']')
        return false;
    const char *seconds = strchr(cpu, '.'), *colon = strchr(cpu, ':');
    return seconds && colon && seconds < colon && colon < end && memchr(head, '-', (size_t)(cpu - head));
}

/* Kinds of files without fixed first bytes. `head` ends with a zero byte. */
static const struct content {
    bool (*is)(const char *head, size_t n);
    struct kind kind;
} contents[] = {
    {is_etw, {.what = "a recording of Event Tracing for Windows (.etl)", .remedy = "weft reads traces of Linux"}},
    {is_chrome_json,
        {.what = "a trace in Chrome's JSON format",
            .remedy = "weft does not read it; for spans, save OTLP or Jaeger JSON and use weft spans"}},
    {is_ftrace_text,
        {.what = "text of trace_pipe or of trace-cmd report",
            .remedy =
                "text lacks fields that weft needs; give trace.dat itself, or record with LTTng (docs/record.md)"}},
    {is_perfetto,
        {.what = "a recording of Perfetto",
            .remedy = "weft does not read this format; record with LTTng (docs/record.md)"}},
};

/* Reads up to `size` bytes from the begin of the file. */
static size_t read_head(const char *path, char *head, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t got = fd < 0 ? -1 : read(fd, head, size);
    if (fd >= 0)
        close(fd);
    return got < 0 ? 0 : (size_t)got;
}

bool ctf_file_is_recording(const char *path)
{
    static const char magic[] = "\x17\x08\x44tracing";
    char head[sizeof magic - 1];
    return read_head(path, head, sizeof head) == sizeof head && !memcmp(head, magic, sizeof head);
}

/* Returns the file's kind, or NULL. */
static const struct kind *kind_of(const char *path)
{
    char head[4096];
    size_t n = read_head(path, head, sizeof head - 1);
    head[n] = 0;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (is_of_kind(&kinds[i], head, n))
            return &kinds[i];
    for (size_t i = 0; i < sizeof contents / sizeof *contents; i++)
        if (contents[i].is(head, n))
            return &contents[i].kind;
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

/* Returns the path of a recording in the directory, which the caller frees, or NULL. */
static char *find_recording(const char *path)
{
    DIR *d = opendir(path);
    char *found = NULL;
    const struct dirent *entry;
    for (size_t i = 0; d && !found && i < MOST_LOOKED_AT && (entry = readdir(d)); i++) {
        if (entry->d_type != DT_REG && entry->d_type != DT_UNKNOWN)
            continue;
        found = mem_printf("%s/%s", path, entry->d_name);
        if (!ctf_file_is_recording(found)) {
            free(found);
            found = NULL;
        }
    }
    if (d)
        closedir(d);
    return found;
}

int ctf_refuse_directory(const char *path, struct err *e)
{
    char *recording = find_recording(path);
    int rc = recording
        ? err_set(
              e, ERR_NOTFOUND, "%s: no CTF trace here, but a recording of trace-cmd: give the file %s", path, recording)
        : err_set(e, ERR_NOTFOUND,
              "%s: no trace here: neither this directory nor one below has a `metadata` file; give the directory that "
              "the tracer wrote (lttng create --output=DIR)",
              path);
    free(recording);
    return rc;
}

/* SPDX-License-Identifier: MIT */
#include "tsp/unpack.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* READ_BYTES of the archive are read between two checks of the limits: compressed zeros grow a million times.
 * FRAME_BYTES may surround the contents of an entry. SILENT_BYTES may be read without a new entry or contents (the
 * directory at the end of a zip). */
enum { READ_BYTES = 4096, BLOCK_BYTES = 1 << 16, FRAME_BYTES = 4096, FRAMES_MORE = 64, SILENT_BYTES = 128 << 20 };
/* Filters allowed: the compression, and the one that reads the file. */
enum { MOST_FILTERS = 2 };

struct unpacking {
    const struct unpack_job *job;
    struct archive *archive;
    int fd;
    char *path; /* path of the entry; begins with the directory, `base` bytes with its slash */
    size_t base;
    uint64_t written, silent;
    unsigned entries, dirs;
    int status; /* HTTP; 0: no error yet */
    const char *why;
    char read[READ_BYTES];
};

/* Keeps the first reason. */
static bool refuse(struct unpacking *u, int status, const char *why)
{
    if (!u->status) {
        u->status = status;
        u->why = why;
    }
    return false;
}

static bool refuse_limit(struct unpacking *u, const char *what, uint64_t limit, const char *unit)
{
    return refuse(u, 413,
        arena_printf(
            u->job->arena, "The archive %s more than %llu %s, the limit", what, (unsigned long long)limit, unit));
}

static bool is_wanted(struct unpacking *u)
{
    /* A client that hung up reads no answer; one of a server that stops, or lacks memory, may retry. */
    return !u->job->is_gone(u->job->arg) || refuse(u, 503, "The server cannot finish the upload now: send it again");
}

/* ---- reading ---- */

/* Limits what the archive unpacks to by the number of its entries, except for contents, which are counted as they are
 * written. */
static bool is_within(struct unpacking *u)
{
    uint64_t most = u->job->most_bytes + ((uint64_t)u->entries + FRAMES_MORE) * FRAME_BYTES;
    la_int64_t read = archive_filter_bytes(u->archive, 0);
    u->silent += READ_BYTES;
    if ((read > 0 && (uint64_t)read > most) || u->silent > SILENT_BYTES)
        return refuse(u, 413, "The archive has too much beside its files");
    return is_wanted(u);
}

static la_ssize_t read_some(struct archive *a, void *unpacking, const void **data)
{
    struct unpacking *u = unpacking;
    *data = u->read;
    if (!is_within(u)) {
        archive_set_error(a, ECANCELED, "stopped");
        return ARCHIVE_FATAL;
    }
    ssize_t n;
    while ((n = read(u->fd, u->read, sizeof u->read)) < 0 && errno == EINTR)
        ;
    if (n < 0)
        archive_set_error(a, errno, "cannot be read");
    return n;
}

static la_int64_t seek_to(struct archive *a, void *unpacking, la_int64_t offset, int whence)
{
    const struct unpacking *u = unpacking;
    off_t at = lseek(u->fd, offset, whence);
    return at < 0 ? ARCHIVE_FATAL : at;
}

/* ---- names ---- */

/* True: the path stays below the directory in which it is unpacked. */
static bool stays_below(const char *path)
{
    if (!path || !*path || *path == '/' || strchr(path, '\\'))
        return false;
    for (const char *p = path; *p;) {
        size_t n = strcspn(p, "/");
        if (n == 2 && p[0] == '.' && p[1] == '.')
            return false;
        p += n + (p[n] == '/');
    }
    return true;
}

static bool is_short(struct unpacking *u, const char *path)
{
    unsigned depth = 1;
    size_t longest = 0;
    for (const char *p = path; *p; p++)
        depth += *p == '/' && p[1];
    for (const char *p = path; *p;) {
        size_t n = strcspn(p, "/");
        longest = n > longest ? n : longest;
        p += n + (p[n] == '/');
    }
    if (strlen(path) > UNPACK_MAX_PATH)
        return refuse_limit(u, "has a path of", UNPACK_MAX_PATH, "bytes");
    if (longest > NAME_MAX)
        return refuse_limit(u, "has a name of", NAME_MAX, "bytes");
    return depth <= UNPACK_MAX_DEPTH || refuse_limit(u, "has directories nested", UNPACK_MAX_DEPTH, "deep");
}

/* Creates the directory u->path. */
static bool make_dir(struct unpacking *u)
{
    if (mkdir(u->path, 0777))
        return errno == EEXIST ||
            (errno == ENOTDIR ? refuse(u, 400, "The archive has a directory below a file")
                              : refuse(u, 507, "The upload cannot be stored"));
    if (++u->dirs > UNPACK_MAX_DIRS)
        return refuse_limit(u, "has", UNPACK_MAX_DIRS, "directories");
    return is_wanted(u);
}

/* Creates the parent directories of u->path. Most entries are in an existing one. */
static bool make_way(struct unpacking *u)
{
    char *last = strrchr(u->path + u->base, '/');
    if (!last)
        return true;
    *last = '\0';
    bool there = !access(u->path, F_OK);
    *last = '/';
    for (char *p = u->path + u->base; !there && (p = strchr(p, '/')); p++) {
        *p = '\0';
        bool made = make_dir(u);
        *p = '/';
        if (!made)
            return false;
    }
    return true;
}

/* ---- entries ---- */

static bool write_all(int fd, const char *data, size_t n)
{
    while (n) {
        ssize_t w = write(fd, data, n);
        if (w < 0 && errno == EINTR)
            continue;
        if (w <= 0)
            return false;
        data += w;
        n -= (size_t)w;
    }
    return true;
}

static bool copy_data(struct unpacking *u, int fd)
{
    static __thread char block[BLOCK_BYTES];
    for (la_ssize_t n; (n = archive_read_data(u->archive, block, sizeof block)) != 0;) {
        if (n < 0)
            return refuse(u, 400, "The archive is damaged");
        u->silent = 0;
        u->written += (uint64_t)n;
        if (u->written > u->job->most_bytes)
            return refuse_limit(u, "unpacks to", u->job->most_bytes, "bytes");
        if (!is_wanted(u))
            return false;
        if (!write_all(fd, block, (size_t)n))
            return refuse(u, 507, "The upload cannot be stored");
    }
    return true;
}

static bool take_directory(struct unpacking *u)
{
    char byte; /* contents would be unpacked only to be dropped */
    if (archive_read_data(u->archive, &byte, 1) > 0)
        return refuse(u, 400, "The archive has a directory with contents of its own");
    return make_way(u) && make_dir(u);
}

static bool take_file(struct unpacking *u)
{
    if (!make_way(u))
        return false;
    int fd = open(u->path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0)
        return refuse(u, errno == EEXIST || errno == EISDIR || errno == ENOTDIR ? 400 : 507,
            errno == EEXIST ? "The archive has a file twice" : "The upload cannot be stored");
    bool good = copy_data(u, fd);
    close(fd);
    return good;
}

/* Unpacks an entry. The directory is ours, with nothing but directories and regular files made here, so no path can
 * lead out of it. */
static bool take_entry(struct unpacking *u, struct archive_entry *entry)
{
    const char *name = archive_entry_pathname(entry);
    u->silent = 0;
    if (++u->entries > UNPACK_MAX_ENTRIES)
        return refuse_limit(u, "has", UNPACK_MAX_ENTRIES, "files and directories");
    if (!is_wanted(u))
        return false;
    if (name && !strncmp(name, "./", 2))
        name += 2;
    if (name && (!*name || !strcmp(name, ".")))
        return true;
    if (!stays_below(name))
        return refuse(u, 400, "The archive has paths that lead out of it");
    if (!is_short(u, name))
        return false;
    memcpy(u->path + u->base, name, strlen(name) + 1);
    if (archive_entry_filetype(entry) == AE_IFDIR)
        return take_directory(u);
    if (archive_entry_filetype(entry) != AE_IFREG || archive_entry_hardlink(entry) || archive_entry_symlink(entry))
        return refuse(u, 400, "The archive has links or devices; only files and directories are taken");
    return take_file(u);
}

/* ---- archives ---- */

static bool open_archive(struct unpacking *u)
{
    struct archive *a = u->archive;
    /* Filters by name: `all` would add filters that run other programs. */
    archive_read_support_filter_gzip(a);
    archive_read_support_filter_bzip2(a);
    archive_read_support_filter_xz(a);
    archive_read_support_filter_zstd(a);
    archive_read_support_format_tar(a);
    archive_read_support_format_zip(a);
    archive_read_set_read_callback(a, read_some);
    archive_read_set_seek_callback(a, seek_to);
    archive_read_set_callback_data(a, u);
    if (archive_read_open1(a) != ARCHIVE_OK)
        return refuse(u, 400, "This is no tar or zip archive");
    /* Layers of compression multiply the growth. */
    return archive_filter_count(a) <= MOST_FILTERS || refuse(u, 400, "The archive is packed several times over");
}

static void take_entries(struct unpacking *u)
{
    struct archive_entry *entry;
    int rc = ARCHIVE_EOF;
    while (!u->status && ((rc = archive_read_next_header(u->archive, &entry)) == ARCHIVE_OK || rc == ARCHIVE_WARN))
        take_entry(u, entry);
    if (rc != ARCHIVE_EOF)
        refuse(u, 400, u->entries ? "The archive is damaged" : "This is no tar or zip archive");
    if (!u->entries)
        refuse(u, 400, "The archive is empty");
}

int tsp_unpack_archive(const struct unpack_job *job, const char **why)
{
    struct arena a = {0};
    struct unpacking *u = arena_alloc(&a, sizeof *u);
    *u = (struct unpacking){.job = job, .base = strlen(job->dir) + 1};
    u->path = arena_alloc(&a, u->base + UNPACK_MAX_PATH + 1);
    memcpy(u->path, job->dir, u->base - 1);
    u->path[u->base - 1] = '/';
    u->fd = open(job->archive, O_RDONLY | O_CLOEXEC);
    u->archive = archive_read_new();
    if (u->fd < 0 || !u->archive)
        refuse(u, 507, "The upload cannot be read");
    else if (open_archive(u))
        take_entries(u);
    archive_read_free(u->archive);
    if (u->fd >= 0)
        close(u->fd);
    int status = u->status;
    *why = u->why;
    arena_fini(&a);
    return status;
}

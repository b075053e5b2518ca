/* SPDX-License-Identifier: MIT */
#include "base/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/nolinks.h"
#include "base/store.h"
#include "base/text.h"

enum {
    LARGEST_WRITE = 1 << 30, /* Linux writes at most 2 GiB per call */
    /* Bytes after which the disk is asked to start writing, so that little is left for the final sync. */
    DISK_SHARE = 8 << 20,
    HELD = 64 << 10, /* bytes: buffer of small writes */
};

/* A directory that is writable but not readable (EACCES) cannot be synced, but files in it can be opened. */
static int open_directory(const char *path, bool follow)
{
    const char *slash = strrchr(path, '/');
    char *directory = slash == path ? mem_strdup("/") : mem_strdup(slash ? path : ".");
    enum { FLAGS = O_DIRECTORY | O_CLOEXEC };
    if (slash && slash != path)
        directory[slash - path] = '\0';
    int fd = follow ? open(directory, O_RDONLY | FLAGS) : nolinks_open(directory, O_RDONLY | FLAGS, 0);
    if (fd < 0 && errno == EACCES)
        fd = follow ? open(directory, O_PATH | FLAGS) : nolinks_open(directory, O_PATH | FLAGS, 0);
    int saved = errno;
    free(directory);
    errno = saved;
    return fd;
}

static int create_temporary(struct replace *r)
{
    enum { TRIES = 16 };
    const char *name = file_name(r->path);
    int fd = -1;
    for (int i = 0; i < TRIES && fd < 0 && (!i || errno == EEXIST); i++) {
        uint64_t number;
        if (getrandom(&number, sizeof number, 0) != sizeof number)
            return -1;
        free(r->temporary);
        r->temporary = mem_printf("%s" STORE_TEMPORARY "%016llx", name, (unsigned long long)number);
        fd = openat(r->directory, r->temporary, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    }
    return fd;
}

int replace_begin(struct replace *r, const char *path, bool follow, struct err *e)
{
    *r = (struct replace){.path = path, .fd = -1, .directory = open_directory(path, follow)};
    if (r->directory >= 0)
        r->fd = create_temporary(r);
    if (r->fd >= 0)
        return ERR_OK;
    int code = nolinks_err(e, path, "cannot create a file there");
    if (r->directory >= 0)
        close(r->directory);
    free(r->temporary);
    *r = (struct replace){.directory = -1, .fd = -1};
    return code;
}

/* at: position in the file; -1: its end. */
static int write_at(struct replace *r, off_t at, const void *data, size_t n, struct err *e)
{
    const char *p = data;
    while (n) {
        size_t most = n < LARGEST_WRITE ? n : LARGEST_WRITE;
        ssize_t done = at < 0 ? write(r->fd, p, most) : pwrite(r->fd, p, most, at);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0) {
            if (done == 0)
                errno = ENOSPC;
            return err_sys(e, "%s: cannot write", r->path);
        }
        p += done;
        n -= (size_t)done;
        at += at < 0 ? 0 : done;
    }
    return ERR_OK;
}

static int append(struct replace *r, const void *data, size_t n, struct err *e)
{
    int code = write_at(r, -1, data, n, e);
    r->written += code ? 0 : (off_t)n;
    if (r->written - r->started >= DISK_SHARE) {
        sync_file_range(r->fd, r->started, r->written - r->started,
            SYNC_FILE_RANGE_WRITE); /* errors are reported by the final sync */
        r->started = r->written;
    }
    return code;
}

int replace_flush(struct replace *r, struct err *e)
{
    size_t n = r->n_held;
    r->n_held = 0;
    return n ? append(r, r->held, n, e) : ERR_OK;
}

int replace_write(struct replace *r, const void *data, size_t n, struct err *e)
{
    if (n > HELD - r->n_held) {
        int code = replace_flush(r, e);
        if (code || n >= HELD)
            return code ?: append(r, data, n, e);
    }
    if (!r->held)
        r->held = mem_alloc(HELD);
    if (n)
        memcpy(r->held + r->n_held, data, n);
    r->n_held += n;
    return ERR_OK;
}

int replace_write_over(struct replace *r, off_t at, const void *data, size_t n, struct err *e)
{
    return replace_flush(r, e) ?: write_at(r, at, data, n, e);
}

/* Directories of some file systems cannot be synced (EINVAL), nor can one opened without reading (EBADF): then the
 * rename is as durable as possible. */
static int sync_directory(const struct replace *r, struct err *e)
{
    if (fsync(r->directory) == 0 || errno == EINVAL || errno == EROFS || errno == EBADF)
        return ERR_OK;
    return err_sys(e, "%s: cannot sync its directory", r->path);
}

static void end(struct replace *r)
{
    if (r->fd >= 0)
        close(r->fd);
    close(r->directory);
    free(r->temporary);
    free(r->held);
    *r = (struct replace){.directory = -1, .fd = -1};
}

int replace_commit(struct replace *r, struct err *e)
{
    int code = replace_flush(r, e);
    if (code)
        goto fail;
    if (fsync(r->fd) != 0 && errno != EINVAL) {
        code = err_sys(e, "%s: cannot sync", r->path);
        goto fail;
    }
    /* Network file systems report a full disk only here. */
    int closed = close(r->fd);
    r->fd = -1;
    if (closed != 0) {
        code = err_sys(e, "%s: cannot close", r->path);
        goto fail;
    }
    if (renameat(r->directory, r->temporary, r->directory, file_name(r->path)) != 0) {
        code = err_sys(e, "%s: cannot rename the new file to it", r->path);
        goto fail;
    }
    code = sync_directory(r, e);
    end(r);
    return code;
fail:
    replace_abort(r);
    return code;
}

void replace_abort(struct replace *r)
{
    if (!r->temporary)
        return;
    unlinkat(r->directory, r->temporary, 0);
    end(r);
}

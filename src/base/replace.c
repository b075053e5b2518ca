#include "base/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/store.h"

enum {
    LARGEST_WRITE = 1 << 30, /* Linux writes at most 2 GiB per call */
    /* The disk is asked to begin with this many bytes at a time, so that little waits for the sync at the end. */
    DISK_SHARE = 8 << 20,
    HELD = 64 << 10, /* bytes: what comes in small pieces is written so much at a time */
};

int replace_begin(struct replace *r, const char *path, struct err *e)
{
    static atomic_uint serial; /* threads of one process may write the same path */
    size_t room = strlen(path) + 40;
    *r = (struct replace){.path = path, .temporary = mem_alloc(room)};
    snprintf(r->temporary, room, "%s" STORE_TEMPORARY "%ld.%u", path, (long)getpid(), atomic_fetch_add(&serial, 1));
    r->fd = open(r->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (r->fd < 0) {
        int code = err_sys(e, "%s: cannot create a file there", r->path);
        free(r->temporary);
        r->temporary = NULL;
        return code;
    }
    return ERR_OK;
}

/* at: where in the file, -1: behind what is there. */
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
            SYNC_FILE_RANGE_WRITE); /* what fails here, the sync at the end reports */
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

static int sync_directory(const char *path, struct err *e)
{
    const char *slash = strrchr(path, '/');
    char *directory = slash == path ? mem_strdup("/") : mem_strdup(slash ? path : ".");
    if (slash && slash != path)
        directory[slash - path] = '\0';
    int code = ERR_OK;
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        /* A directory that may be written but not read cannot be synced; the file itself is complete. */
        if (errno != EACCES)
            code = err_sys(e, "%s: cannot open", directory);
    } else {
        /* Some file systems refuse to sync directories (EINVAL); then the rename is as durable as it gets. */
        if (fsync(fd) != 0 && errno != EINVAL && errno != EROFS)
            code = err_sys(e, "%s: cannot sync", directory);
        close(fd);
    }
    free(directory);
    return code;
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
    if (rename(r->temporary, r->path) != 0) {
        code = err_sys(e, "%s: cannot rename the new file to it", r->path);
        goto fail;
    }
    free(r->temporary);
    free(r->held);
    return sync_directory(r->path, e);
fail:
    replace_abort(r);
    return code;
}

void replace_abort(struct replace *r)
{
    if (!r->temporary)
        return;
    if (r->fd >= 0)
        close(r->fd);
    unlink(r->temporary);
    free(r->temporary);
    free(r->held);
    *r = (struct replace){.fd = -1};
}

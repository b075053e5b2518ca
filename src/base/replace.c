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

enum { LARGEST_WRITE = 1 << 30 }; /* Linux writes at most 2 GiB per call */

int replace_begin(struct replace *r, const char *path, struct err *e)
{
    static atomic_uint serial; /* threads of one process may write the same path */
    size_t room = strlen(path) + 40;
    *r = (struct replace){.path = path, .temporary = mem_alloc(room)};
    snprintf(r->temporary, room, "%s.tmp.%ld.%u", path, (long)getpid(), atomic_fetch_add(&serial, 1));
    r->fd = open(r->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (r->fd < 0) {
        int code = err_sys(e, "%s: cannot create a file there", r->path);
        free(r->temporary);
        return code;
    }
    return ERR_OK;
}

int replace_write(struct replace *r, const void *data, size_t n, struct err *e)
{
    const char *p = data;
    while (n) {
        ssize_t done = write(r->fd, p, n < LARGEST_WRITE ? n : LARGEST_WRITE);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0) {
            if (done == 0)
                errno = ENOSPC;
            return err_sys(e, "%s: cannot write", r->path);
        }
        p += done;
        n -= (size_t)done;
    }
    return ERR_OK;
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
    int code;
    if (fsync(r->fd) != 0 && errno != EINVAL) {
        code = err_sys(e, "%s: cannot sync", r->path);
        goto fail;
    }
    /* Network file systems report a full disk as late as here. */
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
    return sync_directory(r->path, e);
fail:
    replace_abort(r);
    return code;
}

void replace_abort(struct replace *r)
{
    if (r->fd >= 0)
        close(r->fd);
    unlink(r->temporary);
    free(r->temporary);
    *r = (struct replace){.fd = -1};
}

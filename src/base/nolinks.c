/* SPDX-License-Identifier: MIT */
#include "base/nolinks.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"

enum { WAY = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };

/* Reports ELOOP, as openat2, for a link opened as a directory, which gives ENOTDIR. */
static int open_part(int at, const char *name, int flags, mode_t mode)
{
    struct stat st;
    int fd = openat(at, name, flags | O_NOFOLLOW | O_CLOEXEC, mode);
    bool is_link = (fd >= 0 && (flags & O_PATH) && !fstat(fd, &st) && S_ISLNK(st.st_mode)) ||
        (fd < 0 && errno == ENOTDIR && !fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISLNK(st.st_mode));
    if (!is_link)
        return fd;
    if (fd >= 0)
        close(fd);
    errno = ELOOP;
    return -1;
}

static void close_quietly(int fd)
{
    int saved = errno;
    if (fd >= 0)
        close(fd);
    errno = saved;
}

int nolinks_walk(const char *path, int flags, mode_t mode)
{
    char *copy = mem_strdup(path), *part = copy;
    int at = *path == '/' ? open("/", WAY) : open(".", WAY);
    while (*part == '/')
        part++;
    for (char *end; at >= 0 && (end = strchr(part, '/')); part = end) {
        *end++ = '\0';
        while (*end == '/')
            end++;
        int next = open_part(at, part, WAY, 0);
        close_quietly(at);
        at = next;
    }
    int fd = at < 0 ? -1 : open_part(at, *part ? part : ".", flags, mode);
    close_quietly(at);
    free(copy);
    return fd;
}

int nolinks_open(const char *path, int flags, mode_t mode)
{
    struct open_how how = {.flags = (uint64_t)(unsigned)(flags | O_CLOEXEC),
        .mode = flags & O_CREAT ? mode : 0,
        .resolve = RESOLVE_NO_SYMLINKS};
    long fd = syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
    /* EPERM also comes from containers whose rules are older than the call. */
    return fd >= 0 || (errno != ENOSYS && errno != EPERM) ? (int)fd : nolinks_walk(path, flags, mode);
}

int nolinks_open_parent(const char *path, const char **name)
{
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) : 0;
    *name = slash ? slash + 1 : path;
    if (!slash)
        return nolinks_open(".", O_PATH | O_DIRECTORY, 0);
    char *directory = mem_alloc(n + 2);
    memcpy(directory, path, n ? n : 1);
    directory[n ? n : 1] = '\0';
    int fd = nolinks_open(directory, O_PATH | O_DIRECTORY, 0);
    free(directory);
    return fd;
}

int nolinks_stat(const char *path, struct stat *st)
{
    int fd = nolinks_open(path, O_PATH, 0);
    int rc = fd < 0 ? -1 : fstat(fd, st);
    close_quietly(fd);
    return rc;
}

DIR *nolinks_opendir(const char *path)
{
    int fd = nolinks_open(path, O_RDONLY | O_DIRECTORY, 0);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d)
        close_quietly(fd);
    return d;
}

int nolinks_remove(const char *path)
{
    const char *name;
    int at = nolinks_open_parent(path, &name);
    int rc = at < 0 ? -1 : unlinkat(at, name, 0);
    close_quietly(at);
    return rc;
}

/* Makes the missing directories, each in the one before it. */
int nolinks_make_dirs(const char *path, struct err *e)
{
    char *copy = mem_strdup(path), *part = copy;
    int at = *path == '/' ? open("/", WAY) : open(".", WAY), rc = 0;
    while (*part == '/')
        part++;
    for (char *end; at >= 0 && *part; part = end) {
        end = part + strcspn(part, "/");
        while (*end == '/')
            *end++ = '\0';
        int next = open_part(at, part, WAY, 0);
        if (next < 0 && errno == ENOENT && (!mkdirat(at, part, 0777) || errno == EEXIST))
            next = open_part(at, part, WAY, 0);
        close_quietly(at);
        at = next;
    }
    if (at < 0)
        rc = nolinks_err(e, path, "cannot make the directory");
    close_quietly(at);
    free(copy);
    return rc;
}

int nolinks_err(struct err *e, const char *path, const char *what)
{
    if (errno != ELOOP)
        return err_sys(e, "%s: %s", path, what);
    return err_set(e, ERR_IO,
        "%s: %s: a symbolic link is on the way, and links are not followed there; remove it, or name another directory "
        "with --store DIR",
        path, what);
}

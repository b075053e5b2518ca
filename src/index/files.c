/* Where the stores of a trace are, what they are made from, and who may write them. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/map.h"
#include "base/store.h"
#include "base/time.h"
#include "index/stores.h"

/* Grows whenever a pass counts other things, or in another way. */
enum { INDEX_RULES_VERSION = 15 };

/* Rules: the sum of the versions of all rules that the contents follow, to which index_key adds that of reading files
 * at all. Each of them only grows, so a change of any gives another sum. */
static const struct {
    const char *name;
    uint64_t rules;
    bool of_kernel, of_user;
} files[INDEX_FILES] = {
    [INDEX_MANIFEST] = {"manifest", INDEX_RULES_VERSION, true, true},
    [INDEX_GRAPH] = {"graph", KERNEL_RULES_VERSION + FLOW_RULES_VERSION + GRAPH_RULES_VERSION, true, false},
    [INDEX_FLOWS] = {"flows", KERNEL_RULES_VERSION + FLOW_RULES_VERSION, true, false},
    [INDEX_STATES] = {"states", KERNEL_RULES_VERSION + STATE_RULES_VERSION, true, false},
    [INDEX_STACKS] = {"stacks", STACK_RULES_VERSION, false, true},
    [INDEX_PACKETS] = {"packets", INDEX_RULES_VERSION, true, true},
};

uint64_t index_key(const struct ctf_trace *t, enum index_file file)
{
    return map_mix(ctf_trace_fingerprint(t) + files[file].rules + CTF_RULES_VERSION);
}

struct index_files index_files_in(struct arena *a, const char *dir, const struct index_trace *t)
{
    struct index_files f = {.trace = t->trace, .is_kernel = t->is_kernel, .lock = -1};
    for (int i = 0; i < INDEX_FILES; i++)
        if (t->is_kernel ? files[i].of_kernel : files[i].of_user)
            f.path[i] = arena_printf(a, "%s/%s", dir, files[i].name);
    return f;
}

const char *index_store_dir(struct arena *a, const char *trace_path, const char *store, bool create, struct err *e)
{
    char *real = realpath(trace_path, NULL);
    const char *identity = real ? real : trace_path;
    uint64_t hash = map_hash(identity, strlen(identity));
    const char *base = strrchr(identity, '/'), *home, *dir = NULL;
    base = base && base[1] ? base + 1 : "trace";
    if (store) {
        dir = arena_printf(a, "%s/%s-%016llx", store, base, (unsigned long long)hash);
    } else if (access(arena_printf(a, "%s/.weft", trace_path), W_OK) == 0 ||
        (access(trace_path, W_OK) == 0 && access(arena_printf(a, "%s/.weft", trace_path), F_OK) != 0)) {
        dir = arena_printf(a, "%s/.weft", trace_path);
    } else if ((home = getenv("XDG_CACHE_HOME")) && *home) {
        dir = arena_printf(a, "%s/weft/%s-%016llx", home, base, (unsigned long long)hash);
    } else if ((home = getenv("HOME")) && *home) {
        dir = arena_printf(a, "%s/.cache/weft/%s-%016llx", home, base, (unsigned long long)hash);
    }
    free(real);
    if (!dir) {
        err_set(
            e, ERR_IO, "%s: cannot be written, and there is no cache directory; name one with --store DIR", trace_path);
        return NULL;
    }
    if (create && file_make_dirs(dir, e)) {
        err_wrap(e, "cannot make the store directory (choose another with --store DIR)");
        return NULL;
    }
    return dir;
}

/* What was being written when its process was killed. Only who holds the lock writes here. */
static void remove_left_behind(const char *dir)
{
    DIR *list = opendir(dir);
    if (!list)
        return;
    for (const struct dirent *d; (d = readdir(list));)
        if (strstr(d->d_name, STORE_TEMPORARY))
            unlinkat(dirfd(list), d->d_name, 0);
    closedir(list);
}

enum { LOOK_AGAIN_MS = 50, MARK_BYTES = 128 };

/* Whoever holds the lock has written into its file who it is. */
static int refuse_idle(const char *dir, int fd, int64_t patience_ns, struct err *e)
{
    char who[MARK_BYTES];
    ssize_t n = pread(fd, who, sizeof who - 1, 0);
    who[n > 0 ? n : 0] = '\0';
    who[strcspn(who, "\n")] = '\0';
    return err_set(e, ERR_IO,
        "%s: locked by %s, which has shown no sign of life for %lld s; end it, or choose another place with "
        "--store DIR",
        dir, *who ? who : "another process", (long long)(patience_ns / NS_PER_S));
}

static void mark_lock(int fd)
{
    char host[64] = "", who[MARK_BYTES];
    gethostname(host, sizeof host - 1);
    int n = snprintf(who, sizeof who, "process %ld on %s\n", (long)getpid(), host);
    if (ftruncate(fd, 0) || pwrite(fd, who, (size_t)n, 0) != n)
        return; /* it only helps who waits */
}

void index_lock_alive(int fd)
{
    futimens(fd, NULL);
}

/* Changes as long as who holds the lock works: its file is touched, what is being written grows. */
static uint64_t signs_of_life(const char *dir, int fd)
{
    struct stat st;
    uint64_t sum = 0;
    if (!fstat(fd, &st))
        sum = map_mix((uint64_t)st.st_mtim.tv_sec * NS_PER_S + (uint64_t)st.st_mtim.tv_nsec);
    DIR *list = opendir(dir);
    for (const struct dirent *d; list && (d = readdir(list));)
        if (strstr(d->d_name, STORE_TEMPORARY) && !fstatat(dirfd(list), d->d_name, &st, 0))
            sum += map_mix(st.st_ino + map_mix((uint64_t)st.st_size));
    if (list)
        closedir(list);
    return sum;
}

static int refuse_lock(const char *dir, struct err *e)
{
    bool none = errno == ENOLCK || errno == ENOSYS || errno == EOPNOTSUPP || errno == EINVAL;
    err_sys(e, "%s", dir);
    err_wrap(e, "%s; choose another place, on a local disk, with --store DIR",
        none ? "the file system gives no locks, without which two processes could write the same stores"
             : "cannot lock the stores");
    return e ? e->code : ERR_IO;
}

/* Waits for the lock of an open file. */
static int take_lock(const char *dir, int fd, int64_t patience_ns, struct err *e)
{
    uint64_t seen = 0;
    int64_t since = time_monotonic_ns();
    while (flock(fd, LOCK_EX | LOCK_NB)) {
        if (errno == EINTR)
            continue;
        if (errno != EWOULDBLOCK)
            return refuse_lock(dir, e);
        uint64_t now = signs_of_life(dir, fd);
        if (now != seen)
            since = time_monotonic_ns();
        else if (time_monotonic_ns() - since > patience_ns)
            return refuse_idle(dir, fd, patience_ns, e);
        seen = now;
        poll(NULL, 0, LOOK_AGAIN_MS);
    }
    return 0;
}

/* Of a file of its own, open for writing: over NFS a lock of anything else is known on this machine only. */
int index_lock_dir(const char *dir, int64_t patience_ns, struct err *e)
{
    struct stat mine, there;
    char *path = NULL;
    int fd = -1, rc = 0;
    if (asprintf(&path, "%s/lock", dir) < 0)
        return err_set(e, ERR_NOMEM, "%s", dir);
    do {
        if (fd >= 0) /* it was removed, and maybe made anew, while it was waited for */
            close(fd);
        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        rc = fd < 0 ? err_sys(e, "%s", path) : take_lock(dir, fd, patience_ns, e);
    } while (!rc && !fstat(fd, &mine) && (stat(path, &there) || mine.st_ino != there.st_ino));
    free(path);
    if (rc) {
        if (fd >= 0)
            close(fd);
        return rc;
    }
    mark_lock(fd);
    remove_left_behind(dir);
    return fd;
}

/* SPDX-License-Identifier: MIT */
/* Stores of a trace: their place, their inputs, and the lock for writing them. */
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
#include "base/nolinks.h"
#include "base/store.h"
#include "base/time.h"
#include "index/stores.h"

/* Grows whenever a pass counts other things, or in another way. */
enum { INDEX_RULES_VERSION = 17 };

static const char *const files[] = {[INDEX_CHUNK] = "chunk", [INDEX_MANIFEST] = "manifest"};

static const char *const parts[INDEX_PARTS] = {[INDEX_GRAPH] = "graph",
    [INDEX_FLOWS] = "flows",
    [INDEX_STATES] = "states",
    [INDEX_STACKS] = "stacks",
    [INDEX_PACKETS] = "packets"};

const char *index_part_kind(bool is_kernel, enum index_part part)
{
    return part == INDEX_PACKETS || is_kernel == (part != INDEX_STACKS) ? parts[part] : NULL;
}

/* Built without printf, which would take a good part of opening a list of chunks. */
const char *index_path(const struct index_files *f, enum index_file file, uint32_t chunk)
{
    char digits[16], *end = digits + sizeof digits, *number = end;
    for (uint32_t left = chunk; left; left /= 10)
        *--number = (char)('0' + left % 10);
    if (chunk)
        *--number = '.';
    size_t n_dir = strlen(f->dir), n_file = strlen(files[file]), n_number = (size_t)(end - number);
    char *path = arena_alloc(f->names, n_dir + 1 + n_file + n_number + 1);
    memcpy(path, f->dir, n_dir);
    path[n_dir] = '/';
    memcpy(path + n_dir + 1, files[file], n_file);
    memcpy(path + n_dir + 1 + n_file, number, n_number);
    return path;
}

/* Sum of versions. Each version only grows, so any change gives another sum. */
uint64_t index_rules(bool is_kernel)
{
    uint64_t sum = INDEX_RULES_VERSION + CTF_RULES_VERSION;
    sum += is_kernel ? KERNEL_RULES_VERSION + FLOW_RULES_VERSION + GRAPH_RULES_VERSION + STATE_RULES_VERSION
                     : STACK_RULES_VERSION;
    return map_mix(sum + is_kernel);
}

uint64_t index_rules_of(const struct index_files *f)
{
    bool all = f->from == INT64_MIN && f->until == INT64_MAX;
    uint64_t stacks = f->is_kernel && kernel_has_stacks(f->trace) ? map_mix(GRAPH_STACKS_VERSION) : 0;
    return index_rules(f->is_kernel) + stacks + (all ? 0 : map_mix((uint64_t)f->from) + (uint64_t)f->until);
}

uint64_t index_key(const struct ctf_trace *t, bool is_kernel)
{
    return map_mix(ctf_trace_fingerprint(t) + index_rules(is_kernel));
}

struct index_files index_files_in(struct arena *a, const char *dir, const struct index_trace *t)
{
    return (struct index_files){.trace = t->trace,
        .is_kernel = t->is_kernel,
        .from = t->from,
        .until = t->until,
        .dir = arena_strdup(a, dir),
        .lock = -1,
        .names = a};
}

/* ---- place ---- */

/* Place that stays while directories of a trace come and go: the common begin and the common end of all their paths, in
 * whole names. */
struct place {
    const char *top, *rest; /* rest: "" of a trace of one directory */
};

static struct place place_of(struct arena *a, const struct ctf_trace *t)
{
    const char *first = ctf_trace_path(t);
    size_t n = strlen(first), head = n, tail = n;
    if (ctf_trace_is_file(t)) /* a directory of that name beside the file */
        return (struct place){
            file_name(first) == first ? "." : arena_strndup(a, first, (size_t)(file_name(first) - first)),
            file_name(first)};
    if (ctf_trace_directories(t) == 1)
        return (struct place){first, ""};
    for (size_t i = 1; i < ctf_trace_directories(t); i++) {
        const char *other = ctf_trace_directory(t, i);
        size_t length = strlen(other), k = 0, same = 0, whole = 0;
        while (k < head && other[k] == first[k])
            same = first[k++] == '/' ? k : same;
        head = same;
        for (k = 0; k <= tail && k < n && k < length && first[n - 1 - k] == other[length - 1 - k]; k++)
            whole = first[n - 1 - k] == '/' ? k : whole;
        tail = whole;
    }
    char *rest = arena_strndup(a, first + n - tail, tail);
    for (char *p = rest; *p; p++)
        *p = *p == '/' ? '-' : *p;
    return (struct place){head ? arena_strndup(a, first, head > 1 ? head - 1 : 1) : ".", *rest ? rest : "trace"};
}

static bool is_given(const char *v)
{
    return v && *v;
}

/* The directory of all stores that do not lie beside their traces; NULL: there is none. Links on the way to it are
 * followed: it is the user's own, or was named. Below it none is (base/nolinks.h). */
static const char *root_of(struct arena *a, const char *store, bool create, struct err *e)
{
    const char *home = getenv("HOME"), *cache = getenv("XDG_CACHE_HOME"), *root = store;
    if (!root && is_given(cache))
        root = arena_printf(a, "%s/weft", cache);
    else if (!root && is_given(home))
        root = arena_printf(a, "%s/.cache/weft", home);
    if (!root || (create && file_make_dirs(root, e)))
        return NULL;
    char *real = file_real_path(root);
    const char *kept = real ? arena_strdup(a, real) : root;
    free(real);
    return kept;
}

/* Kinds of entry beside the trace. A link there is not followed: it may lead to files of others. */
enum beside { BESIDE_OURS, BESIDE_OF_OTHERS, BESIDE_LINK, BESIDE_NOTHING };

static enum beside beside_of(const char *top, const char *beside)
{
    struct stat st;
    if (lstat(beside, &st))
        return access(top, W_OK) ? BESIDE_NOTHING : BESIDE_OURS;
    if (S_ISDIR(st.st_mode))
        return access(beside, W_OK) ? BESIDE_OF_OTHERS : BESIDE_OURS;
    return S_ISLNK(st.st_mode) ? BESIDE_LINK : BESIDE_OURS; /* other file types are reported later */
}

static struct index_dirs dirs_for(struct arena *a, struct place place, const char *store, bool create, struct err *e)
{
    struct index_dirs d = {0};
    char *real = file_real_path(place.top);
    if (!real && errno == ENOMEM) {
        err_sys(e, "%s", place.top);
        return d;
    }
    const char *top = real ? arena_strdup(a, real) : place.top, *root = NULL;
    const char *identity = arena_printf(a, "%s%s%s", top, *place.rest ? "/" : "", place.rest);
    const char *beside = arena_printf(a, "%s/.weft", top);
    const char *in_beside = *place.rest ? arena_printf(a, "%s/%s", beside, place.rest) : beside;
    uint64_t hash = map_hash(identity, strlen(identity));
    const char *base = strrchr(identity, '/');
    base = base && base[1] ? base + 1 : "trace";
    free(real);
    enum beside is = store ? BESIDE_NOTHING : beside_of(top, beside);
    d.theirs = is == BESIDE_OF_OTHERS ? in_beside : NULL;
    d.link = is == BESIDE_LINK ? beside : NULL;
    if (is == BESIDE_OURS)
        d.dir = in_beside;
    else if ((root = root_of(a, store, create, e)))
        d.dir = arena_printf(a, "%s/%s-%016llx", root, base, (unsigned long long)hash);
    else if (!e || !e->code)
        err_set(
            e, ERR_IO, "%s: cannot be written, and there is no cache directory; name one with --store DIR", place.top);
    if (create && ((!d.dir && e && e->code) || (d.dir && nolinks_make_dirs(d.dir, e)))) {
        err_wrap(e, "cannot make the store directory (choose another with --store DIR)");
        d.dir = NULL;
    }
    return d;
}

struct index_dirs index_store_dirs(
    struct arena *a, const struct ctf_trace *t, const char *store, bool create, struct err *e)
{
    return dirs_for(a, place_of(a, t), store, create, e);
}

const char *index_tree_dir(struct arena *a, const char *path, const char *store, bool create, struct err *e)
{
    return dirs_for(a, (struct place){path, ""}, store, create, e).dir;
}

/* ---- lock ---- */

/* Returns whether the name is that of a store's file while it is written. All other files are left alone. */
static bool is_left_behind(const char *file)
{
    static const char *const begins[] = {"chunk.", "manifest", "rows.", "clocks-", "messages-", "ids-", "catalogue",
        "graph.", "flows.", "states.", "stacks.", "packets"};
    const char *behind = strstr(file, STORE_TEMPORARY);
    bool ours = false;
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
        ours |= !strncmp(file, begins[i], strlen(begins[i]));
    behind = behind ? behind + strlen(STORE_TEMPORARY) : "";
    return ours && *behind && behind[strspn(behind, "0123456789abcdef.")] == '\0';
}

/* Removes unfinished files of a killed process. Only the lock's holder writes here. */
static void remove_left_behind(const char *dir)
{
    DIR *list = nolinks_opendir(dir);
    if (!list)
        return;
    for (const struct dirent *d; (d = readdir(list));)
        if (is_left_behind(d->d_name))
            unlinkat(dirfd(list), d->d_name, 0);
    closedir(list);
}

/* The number behind the dot in a name that begins so; 0: there is none. */
static uint32_t number_of(const char *file, const char *name)
{
    size_t n = strlen(name);
    char *end;
    if (strncmp(file, name, n) != 0 || file[n] != '.' || file[n + 1] < '1' || file[n + 1] > '9')
        return 0;
    unsigned long number = strtoul(file + n + 1, &end, 10);
    return *end || number > UINT32_MAX ? 0 : (uint32_t)number;
}

/* Returns whether the name is of the old layout: a file per store of a chunk, and one file of packets for all
 * chunks. */
static bool is_of_before(const char *file)
{
    bool found = !strcmp(file, parts[INDEX_PACKETS]);
    for (int i = 0; i < INDEX_PARTS; i++)
        found |= number_of(file, parts[i]) != 0;
    return found;
}

void index_remove_chunks(const char *dir, const uint32_t *but, size_t n)
{
    DIR *list = nolinks_opendir(dir);
    if (!list)
        return;
    for (const struct dirent *d; (d = readdir(list));) {
        uint32_t number = number_of(d->d_name, files[INDEX_CHUNK]);
        bool kept = !number && !is_of_before(d->d_name);
        for (size_t i = 0; i < n && !kept; i++)
            kept = but[i] == number;
        if (!kept)
            unlinkat(dirfd(list), d->d_name, 0);
    }
    closedir(list);
}

enum { LOOK_AGAIN_MS = 50, MARK_BYTES = 128 };

/* Returns the error for a lock whose holder gives no sign of life. The holder has written its identity into the lock's
 * file. */
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
        return; /* unimportant: it only helps those who wait */
}

void index_lock_alive(int fd)
{
    futimens(fd, NULL);
}

/* Returns a number that changes as long as the lock's holder works: its file is touched, and the files being written
 * grow. */
static uint64_t signs_of_life(const char *dir, int fd)
{
    struct stat st;
    uint64_t sum = 0;
    if (!fstat(fd, &st))
        sum = map_mix((uint64_t)st.st_mtim.tv_sec * NS_PER_S + (uint64_t)st.st_mtim.tv_nsec);
    DIR *list = nolinks_opendir(dir);
    for (const struct dirent *d; list && (d = readdir(list));)
        if (strstr(d->d_name, STORE_TEMPORARY) && !fstatat(dirfd(list), d->d_name, &st, AT_SYMLINK_NOFOLLOW))
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
        if (!patience_ns)
            return err_set(e, ERR_CANCELLED, "%s: another process builds there", dir);
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

/* Opens the lock's file. It must not be a file of others by a second name (hard link). */
static int open_lock(const char *path, struct err *e)
{
    struct stat st;
    int fd = nolinks_open(path, O_RDWR | O_CREAT | O_NONBLOCK, 0666);
    if (fd < 0)
        return nolinks_err(e, path, "cannot open");
    if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_nlink <= 1)
        return fd;
    close(fd);
    return err_set(
        e, ERR_IO, "%s: is not a lock that weft made; remove it, or name another directory with --store DIR", path);
}

/* Locks a separate file, open for writing: over NFS any other lock is known on this machine only. */
int index_lock_dir(const char *dir, int64_t patience_ns, struct err *e)
{
    struct stat mine, there;
    char *path = mem_printf("%s/lock", dir);
    int fd = -1, rc = 0;
    do {
        if (fd >= 0) /* file removed, maybe created anew, during the wait */
            close(fd);
        fd = open_lock(path, e);
        rc = fd < 0 ? fd : take_lock(dir, fd, patience_ns, e);
    } while (!rc && !fstat(fd, &mine) && (nolinks_stat(path, &there) || mine.st_ino != there.st_ino));
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

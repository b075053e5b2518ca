/* Where the stores of a trace are, what they are made from, and who may write them. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/file.h"
#include "base/map.h"
#include "base/store.h"
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
    struct index_files f = {.trace = t->trace, .is_kernel = t->is_kernel};
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
static void remove_left_behind(int dir)
{
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = fd < 0 ? NULL : fdopendir(fd);
    if (!list)
        return;
    for (const struct dirent *d; (d = readdir(list));)
        if (strstr(d->d_name, STORE_TEMPORARY))
            unlinkat(dir, d->d_name, 0);
    closedir(list);
}

int index_lock_dir(const char *dir, struct err *e)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_sys(e, "%s", dir);
    while (flock(fd, LOCK_EX))
        if (errno != EINTR) {
            int rc = err_sys(e, "%s: cannot lock", dir);
            close(fd);
            return rc;
        }
    remove_left_behind(fd);
    return fd;
}

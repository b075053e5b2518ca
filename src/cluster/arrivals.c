#include "cluster/arrivals.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/time.h"

#define NOTE ".moved" /* in an arrived directory: who it is, and when it came */
#define LEFT ".left-"
enum { MOST_NOTE = 4096, MOST_NAME = 64, MOST_OPEN = 16 };

struct arrivals {
    char *dir;
    uint64_t limit;
};

struct note {
    uint64_t key, hash;
    int64_t since;
    char name[1024];
};

/* ---- trees ---- */

static int drop_one(const char *file, const struct stat *st, int flag, struct FTW *at)
{
    (void)st;
    (void)flag;
    (void)at;
    (void)!remove(file); /* as much as can be */
    return 0;
}

static void drop_tree(const char *path)
{
    nftw(path, drop_one, MOST_OPEN, FTW_DEPTH | FTW_PHYS);
}

static _Thread_local uint64_t tree_bytes; /* nftw takes no argument */

static int add_bytes(const char *file, const struct stat *st, int flag)
{
    (void)file;
    tree_bytes += flag == FTW_F && S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0;
    return 0;
}

/* ---- what is there ---- */

static bool read_note(const struct arrivals *v, const char *entry, struct note *out)
{
    char *path = mem_printf("%s/%s/" NOTE, v->dir, entry), *text = NULL;
    size_t n;
    int at = 0;
    bool ok = !file_read(path, MOST_NOTE, &text, &n, NULL) &&
        sscanf(text, "weft-moved 1 %" SCNx64 " %" SCNx64 " %" SCNd64 " %n", &out->key, &out->hash, &out->since, &at) ==
            3 &&
        at > 0;
    if (ok)
        snprintf(out->name, sizeof out->name, "%.*s", (int)strcspn(text + at, "\n"), text + at);
    free(text);
    free(path);
    return ok && *out->name && out->since > 0;
}

/* Entries that are whole, sorted. free() each and the array. */
static int entries(const struct arrivals *v, struct dirent ***out)
{
    int n = scandir(v->dir, out, NULL, alphasort), kept = 0;
    for (int i = 0; i < n; i++) {
        if ((*out)[i]->d_name[0] != '.')
            (*out)[kept++] = (*out)[i];
        else
            free((*out)[i]);
    }
    return kept;
}

static void free_entries(struct dirent **v, int n)
{
    for (int i = 0; i < n; i++)
        free(v[i]);
    if (n >= 0)
        free(v);
}

void arrivals_args(const struct arrivals *v, struct arena *a, struct arrivals_args *out)
{
    struct dirent **list = NULL;
    struct note note;
    int n = entries(v, &list);
    for (int i = 0; i < n; i++)
        if (read_note(v, list[i]->d_name, &note))
            vec_push(out, (const char *)arena_printf(a, "%s=%s/%s", note.name, v->dir, list[i]->d_name));
    free_entries(list, n);
}

/* The entry of a host; "" when there is none. */
static bool find(const struct arrivals *v, uint64_t key, struct note *note, char entry[NAME_MAX + 1])
{
    struct dirent **list = NULL;
    int n = entries(v, &list);
    bool found = false;
    for (int i = 0; i < n && !found; i++) {
        found = read_note(v, list[i]->d_name, note) && note->key == key;
        snprintf(entry, NAME_MAX + 1, "%s", list[i]->d_name);
    }
    free_entries(list, n);
    return found;
}

bool arrivals_has(const struct arrivals *v, uint64_t key, uint64_t hash)
{
    struct note note;
    char entry[NAME_MAX + 1];
    return find(v, key, &note, entry) && note.hash == hash;
}

int64_t arrivals_since(const struct arrivals *v, const char *path)
{
    char *real = v ? file_real_path(path) : NULL;
    size_t n = v ? strlen(v->dir) : 0;
    int64_t since = 0;
    struct note note;
    if (real && !strncmp(real, v->dir, n) && real[n] == '/') {
        char *entry = real + n + 1;
        entry[strcspn(entry, "/")] = 0;
        since = read_note(v, entry, &note) ? note.since : 0;
    }
    free(real);
    return since;
}

uint64_t arrivals_room(const struct arrivals *v)
{
    struct statvfs fs;
    uint64_t room = statvfs(v->dir, &fs) ? 0 : (uint64_t)fs.f_bavail * fs.f_frsize;
    if (!v->limit)
        return room;
    tree_bytes = 0;
    ftw(v->dir, add_bytes, MOST_OPEN);
    uint64_t left = tree_bytes < v->limit ? v->limit - tree_bytes : 0;
    return left < room ? left : room;
}

/* ---- coming and going ---- */

const char *arrivals_path(const struct arrivals *v, struct arena *a, uint64_t key, uint64_t hash)
{
    return arena_printf(a, "%s/.arriving-%016" PRIx64 "-%016" PRIx64, v->dir, key, hash);
}

/* Nobody opens it any more. Its files stay: only a person knows that nobody needs them. */
static bool put_aside(const struct arrivals *v, const char *entry)
{
    char *from = mem_printf("%s/%s", v->dir, entry);
    char *to = mem_printf("%s/" LEFT "%s-%" PRId64, v->dir, entry, time_now_ns());
    bool done = !rename(from, to);
    free(from);
    free(to);
    return done;
}

/* Letters that are safe in every path. */
static void plain_name(const char *name, char out[MOST_NAME])
{
    size_t n = 0;
    for (; *name && n < MOST_NAME - 1; name++) {
        bool fits = (*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z') ||
            (*name >= '0' && *name <= '9') || (n && (*name == '-' || *name == '.'));
        out[n++] = fits ? *name : '_';
    }
    out[n] = 0;
}

static int write_note(const char *dir, uint64_t key, uint64_t hash, const char *name, struct err *e)
{
    char *path = mem_printf("%s/" NOTE, dir);
    char *text = mem_printf(
        "weft-moved 1 %016" PRIx64 " %016" PRIx64 " %" PRId64 " %s\n", key, hash, time_now_ns(), name);
    int rc = file_write(path, text, strlen(text), e);
    free(text);
    free(path);
    return rc;
}

int arrivals_finish(const struct arrivals *v, uint64_t key, uint64_t hash, const char *name, struct err *e)
{
    struct arena a = {0};
    char plain[MOST_NAME], entry[NAME_MAX + 1];
    struct note old;
    const char *from = arrivals_path(v, &a, key, hash);
    int rc = write_note(from, key, hash, name, e);
    if (!rc)
        rc = file_sync_dir(from, e);
    if (!rc && find(v, key, &old, entry) && !put_aside(v, entry))
        rc = err_sys(e, "%s/%s", v->dir, entry);
    plain_name(name, plain);
    const char *to = arena_printf(&a, "%s/%s-%016" PRIx64, v->dir, plain, key);
    if (!rc && rename(from, to))
        rc = err_sys(e, "%s", to);
    if (!rc)
        rc = file_sync_dir(v->dir, e);
    arena_fini(&a);
    return rc;
}

void arrivals_drop_others(const struct arrivals *v, uint64_t key, uint64_t hash)
{
    struct dirent **list = NULL;
    struct arena a = {0};
    const char *keep = file_name(arrivals_path(v, &a, key, hash));
    size_t n_key = strlen(keep) - 16; /* without the hash */
    int n = scandir(v->dir, &list, NULL, NULL);
    for (int i = 0; i < n; i++)
        if (!strncmp(list[i]->d_name, keep, n_key) && strcmp(list[i]->d_name, keep) != 0)
            drop_tree(arena_printf(&a, "%s/%s", v->dir, list[i]->d_name));
    free_entries(list, n);
    arena_fini(&a);
}

void arrivals_drop(const struct arrivals *v, uint64_t key, uint64_t hash)
{
    struct arena a = {0};
    drop_tree(arrivals_path(v, &a, key, hash));
    arena_fini(&a);
}

bool arrivals_put_aside(const struct arrivals *v, uint64_t key, uint64_t hash)
{
    struct note note;
    char entry[NAME_MAX + 1];
    return find(v, key, &note, entry) && note.hash == hash && put_aside(v, entry);
}

/* ---- beginning and end ---- */

int arrivals_open(const char *dir, uint64_t limit, struct arrivals **out, struct err *e)
{
    struct stat st;
    bool own = stat(dir, &st) != 0;
    int rc = file_make_dirs(dir, e);
    if (!rc && own && chmod(dir, 0700)) /* traces of other machines are not for everybody on this one */
        rc = err_sys(e, "%s", dir);
    char *real = rc ? NULL : file_real_path(dir);
    if (!rc && (!real || access(real, W_OK)))
        rc = err_sys(e, "%s", dir);
    *out = NULL;
    if (rc) {
        free(real);
        return err_wrap(e, "--receive"), rc;
    }
    *out = mem_zalloc(sizeof **out);
    (*out)->dir = real;
    (*out)->limit = limit;
    return 0;
}

void arrivals_close(struct arrivals *v)
{
    if (!v)
        return;
    free(v->dir);
    free(v);
}

const char *arrivals_dir(const struct arrivals *v)
{
    return v->dir;
}

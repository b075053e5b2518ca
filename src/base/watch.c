/* SPDX-License-Identifier: MIT */
#include "base/watch_dirs.h"

#include <dirent.h>
#include <errno.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/time.h"

enum {
    DEPTH_MAX = 24,
    BUDGET_NS = 20000000, /* time for one round; pause between two looks while much is left to read */
    READS_MAX = 256       /* limit of reads of events per look */
};

struct watch_limits watch_limits_usual(void)
{
    return (struct watch_limits){.told = 8192,
        .directories = 1 << 20,
        .entries = 1 << 16,
        .round_ns = NS_PER_S,
        .many = 1024,
        .old_ns = 3600 * NS_PER_S};
}

/* ---- looking ---- */

static uint64_t mix_file(uint64_t looks, const char *name, const struct stat *st)
{
    uint64_t x = map_hash(name, strlen(name));
    x = map_mix(x + (uint64_t)st->st_ino);
    x = map_mix(x + (uint64_t)st->st_size);
    x = map_mix(x + (uint64_t)st->st_mtim.tv_sec * 1000000000 + (uint64_t)st->st_mtim.tv_nsec);
    return looks + map_mix(x + st->st_mode); /* sum, so the order does not matter */
}

/* Contents of a leaf: a hash of its files' state, and when one changed last. Of others: the names that may be
 * directories, and when it changed last itself. */
struct contents {
    bool leaf;
    uint64_t looks;
    int64_t newest_ns;
    VEC(char *) names;
};

static int64_t changed_at(const struct stat *st)
{
    return st->st_ctim.tv_sec * NS_PER_S + st->st_ctim.tv_nsec;
}

static void read_contents(struct watch *w, DIR *dir, struct contents *c)
{
    struct stat st;
    size_t n = 0;
    c->leaf = !fstatat(dirfd(dir), w->leaf, &st, 0) && S_ISREG(st.st_mode);
    if (!c->leaf && !fstat(dirfd(dir), &st))
        c->newest_ns = changed_at(&st);
    for (struct dirent *e; n < w->limits.entries && (e = readdir(dir)); n++) {
        if (e->d_name[0] == '.')
            continue;
        if (c->leaf && !fstatat(dirfd(dir), e->d_name, &st, 0) && S_ISREG(st.st_mode)) {
            c->looks = mix_file(c->looks, e->d_name, &st);
            c->newest_ns = changed_at(&st) > c->newest_ns ? changed_at(&st) : c->newest_ns;
        } else if (!c->leaf && (e->d_type == DT_DIR || e->d_type == DT_LNK || e->d_type == DT_UNKNOWN)) {
            vec_push(&c->names, mem_strdup(e->d_name));
        }
    }
    w->full |= n == w->limits.entries;
}

/* Enters a directory; `first`: at the start, when it may be old. */
static void enter(struct watch *w, int32_t at, bool first);

/* Returns whether an entry that does not count (no directory, or known under another path) may become one that does. */
static bool may_become_one(const struct watch *w, int32_t at)
{
    struct stat st;
    char *path = watch_path(w, at);
    bool may = !lstat(path, &st) && (S_ISLNK(st.st_mode) || S_ISDIR(st.st_mode));
    free(path);
    return may;
}

/* Handles a name in a directory that is no leaf, which may be a directory. */
static void meet(struct watch *w, int32_t parent, const char *name, bool first)
{
    int32_t at = watch_child(w, parent, name);
    if (at == WATCH_NONE && w->list.v[parent].depth < DEPTH_MAX)
        at = watch_add(w, parent, name);
    if (at == WATCH_NONE)
        return;
    enter(w, at, first);
    if (!w->list.v[at].there && !may_become_one(w, at))
        watch_drop(w, at);
}

static void drop_vanished(struct watch *w, int32_t parent, const struct contents *c)
{
    uint32_t round = ++w->round;
    for (size_t i = 0; i < c->names.n; i++) {
        int32_t at = watch_child(w, parent, c->names.v[i]);
        if (at != WATCH_NONE)
            w->list.v[at].round = round;
    }
    for (int32_t at = w->list.v[parent].child, next; at != WATCH_NONE; at = next) {
        next = w->list.v[at].next;
        if (w->list.v[at].round != round)
            watch_drop(w, at);
    }
}

/* Returns whether the contents differ from the known ones; for a directory read for the first time, whether it is
 * new. */
static bool is_news(const struct watch *w, const struct watch_dir *d, const struct contents *c)
{
    if (!d->due)
        return c->leaf != d->leaf || c->looks != d->looks;
    return w->walked ? c->leaf : c->newest_ns >= w->since_ns;
}

/* Reads the directory and compares it with the known state. */
static void look_into(struct watch *w, int32_t at)
{
    struct contents c = {0};
    char *path = watch_path(w, at);
    DIR *dir = opendir(path);
    if (dir) {
        read_contents(w, dir, &c);
        closedir(dir);
    }
    free(path);
    struct watch_dir *d = &w->list.v[at];
    bool first = d->due && !w->walked && w->limits.many && c.names.n >= w->limits.many;
    w->changed |= is_news(w, d, &c);
    d->due = false;
    w->leaves += (size_t)c.leaf - (size_t)d->leaf;
    d->leaf = c.leaf;
    d->looks = c.looks;
    drop_vanished(w, at, &c);
    for (size_t i = 0; i < c.names.n; i++) {
        if (watch_child(w, at, c.names.v[i]) == WATCH_NONE)
            meet(w, at, c.names.v[i], first);
        free(c.names.v[i]);
    }
    vec_free(&c.names);
}

/* Copies may keep the time of modification, but not that of change. */
static bool is_old(const struct watch *w, const struct stat *st)
{
    int64_t modified = st->st_mtim.tv_sec * NS_PER_S + st->st_mtim.tv_nsec;
    return modified < w->since_ns - w->limits.old_ns && changed_at(st) < w->since_ns;
}

/* Checks whether it is the same directory as before. A new or different one is watched and scheduled for reading. */
static void enter(struct watch *w, int32_t at, bool first)
{
    struct stat st;
    char *path = watch_path(w, at);
    bool is = !stat(path, &st) && S_ISDIR(st.st_mode);
    uint64_t inode = is ? map_mix(map_mix((uint64_t)st.st_dev) + (uint64_t)st.st_ino) : 0;
    struct watch_dir *d = &w->list.v[at];
    if (d->there && (!is || inode != d->inode))
        watch_forget(w, at);
    bool fresh = false;
    if (is && !d->there) {
        uint64_t *of = map_put(&w->by_inode, inode, &fresh);
        if (fresh)
            *of = (uint64_t)at;
    }
    if (fresh) { /* a directory reached by another path before counts once */
        d->there = true;
        d->inode = inode;
        d->old = first && is_old(w, &st);
    }
    if (fresh && d->old) {
        d->looks = (uint64_t)changed_at(&st);
        w->old++;
    } else if (fresh) {
        bool recent = changed_at(&st) >= w->since_ns;
        d->due = true;
        watch_tell(w, at, path, recent);
        if (recent || w->walked)
            vec_push(&w->pending, at);
        else
            vec_push(&w->later, at);
    }
    free(path);
}

static void look_into_due(struct watch *w, int32_t at)
{
    if (w->list.v[at].name && w->list.v[at].due)
        look_into(w, at);
}

static bool all_known(const struct watch *w)
{
    return !w->pending.n && w->later_head == w->later.n;
}

/* Reads scheduled directories until that time: new ones first, then level by level, so that directories in which others
 * are created are watched early. */
static void go_on(struct watch *w, int64_t until_ns)
{
    while (!all_known(w) && time_monotonic_ns() < until_ns) {
        if (w->pending.n)
            look_into_due(w, w->pending.v[--w->pending.n]);
        else
            look_into_due(w, w->later.v[w->later_head++]);
    }
    if (all_known(w)) {
        w->walked = true;
        vec_free(&w->later);
        w->later_head = 0;
    }
}

/* ---- events of the kernel ---- */

/* Checks an old directory for changes of itself. */
static void glance_at(struct watch *w, int32_t at)
{
    struct stat st;
    char *path = watch_path(w, at);
    bool same = !stat(path, &st) && (uint64_t)changed_at(&st) == w->list.v[at].looks;
    free(path);
    if (!same)
        watch_forget(w, at);
    enter(w, at, false);
}

static void look_again(struct watch *w, int32_t at)
{
    if (w->list.v[at].old) {
        glance_at(w, at);
        return;
    }
    enter(w, at, false);
    if (w->list.v[at].there)
        look_into(w, at);
}

/* Handles an event of a leaf, or of its files. */
static void happened_in_leaf(struct watch *w, int32_t at, const struct inotify_event *e)
{
    if (e->mask & IN_ISDIR && e->len)
        return;
    if (e->len && !strcmp(e->name, w->leaf) && !(e->mask & IN_MODIFY))
        look_again(w, at); /* leaf status may have changed */
    w->changed = true;
}

static void happened_elsewhere(struct watch *w, int32_t at, const struct inotify_event *e)
{
    int32_t child = e->len ? watch_child(w, at, e->name) : WATCH_NONE;
    if (!e->len || !strcmp(e->name, w->leaf))
        look_again(w, at);
    else if (child != WATCH_NONE && e->mask & (IN_DELETE | IN_MOVED_FROM))
        watch_drop(w, child);
    else if (child != WATCH_NONE && e->mask & IN_ATTRIB && w->list.v[child].there)
        look_again(w, child);
    else if (e->mask & (IN_CREATE | IN_MOVED_TO | IN_ATTRIB))
        meet(w, at, e->name, false);
}

static void happened(struct watch *w, const struct inotify_event *e)
{
    const uint64_t *found = map_find(&w->by_wd, (uint64_t)e->wd);
    if (e->mask & IN_Q_OVERFLOW)
        w->overflow = true;
    if (!found || (e->len && e->name[0] == '.'))
        return;
    int32_t at = (int32_t)*found;
    if (e->mask & IN_IGNORED) { /* removed: the kernel has dropped the watch */
        map_remove(&w->by_wd, (uint64_t)e->wd);
        w->list.v[at].wd = WATCH_NONE;
        w->told--;
        return;
    }
    w->list.v[at].touched = true;
    if (w->list.v[at].leaf)
        happened_in_leaf(w, at, e);
    else if (!(e->mask & IN_MODIFY))
        happened_elsewhere(w, at, e);
}

static void read_events(struct watch *w)
{
    _Alignas(struct inotify_event) char buffer[1 << 14];
    ssize_t n = 0;
    for (int reads = 0; w->fd >= 0 && reads < READS_MAX && (n = read(w->fd, buffer, sizeof buffer)) > 0; reads++)
        for (const char *p = buffer; p < buffer + n;) {
            const struct inotify_event *e = (const struct inotify_event *)p;
            happened(w, e);
            p += sizeof *e + e->len;
        }
}

/* ---- polling ---- */

/* Busy: other directories are created in it, so it is polled in each round. */
static bool is_busy(const struct watch_dir *d)
{
    return d->parent == WATCH_NONE || d->below > WATCH_FEW;
}

/* Due: it has no watch; or it is a root, whose path has none. */
static bool is_due(const struct watch_dir *d)
{
    return d->name && !d->due && (d->wd == WATCH_NONE || d->parent == WATCH_NONE);
}

static void look_around(struct watch *w)
{
    int64_t begin = time_monotonic_ns(), end = begin + BUDGET_NS;
    w->next_round_ns = begin + w->limits.round_ns;
    for (size_t i = 0; i < w->list.n; i++)
        if (is_due(&w->list.v[i]) && is_busy(&w->list.v[i])) {
            if (w->list.v[i].wd == WATCH_NONE)
                look_again(w, (int32_t)i);
            else
                enter(w, (int32_t)i, false);
        }
    for (size_t left = w->list.n; left && time_monotonic_ns() < end; left--) {
        size_t i = w->cursor = w->cursor + 1 < w->list.n ? w->cursor + 1 : 0;
        if (is_due(&w->list.v[i]) && !is_busy(&w->list.v[i]))
            look_again(w, (int32_t)i);
    }
}

/* Polls everything: events were lost. */
static void look_everywhere(struct watch *w)
{
    for (size_t i = 0; i < w->list.n; i++)
        if (w->list.v[i].name && !w->list.v[i].leaf)
            look_again(w, (int32_t)i);
    w->overflow = false;
    w->changed = true;
}

bool watch_look(struct watch *w, int64_t *again_ns)
{
    read_events(w);
    if (w->overflow)
        look_everywhere(w);
    int64_t now = time_monotonic_ns();
    if (now >= w->next_round_ns)
        look_around(w);
    go_on(w, now + 2 * (int64_t)BUDGET_NS);
    bool changed = w->changed;
    w->changed = false;
    *again_ns = all_known(w) ? w->next_round_ns : time_monotonic_ns() + BUDGET_NS;
    return changed;
}

/* ---- opening ---- */

/* Directory of a path. free() it. */
static char *directory_of(const char *path)
{
    struct stat st;
    char *dir = mem_strdup(path), *slash = strrchr(dir, '/');
    if (!stat(path, &st) && !S_ISDIR(st.st_mode) && slash && slash > dir)
        *slash = '\0';
    return dir;
}

struct watch *watch_open(const char *const *paths, size_t n, const char *leaf, const struct watch_limits *limits)
{
    struct watch *w = mem_zalloc(sizeof *w);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME_COARSE, &now); /* clock of file times */
    w->since_ns = now.tv_sec * NS_PER_S + now.tv_nsec;
    w->limits = *limits;
    w->leaf = mem_strdup(leaf);
    w->fd = limits->told ? inotify_init1(IN_NONBLOCK | IN_CLOEXEC) : -1;
    for (size_t i = 0; i < n; i++) {
        char *dir = directory_of(paths[i]);
        int32_t at = watch_add(w, WATCH_NONE, dir);
        if (at != WATCH_NONE)
            enter(w, at, false);
        free(dir);
    }
    w->next_round_ns = time_monotonic_ns() + limits->round_ns;
    return w;
}

void watch_close(struct watch *w)
{
    if (!w)
        return;
    if (w->fd >= 0)
        close(w->fd);
    for (size_t i = 0; i < w->list.n; i++)
        free(w->list.v[i].name);
    vec_free(&w->list);
    vec_free(&w->free);
    vec_free(&w->queue);
    vec_free(&w->pending);
    vec_free(&w->later);
    map_fini(&w->by_wd);
    map_fini(&w->by_inode);
    map_fini(&w->by_name);
    free(w->leaf);
    free(w);
}

int watch_descriptor(const struct watch *w)
{
    return w->fd;
}

struct watch_state watch_state(const struct watch *w)
{
    return (struct watch_state){.directories = w->known,
        .leaves = w->leaves,
        .told = w->told,
        .old = w->old,
        .full = w->full,
        .walked = w->walked};
}

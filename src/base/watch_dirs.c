/* SPDX-License-Identifier: MIT */
#include "base/watch_dirs.h"

#include <sys/inotify.h>
#include <sys/vfs.h>

#include "base/text.h"

static const uint32_t EVENTS = IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_MODIFY | IN_ATTRIB |
    IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;

static void put_path(const struct watch *w, int32_t at, struct text *out)
{
    const struct watch_dir *d = &w->list.v[at];
    if (d->parent != WATCH_NONE) {
        put_path(w, d->parent, out);
        text_putc(out, '/');
    }
    text_puts(out, d->name);
}

char *watch_path(const struct watch *w, int32_t at)
{
    struct text t = {.fd = -1};
    put_path(w, at, &t);
    char *path = mem_strdup(text_cstr(&t));
    text_fini(&t);
    return path;
}

static void untell(struct watch *w, int32_t at)
{
    struct watch_dir *d = &w->list.v[at];
    if (d->wd == WATCH_NONE)
        return;
    map_remove(&w->by_wd, (uint64_t)d->wd);
    inotify_rm_watch(w->fd, d->wd);
    d->wd = WATCH_NONE;
    w->told--;
}

static uint64_t name_key(int32_t parent, const char *name)
{
    return map_mix(map_hash(name, strlen(name)) + map_mix((uint64_t)parent + 1));
}

static void unlink_child(struct watch *w, const struct watch_dir *d)
{
    struct watch_dir *parent = &w->list.v[d->parent];
    *(d->before == WATCH_NONE ? &parent->child : &w->list.v[d->before].next) = d->next;
    if (d->next != WATCH_NONE)
        w->list.v[d->next].before = d->before;
    parent->below--;
}

void watch_forget(struct watch *w, int32_t at)
{
    struct watch_dir *d = &w->list.v[at];
    while (d->child != WATCH_NONE)
        watch_drop(w, d->child);
    untell(w, at);
    if (d->there)
        map_remove(&w->by_inode, d->inode);
    w->changed |= d->leaf || d->old;
    w->leaves -= d->leaf;
    w->old -= d->old;
    d->there = d->leaf = d->due = d->old = false;
    d->looks = 0;
}

void watch_drop(struct watch *w, int32_t at)
{
    struct watch_dir *d = &w->list.v[at];
    watch_forget(w, at);
    if (d->parent == WATCH_NONE) /* roots stay: they may reappear */
        return;
    unlink_child(w, d);
    map_remove(&w->by_name, name_key(d->parent, d->name));
    free(d->name);
    d->name = NULL;
    w->known--;
    vec_push(&w->free, at);
}

int32_t watch_add(struct watch *w, int32_t parent, const char *name)
{
    if (w->known >= w->limits.directories) {
        w->full = true;
        return WATCH_NONE;
    }
    if (!w->free.n) {
        vec_push(&w->free, (int32_t)w->list.n);
        vec_push(&w->list, (struct watch_dir){0});
    }
    int32_t at = w->free.v[--w->free.n];
    struct watch_dir *d = &w->list.v[at];
    *d = (struct watch_dir){.name = mem_strdup(name),
        .parent = parent,
        .child = WATCH_NONE,
        .before = WATCH_NONE,
        .next = WATCH_NONE,
        .wd = WATCH_NONE};
    w->known++;
    if (parent == WATCH_NONE)
        return at;
    struct watch_dir *p = &w->list.v[parent];
    d->depth = p->depth + 1;
    d->next = p->child;
    if (p->child != WATCH_NONE)
        w->list.v[p->child].before = at;
    p->child = at;
    p->below++;
    *map_put(&w->by_name, name_key(parent, name), NULL) = (uint64_t)at;
    return at;
}

int32_t watch_child(const struct watch *w, int32_t parent, const char *name)
{
    const uint64_t *at = map_find(&w->by_name, name_key(parent, name));
    return at ? (int32_t)*at : WATCH_NONE;
}

/* ---- watches of the kernel ---- */

/* File systems on which other machines may make changes that this kernel does not see. */
static bool tells_nothing(const char *path)
{
    static const uint32_t remote[] = {0x6969 /* NFS */, 0xff534d42 /* CIFS */, 0xfe534d42 /* SMB2 */, 0x517b /* SMB */,
        0x01021997 /* 9P */, 0x65735546 /* FUSE */, 0x0bd00bd0 /* Lustre */, 0x00c36400 /* Ceph */,
        0x5346414f /* AFS */, 0x47504653 /* GPFS */, 0x01161970 /* GFS2 */, 0x7461636f /* OCFS2 */};
    struct statfs fs;
    if (statfs(path, &fs))
        return true;
    for (size_t i = 0; i < sizeof remote / sizeof *remote; i++)
        if ((uint32_t)fs.f_type == remote[i])
            return true;
    return false;
}

/* Takes over the least recently reported watch of a directory in which little is created. */
static bool make_room(struct watch *w)
{
    while (w->told >= w->limits.told && w->queue_head < w->queue.n) {
        int32_t at = w->queue.v[w->queue_head++];
        struct watch_dir *d = &w->list.v[at];
        if (!d->name || d->wd == WATCH_NONE || d->parent == WATCH_NONE || d->below > WATCH_FEW)
            continue;
        if (d->touched)
            vec_push(&w->queue, at);
        else
            untell(w, at);
        d->touched = false;
    }
    if (w->queue_head > w->queue.n / 2 + 64) {
        w->queue.n -= w->queue_head;
        memmove(w->queue.v, w->queue.v + w->queue_head, w->queue.n * sizeof *w->queue.v);
        w->queue_head = 0;
    }
    return w->told < w->limits.told;
}

void watch_tell(struct watch *w, int32_t at, const char *path, bool recent)
{
    if (w->fd < 0 || w->list.v[at].wd != WATCH_NONE || (!recent && w->told >= w->limits.told) || tells_nothing(path) ||
        !make_room(w))
        return;
    int wd = inotify_add_watch(w->fd, path, EVENTS);
    if (wd < 0)
        return; /* no watches left: it is polled */
    *map_put(&w->by_wd, (uint64_t)wd, NULL) = (uint64_t)at;
    w->list.v[at].wd = wd;
    w->told++;
    vec_push(&w->queue, at);
}

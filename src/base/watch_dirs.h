/* SPDX-License-Identifier: MIT */
/* Private to watch.c and watch_dirs.c: the directories that are known, as trees. */
#ifndef WEFT_BASE_WATCH_DIRS_H
#define WEFT_BASE_WATCH_DIRS_H

#include "base/map.h"
#include "base/mem.h"
#include "base/watch.h"

enum {
    WATCH_NONE = -1,
    WATCH_FEW = 4        /* a directory with more below it is one that others are made in */
};

struct watch_dir {
    char *name;            /* of a root: its path; NULL: the place is free */
    int32_t parent, child; /* WATCH_NONE: a root; nothing below it */
    int32_t before, next;  /* of the same parent */
    int32_t wd;            /* WATCH_NONE: the kernel does not tell of it */
    uint32_t below, round; /* how many are right below; when its parent was read last with it in it */
    uint16_t depth;
    bool leaf, there;      /* there: it is a directory */
    bool touched;          /* something happened in it since it was queued */
    bool due;              /* it was not looked into yet */
    bool old;              /* nor will it be, as long as it looks the same itself */
    uint64_t inode, looks; /* which it is; how it looked */
};

struct watch {
    int fd;
    char *leaf;
    struct watch_limits limits;
    VEC(struct watch_dir) list;
    VEC(int32_t) free, queue; /* places; directories that may lose their watch, the oldest first */
    VEC(int32_t) pending;     /* those that are due, and others; the last one is next */
    VEC(int32_t) later;       /* likewise, once there are no pending ones; the first one is next */
    size_t queue_head, later_head, known, leaves, told, old;
    struct map by_wd, by_inode, by_name; /* number of the directory; by_name: by parent and name */
    size_t cursor;                       /* who is looked at next */
    int64_t next_round_ns;
    uint32_t round;
    int64_t since_ns; /* by the clock of the times of files */
    bool changed, full, overflow;
    bool walked; /* what was there at first is known: what is met is new */
};

/* The path of a directory; free() it. */
char *watch_path(const struct watch *, int32_t at);
/* A new one below the parent (WATCH_NONE: a root); WATCH_NONE when there are too many. */
int32_t watch_add(struct watch *, int32_t parent, const char *name);
/* The directory of that name below the parent, or WATCH_NONE. */
int32_t watch_child(const struct watch *, int32_t parent, const char *name);
/* It is absent now, and what was below it is known no more. */
void watch_forget(struct watch *, int32_t at);
/* Neither is it itself, unless it is a root. */
void watch_drop(struct watch *, int32_t at);
/* Asks the kernel to tell of it, if it may be told of one more; a recent one takes the place of another. Must come
 * before it is read, so that nothing is missed in between. */
void watch_tell(struct watch *, int32_t at, const char *path, bool recent);

#endif

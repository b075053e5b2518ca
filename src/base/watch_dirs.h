/* SPDX-License-Identifier: MIT */
/* Private to watch.c and watch_dirs.c: trees of known directories. */
#ifndef WEFT_BASE_WATCH_DIRS_H
#define WEFT_BASE_WATCH_DIRS_H

#include "base/map.h"
#include "base/mem.h"
#include "base/watch.h"

enum {
    WATCH_NONE = -1,
    WATCH_FEW = 4        /* a directory with more below it is one in which others are created */
};

struct watch_dir {
    char *name;            /* name; path of a root; NULL: unused slot */
    int32_t parent, child; /* WATCH_NONE: this is a root; nothing is below it */
    int32_t before, next;  /* siblings */
    int32_t wd;            /* inotify's; WATCH_NONE: not watched by the kernel */
    uint32_t below, round; /* number of children; round in which its parent was last read with it in it */
    uint16_t depth;
    bool leaf, there;      /* there: it exists as a directory */
    bool touched;          /* an event occurred in it since it was queued */
    bool due;              /* not read yet */
    bool old;              /* not read as long as its own stat is unchanged */
    uint64_t inode, looks; /* identity; hash of its state */
};

struct watch {
    int fd;
    char *leaf;
    struct watch_limits limits;
    VEC(struct watch_dir) list;
    VEC(int32_t) free, queue; /* unused slots; directories that may lose their watch, the oldest first */
    VEC(int32_t) pending;     /* directories to read, due ones and others; the last one is next */
    VEC(int32_t) later;       /* directories to read when there are no pending ones; the first one is next */
    size_t queue_head, later_head, known, leaves, told, old;
    struct map by_wd, by_inode, by_name; /* index of the directory; by_name: by parent and name */
    size_t cursor;                       /* next directory to poll */
    int64_t next_round_ns;
    uint32_t round;
    int64_t since_ns; /* start, by the clock of file times */
    bool changed, full, overflow;
    bool walked; /* initial contents are known: further directories are new */
};

/* Path of a directory; free() it. */
char *watch_path(const struct watch *, int32_t at);
/* Adds a directory below the parent (WATCH_NONE: a root). WATCH_NONE: too many. */
int32_t watch_add(struct watch *, int32_t parent, const char *name);
/* The directory of that name below the parent, or WATCH_NONE. */
int32_t watch_child(const struct watch *, int32_t parent, const char *name);
/* Marks the directory absent and drops what is below it. */
void watch_forget(struct watch *, int32_t at);
/* Marks it absent and drops it, too, unless it is a root. */
void watch_drop(struct watch *, int32_t at);
/* Asks the kernel to watch the directory, if the limit allows; a recent one takes the place of another. Must be called
 * before the directory is read, so that nothing is missed in between. */
void watch_tell(struct watch *, int32_t at, const char *path, bool recent);

#endif

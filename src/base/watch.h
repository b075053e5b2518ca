/* SPDX-License-Identifier: MIT */
/* Notices changes in trees of directories. A directory with a file of a given name ("metadata") is a leaf. Changes are:
 * a leaf appears or vanishes; files in it appear, vanish, grow or become readable. Nothing below a leaf is read. Names
 * that begin with a dot are ignored.
 *
 * The kernel (inotify) watches as many directories as the limits allow: the newest ones, and those in which others are
 * created. The rest, those on file systems without notifications, and absent roots are polled, each second if there are
 * few, within a time budget. Links are followed if they lead to directories that are not known yet. No thread of its
 * own, no lock: one user at a time.
 *
 * Old directories are those of a directory with very many, such as a week of archives, that were there at the start and
 * had long been unchanged. Their own changes (creation, removal, entries) are noticed, changes below them are not. */
#ifndef WEFT_BASE_WATCH_H
#define WEFT_BASE_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct watch_limits {
    size_t told;         /* directories watched by the kernel; 0: all are polled */
    size_t directories;  /* known directories; those beyond are not followed */
    size_t entries;      /* entries of one directory; those beyond are not read */
    int64_t round_ns;    /* interval between two polls */
    size_t many;         /* number of subdirectories from which there are very many; 0: never */
    int64_t old_ns;      /* age of the last change from which a directory is old */
};
struct watch_limits watch_limits_usual(void);

struct watch;
/* Opens a watch. Changes after this call are noticed, although the trees are walked only by the first calls of
 * watch_look. A change some ms before may be reported, too. A path of a file stands for its directory. Strings are
 * copied. */
struct watch *watch_open(const char *const *paths, size_t n, const char *leaf, const struct watch_limits *);
void watch_close(struct watch *); /* NULL-safe */
/* Descriptor that is readable when the kernel has reported something; -1: it reports nothing. */
int watch_descriptor(const struct watch *);
/* Returns whether something has changed since the last call. *again_ns: monotonic time of the next call if nothing is
 * reported. Usually takes less than 100 ms. */
bool watch_look(struct watch *, int64_t *again_ns);

/* State, for tests and messages to users. */
struct watch_state {
    size_t directories, leaves, told;
    size_t old;          /* old ones of the directories */
    bool full;           /* the limit of directories is reached */
    bool walked;         /* all that was there at the start is known */
};
struct watch_state watch_state(const struct watch *);

#endif

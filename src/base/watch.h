/* SPDX-License-Identifier: MIT */
/* Notices changes in trees of directories. Of interest are the directories with a file of a given name ("metadata"):
 * that one appears, vanishes, or that files in it appear, vanish, grow or become readable. Such a directory is a leaf:
 * what lies below it is not looked at. Names that begin with a dot are nothing.
 *
 * The kernel tells (inotify) of as many directories as the limits allow: the newest ones, and those that others are
 * made in. All others, those of file systems that tell nothing, and roots that are absent are looked at again and
 * again, each second if there are few, within a budget of time. Links are followed, as far as they lead to directories
 * that are not known yet. No thread of its own, no lock: one user at a time.
 *
 * In a directory of very many, such as a week of archives, those that were there at first and had long been the same
 * are old: it is noticed when they come, go, or get or lose entries, but not what happens below them. */
#ifndef WEFT_BASE_WATCH_H
#define WEFT_BASE_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct watch_limits {
    size_t told;         /* directories that the kernel tells of; 0: none, all are looked at */
    size_t directories;  /* that are known; those beyond are not followed */
    size_t entries;      /* of one directory; those beyond are not looked at */
    int64_t round_ns;    /* between two looks at what the kernel does not tell of */
    size_t many;         /* so many in one directory are very many; 0: none are */
    int64_t old_ns;      /* so long the same is long */
};
struct watch_limits watch_limits_usual(void);

struct watch;
/* A change after this call is noticed, although the trees are walked by the first calls of watch_look only. What was
 * changed some ms before may be taken for one. A path that is a file stands for its directory. Strings are copied. */
struct watch *watch_open(const char *const *paths, size_t n, const char *leaf, const struct watch_limits *);
void watch_close(struct watch *); /* NULL-safe */
/* Readable when the kernel has told something; -1: it tells nothing. */
int watch_descriptor(const struct watch *);
/* Has something changed since the call before? *again_ns: monotonic time by which it must be called again although
 * nothing was told. Takes less than 100 ms as a rule. */
bool watch_look(struct watch *, int64_t *again_ns);

/* How much is known: for tests and for those who tell users. */
struct watch_state {
    size_t directories, leaves, told;
    size_t old;          /* of the directories */
    bool full;           /* there are more than are followed */
    bool walked;         /* all that was there at first is known */
};
struct watch_state watch_state(const struct watch *);

#endif

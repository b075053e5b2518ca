/* SPDX-License-Identifier: MIT */
#include "base/machine.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"

enum { MOST_LISTED = 1 << 20, MOST_NUMBER = 8192 }; /* bytes: lists of mounts or groups; a limit */

/* Mounted hierarchy of control groups that limits memory. */
struct hierarchy {
    bool second;             /* control groups version 2 */
    const char *root, *path; /* group that is mounted, and its mount point */
};

static char *read_list(const char *root, const char *name)
{
    size_t n;
    char *text, *path = mem_printf("%s/proc/self/%s", root, name);
    int rc = file_read(path, MOST_LISTED, &text, &n, NULL);
    free(path);
    return rc ? NULL : text;
}

/* Returns whether a list separated by commas holds the word. */
static bool lists(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (!strncmp(at, word, n) && (!at[n] || at[n] == ','))
            return true;
    return false;
}

/* Limit in a file; UINT64_MAX if it cannot be read: "max", no such file. */
static uint64_t limit_in(const char *directory, const char *file)
{
    size_t n;
    char *text, *end, *path = mem_printf("%s/%s", directory, file);
    int rc = file_read(path, MOST_NUMBER, &text, &n, NULL);
    free(path);
    if (rc)
        return UINT64_MAX;
    errno = 0;
    uint64_t limit = strtoull(text, &end, 10);
    bool is_number = end != text && !errno && *text != '-';
    free(text);
    return is_number ? limit : UINT64_MAX;
}

/* Lowest limit of the group and of those above it, as far as they are mounted. */
static uint64_t least_limit(const char *root, const struct hierarchy *h, const char *group)
{
    size_t above = !strcmp(h->root, "/") ? 0 : strlen(h->root);
    bool below = !strncmp(group, h->root, above) && (!group[above] || group[above] == '/');
    char *path = mem_printf("%s%s%s", root, h->path, below ? group + above : "");
    size_t top = strlen(root) + strlen(h->path);
    uint64_t least = UINT64_MAX;
    for (;;) {
        uint64_t limit = limit_in(path, h->second ? "memory.max" : "memory.limit_in_bytes");
        least = limit < least ? limit : least;
        char *slash = strrchr(path, '/');
        if (!slash || (size_t)(slash - path) < top)
            break;
        *slash = '\0';
    }
    free(path);
    return least;
}

/* Limit of the process in a hierarchy. A line is "NUMBER:CONTROLLERS:GROUP"; version 2 has no controllers. */
static uint64_t limit_of(const char *root, const struct hierarchy *h, const char *groups)
{
    uint64_t least = UINT64_MAX;
    char *copy = mem_strdup(groups);
    for (char *rest = copy, *line; (line = strsep(&rest, "\n"));) {
        strsep(&line, ":");
        char *controllers = strsep(&line, ":");
        if (!line || (h->second ? *controllers : !lists(controllers, "memory")))
            continue;
        uint64_t limit = least_limit(root, h, line);
        least = limit < least ? limit : least;
    }
    free(copy);
    return least;
}

/* Parses a line "ID PARENT MAJOR:MINOR ROOT PATH OPTIONS [MORE…] - TYPE SOURCE OPTIONS"; modifies it. */
static bool read_mount(char *line, struct hierarchy *out)
{
    enum { ROOT = 3, PATH = 4 };
    char *rest = strstr(line, " - ");
    if (!rest)
        return false;
    *rest = '\0';
    rest += 3;
    for (int i = 0; i <= PATH && line; i++) {
        char *word = strsep(&line, " ");
        out->root = i == ROOT ? word : out->root;
        out->path = i == PATH ? word : out->path;
    }
    char *type = strsep(&rest, " ");
    strsep(&rest, " ");
    out->second = !strcmp(type, "cgroup2");
    return out->root && out->path && (out->second || (!strcmp(type, "cgroup") && rest && lists(rest, "memory")));
}

uint64_t machine_group_limit(const char *root)
{
    uint64_t least = UINT64_MAX;
    char *mounts = read_list(root, "mountinfo"), *groups = read_list(root, "cgroup");
    for (char *rest = mounts, *line; groups && rest && (line = strsep(&rest, "\n"));) {
        struct hierarchy h = {0};
        uint64_t limit = read_mount(line, &h) ? limit_of(root, &h, groups) : UINT64_MAX;
        least = limit < least ? limit : least;
    }
    free(mounts);
    free(groups);
    return least;
}

uint64_t machine_memory_bytes(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    uint64_t all = pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : 0;
    uint64_t limit = machine_group_limit("");
    return limit < all ? limit : all;
}

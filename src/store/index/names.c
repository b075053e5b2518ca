/* SPDX-License-Identifier: MIT */
#include "index/names.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "index/index.h"

/* ---- directories ---- */

static char *real_path(struct arena *a, const char *path)
{
    char *real = realpath(path, NULL), *out = arena_strdup(a, real ? real : path);
    free(real);
    return out;
}

/* Cuts `path` to the directories that it begins with in common with `other`. */
static void cut_to_common(char *path, const char *other)
{
    size_t i = 0, border = 0;
    for (; path[i] && path[i] == other[i]; i++)
        if (path[i] == '/')
            border = i;
    if ((!path[i] && (other[i] == '/' || !other[i])) || (path[i] == '/' && !other[i]))
        border = i;
    path[border] = '\0';
}

static bool is_one_of(const char *s, const char *const *words)
{
    for (; *words; words++)
        if (!strcmp(s, *words))
            return true;
    return false;
}

/* "20261121T013907+0000-20261121T013910+0000-0": a piece of a rotated session. */
static bool is_piece(const char *s)
{
    static const char shape[] = "ddddddddTddddddsdddd-ddddddddTddddddsdddd-d";
    for (size_t i = 0; shape[i]; i++, s++) {
        bool digit = *s >= '0' && *s <= '9', sign = *s == '+' || *s == '-';
        if (shape[i] == 'd' ? !digit : shape[i] == 's' ? !sign : *s != shape[i])
            return false;
    }
    return strspn(s, "0123456789") == strlen(s);
}

/* Takes the last directory away when the tracer made it. */
static bool cut_layout(char *path)
{
    static const char *const layout[] = {"kernel", "ust", "archives", "64-bit", "32-bit", NULL},
                             *const owners[] = {"uid", "pid", NULL};
    char *last = (char *)file_name(path);
    if (last == path || last - 1 == path)
        return false;
    if (is_one_of(last, layout) || is_piece(last)) {
        last[-1] = '\0';
        return true;
    }
    last[-1] = '\0';
    char *above = (char *)file_name(path); /* ust/uid/1000, ust/pid/NAME-123-… */
    if (above > path + 1 && is_one_of(above, owners)) {
        above[-1] = '\0';
        if (!strcmp(file_name(path), "ust"))
            return true;
        above[-1] = '/';
    }
    last[-1] = '/';
    return false;
}

const char *index_trace_dir(struct arena *a, const struct ctf_group *g)
{
    char *path = real_path(a, g->dirs[0]);
    for (size_t i = 1; i < g->n; i++)
        cut_to_common(path, real_path(a, g->dirs[i]));
    while (cut_layout(path))
        ;
    return path;
}

/* ---- names ---- */

/* Begin of the last n directories of a path that ends before `end`; the path's begin when it has not so many. */
static size_t begin_of_last(const char *path, size_t end, size_t n)
{
    while (end > 0 && n > 0) {
        while (end > 0 && path[end - 1] != '/')
            end--;
        if (--n)
            while (end > 0 && path[end - 1] == '/')
                end--;
    }
    return end;
}

static size_t depth(const char *path)
{
    size_t n = 0;
    for (; *path; path++)
        n += *path != '/' && (path[1] == '/' || !path[1]);
    return n;
}

/* Returns the number of trailing directories that all paths share; of each path one remains. */
static size_t common_end(const char *const *paths, size_t n)
{
    size_t common = depth(paths[0]);
    bool differ = false;
    for (size_t i = 0; i < n; i++) {
        size_t d = depth(paths[i]), same = 0, length = strlen(paths[i]), first = strlen(paths[0]);
        while (same < common && same + 1 < d &&
            !strcmp(paths[i] + begin_of_last(paths[i], length, same + 1),
                paths[0] + begin_of_last(paths[0], first, same + 1)))
            same++;
        common = same;
        differ |= strcmp(paths[i], paths[0]) != 0;
    }
    return differ ? common : 0;
}

struct part {
    const char *s;
    size_t n;
};

static struct part part_of(const char *path, size_t dropped, size_t kept)
{
    size_t end = begin_of_last(path, strlen(path), dropped);
    while (dropped && end > 1 && path[end - 1] == '/')
        end--;
    size_t begin = begin_of_last(path, end, kept);
    return (struct part){path + begin, end - begin};
}

static bool is_unique(const char *const *paths, size_t n, size_t i, size_t dropped, size_t kept)
{
    struct part mine = part_of(paths[i], dropped, kept);
    for (size_t k = 0; k < n; k++) {
        struct part other = part_of(paths[k], dropped, kept);
        if (other.n == mine.n && !memcmp(other.s, mine.s, mine.n) && strcmp(paths[k], paths[i]) != 0)
            return false;
    }
    return true;
}

void index_dir_names(struct arena *a, const char *const *dirs, size_t n, const char **names)
{
    size_t dropped = n ? common_end(dirs, n) : 0;
    for (size_t i = 0; i < n; i++) {
        size_t kept = 1, most = depth(dirs[i]) - dropped;
        while (kept < most && !is_unique(dirs, n, i, dropped, kept))
            kept++;
        struct part name = part_of(dirs[i], dropped, kept);
        names[i] = name.n ? arena_strndup(a, name.s, name.n) : "trace";
    }
}

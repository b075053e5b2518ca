/* SPDX-License-Identifier: MIT */
/* The directory of uploads: removal of traces, and of what a killed server left. */
#include "tsp/uploads.h"

#include <dirent.h>
#include <sys/stat.h>

#include "base/file.h"
#include "tsp/sweep.h"

#define OLD_BODY "upload-" /* archives of older servers; a trace may have such a name, too */

static bool is_known(const struct tsp_server *s, const char *path)
{
    for (size_t i = 0; i < s->traces.n; i++)
        if (!strcmp(s->traces.v[i]->path, path))
            return true;
    return false;
}

static bool begins(const char *name, const char *prefix)
{
    return !strncmp(name, prefix, strlen(prefix));
}

static bool is_old_body(const struct tsp_server *s, const char *path)
{
    struct stat is;
    return begins(file_name(path), OLD_BODY) && !lstat(path, &is) && S_ISREG(is.st_mode) && !is_known(s, path);
}

void tsp_uploads_remove_unfinished(struct tsp_server *s)
{
    DIR *d = opendir(s->upload_dir);
    struct arena a = {0};
    for (struct dirent *e; d && (e = readdir(d));) {
        const char *path = arena_printf(&a, "%s/%s", s->upload_dir, e->d_name);
        bool marked = begins(e->d_name, UPLOAD_MARK);
        if (!marked && !begins(e->d_name, UPLOAD_UNPACKED) && !begins(e->d_name, HTTP_BODY_PREFIX) &&
            !is_old_body(s, path))
            continue;
        const char *name = e->d_name + (marked ? sizeof UPLOAD_MARK - 1 : 0),
                   *settled = arena_printf(&a, "%s/%s", s->upload_dir, name);
        if (marked && *name && *name != '.' && !is_known(s, settled)) /* clean_name makes no others */
            tsp_sweep_away(s->sweeper, settled);
        tsp_sweep_away(s->sweeper, path);
    }
    if (d)
        closedir(d);
    arena_fini(&a);
}

void tsp_upload_remove(const struct tsp_server *s, const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) : 0;
    if (s->upload_dir && strlen(s->upload_dir) == n && !strncmp(path, s->upload_dir, n) && !is_known(s, path))
        tsp_sweep_away(s->sweeper, path);
}

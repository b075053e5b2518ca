/* SPDX-License-Identifier: MIT */
/* Uploads: a tar or zip archive of a trace, unpacked below the state directory, then opened like any other. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "tsp/persist.h"
#include "tsp/routes.h"
#include "tsp/sweep.h"
#include "tsp/traces.h"
#include "tsp/unpack.h"
#include "tsp/uploads.h"

enum { MAX_GROWTH = 32, MAX_NAME = 100, MAX_TRIES = 1000 };

/* Makes a name for a directory: letters, digits, dot, dash, underscore; not hidden. */
static const char *clean_name(struct arena *a, const char *asked)
{
    char *name = arena_strndup(a, asked ? file_name(asked) : "", MAX_NAME);
    for (char *p = name; *p; p++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-", *p) ||
            (p == name && *p == '.'))
            *p = '_';
    return *name ? name : "trace";
}

/* Renames the directory to its name, with a number if that is taken. *mark: file to be removed when the trace is
 * known. */
static const char *settle(struct call *c, const char *dir, const char *name, const char **mark)
{
    struct arena *a = c->q->arena;
    for (int i = 0; i < MAX_TRIES; i++) {
        const char *numbered = i ? arena_printf(a, "%s-%d", name, i) : name,
                   *path = arena_printf(a, "%s/%s", c->s->upload_dir, numbered);
        *mark = arena_printf(a, "%s/" UPLOAD_MARK "%s", c->s->upload_dir, numbered);
        int fd = open(*mark, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno == EEXIST)
            continue; /* name is about to be taken by another request */
        if (fd < 0)
            return NULL;
        close(fd);
        if (!mkdir(path, 0777) && !rename(dir, path)) /* replaces the empty directory that is ours */
            return path;
        int why = errno;
        unlink(*mark);
        if (why != EEXIST)
            return NULL;
    }
    return NULL;
}

static bool is_gone(void *request)
{
    return http_gone(request);
}

static bool has_unsaved(struct tsp_server *s)
{
    pthread_mutex_lock(&s->lock);
    bool has = s->unsaved.code != 0;
    pthread_mutex_unlock(&s->lock);
    return has;
}

static void answer_refused(struct call *c, int status, const char *why)
{
    tsp_call_error(c, status, why, status == 413 ? "send it in parts, or open it with --trace-root" : NULL);
}

void tsp_upload_post(struct call *c)
{
    struct tsp_server *s = c->s;
    struct arena *a = c->q->arena;
    if (!s->upload_dir || !c->q->body_file) {
        tsp_call_error(
            c, 501, "Uploads are not taken", "start the server with --state DIR, and without --max-upload 0");
        return;
    }
    char *dir = arena_printf(a, "%s/" UPLOAD_UNPACKED "XXXXXX", s->upload_dir);
    const struct unpack_job job = {.archive = c->q->body_file,
        .dir = dir,
        .most_bytes = s->o.max_upload_bytes * MAX_GROWTH,
        .is_gone = is_gone,
        .arg = c->q,
        .arena = a};
    const char *why = "The upload cannot be stored", *mark, *path = NULL;
    if (!mkdtemp(dir)) {
        tsp_call_error(c, 507, why, NULL);
        return;
    }
    int status = tsp_unpack_archive(&job, &why);
    if (!status && !(path = settle(c, dir, clean_name(a, http_query(c->q, "name")), &mark)))
        status = 507, why = "The upload cannot be stored";
    if (status) {
        tsp_sweep_away(s->sweeper, dir);
        answer_refused(c, status, why);
        return;
    }
    struct tsp_trace_result r = tsp_trace_open(s, a, path, NULL, "", false);
    if (r.status != 200)
        tsp_sweep_away(s->sweeper, path);
    tsp_persist_save(s);
    if (r.status != 200 || !has_unsaved(s))
        unlink(mark); /* a saved trace needs no mark */
    if (r.status != 200) {
        tsp_call_error(c, r.status, r.status == 501 ? "The archive holds no trace" : r.title, r.detail);
        return;
    }
    c->arg[0] = r.uuid;
    tsp_traces_get(c);
}

/* SPDX-License-Identifier: MIT */
/* The server: start, first experiment, stop. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/time.h"
#include "base/wait.h"
#include "tsp/follow.h"
#include "tsp/model.h"
#include "tsp/open.h"
#include "tsp/persist.h"
#include "tsp/routes.h"
#include "tsp/sweep.h"
#include "tsp/traces.h"
#include "tsp/uploads.h"

enum { STOP_SECONDS = 5, MAX_OPEN = 32 };

static int take_state(struct tsp_server *s, struct err *e)
{
    struct arena a = {0};
    const char *dir = s->o.state_dir;
    int rc = file_make_dirs(arena_printf(&a, "%s/uploads", dir), e);
    if (!rc) {
        s->state_lock = open(arena_printf(&a, "%s/lock", dir), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (s->state_lock < 0)
            rc = err_sys(e, "%s/lock", dir);
        else if (flock(s->state_lock, LOCK_EX | LOCK_NB))
            rc = err_set(e, ERR_ARG, "--state %s: another server uses this directory; give each its own", dir);
    }
    if (!rc) {
        s->state_dir = mem_strdup(dir);
        s->upload_dir = realpath(arena_printf(&a, "%s/uploads", dir), NULL);
        rc = tsp_persist_load(s, e);
        if (!rc)
            rc = s->upload_dir ? tsp_sweep_start(s->upload_dir, &s->sweeper, e) : err_sys(e, "%s/uploads", dir);
        if (!rc)
            tsp_uploads_remove_unfinished(s);
    }
    if (rc && rc != ERR_ARG && rc != ERR_FORMAT)
        err_wrap(e, "--state: a directory is needed that this user can write");
    arena_fini(&a);
    return rc;
}

static int take_root(struct tsp_server *s, struct err *e)
{
    const char *dir = s->o.trace_root;
    struct stat st;
    if (!(s->root = realpath(dir, NULL)) || stat(s->root, &st))
        return err_sys(e, "--trace-root %s", dir);
    if (!S_ISDIR(st.st_mode))
        return err_set(e, ERR_ARG, "--trace-root %s: give a directory", dir);
    file_confine(s->root); /* files within traces, too */
    return 0;
}

/* Splits NAME=PATH as the index does: a name has no slash. */
static const char *split_host(struct arena *a, const char *arg, const char **host)
{
    const char *eq = strchr(arg, '='), *slash = strchr(arg, '/');
    *host = NULL;
    if (!eq || eq == arg || (slash && slash < eq))
        return arg;
    *host = arena_strndup(a, arg, (size_t)(eq - arg));
    return eq + 1;
}

/* Adds a TRACE argument as a trace, and returns its uuid. */
static int add_given(struct tsp_server *s, struct arena *a, const char *arg, char uuid[UUID_TEXT], struct err *e)
{
    const char *host, *path = split_host(a, arg, &host);
    if (access(path, F_OK))
        return err_sys(e, "%s", path);
    char *absolute = path[0] == '/' ? NULL : getcwd(NULL, 0);
    struct tsp_trace_result r = tsp_trace_open(
        s, a, absolute ? arena_printf(a, "%s/%s", absolute, path) : path, host, "", true);
    free(absolute);
    if (r.status != 200)
        return r.detail ? err_set(e, ERR_NOTFOUND, "%s", r.detail)
                        : err_set(e, ERR_NOTFOUND, "%s: %s; name a directory that holds a trace", path, r.title);
    memcpy(uuid, r.uuid, UUID_TEXT);
    struct tsp_trace *t = tsp_model_trace(s, uuid);
    if (host && !t->host)
        t->host = mem_strdup(host);
    return 0;
}

/* Allows the given traces, also where stored state refers to them. */
static void allow_given(struct tsp_server *s)
{
    struct arena a = {0};
    const char *host;
    for (const char *const *t = s->o.traces; t && *t; t++) {
        char *real = file_real_path(split_host(&a, *t, &host));
        if (real)
            vec_push(&s->given, real);
    }
    arena_fini(&a);
}

/* Adds the experiment of the given TRACEs. Its name gets a number if another experiment has that name. */
static void add_first_experiment(struct tsp_server *s, struct arena *a, const char *const *uuids, size_t n)
{
    const char *path = tsp_model_trace(s, uuids[0])->path,
               *wanted = s->o.experiment_name ? s->o.experiment_name : strrchr(path, '/') + 1, *name = wanted;
    char uuid[UUID_TEXT];
    pthread_mutex_lock(&s->lock);
    for (int i = 1;; i++) {
        tsp_uuid_of_name(name, uuid);
        const struct tsp_experiment *x = tsp_model_experiment(s, uuid);
        bool same = x && x->traces.n == n;
        for (size_t k = 0; same && k < n; k++)
            same = !strcmp(x->traces.v[k], uuids[k]);
        if (!x) {
            tsp_model_add_experiment(s, name, uuids, n);
            tsp_persist_note(s, PERSIST_EXPERIMENT, uuid);
        }
        if (!x || same)
            break;
        name = arena_printf(a, "%s(%d)", wanted, i);
    }
    tsp_open_wanted(s, uuid);
    pthread_mutex_unlock(&s->lock);
    tsp_persist_save(s);
}

static int open_given(struct tsp_server *s, struct err *e)
{
    struct arena a = {0};
    VEC(const char *) uuids = {0};
    VEC(const char *) problems = {0};
    int rc = 0;
    for (const char *const *t = s->o.traces; t && *t; t++) {
        char *uuid = arena_alloc(&a, UUID_TEXT);
        bool twice = false;
        struct err why = {0};
        int bad = add_given(s, &a, *t, uuid, &why);
        if (bad) {
            vec_push(&problems, (const char *)arena_strdup(&a, why.text));
            rc = rc ? rc : err_set(e, why.code, "%s", why.text);
            continue;
        }
        for (size_t i = 0; i < uuids.n; i++)
            twice |= !strcmp(uuids.v[i], uuid);
        if (!twice)
            vec_push(&uuids, (const char *)uuid);
    }
    if (uuids.n) {
        rc = 0;
        for (size_t i = 0; i < problems.n && s->o.left_out; i++)
            s->o.left_out(problems.v[i]);
        add_first_experiment(s, &a, uuids.v, uuids.n);
    }
    vec_free(&uuids);
    vec_free(&problems);
    arena_fini(&a);
    return rc;
}

static void free_server(struct tsp_server *s)
{
    tsp_sweep_stop(s->sweeper);
    pthread_mutex_lock(&s->lock);
    tsp_model_free(s);
    pthread_mutex_unlock(&s->lock);
    for (size_t i = 0; i < s->given.n; i++)
        free(s->given.v[i]);
    vec_free(&s->given);
    if (s->state_lock >= 0)
        close(s->state_lock);
    if (s->follow_wake >= 0)
        close(s->follow_wake);
    vec_free(&s->changed_things);
    pthread_mutex_destroy(&s->saving);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->changed);
    free(s->root);
    free(s->state_dir);
    free(s->upload_dir);
    free(s);
}

/* Waits a little for experiments that are being opened. True: all are finished. */
static bool await_openers(struct tsp_server *s)
{
    int64_t end = time_monotonic_ns() + STOP_SECONDS * INT64_C(1000000000);
    pthread_mutex_lock(&s->lock);
    s->stopping = true;
    pthread_mutex_unlock(&s->lock);
    tsp_follower_stop(s);
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->experiments.n; i++) {
        if (s->experiments.v[i]->open)
            tsp_opening_abandon(s->experiments.v[i]->open);
        if (s->experiments.v[i]->next)
            tsp_opening_abandon(s->experiments.v[i]->next);
    }
    while (s->openers && wait_until(&s->changed, &s->lock, end))
        ;
    bool done = !s->openers;
    pthread_mutex_unlock(&s->lock);
    tsp_persist_save(s);
    return done;
}

static int start_http(struct tsp_server *s, struct err *e)
{
    struct http_options h = s->o.http;
    h.public_path = "/tsp/api/health";
    h.token_prefix = "/tsp";
    h.is_small = tsp_routes_small;
    h.give_memory = tsp_opening_give_memory;
    if (s->upload_dir && s->o.max_upload_bytes) {
        h.upload_path = "/tsp/api/upload";
        h.upload_dir = s->upload_dir;
        h.max_upload_bytes = s->o.max_upload_bytes;
    }
    return http_server_start(&h, tsp_routes_handle, s, &s->http, e);
}

int tsp_server_start(const struct tsp_options *o, struct tsp_server **out, struct err *e)
{
    struct tsp_server *s = mem_zalloc(sizeof *s);
    int rc = 0;
    json_set_alloc_funcs(mem_alloc, free); /* mem_alloc retries where malloc fails at once */
    s->o = *o;
    s->o.max_open = o->max_open ? o->max_open : MAX_OPEN;
    s->state_lock = s->follow_wake = -1;
    pthread_mutex_init(&s->saving, NULL);
    pthread_mutex_init(&s->lock, NULL);
    wait_init(&s->changed);
    allow_given(s);
    if (o->trace_root)
        rc = take_root(s, e);
    if (!rc && o->state_dir)
        rc = take_state(s, e);
    if (!rc && !o->frozen) /* follower looks at the loaded state */
        rc = tsp_follower_start(s, e);
    if (!rc)
        rc = open_given(s, e);
    if (!rc)
        rc = start_http(s, e);
    if (rc) {
        if (await_openers(s))
            free_server(s);
        return rc;
    }
    *out = s;
    return 0;
}

const char *tsp_server_address(const struct tsp_server *s)
{
    return http_server_address(s->http);
}

bool tsp_server_stop(struct tsp_server *s)
{
    if (!s)
        return true;
    http_server_stop(s->http);
    if (!await_openers(s))
        return false;
    free_server(s);
    return true;
}

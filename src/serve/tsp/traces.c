/* SPDX-License-Identifier: MIT */
/* Traces: which paths may be opened, and the operations on them. */
#include "tsp/traces.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "tsp/persist.h"
#include "tsp/routes.h"
#include "tsp/uploads.h"

/* ---- paths ---- */

bool tsp_trace_is_allowed(const struct tsp_server *s, const char *real)
{
    if (file_is_below(real, s->root) || file_is_below(real, s->upload_dir))
        return true;
    for (size_t i = 0; i < s->given.n; i++)
        if (file_is_below(real, s->given.v[i]))
            return true;
    return false;
}

/* Returns the path of a URI: a file: URI, or a path; relative ones are below the trace root. */
static const char *path_of_uri(const struct tsp_server *s, struct arena *a, const char *uri)
{
    if (!strncmp(uri, "file://", 7))
        uri = strncmp(uri + 7, "localhost/", 10) ? uri + 7 : uri + 16;
    return uri[0] == '/' || !s->root ? uri : arena_printf(a, "%s/%s", s->root, uri);
}

static bool type_known(const char *type)
{
    static const char *const known[] = {"", "ANY", "ctf", "org.eclipse.linuxtools.lttng2.kernel.tracetype",
        "org.eclipse.linuxtools.lttng2.ust.tracetype", "org.eclipse.linuxtools.tmf.ui.type.ctf",
        "org.eclipse.tracecompass.analysis.os.linux.core.trace.generic.kernel"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(type, known[i]))
            return true;
    return false;
}

/* Returns 0 if there is a trace at the path, else the HTTP status. */
static int look_at(const struct tsp_server *s, const char *real, const char **detail, struct arena *a)
{
    struct err e = {0};
    struct stat st;
    if (stat(real, &st))
        return 404;
    if (access(real, R_OK | (S_ISDIR(st.st_mode) ? X_OK : 0)))
        return 406;
    if (s->o.backend.look(s->o.backend.arg, real, &e)) {
        *detail = arena_strdup(a, e.text);
        return e.code == ERR_IO ? 406 : 501;
    }
    return 0;
}

/* ---- opening ---- */

static size_t parent_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) : 0;
}

static bool same_type(const char *a, const char *b)
{
    return !*a || !*b || !strcmp(a, "ANY") || !strcmp(b, "ANY") || !strcmp(a, b);
}

/* Adds a trace. A name is unique in the trace's folder; the same trace again is returned. With the lock held. */
static struct tsp_trace_result add(struct tsp_server *s, const char *real, const char *name, const char *type)
{
    struct tsp_trace_result r = {.status = 200};
    size_t parent = parent_length(real);
    for (size_t i = 0; i < s->traces.n; i++) {
        struct tsp_trace *t = s->traces.v[i];
        if (strcmp(t->name, name) || parent_length(t->path) != parent || strncmp(t->path, real, parent))
            continue;
        memcpy(r.uuid, t->uuid, UUID_TEXT);
        if (strcmp(t->path, real) || !same_type(t->type, type)) {
            r.status = 409;
            r.title = "The trace (name) already exists and both differ";
        }
        return r;
    }
    memcpy(r.uuid, tsp_model_add_trace(s, name, real, type)->uuid, UUID_TEXT);
    tsp_persist_note(s, PERSIST_TRACE, r.uuid);
    return r;
}

static struct tsp_trace_result failed(int status, const char *title, const char *detail)
{
    return (struct tsp_trace_result){.status = status, .title = title, .detail = detail};
}

struct tsp_trace_result tsp_trace_open(
    struct tsp_server *s, struct arena *a, const char *uri, const char *name, const char *type, bool trusted)
{
    const char *path = path_of_uri(s, a, uri), *detail = NULL;
    char *found = file_real_path(path);
    if (!found && errno == ENOMEM)
        return failed(503, "The server is out of memory", "try again");
    char *real = found ? arena_strdup(a, found) : NULL;
    int unreadable = !found && errno == EACCES;
    free(found);
    /* Paths elsewhere are reported as absent, so that nobody learns what exists. */
    if (!real || (!trusted && !tsp_trace_is_allowed(s, real)))
        return failed(unreadable && trusted ? 406 : 404, arena_printf(a, "No trace at %s", uri),
            s->root ? arena_printf(a, "traces are opened below %s and where the server was told to", s->root)
                    : "only the traces that the server was started with can be opened; start it with --trace-root DIR "
                      "to open others");
    if (!type_known(type))
        return failed(
            501, arena_printf(a, "Trace type not supported: %s", type), "leave typeID out; CTF traces are recognised");
    int status = look_at(s, real, &detail, a);
    if (status)
        return failed(status,
            status == 404       ? arena_printf(a, "No trace at %s", uri)
                : status == 406 ? "The trace cannot be read"
                                : "Trace type not supported",
            detail);
    if (!name || !*name)
        name = real + parent_length(real) + 1;
    pthread_mutex_lock(&s->lock);
    struct tsp_trace_result r = add(s, real, *name ? name : "trace", type);
    pthread_mutex_unlock(&s->lock);
    return r;
}

/* ---- operations ---- */

void tsp_traces_list(struct call *c)
{
    struct text t = {.fd = -1};
    struct json j = JSON_TO(&t);
    pthread_mutex_lock(&c->s->lock);
    json_begin_array(&j);
    for (size_t i = 0; i < c->s->traces.n; i++)
        tsp_model_write_trace(&j, c->s->traces.v[i], NULL, "CLOSED");
    json_end_array(&j);
    pthread_mutex_unlock(&c->s->lock);
    tsp_call_json(c, 200, &t);
}

/* Sends the trace; conflict: as the other side of a 409. */
static void answer_trace(struct call *c, const char *uuid, const char *conflict)
{
    struct text t = {.fd = -1};
    struct json j = JSON_TO(&t);
    pthread_mutex_lock(&c->s->lock);
    struct tsp_trace *trace = tsp_model_trace(c->s, uuid);
    if (trace && conflict) {
        json_begin_object(&j);
        json_kv_string(&j, "title", conflict);
        json_kv_string(&j, "code", tsp_code_name(TSP_CODE_CONFLICT));
        json_key(&j, "trace");
        tsp_model_write_trace(&j, trace, NULL, "CLOSED");
        json_end_object(&j);
    } else if (trace) {
        tsp_model_write_trace(&j, trace, NULL, "CLOSED");
    }
    pthread_mutex_unlock(&c->s->lock);
    if (trace)
        tsp_call_json(c, conflict ? 409 : 200, &t);
    else
        tsp_call_error(c, 404, "No such trace", NULL);
}

void tsp_traces_post(struct call *c)
{
    static const char *const keys[] = {"uri", "name", "typeID"};
    const char *uri = tsp_string(c->parameters, "uri"), *name = tsp_string(c->parameters, "name"),
               *type = tsp_string(c->parameters, "typeID");
    for (int i = 0; i < 3; i++) {
        const json_t *v = json_object_get(c->parameters, keys[i]);
        if (i == 0 ? !uri || !*uri : v && !json_is_null(v) && !json_is_string(v)) {
            tsp_call_error(c, 400,
                arena_printf(c->q->arena, v ? "Invalid query parameters: %s" : "Missing query parameters: %s", keys[i]),
                NULL);
            return;
        }
    }
    struct tsp_trace_result r = tsp_trace_open(c->s, c->q->arena, uri, name, type ? type : "", false);
    if (r.status == 200 || r.status == 409)
        answer_trace(c, r.uuid, r.status == 409 ? r.title : NULL);
    else
        tsp_call_error(c, r.status, r.title, r.detail);
}

void tsp_traces_get(struct call *c)
{
    answer_trace(c, c->arg[0], NULL);
}

static bool is_used(const struct tsp_server *s, const char *uuid)
{
    for (size_t i = 0; i < s->experiments.n; i++)
        for (size_t k = 0; k < s->experiments.v[i]->traces.n; k++)
            if (!strcasecmp(s->experiments.v[i]->traces.v[k], uuid))
                return true;
    return false;
}

void tsp_traces_delete(struct call *c)
{
    struct text t = {.fd = -1};
    struct json j = JSON_TO(&t);
    pthread_mutex_lock(&c->s->lock);
    struct tsp_trace *trace = tsp_model_trace(c->s, c->arg[0]);
    bool used = trace && is_used(c->s, trace->uuid);
    if (trace && !used) {
        const char *path = arena_strdup(c->q->arena, trace->path);
        tsp_model_write_trace(&j, trace, NULL, "CLOSED");
        tsp_persist_note(c->s, PERSIST_TRACE, trace->uuid);
        tsp_model_remove_trace(c->s, trace);
        tsp_upload_remove(c->s, path);
    }
    pthread_mutex_unlock(&c->s->lock);
    if (used)
        answer_trace(c, c->arg[0], "The trace is in use by at least one experiment");
    else if (trace)
        tsp_call_json(c, 200, &t);
    else
        tsp_call_error(c, 404, "No such trace", NULL);
}

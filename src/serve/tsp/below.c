/* SPDX-License-Identifier: MIT */
/* Directories below the trace root that can be opened, one level at a time. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/order.h"
#include "tsp/routes.h"
#include "tsp/traces.h"

enum { MOST_SEEN = 2000, MOST_TOLD = 500 };

struct names {
    VEC(char *) all;
    bool more;
};

/* Reads the names of subdirectories; hidden ones hold no traces. */
static int read_names(const char *path, struct arena *a, struct names *n)
{
    DIR *d = opendir(path);
    if (!d)
        return errno;
    for (const struct dirent *e; (e = readdir(d));) {
        if (e->d_name[0] == '.' || (e->d_type != DT_DIR && e->d_type != DT_LNK && e->d_type != DT_UNKNOWN))
            continue;
        if (n->all.n == MOST_SEEN) {
            n->more = true;
            break;
        }
        vec_push(&n->all, arena_strdup(a, e->d_name));
    }
    closedir(d);
    if (n->all.n)
        qsort(n->all.v, n->all.n, sizeof *n->all.v, order_strings);
    return 0;
}

/* `inner`: it holds other directories, not only the streams of one trace. */
static void write_one(struct json *j, const char *name, const char *real, bool inner)
{
    json_begin_object(j);
    json_kv_string(j, "name", name);
    json_kv_string(j, "path", real);
    json_kv_bool(j, "directory", inner);
    json_end_object(j);
}

static void write_traces(struct call *c, struct json *j, const char *dir, struct names *n)
{
    struct tsp_server *s = c->s;
    size_t told = 0;
    for (size_t i = 0; i < n->all.n && told < MOST_TOLD && !http_gone(c->q); i++) {
        struct err ignored = {0};
        char *real = file_real_path(arena_printf(c->q->arena, "%s/%s", dir, n->all.v[i]));
        /* Links to other places are skipped. */
        if (real && tsp_trace_is_allowed(s, real) && !s->o.backend.look(s->o.backend.arg, real, &ignored)) {
            write_one(j, n->all.v[i], real, access(arena_printf(c->q->arena, "%s/metadata", real), F_OK) != 0);
            n->more |= ++told == MOST_TOLD && i + 1 < n->all.n;
        }
        free(real);
    }
}

void tsp_traces_below(struct call *c)
{
    struct tsp_server *s = c->s;
    const char *path = http_query(c->q, "path");
    struct text t = {.fd = -1};
    struct json j = JSON_TO(&t);
    struct names n = {0};
    if (!s->root) {
        tsp_call_error(c, 404, "No traces can be chosen", "start the server with --trace-root DIR");
        return;
    }
    char *real = file_real_path(arena_printf(c->q->arena, "%s/%s", s->root, path ? path : ""));
    if (!real || !file_is_below(real, s->root) || read_names(real, c->q->arena, &n)) {
        tsp_call_errorf(c, 404, "No directory %s below the trace root", path ? path : "");
    } else {
        json_begin_object(&j);
        json_kv_string(&j, "root", s->root);
        const char *below = real + strlen(s->root);
        json_kv_string(&j, "path", *below == '/' ? below + 1 : below);
        json_key(&j, "traces");
        json_begin_array(&j);
        write_traces(c, &j, real, &n);
        json_end_array(&j);
        json_kv_bool(&j, "more", n.more);
        json_end_object(&j);
        tsp_call_json(c, 200, &t);
    }
    vec_free(&n.all);
    free(real);
}

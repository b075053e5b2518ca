/* SPDX-License-Identifier: MIT */
/* HTTP endpoint: routes, start, stop. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/file.h"
#include "base/pool.h"
#include "base/wait.h"
#include "coord/call.h"
#include "coord/experiments.h"
#include "coord/model_cache.h"
#include "coord/output_cache.h"
#include "coord/table.h"
#include "coord/admission.h"

enum { HAS_BODY = 1, CHANGES = 2, OF_EXPERIMENT = 4, HANDLERS = 256, ANSWERS_BYTES = 512 << 20 };

static coord_run refuse_upload, refuse_configurations, refuse_type, no_config_types;

/* First members are those of struct tsp_route. */
static const struct route {
    const char *method, *pattern;
    coord_run *run;
    int flags;
} routes[] = {
    {"GET", "traces", coord_traces_list, 0},
    {"POST", "traces", coord_traces_post, HAS_BODY | CHANGES},
    {"GET", "traces/*", coord_traces_get, 0},
    {"DELETE", "traces/*", coord_traces_delete, CHANGES},
    {"GET", "experiments", coord_experiments_list, 0},
    {"POST", "experiments", coord_experiments_post, HAS_BODY | CHANGES},
    {"GET", "experiments/*", coord_experiments_get, 0},
    {"DELETE", "experiments/*", coord_experiments_delete, CHANGES},
    {"GET", "experiments/*/bookmarks", coord_bookmarks_list, OF_EXPERIMENT},
    {"POST", "experiments/*/bookmarks", coord_bookmarks_post, HAS_BODY | CHANGES | OF_EXPERIMENT},
    {"GET", "experiments/*/bookmarks/*", coord_bookmarks_get, OF_EXPERIMENT},
    {"PUT", "experiments/*/bookmarks/*", coord_bookmarks_put, HAS_BODY | CHANGES | OF_EXPERIMENT},
    {"DELETE", "experiments/*/bookmarks/*", coord_bookmarks_delete, CHANGES | OF_EXPERIMENT},
    {"GET", "experiments/*/outputs", coord_outputs_list, OF_EXPERIMENT},
    {"GET", "experiments/*/outputs/markerSets", coord_marker_sets, OF_EXPERIMENT},
    {"POST", "experiments/*/outputs/timeGraph/*/tree", coord_analysis_tree, HAS_BODY | OF_EXPERIMENT},
    {"POST", "experiments/*/outputs/timeGraph/*/states", coord_analysis_states, HAS_BODY | OF_EXPERIMENT},
    {"POST", "experiments/*/outputs/timeGraph/*/arrows", coord_analysis_arrows, HAS_BODY | OF_EXPERIMENT},
    {"POST", "experiments/*/outputs/timeGraph/*/tooltip", coord_analysis_tooltip, HAS_BODY | OF_EXPERIMENT},
    {"POST", "experiments/*/outputs/XY/*/tree", coord_analysis_tree, HAS_BODY | OF_EXPERIMENT},
    {"POST", "experiments/*/outputs/XY/*/xy", coord_analysis_xy, HAS_BODY | OF_EXPERIMENT},
    {"POST", "experiments/*/outputs/genericXY/*/tree", coord_analysis_tree, HAS_BODY | OF_EXPERIMENT},
    {"POST", "experiments/*/outputs/genericXY/*/xy", coord_analysis_xy, HAS_BODY | OF_EXPERIMENT},
    {"POST", "experiments/*/outputs/data/*/tree", coord_analysis_tree, HAS_BODY | OF_EXPERIMENT},
    {"POST", "experiments/*/outputs/table/*/columns", coord_table_columns, HAS_BODY | OF_EXPERIMENT},
    {"POST", "experiments/*/outputs/table/*/lines", coord_table_lines, HAS_BODY | OF_EXPERIMENT},
    {"POST", "experiments/*/outputs/*/style", coord_analysis_style, HAS_BODY | OF_EXPERIMENT},
    {"GET", "experiments/*/outputs/*/annotations", coord_analysis_categories, OF_EXPERIMENT},
    {"POST", "experiments/*/outputs/*/annotations", coord_analysis_annotations, HAS_BODY | OF_EXPERIMENT},
    {"GET", "experiments/*/outputs/*/configTypes", coord_outputs_list, OF_EXPERIMENT},
    {"GET", "experiments/*/outputs/*/configTypes/*", coord_outputs_pass, OF_EXPERIMENT},
    {"GET", "experiments/*/outputs/*", coord_outputs_pass, OF_EXPERIMENT},
    {"POST", "experiments/*/outputs/*", coord_outputs_derive, HAS_BODY | CHANGES | OF_EXPERIMENT},
    {"DELETE", "experiments/*/outputs/*/*", coord_outputs_pass, CHANGES | OF_EXPERIMENT},
    {"GET", "config/types", no_config_types, 0},
    {"GET", "config/types/*", refuse_type, 0},
    {"POST", "config/types/*", refuse_configurations, CHANGES},
    {"GET", "config/types/*/configs", refuse_type, 0},
    {"POST", "config/types/*/configs", refuse_configurations, CHANGES},
    {"POST", "upload", refuse_upload, CHANGES},
};
enum { N_ROUTES = sizeof routes / sizeof *routes };

/* ---- unsupported operations ---- */

static void refuse_upload(struct coord_call *c)
{
    coord_error(c, 501, "A coordinator keeps no traces", "upload it to the server that shall keep it");
}

static void refuse_type(struct coord_call *c)
{
    coord_error(
        c, 404, "No such configuration type", "a coordinator keeps no configurations: ask the servers themselves");
}

static void refuse_configurations(struct coord_call *c)
{
    if (!tsp_config_type_known(c->request.arg[0])) {
        refuse_type(c);
        return;
    }
    coord_error(c, 501, "A coordinator keeps no configurations", "make it on the servers themselves");
}

static void no_config_types(struct coord_call *c)
{
    struct text t = {.fd = -1};
    TEXT_PUT(&t, "[]");
    coord_reply(c, 200, &t);
}

/* ---- status ---- */

/* Reports UP as long as any server may answer. */
static void send_health(struct coord_call *c)
{
    struct text t = {.fd = -1};
    struct json j = JSON_TO(&t);
    bool up = false;
    for (size_t i = 0; i < c->request.n_servers; i++)
        up |= !coord_node_is_away(c->request.servers[i]);
    json_begin_object(&j);
    json_kv_string(&j, "status", up ? "UP" : "DOWN");
    json_end_object(&j);
    coord_reply(c, up ? 200 : 503, &t);
}

static void send_identity(struct coord_call *c)
{
    struct text t = {.fd = -1};
    struct json j = JSON_TO(&t);
    struct utsname u = {0};
    const char *version = c->c->o.version ? c->c->o.version : "0";
    uname(&u);
    json_begin_object(&j);
    json_kv_string(&j, "version", version);
    json_kv_string(&j, "buildTime", version);
    json_kv_string(&j, "os", u.sysname);
    json_kv_string(&j, "osArch", u.machine);
    json_kv_string(&j, "osVersion", u.release);
    json_kv_i64(&j, "cpuCount", pool_cpus());
    json_kv_i64(&j, "maxMemory", 0);
    json_kv_string(&j, "productId", "weft");
    json_kv_string(&j, "launcherName", "weft coordinate");
    json_kv_string(&j, "tspVersion", "0.6.0");
    json_kv_bool(&j, "codes", true);
    json_kv_bool(&j, "cluster", c->c->o.finder && c->c->o.finder->status); /* route /cluster exists */
    json_key(&j, "opens");
    json_begin_object(&j);
    json_kv_bool(&j, "uploads", false);
    json_end_object(&j);
    json_end_object(&j);
    coord_reply(c, 200, &t);
}

/* Extension of the protocol: the servers, and which are away. */
static void send_servers(struct coord_call *c)
{
    static const char *const stages[] = {"UNKNOWN", "UP"};
    struct text t = {.fd = -1};
    struct json j = JSON_TO(&t);
    json_begin_array(&j);
    for (size_t i = 0; i < c->request.n_servers; i++) {
        struct node *n = c->request.servers[i];
        json_begin_object(&j);
        json_kv_string(&j, "name", n->is->name);
        json_kv_string(&j, "url", coord_node_url(n, c->arena));
        bool away = coord_node_is_away(n);
        json_kv_string(&j, "status", away ? "AWAY" : stages[atomic_load(&n->stage) == NODE_THERE]);
        if (away)
            json_kv_string(&j, "statusMessage", coord_node_why(n, c->arena));
        json_kv_bool(&j, "cluster", atomic_load(&n->in_cluster)); /* continues critical paths on other nodes */
        json_end_object(&j);
    }
    json_end_array(&j);
    coord_reply(c, 200, &t);
}

/* Extension of the protocol: reports of the cluster's nodes about themselves. */
static void send_cluster(struct coord_call *c)
{
    const struct coord_finder *f = c->c->o.finder;
    struct text t = {.fd = -1};
    struct err e = {0};
    if (!f || !f->status)
        coord_error(c, 404, "No such resource", "the servers are no nodes of a cluster: start it with --cluster URL");
    else if (f->status(f->arg, &t, &e))
        coord_error(c, 503, "The cluster does not answer", e.text);
    else
        coord_reply(c, 200, &t);
    text_fini(&t);
}

static bool send_self(struct coord_call *c, const struct tsp_path *path)
{
    static const struct {
        const char *path;
        coord_run *run;
    } known[] = {
        {"health", send_health}, {"identifier", send_identity}, {"servers", send_servers}, {"cluster", send_cluster}};
    for (size_t i = 0; path->n == 1 && i < sizeof known / sizeof *known; i++) {
        if (strcmp(path->part[0], known[i].path) != 0)
            continue;
        if (tsp_method_is(c->q, "GET")) {
            known[i].run(c);
        } else {
            http_header(c->q, "Allow", "GET");
            coord_error(c, 405, "Method not allowed", NULL);
        }
        return true;
    }
    return false;
}

/* ---- dispatch ---- */

static bool take_body(struct coord_call *c)
{
    const char *title, *detail;
    int status = tsp_body(c->q, &c->request.body, &c->request.parameters, &title, &detail);
    if (status)
        coord_error(c, status, title, detail);
    return !status;
}

static uint64_t magnitude(uint64_t v)
{
    return v ? 64 - (uint64_t)__builtin_clzll(v) : 0;
}

/* Returns the kind of a question: its subject, and the magnitude of its size. */
static uint64_t kind_of(const struct coord_call *c)
{
    int64_t times = 0;
    coord_integer(json_object_get(json_object_get(c->request.parameters, "requested_timerange"), "nbTimes"), &times);
    const uint64_t of[] = {
        map_hash(c->request.path, strlen(c->request.path)), magnitude(c->q->body_bytes), magnitude((uint64_t)times)};
    return map_hash(of, sizeof of);
}

static void run_admitted(struct coord_call *c, const struct route *r)
{
    struct coord_admitted admitted;
    if (coord_admission_begin(c->c->admission, c->q, kind_of(c), &admitted))
        r->run(c);
    coord_admission_end(c->c->admission, &admitted, c->outcome.held, c->outcome.replied && !http_was_gone(c->q));
}

static void run(struct coord_call *c, const struct route *r)
{
    if (c->q->only_asks && r->flags & CHANGES)
        coord_error(c, 403, "Pages of other sites may ask, but not change anything",
            "start the coordinator with --cors and this page's origin, which then may");
    else if ((!(r->flags & OF_EXPERIMENT) || coord_members_find(c, c->request.arg[0])) &&
        (!(r->flags & HAS_BODY) || take_body(c)))
        run_admitted(c, r);
    if (!c->outcome.replied)
        coord_error(c, 503, "The request ended before its answer was there", NULL);
    json_decref(c->request.parameters);
    json_decref(c->request.body);
    vec_free(&c->outcome.missing);
}

static const uint64_t *keys_now(struct coordinator *k, struct arena *a)
{
    size_t n = atomic_load(&k->n); /* nodes are never fewer than in nodes_now before */
    uint64_t *keys = arena_new(a, uint64_t, n + 1);
    for (size_t i = 0; i < n; i++)
        keys[i] = atomic_load(&k->nodes[i].key);
    return keys;
}

/* Returns the header Via with this coordinator added; NULL: the question has been here before. */
static const char *via_from_here(struct coordinator *k, struct http_request *q)
{
    const char *before = http_request_header(q, "Via");
    if (before && strstr(before, k->id))
        return NULL;
    return arena_printf(q->arena, "Via: %s%s1.1 weft-%s", before ? before : "", before ? ", " : "", k->id);
}

static void route(struct coordinator *k, struct http_request *q, const struct tsp_path *path)
{
    struct coord_call c = {
        .c = k, .q = q, .arena = q->arena, .request = {.arena = q->arena, .path = q->path}, .outcome.arena = q->arena};
    const char *title;
    int status;
    c.request.via = via_from_here(k, q);
    c.request.n_servers = coord_nodes_now(k, q->arena, &c.request.servers);
    c.request.keys = keys_now(k, q->arena);
    if (send_self(&c, path))
        return;
    if (!c.request.via) {
        coord_error(
            &c, 508, "Coordinators ask each other in a circle", "take this one off its own list of servers, or theirs");
        return;
    }
    int found = tsp_route_find(q, path, routes, N_ROUTES, sizeof *routes, c.request.arg, &status, &title);
    if (found >= 0)
        run(&c, &routes[found]);
    else
        coord_error(&c, status, title, NULL);
}

/* Returns whether a part of the path is . or .., which servers behind this coordinator may resolve to another path. */
static bool has_dots(const struct tsp_path *path)
{
    bool has = false;
    for (size_t i = 0; i < path->n; i++)
        has |= !strcmp(path->part[i], ".") || !strcmp(path->part[i], "..");
    return has;
}

static void handle(void *coordinator, struct http_request *q)
{
    struct tsp_path path;
    if (tsp_path_of(q, &path)) {
        if (!has_dots(&path)) {
            route(coordinator, q, &path);
            return;
        }
        struct coord_call c = {.c = coordinator, .q = q};
        coord_error(&c, 400, "A part of the path is . or ..", "servers would take it for another path");
    } else if (tsp_is_for_viewer(q)) {
        tsp_serve_viewer(q);
    } else {
        struct coord_call c = {.c = coordinator, .q = q};
        coord_error(&c, 404, "No such resource", NULL);
    }
}

/* ---- start and stop ---- */

static int take_state(struct coordinator *c, struct err *e)
{
    struct arena a = {0};
    const char *dir = c->o.state_dir;
    int rc = dir ? file_make_dirs(dir, e) : 0;
    if (!rc && dir) {
        const char *lock = arena_printf(&a, "%s/lock", dir);
        c->state_lock = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (c->state_lock < 0)
            rc = err_sys(e, "--state: %s", lock);
        else if (flock(c->state_lock, LOCK_EX | LOCK_NB))
            rc = err_set(e, ERR_ARG, "--state %s: another server uses this directory; give each its own", dir);
    }
    if (!rc && dir)
        rc = coord_ids_keep_in(c->ids, arena_printf(&a, "%s/ids", dir), e);
    if (!rc && dir)
        rc = coord_versions_keep_in(c->versions, arena_printf(&a, "%s/experiments", dir), e);
    if (!rc)
        rc = coord_bookmarks_open(dir ? arena_printf(&a, "%s/bookmarks.json", dir) : NULL, &c->bookmarks, e);
    arena_fini(&a);
    return rc;
}

static void free_all(struct coordinator *c)
{
    coord_nodes_stop(c);
    http_client_stop(c->client);
    http_client_stop(c->probing);
    coord_bookmarks_close(c->bookmarks);
    coord_versions_free(c->versions);
    coord_output_cache_free(c->output_cache);
    coord_positions_free(c->positions);
    coord_models_free(c->models);
    coord_line_cache_free(c->line_cache);
    coord_admission_free(c->admission);
    coord_ids_free(c->ids);
    if (c->state_lock >= 0)
        close(c->state_lock);
    pthread_mutex_destroy(&c->lock);
    pthread_cond_destroy(&c->changed);
    free(c);
}

int coord_start(const struct coord_options *o, struct coordinator **out, struct err *e)
{
    struct coordinator *c = mem_zalloc(sizeof *c);
    struct http_options h = o->http;
    struct http_client_options client = {0};
    json_set_alloc_funcs(mem_alloc, free); /* mem_alloc retries where malloc fails at once */
    c->o = *o;
    c->state_lock = -1;
    c->o.answers_bytes = client.max_held_bytes = o->answers_bytes ? o->answers_bytes : ANSWERS_BYTES;
    tsp_uuid_random(c->id);
    c->ids = coord_ids_new();
    c->versions = coord_versions_new();
    c->output_cache = coord_output_cache_new();
    c->positions = coord_positions_new();
    c->models = coord_models_new();
    c->line_cache = coord_line_cache_new();
    c->admission = coord_admission_new(c->o.answers_bytes);
    pthread_mutex_init(&c->lock, NULL);
    wait_init(&c->changed);
    h.public_path = "/tsp/api/health";
    h.token_prefix = "/tsp";
    h.max_handlers = h.max_handlers ? h.max_handlers : HANDLERS; /* handlers mostly wait for servers */
    int rc = take_state(c, e);
    if (!rc)
        rc = http_client_start(&client, &c->client, e);
    if (!rc)
        rc = http_client_start(&client, &c->probing, e);
    if (!rc)
        rc = coord_nodes_start(c, e);
    if (!rc)
        rc = http_server_start(&h, handle, c, &c->http, e);
    if (rc) {
        free_all(c);
        return rc;
    }
    *out = c;
    return 0;
}

const char *coord_address(const struct coordinator *c)
{
    return http_server_address(c->http);
}

void coord_stop(struct coordinator *c)
{
    if (!c)
        return;
    http_server_stop(c->http);
    free_all(c);
}

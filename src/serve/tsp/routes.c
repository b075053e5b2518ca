/* SPDX-License-Identifier: MIT */
/* Dispatch from method and path to the operation; bodies. */
#include "tsp/routes.h"

/* SMALL: answered without looking into traces, or with one element of an answer. */
enum { HAS_BODY = 1, CHANGES = 2, SMALL = 4 };

/* Route; begins like struct tsp_route. */
static const struct route {
    const char *method, *pattern;
    call_handler *run;
    int flags, operation;
} routes[] = {
    {"GET", "traces", tsp_traces_list, SMALL, 0},
    {"POST", "traces", tsp_traces_post, HAS_BODY | CHANGES, 0},
    {"GET", "traces/below", tsp_traces_below, 0, 0},
    {"GET", "traces/*", tsp_traces_get, SMALL, 0},
    {"DELETE", "traces/*", tsp_traces_delete, CHANGES, 0},
    {"GET", "experiments", tsp_experiments_list, SMALL, 0},
    {"POST", "experiments", tsp_experiments_post, HAS_BODY | CHANGES, 0},
    {"GET", "experiments/*", tsp_experiments_get, SMALL, 0},
    {"DELETE", "experiments/*", tsp_experiments_delete, CHANGES, 0},
    {"GET", "experiments/*/bookmarks", tsp_bookmarks_list, SMALL, 0},
    {"POST", "experiments/*/bookmarks", tsp_bookmarks_post, HAS_BODY | CHANGES | SMALL, 0},
    {"GET", "experiments/*/bookmarks/*", tsp_bookmarks_get, SMALL, 0},
    {"PUT", "experiments/*/bookmarks/*", tsp_bookmarks_put, HAS_BODY | CHANGES | SMALL, 0},
    {"DELETE", "experiments/*/bookmarks/*", tsp_bookmarks_delete, CHANGES | SMALL, 0},
    {"GET", "experiments/*/outputs", tsp_outputs_list, SMALL, 0},
    {"GET", "experiments/*/outputs/markerSets", tsp_marker_sets, SMALL, 0},
    {"POST", "experiments/*/outputs/timeGraph/*/tree", tsp_analysis_run, HAS_BODY, TSP_TREE},
    {"POST", "experiments/*/outputs/timeGraph/*/states", tsp_analysis_run, HAS_BODY, TSP_STATES},
    {"POST", "experiments/*/outputs/timeGraph/*/arrows", tsp_analysis_run, HAS_BODY, TSP_ARROWS},
    {"POST", "experiments/*/outputs/timeGraph/*/tooltip", tsp_analysis_run, HAS_BODY | SMALL, TSP_TOOLTIP},
    {"POST", "experiments/*/outputs/XY/*/tree", tsp_analysis_run, HAS_BODY, TSP_TREE},
    {"POST", "experiments/*/outputs/XY/*/xy", tsp_analysis_run, HAS_BODY, TSP_XY},
    {"POST", "experiments/*/outputs/genericXY/*/tree", tsp_analysis_run, HAS_BODY, TSP_TREE},
    {"POST", "experiments/*/outputs/genericXY/*/xy", tsp_analysis_run, HAS_BODY, TSP_GENERIC_XY},
    {"POST", "experiments/*/outputs/data/*/tree", tsp_analysis_run, HAS_BODY, TSP_TREE},
    {"POST", "experiments/*/outputs/table/*/columns", tsp_analysis_run, HAS_BODY | SMALL, TSP_COLUMNS},
    {"POST", "experiments/*/outputs/table/*/lines", tsp_analysis_run, HAS_BODY, TSP_LINES},
    {"POST", "experiments/*/outputs/*/style", tsp_analysis_run, HAS_BODY | SMALL, TSP_STYLE},
    {"GET", "experiments/*/outputs/*/annotations", tsp_analysis_run, SMALL, TSP_ANNOTATION_CATEGORIES},
    {"POST", "experiments/*/outputs/*/annotations", tsp_analysis_run, HAS_BODY | SMALL, TSP_ANNOTATIONS},
    {"GET", "experiments/*/outputs/*/configTypes", tsp_outputs_config_types, SMALL, 0},
    {"GET", "experiments/*/outputs/*/configTypes/*", tsp_outputs_config_type, SMALL, 0},
    {"GET", "experiments/*/outputs/*", tsp_outputs_get, SMALL, 0},
    {"POST", "experiments/*/outputs/*", tsp_outputs_post, HAS_BODY | CHANGES, 0},
    {"DELETE", "experiments/*/outputs/*/*", tsp_outputs_delete, CHANGES, 0},
    {"GET", "config/types", tsp_config_types, SMALL, 0},
    {"GET", "config/types/*", tsp_config_type, SMALL, 0},
    {"POST", "config/types/*", tsp_configs_post, HAS_BODY | CHANGES, 0}, /* used by clients of version 0.9.0 */
    {"GET", "config/types/*/configs", tsp_configs_list, SMALL, 0},
    {"POST", "config/types/*/configs", tsp_configs_post, HAS_BODY | CHANGES, 0},
    {"GET", "config/types/*/configs/*", tsp_configs_get, SMALL, 0},
    {"PUT", "config/types/*/configs/*", tsp_configs_put, HAS_BODY | CHANGES, 0},
    {"DELETE", "config/types/*/configs/*", tsp_configs_delete, CHANGES, 0},
    {"POST", "upload", tsp_upload_post, CHANGES, 0},
};
enum { N_ROUTES = sizeof routes / sizeof *routes };

/* ---- bodies ---- */

static bool call_body(struct call *c)
{
    const char *title, *detail;
    int status = tsp_body(c->q, &c->body, &c->parameters, &title, &detail);
    if (status)
        tsp_call_error(c, status, title, detail);
    return !status;
}

/* ---- dispatch ---- */

static bool experiment_known(struct call *c)
{
    pthread_mutex_lock(&c->s->lock);
    bool known = tsp_model_experiment(c->s, c->arg[0]) != NULL;
    pthread_mutex_unlock(&c->s->lock);
    return known;
}

static void run(struct call *c, const struct route *r)
{
    bool of_experiment = !strncmp(r->pattern, "experiments/*/", 14);
    c->operation = r->operation;
    c->changes = r->flags & CHANGES;
    if (c->q->only_asks && r->flags & CHANGES)
        tsp_call_error(c, 403, "Pages of other sites may ask, but not change anything",
            "start the server with --cors and this page's origin, which then may");
    else if (of_experiment && !experiment_known(c))
        tsp_call_error(c, 404, strstr(r->pattern, "bookmarks") ? "No such experiment" : "No such trace", NULL);
    else if (r->flags & HAS_BODY ? call_body(c) : (c->parameters = json_object()) != NULL)
        r->run(c);
    json_decref(c->parameters);
    json_decref(c->body);
    json_decref(c->configuration);
    if (c->open)
        tsp_opening_unref(c->s, c->open);
}

static bool is_of_server(const struct tsp_path *path)
{
    return path->n == 1 && (!strcmp(path->part[0], "health") || !strcmp(path->part[0], "identifier"));
}

static void route(struct tsp_server *s, struct http_request *q, const struct tsp_path *path)
{
    struct call c = {.s = s, .q = q};
    const char *title;
    int status;
    if (is_of_server(path)) {
        tsp_information_answer(&c, path->part[0]);
        return;
    }
    int found = tsp_route_find(q, path, routes, N_ROUTES, sizeof *routes, c.arg, &status, &title);
    if (found >= 0)
        run(&c, &routes[found]);
    else
        tsp_call_error(&c, status, title, NULL);
}

bool tsp_routes_small(struct http_request *q)
{
    struct tsp_path path;
    const char *star[TSP_MAX_STARS];
    if (!tsp_path_of(q, &path))
        return tsp_is_for_viewer(q);
    int found = tsp_route_match(q, &path, routes, N_ROUTES, sizeof *routes, star);
    return is_of_server(&path) || (found >= 0 && routes[found].flags & SMALL);
}

void tsp_routes_handle(void *server, struct http_request *q)
{
    struct tsp_path path;
    if (tsp_path_of(q, &path)) {
        route(server, q, &path);
    } else if (tsp_is_for_viewer(q)) {
        tsp_serve_viewer(q);
    } else {
        struct call c = {.s = server, .q = q};
        tsp_call_error(&c, 404, "No such resource", NULL);
    }
}

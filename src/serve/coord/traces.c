/* SPDX-License-Identifier: MIT */
/* Traces: the lists of all servers; each trace belongs to its server. */
#include <string.h>
#include <strings.h>

#include "coord/experiments.h"
#include "coord/gather.h"
#include "coord/question.h"
#include "coord/times.h"

/* ---- writing ---- */

static void put_properties(struct arena *a, struct json *j, const struct node *n, struct slice properties)
{
    struct slice_walk p = slice_members(properties);
    const char *below = slice_string(slice_get(properties, "server"), a); /* name below another coordinator */
    json_begin_object(j);
    json_kv_string(j, "server", below ? arena_printf(a, "%s/%s", n->is->name, below) : n->is->name);
    if (n->rotation)
        json_kv_string(j, "rotation group", n->rotation->is.name);
    for (struct slice name, text; slice_next_member(&p, &name, &text);)
        if (!slice_equals(name, "server")) {
            slice_put_key(j, name);
            slice_put(j, text);
        }
    json_end_object(j);
}

/* Writes a trace with its uuid for clients; its properties name its server. */
static void put_trace(struct coord_call *c, struct json *j, const struct node *n, struct slice trace)
{
    struct slice_walk w = slice_members(trace);
    char uuid[UUID_TEXT];
    int64_t t; /* 0: unknown yet */
    json_begin_object(j);
    for (struct slice key, value; slice_next_member(&w, &key, &value);) {
        if (slice_equals(key, "properties"))
            continue;
        slice_put_key(j, key);
        if (slice_equals(key, "UUID")) {
            coord_node_trace_uuid(n, value, c->arena, uuid);
            json_write_string(j, uuid);
        } else if (!slice_integer(value, &t) || !t || !coord_put_times(c, j, n, trace, key, value)) {
            slice_put(j, value);
        }
    }
    json_key(j, "properties"); /* written even if the trace has none */
    put_properties(c->arena, j, n, slice_get(trace, "properties"));
    json_end_object(j);
}

void coord_put_traces(struct coord_call *c, struct json *j, const struct node *n, struct slice list)
{
    struct slice_walk w = slice_items(list);
    for (struct slice trace; slice_next(&w, &trace);)
        put_trace(c, j, n, trace);
}

/* ---- lists ---- */

/* Asks for each server's list of traces, its model. A server that is away has its last list, since its traces stay
 * where they are. False: the client is gone. */
static bool ask_traces(struct coord_call *c, struct coord_answers *f)
{
    coord_gather_begin(f, c, c->request.n_servers);
    for (size_t i = 0; i < c->request.n_servers; i++)
        coord_gather_ask(f, c->request.servers[i], "GET", "/traces", NULL);
    if (!coord_gather_wait(f))
        return false;
    for (size_t i = 0; i < f->n; i++) {
        struct coord_answer *p = &f->v[i];
        if (p->fate == COORD_REFUSED)
            coord_answer_spoil(f, p, arena_printf(c->arena, "status %d", p->http_status));
        if (p->fate == COORD_GOOD && !slice_is(p->root, '['))
            coord_answer_spoil(f, p, "its list of traces is none");
        if (p->fate == COORD_GOOD)
            coord_node_note_traces(p->node, p->root);
        p->model = p->fate == COORD_GOOD ? p->root : coord_node_traces(p->node, c->arena);
    }
    return true;
}

void coord_merge_traces(struct coord_answers *f, struct json *j)
{
    json_begin_array(j);
    for (size_t i = 0; i < f->n; i++)
        coord_put_traces(f->call, j, f->v[i].node, f->v[i].model);
    json_end_array(j);
}

void coord_traces_list(struct coord_call *c)
{
    struct coord_answers f;
    struct text t = {.fd = -1};
    struct json j = JSON_TO(&t);
    if (ask_traces(c, &f)) {
        coord_merge_traces(&f, &j);
        coord_warn(c);
        coord_reply(c, 200, &t);
    }
    coord_gather_end(&f);
}

/* Returns the server's own uuid of a trace; NULL: it does not have the trace. */
static const char *own_uuid(struct coord_call *c, const struct node *n, struct slice list, const char *uuid)
{
    struct slice_walk w = slice_items(list);
    char given[UUID_TEXT];
    for (struct slice trace; slice_next(&w, &trace);) {
        struct slice own = slice_get(trace, "UUID");
        coord_node_trace_uuid(n, own, c->arena, given);
        if (!strcasecmp(given, uuid))
            return slice_string(own, c->arena);
    }
    return NULL;
}

bool coord_traces_owners(struct coord_call *c, const char *const *uuids, size_t n, struct own_trace *out)
{
    struct coord_answers f;
    bool waits = ask_traces(c, &f);
    for (size_t i = 0; waits && i < n; i++)
        for (size_t k = 0; k < f.n && !out[i].node; k++) {
            const char *own = own_uuid(c, f.v[k].node, f.v[k].model, uuids[i]);
            if (own)
                out[i] = (struct own_trace){f.v[k].node, own};
        }
    coord_gather_end(&f);
    return waits;
}

/* ---- single traces ---- */

/* Sends a 409 with the conflicting trace. False: the refusal is another one. */
static bool reply_conflict(struct coord_call *c, const struct coord_answer *p)
{
    struct text t = {.fd = -1};
    struct json j = JSON_TO(&t);
    if (p->fate != COORD_REFUSED || p->http_status != 409 || !slice_is(slice_get(p->root, "trace"), '{'))
        return false;
    json_begin_object(&j);
    json_key(&j, "title");
    slice_put(&j, slice_get(p->root, "title"));
    json_kv_string(&j, "code", tsp_code_name(TSP_CODE_CONFLICT));
    json_key(&j, "trace");
    put_trace(c, &j, p->node, slice_get(p->root, "trace"));
    json_end_object(&j);
    coord_reply(c, 409, &t);
    return true;
}

static void pass_to_owner(struct coord_call *c, const char *method)
{
    struct own_trace owner = {0};
    struct text t = {.fd = -1};
    struct json j = JSON_TO(&t);
    struct coord_answers f;
    if (!coord_traces_owners(c, &c->request.arg[0], 1, &owner))
        return;
    if (!owner.node) {
        coord_error(c, 404, "No such trace", coord_missing_text(&c->outcome, NULL));
        return;
    }
    c->outcome.missing.n = 0;
    coord_gather_begin(&f, c, 1);
    const char *path = arena_printf(c->arena, "/traces/%s", coord_path_part(c->arena, owner.own));
    const struct coord_answer *p = coord_gather_ask(&f, owner.node, method, path, NULL);
    if (coord_gather_wait(&f)) {
        if (p->fate == COORD_GOOD) {
            put_trace(c, &j, owner.node, p->root);
            coord_reply(c, 200, &t);
        } else if (!reply_conflict(c, p)) {
            coord_gather_refuse(&f);
        }
    }
    coord_gather_end(&f);
}

void coord_traces_get(struct coord_call *c)
{
    pass_to_owner(c, "GET");
}

void coord_traces_delete(struct coord_call *c)
{
    pass_to_owner(c, "DELETE");
}

/* ---- opening ---- */

/* Finds the server of a URI. "NAME:PATH" names it; a path alone belongs to the only server, or to the one with that
 * path in its configuration. NULL: none, or several. */
static struct node *server_for(struct coord_call *c, const char *uri, const char **path)
{
    struct node *found = c->request.n_servers == 1 ? c->request.servers[0] : NULL;
    *path = uri;
    for (size_t i = 0; i < c->request.n_servers; i++) {
        size_t n = strlen(c->request.servers[i]->is->name);
        if (!strncmp(uri, c->request.servers[i]->is->name, n) && uri[n] == ':' && uri[n + 1]) {
            *path = uri + n + 1;
            return c->request.servers[i];
        }
    }
    unsigned fit = 0;
    for (size_t i = 0; i < c->request.n_servers && c->request.n_servers > 1; i++)
        for (size_t k = 0; k < c->request.servers[i]->is->traces.n; k++)
            if (!strcmp(c->request.servers[i]->is->traces.v[k], uri)) {
                found = c->request.servers[i];
                fit++;
            }
    return fit > 1 ? NULL : found;
}

void coord_traces_post(struct coord_call *c)
{
    const char *uri = coord_text(c->request.parameters, "uri"), *path;
    struct text t = {.fd = -1};
    struct json j = JSON_TO(&t);
    struct coord_answers f;
    if (!uri || !*uri) {
        coord_error(c, 400,
            json_object_get(c->request.parameters, "uri") ? "Invalid query parameters: uri"
                                                          : "Missing query parameters: uri",
            NULL);
        return;
    }
    struct node *n = server_for(c, uri, &path);
    if (!n) {
        coord_error(c, 400, "Invalid query parameters: uri",
            arena_printf(c->arena, "on which server? Write NAME:PATH, such as %s:%s",
                c->request.n_servers ? c->request.servers[0]->is->name : "NAME", uri));
        return;
    }
    json_t *own = json_string(path);
    coord_gather_begin(&f, c, 1);
    const struct coord_answer *p = coord_gather_ask(
        &f, n, "POST", "/traces", coord_body_with(c, n, "uri", own, NULL, NULL));
    json_decref(own);
    if (coord_gather_wait(&f)) {
        if (p->fate == COORD_GOOD) {
            put_trace(c, &j, n, p->root);
            coord_reply(c, 200, &t);
        } else if (!reply_conflict(c, p)) {
            coord_gather_refuse(&f);
        }
    }
    coord_gather_end(&f);
}

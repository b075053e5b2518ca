/* SPDX-License-Identifier: MIT */
#include "answers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coord/experiments.h"
#include "coord/model_cache.h"
#include "coord/output_cache.h"
#include "coord/table.h"

enum { LONGEST = 1 << 14 };

static char *quoted(struct arena *a, const char *json)
{
    char *text = arena_strdup(a, json);
    for (char *p = text; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    return text;
}

static void start(struct coordinator *k, const struct coord_config *config)
{
    size_t n = config->servers.n;
    k->o.config = config;
    k->ids = coord_ids_new();
    k->versions = coord_versions_new();
    k->output_cache = coord_output_cache_new();
    k->positions = coord_positions_new();
    k->models = coord_models_new();
    k->line_cache = coord_line_cache_new();
    k->nodes = mem_zalloc((n + 1) * sizeof *k->nodes);
    k->most = n;
    for (size_t i = 0; i < n; i++) {
        coord_node_init(&k->nodes[i], &config->servers.v[i], i);
        coord_node_change(&k->nodes[i], NODE_THERE, false);
    }
    atomic_store(&k->n, n);
    coord_rotations_start(k);
}

void fixture_begin(struct fixture *x, const char *config, const char *operation)
{
    struct err e = {0};
    const char *slash = strchr(operation, '/');
    *x = (struct fixture){0};
    if (coord_config_parse(&x->config, "test.yml", config, strlen(config), &e))
        fail_msg("%s", e.text);
    start(&x->coordinator, &x->config);
    const char *path = arena_printf(&x->arena, "/tsp/api/experiments/e/outputs/%s", operation);
    x->call = (struct coord_call){.c = &x->coordinator, .arena = &x->arena, .outcome.arena = &x->arena};
    struct coord_request *r = &x->call.request;
    *r = (struct coord_request){.arena = &x->arena, .path = path, .arg[0] = "e"};
    if (slash)
        r->arg[1] = arena_strndup(&x->arena, slash + 1, strcspn(slash + 1, "/"));
    r->n_servers = coord_nodes_now(&x->coordinator, &x->arena, &r->servers);
    r->n_members = coord_nodes_now(&x->coordinator, &x->arena, &r->members);
    r->several = r->n_members > 1;
    uint64_t *keys = arena_new(&x->arena, uint64_t, r->n_members + 1);
    for (size_t i = 0; i < r->n_members; i++)
        keys[i] = atomic_load(&r->members[i]->key);
    r->keys = keys;
    fixture_ask(x, "{}");
}

void fixture_end(struct fixture *x)
{
    struct coordinator *k = &x->coordinator;
    json_decref(x->call.request.body);
    vec_free(&x->call.outcome.missing);
    coord_rotations_stop(k);
    for (size_t i = 0; i < k->n; i++) {
        free(k->nodes[i].traces);
        while (k->nodes[i].experiments.n)
            free(k->nodes[i].experiments.v[--k->nodes[i].experiments.n]);
        vec_free(&k->nodes[i].experiments);
        pthread_mutex_destroy(&k->nodes[i].lock);
    }
    free(k->nodes);
    coord_line_cache_free(k->line_cache);
    coord_models_free(k->models);
    coord_positions_free(k->positions);
    coord_output_cache_free(k->output_cache);
    coord_versions_free(k->versions);
    coord_ids_free(k->ids);
    coord_config_fini(&x->config);
    arena_fini(&x->arena);
}

void fixture_ask(struct fixture *x, const char *parameters)
{
    struct coord_request *r = &x->call.request;
    json_decref(r->body);
    r->body = json_object();
    r->parameters = json_loads(quoted(&x->arena, parameters), 0, NULL);
    assert_non_null(r->parameters);
    json_object_set_new(r->body, "parameters", r->parameters);
    r->samples_known = false;
}

void fixture_clock(struct fixture *x, size_t server, int64_t ahead_ns)
{
    struct clock_piece *piece = arena_new(&x->arena, struct clock_piece, 1);
    struct clock_map *map = arena_new(&x->arena, struct clock_map, 1);
    struct err e = {0};
    char offset[32];
    snprintf(offset, sizeof offset, "%lld", (long long)ahead_ns);
    if (clock_line_read("1", offset, piece, &e) || clock_map_of(piece, 1, map, &e))
        fail_msg("%s", e.text);
    x->config.servers.v[server].clock = map;
}

struct slice fixture_slice(struct fixture *x, const char *json)
{
    const char *text = quoted(&x->arena, json);
    size_t bad = 0;
    struct slice s = slice_of(text, strlen(text), &x->arena, &bad);
    if (!s.at)
        fail_msg("invalid JSON at byte %zu: %s", bad, json);
    return s;
}

struct coord_answers *fixture_answer(struct fixture *x, const char *const *json)
{
    struct coord_request *r = &x->call.request;
    struct coord_answers *f = &x->answers;
    *f = (struct coord_answers){.call = &x->call, .n = r->n_members, .most = r->n_members + x->coordinator.n_groups};
    f->v = arena_new(&x->arena, struct coord_answer, f->most + 1);
    for (size_t i = 0; i < f->n; i++) {
        struct coord_answer *p = &f->v[i];
        p->node = r->members[i];
        if (!json[i]) {
            coord_node_change(p->node, NODE_AWAY, false);
            coord_answer_spoil(f, p, "nobody answers there");
            continue;
        }
        p->http_status = 200;
        p->root = fixture_slice(x, json[i]);
        p->model = slice_get(p->root, "status").at ? slice_get(p->root, "model") : p->root;
    }
    return f;
}

const char *fixture_merge(struct fixture *x, coord_merge *merge)
{
    struct text t = {.fd = -1};
    struct json j = JSON_TO(&t);
    merge(&x->answers, &j);
    const char *out = arena_strndup(&x->arena, t.v, t.n);
    text_fini(&t);
    return out;
}

void expect_json(const char *text, const char *format, ...)
{
    static char wanted[LONGEST];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(wanted, sizeof wanted, format, args);
    va_end(args);
    assert_in_range(n, 0, LONGEST - 1);
    for (char *p = wanted; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    json_t *is = json_loads(text, JSON_DECODE_ANY, NULL), *want = json_loads(wanted, JSON_DECODE_ANY, NULL);
    if (!want)
        fail_msg("the expected text is no JSON: %s", wanted);
    if (!is || !json_equal(is, want))
        fail_msg("is:     %s\nwanted: %s", text, wanted);
    json_decref(is);
    json_decref(want);
}

long long fixture_id(struct fixture *x, size_t server, int64_t own)
{
    return coord_id(&x->call, x->call.request.members[server], own);
}

const char *fixture_missing(struct fixture *x)
{
    const char *text = coord_missing_text(&x->call.outcome, NULL);
    return text ? text : "";
}

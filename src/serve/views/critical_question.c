/* SPDX-License-Identifier: MIT */
/* Parsing of a request for a critical path. */
#include "views/critical_question.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/time.h"

const char critical_question_schema[] =
    "{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"type\":\"object\",\"title\":\"Critical path of "
    "a thread\","
    "\"properties\":{"
    "\"thread\":{\"type\":[\"string\",\"integer\"],\"description\":\"The thread: HOST:TID, TID, HOST:NAME or NAME\"},"
    "\"host\":{\"type\":\"string\",\"description\":\"Its host; needed only where the thread alone is ambiguous\"},"
    "\"id\":{\"type\":\"integer\",\"description\":\"The id of its entry in Thread Status; needed only where its "
    "number was used again\"},"
    "\"begin\":{\"type\":[\"integer\",\"string\"],\"description\":\"From here: ns, +1.5s from the experiment's "
    "start, or ISO 8601; the thread's first instant when absent\"},"
    "\"end\":{\"type\":[\"integer\",\"string\"],\"description\":\"To here; the thread's last instant when absent\"},"
    "\"polling\":{\"enum\":[\"assume\"],\"description\":\"assume: a thread that spun until a message came, and soon "
    "sent again, is taken to have waited for it; what is assumed is marked\"},"
    "\"request\":{\"type\":\"boolean\",\"description\":\"The interval is that of a request: what threads did for "
    "others meanwhile is left out\"},"
    "\"elsewhere\":{\"type\":\"boolean\",\"description\":\"The thread, HOST:TID or HOST:NAME, is of a machine whose "
    "traces another node of the cluster has\"}},"
    "\"required\":[\"thread\"]}";

static const char *const keys[] = {"thread", "host", "id", "begin", "end", "polling", "request", "elsewhere"};

const char *critical_question_key(json_t *parameters, struct arena *a)
{
    json_t *asked = json_object();
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (json_object_get(parameters, keys[i]))
            json_object_set(asked, keys[i], json_object_get(parameters, keys[i]));
    char *text = json_dumps(asked, JSON_COMPACT | JSON_SORT_KEYS);
    const char *key = arena_strdup(a, text ? text : "");
    free(text);
    json_decref(asked);
    return key;
}

/* ---- the thread ---- */

static bool knows_host(const struct views *x, const char *name)
{
    size_t n;
    const struct path_local_host *hosts = x->paths ? path_local_hosts(x->paths, &n) : NULL;
    for (size_t i = 0; hosts && i < n; i++)
        if (!strcmp(hosts[i].name, name))
            return true;
    return false;
}

static const char *refuse_several(const char *thread, const struct path_lives *found, struct arena *a)
{
    enum { SHOWN = 40 };
    struct text t = {.fd = -1};
    bool idle = path_lives_are_idle(found), one_tid = !idle && path_lives_share_tid(found);
    text_printf(&t, "Invalid query parameters: thread (%s means %zu threads; %s:", thread, found->n,
        idle          ? "each CPU has an idle thread, name one as HOST:COMM"
            : one_tid ? "the number was used again: say with begin and end, or the id of an entry, which life is meant"
                      : "name one as HOST:TID");
    for (size_t i = 0; i < found->n && i < SHOWN; i++) {
        const struct path_life *c = &found->v[i];
        text_printf(&t, "%s %s:%d %s", i ? "," : "", c->host, c->tid, c->name);
        if (one_tid)
            text_printf(&t, " from %" PRId64 " to %" PRId64, c->begin, c->end);
    }
    if (found->n > SHOWN)
        text_printf(&t, ", and %zu more", found->n - SHOWN);
    text_putc(&t, ')');
    const char *s = arena_strdup(a, text_cstr(&t));
    text_fini(&t);
    return s;
}

/* Id by which clients know the row's entry. */
static uint64_t id_of(const struct views *x, struct path_row row)
{
    for (size_t i = 0; i < x->n_hosts; i++)
        if (x->path_hosts[i] == row.host)
            return index_row_id(x->hosts[i].index, row.row);
    return 0;
}

/* Reduces several lives to the one that has the id, if any has it. Views that are not of threads use other ids. */
static void choose(const struct views *x, json_t *id, struct path_lives *found)
{
    for (size_t i = 0; found->n > 1 && json_is_integer(id) && i < found->n; i++)
        if (id_of(x, found->v[i].row) == (uint64_t)json_integer_value(id)) {
            found->v[0] = found->v[i];
            found->n = 1;
        }
}

/* ---- threads of other nodes' machines ---- */

uint64_t critical_reference(const struct views *x, int32_t path_host)
{
    size_t i = 0;
    while (x->path_hosts[i] != path_host)
        i++;
    const struct clock_map *map = x->hosts[i].map;
    return x->hosts[map ? map->reference : i].index->key;
}

static bool begins_with_host(const char *thread, const char *host)
{
    size_t n = strlen(host);
    return !strncmp(thread, host, n) && thread[n] == ':';
}

static const char *ask_whose(
    const struct views *x, const char *thread, const char *host, struct arena *a, struct critical_question *out)
{
    struct err e = {0};
    if (!x->far)
        return "Invalid query parameters: elsewhere (this server is no node of a cluster)";
    if (host && !begins_with_host(thread, host))
        thread = arena_printf(a, "%s:%s", host, thread);
    int64_t begin = out->begin > INT64_MIN ? out->begin - 1 : INT64_MIN;
    int rc = x->far->whose(x->far->arg, critical_reference(x, 0), thread, begin, time_after(out->end), &out->far, &e);
    return rc ? arena_printf(a, "Invalid query parameters: thread (%s)", e.text) : NULL;
}

/* ---- parameters ---- */

static const char *parse_time(const struct views *x, json_t *v, const char *key, struct arena *a, int64_t *out)
{
    struct err e = {0};
    if (!v || json_is_null(v))
        return NULL;
    if (json_is_integer(v)) {
        *out = json_integer_value(v);
        return NULL;
    }
    if (!json_is_string(v))
        return arena_printf(a, "Invalid query parameters: %s (give ns since the epoch, +1.5s, or ISO 8601)", key);
    return time_parse(json_string_value(v), x->data.begin, out, &e)
        ? arena_printf(a, "Invalid query parameters: %s (%s)", key, e.text)
        : NULL;
}

static const char *parse_thread(json_t *v, struct arena *a, const char **out)
{
    if (!v)
        return "Missing query parameters: thread";
    if (json_is_integer(v) && json_integer_value(v) >= 0)
        *out = arena_printf(a, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
    else if (json_is_string(v) && *json_string_value(v))
        *out = json_string_value(v);
    else
        return "Invalid query parameters: thread (give HOST:TID, TID, HOST:NAME or NAME)";
    return NULL;
}

static const char *parse_polling(json_t *v, bool *assume)
{
    if (!v || json_is_null(v))
        return NULL;
    *assume = json_is_string(v) && !strcmp(json_string_value(v), "assume");
    return *assume ? NULL : "Invalid query parameters: polling (give assume, or leave it out)";
}

static const char *parse_flag(json_t *parameters, const char *key, struct arena *a, bool *out)
{
    json_t *v = json_object_get(parameters, key);
    *out = json_is_true(v);
    return !v || json_is_null(v) || json_is_boolean(v)
        ? NULL
        : arena_printf(a, "Invalid query parameters: %s (give true, or leave it out)", key);
}

const char *critical_question_parse(struct views *x, json_t *parameters, struct arena *a, struct critical_question *out)
{
    json_t *host_value = json_object_get(parameters, "host");
    const char *thread = NULL, *host = json_string_value(host_value);
    struct path_lives found = {0};
    *out = (struct critical_question){.begin = INT64_MIN, .end = INT64_MAX, .wrong = TSP_CODE_INVALID_QUERY};
    const char *wrong = parse_thread(json_object_get(parameters, "thread"), a, &thread);
    if (!wrong)
        wrong = parse_time(x, json_object_get(parameters, "begin"), "begin", a, &out->begin);
    if (!wrong)
        wrong = parse_time(x, json_object_get(parameters, "end"), "end", a, &out->end);
    if (!wrong)
        wrong = parse_polling(json_object_get(parameters, "polling"), &out->assume_polling);
    if (!wrong)
        wrong = parse_flag(parameters, "request", a, &out->request);
    if (!wrong)
        wrong = parse_flag(parameters, "elsewhere", a, &out->elsewhere);
    if (!wrong && out->begin > out->end)
        wrong = "Invalid query parameters: begin (it lies after end)";
    json_t *id = json_object_get(parameters, "id");
    if (!wrong && id && !json_is_null(id) && !json_is_integer(id))
        wrong = "Invalid query parameters: id (give the id of an entry of Thread Status, a number)";
    if (!wrong && host_value && !json_is_null(host_value) && (!host || (!out->elsewhere && !knows_host(x, host))))
        wrong = arena_printf(
            a, "Invalid query parameters: host (no kernel trace of %s is open)", host ? host : "such a host");
    if (wrong || !x->paths)
        return wrong ? wrong : "Invalid query parameters: thread (there is no kernel trace)";
    if (out->elsewhere)
        return ask_whose(x, thread, host, a, out);
    /* includes lives that only touch the interval */
    path_find_lives(
        x->paths, thread, host, out->begin > INT64_MIN ? out->begin - 1 : INT64_MIN, time_after(out->end), &found);
    choose(x, id, &found);
    if (!found.n)
        wrong = arena_printf(a,
            "Invalid query parameters: thread (%s: no such thread%s; the tree of Thread Status lists them)", thread,
            out->begin != INT64_MIN || out->end != INT64_MAX ? " in that interval" : "");
    else if (found.n > 1)
        out->wrong = TSP_CODE_AMBIGUOUS_THREAD, wrong = refuse_several(thread, &found, a);
    else
        out->row = found.v[0].row;
    vec_free(&found);
    return wrong;
}

/* Whose critical path a configuration asks for. */
#include "views/critical_question.h"

#include <errno.h>
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
    "\"begin\":{\"type\":[\"integer\",\"string\"],\"description\":\"From here: ns, +1.5s from the experiment's "
    "start, or ISO 8601; the thread's first instant when absent\"},"
    "\"end\":{\"type\":[\"integer\",\"string\"],\"description\":\"To here; the thread's last instant when absent\"}},"
    "\"required\":[\"thread\"]}";

static const char *const keys[] = {"thread", "host", "begin", "end"};

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

/* ---- candidates ---- */

struct candidate {
    struct path_row row;
    int64_t begin, end;
    int32_t tid;
    const char *host, *name;
};
struct candidates {
    struct candidate *v;
    size_t n, cap;
};

struct wanted {
    const char *text;
    bool is_tid;
    int32_t tid;
    int64_t begin, end;
};

static struct wanted wanted(const char *text, int64_t begin, int64_t end)
{
    char *rest;
    errno = 0;
    long tid = strtol(text, &rest, 10);
    bool is_tid = *text >= '0' && *text <= '9' && !*rest && !errno && tid <= INT32_MAX;
    return (struct wanted){text, is_tid, is_tid ? (int32_t)tid : -1, begin, end};
}

static bool is_meant(const struct graph_row *r, const struct wanted *w)
{
    if (w->is_tid)
        return r->tid == w->tid;
    return r->idle_cpu < 0 && (!strcmp(r->name, w->text) || !strcmp(r->first_name, w->text));
}

/* Lives on one host that overlap the interval. */
static void find_lives(const struct views *x, size_t host, const struct wanted *w, struct candidates *found)
{
    const struct view_host *h = &x->hosts[host];
    const struct path_source *source = path_local_source(x->paths);
    for (int32_t row = 0; row < h->threads; row++) {
        struct graph_row r;
        struct candidate c = {.row = {x->path_hosts[host], row}, .host = h->index->name};
        graph_row(h->index->graph, row, &r);
        if (!is_meant(&r, w) || !source->life(source->arg, c.row, &c.begin, &c.end) || c.begin > w->end ||
            c.end < w->begin)
            continue;
        c.tid = r.tid;
        c.name = r.name;
        vec_push(found, c);
    }
}

static bool is_host(const struct view_host *h, const char *name, size_t n)
{
    return (strlen(h->index->name) == n && !memcmp(h->index->name, name, n)) ||
        (strlen(h->id) == n && !memcmp(h->id, name, n));
}

static size_t count_hosts(const struct views *x, const char *name)
{
    size_t n = 0;
    for (size_t i = 0; i < x->n_hosts; i++)
        n += is_host(&x->hosts[i], name, strlen(name)) && x->path_hosts[i] >= 0;
    return n;
}

/* HOST:…, as far as that names a host (names may hold colons); else on all hosts, or on `host`. */
static void find_candidates(
    const struct views *x, const char *thread, const char *host, int64_t begin, int64_t end, struct candidates *found)
{
    struct wanted w = wanted(thread, begin, end);
    for (const char *colon = strchr(thread, ':'); colon && !found->n; colon = strchr(colon + 1, ':'))
        for (size_t i = 0; i < x->n_hosts; i++) {
            struct wanted part = wanted(colon + 1, begin, end);
            if (x->path_hosts[i] >= 0 && is_host(&x->hosts[i], thread, (size_t)(colon - thread)) &&
                (!host || is_host(&x->hosts[i], host, strlen(host))))
                find_lives(x, i, &part, found);
        }
    for (size_t i = 0; i < x->n_hosts && !found->n; i++)
        if (x->path_hosts[i] >= 0 && host && is_host(&x->hosts[i], host, strlen(host)))
            find_lives(x, i, &w, found);
    if (found->n || host)
        return;
    for (size_t i = 0; i < x->n_hosts; i++)
        if (x->path_hosts[i] >= 0)
            find_lives(x, i, &w, found);
}

static const char *refuse_several(const char *thread, const struct candidates *found, struct arena *a)
{
    enum { SHOWN = 40 };
    struct text t = {.fd = -1};
    bool one_tid = true;
    for (size_t i = 1; i < found->n; i++)
        one_tid &= found->v[i].row.host == found->v[0].row.host && found->v[i].tid == found->v[0].tid;
    text_printf(&t, "Invalid query parameters: thread (%s means %zu threads; %s:", thread, found->n,
        one_tid ? "the number was used again: say with begin and end which life is meant" : "name one as HOST:TID");
    for (size_t i = 0; i < found->n && i < SHOWN; i++) {
        const struct candidate *c = &found->v[i];
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

const char *critical_question_parse(struct views *x, json_t *parameters, struct arena *a, struct critical_question *out)
{
    json_t *host_value = json_object_get(parameters, "host");
    const char *thread, *host = json_string_value(host_value);
    struct candidates found = {0};
    *out = (struct critical_question){.begin = INT64_MIN, .end = INT64_MAX};
    const char *wrong = parse_thread(json_object_get(parameters, "thread"), a, &thread);
    if (!wrong)
        wrong = parse_time(x, json_object_get(parameters, "begin"), "begin", a, &out->begin);
    if (!wrong)
        wrong = parse_time(x, json_object_get(parameters, "end"), "end", a, &out->end);
    if (!wrong && out->begin > out->end)
        wrong = "Invalid query parameters: begin (it lies after end)";
    if (!wrong && host_value && !json_is_null(host_value) && (!host || !count_hosts(x, host)))
        wrong = arena_printf(
            a, "Invalid query parameters: host (no kernel trace of %s is open)", host ? host : "such a host");
    if (wrong || !x->paths)
        return wrong ? wrong : "Invalid query parameters: thread (there is no kernel trace)";
    find_candidates(x, thread, host, out->begin, out->end, &found);
    if (!found.n)
        wrong = arena_printf(a,
            "Invalid query parameters: thread (%s: no such thread%s; the tree of Thread Status lists them)", thread,
            out->begin != INT64_MIN || out->end != INT64_MAX ? " in that interval" : "");
    else if (found.n > 1)
        wrong = refuse_several(thread, &found, a);
    else
        out->row = found.v[0].row;
    vec_free(&found);
    return wrong;
}

/* SPDX-License-Identifier: MIT */
#include "tsp/request.h"

#include <strings.h>

#include "base/json.h"

#define BASE "/tsp/api"

enum { MAX_TIMES = 65536 };

bool tsp_path_of(struct http_request *q, struct tsp_path *out)
{
    size_t n = sizeof BASE - 1;
    *out = (struct tsp_path){0};
    if (strncmp(q->path, BASE, n) || (q->path[n] && q->path[n] != '/'))
        return false;
    for (const char *p = q->path + n; *p;) {
        size_t length = strcspn(p, "/");
        if (length) {
            if (out->n == TSP_MAX_PARTS) {
                out->n++;
                return true;
            }
            out->part[out->n++] = arena_strndup(q->arena, p, length);
        }
        p += length + (p[length] == '/');
    }
    return true;
}

static bool path_fits(const struct tsp_path *path, const char *pattern, const char *star[TSP_MAX_STARS])
{
    size_t stars = 0;
    if (path->n > TSP_MAX_PARTS)
        return false;
    for (size_t i = 0; i < path->n; i++) {
        size_t length = strcspn(pattern, "/");
        if (length == 1 && *pattern == '*')
            star[stars++] = path->part[i];
        else if (strlen(path->part[i]) != length || strncmp(path->part[i], pattern, length))
            return false;
        pattern += length;
        if ((*pattern == '/') != (i + 1 < path->n))
            return false;
        pattern += *pattern == '/';
    }
    return path->n > 0;
}

bool tsp_method_is(const struct http_request *q, const char *method)
{
    return !strcmp(q->method, method) || (!strcmp(q->method, "HEAD") && !strcmp(method, "GET"));
}

static const struct tsp_route *entry(const void *routes, size_t size, size_t i)
{
    return (const void *)((const char *)routes + i * size);
}

int tsp_route_match(const struct http_request *q, const struct tsp_path *path, const void *routes, size_t n,
    size_t size, const char *star[TSP_MAX_STARS])
{
    for (size_t i = 0; i < n; i++)
        if (path_fits(path, entry(routes, size, i)->pattern, star) && tsp_method_is(q, entry(routes, size, i)->method))
            return (int)i;
    return -1;
}

int tsp_route_find(struct http_request *q, const struct tsp_path *path, const void *routes, size_t n, size_t size,
    const char *star[TSP_MAX_STARS], int *status, const char **title)
{
    struct text allowed = {.fd = -1};
    int found = tsp_route_match(q, path, routes, n, size, star);
    for (size_t i = 0; i < n && found < 0; i++)
        if (path_fits(path, entry(routes, size, i)->pattern, star))
            text_printf(&allowed, "%s%s", allowed.n ? ", " : "", entry(routes, size, i)->method);
    if (allowed.n)
        http_header(q, "Allow", text_cstr(&allowed));
    *status = allowed.n ? 405 : 404;
    *title = allowed.n ? "Method not allowed" : "No such resource";
    text_fini(&allowed);
    return found;
}

/* ---- bodies ---- */

static bool is_json(const char *type)
{
    static const char json[] = "application/json";
    size_t n = sizeof json - 1;
    return !strncasecmp(type, json, n) && (!type[n] || strchr("; ", type[n]));
}

/* Requires JSON's content type: a page of another site can make a browser send any text, but not with this type. */
int tsp_body(struct http_request *q, json_t **body, json_t **parameters, const char **title, const char **detail)
{
    json_error_t wrong;
    *detail = NULL;
    if (!is_json(q->content_type)) {
        *title = "The body must be JSON, and say so";
        *detail = "send it with Content-Type: application/json";
        return 415;
    }
    *body = json_loadb(q->body, q->body_bytes, 0, &wrong);
    if (!json_is_object(*body)) {
        *title = "Invalid query parameters: the body must be a JSON object";
        if (!*body)
            *detail = arena_printf(q->arena, "line %d, column %d: %s", wrong.line, wrong.column, wrong.text);
        return 400;
    }
    json_t *p = json_object_get(*body, "parameters");
    if (p && !json_is_object(p) && !json_is_null(p)) {
        *title = "Invalid query parameters: parameters";
        return 400;
    }
    *parameters = json_is_object(p) ? json_incref(p) : json_object();
    return 0;
}

const int64_t *tsp_sample_times(struct arena *a, int64_t begin, int64_t end, int64_t samples, size_t *n)
{
    uint64_t span = (uint64_t)end - (uint64_t)begin;
    samples = samples > MAX_TIMES ? MAX_TIMES : samples;
    uint64_t step = samples > 1 ? span / (uint64_t)(samples - 1) : span;
    step = step ? step : 1;
    uint64_t inner = span / step + (span % step != 0); /* less than twice the samples */
    int64_t *v = arena_new(a, int64_t, inner + 1);
    for (uint64_t i = 0; i < inner; i++)
        v[i] = (int64_t)((uint64_t)begin + i * step);
    v[inner] = end;
    *n = inner + 1;
    return v;
}

void tsp_write_progress(struct json *j, uint64_t done, uint64_t of)
{
    json_key(j, "progress");
    json_begin_object(j);
    json_kv_u64(j, "done", done < of ? done : of);
    json_kv_u64(j, "of", of);
    json_end_object(j);
}

enum tsp_code tsp_code_of_status(int status)
{
    switch (status) {
    case 400:
    case 415: return TSP_CODE_INVALID_QUERY;
    case 401:
    case 403: return TSP_CODE_FORBIDDEN;
    case 404: return TSP_CODE_NOT_FOUND;
    case 405:
    case 501: return TSP_CODE_NOT_OFFERED;
    case 409: return TSP_CODE_CONFLICT;
    case 413: return TSP_CODE_TOO_LARGE;
    case 502:
    case 503:
    case 504: return TSP_CODE_UNAVAILABLE;
    case 507: return TSP_CODE_NO_ROOM;
    case 508: return TSP_CODE_LOOP;
    default: return TSP_CODE_FAILED;
    }
}

void tsp_put_error(struct text *t, enum tsp_code code, const char *title, const char *detail)
{
    struct json j = JSON_TO(t);
    json_begin_object(&j);
    json_kv_string(&j, "title", title);
    if (detail && *detail)
        json_kv_string(&j, "detail", detail);
    json_kv_string(&j, "code", tsp_code_name(code));
    json_end_object(&j);
}

bool tsp_is_for_viewer(const struct http_request *q)
{
    return strncmp(q->path, "/tsp", 4) && tsp_method_is(q, "GET");
}

/* SPDX-License-Identifier: MIT */
#include "coord/request.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Limit of lists: servers accept requests of 1 MiB. */
enum { MOST_LISTED = 16384 };

const char *coord_text(json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

bool coord_integer(const json_t *v, int64_t *out)
{
    *out = json_integer_value(v);
    return json_is_integer(v);
}

const char *coord_body_text(struct arena *a, json_t *body)
{
    char *text = json_dumps(body, JSON_COMPACT);
    const char *kept = arena_strdup(a, text ? text : "{}");
    free(text);
    json_decref(body);
    return kept;
}

/* ---- paths ---- */

const char *coord_path_part(struct arena *a, const char *s)
{
    char *out = arena_alloc(a, 3 * strlen(s) + 1), *to = out;
    for (; *s; s++) {
        if (isalnum((unsigned char)*s) || strchr("-._~:$", *s))
            *to++ = *s;
        else
            to += sprintf(to, "%%%02X", (unsigned)(unsigned char)*s);
    }
    *to = '\0';
    return out;
}

const char *coord_path_asked(const struct coord_request *r)
{
    const char *path = "";
    struct http_request q = {.path = r->path, .arena = r->arena};
    struct tsp_path p;
    tsp_path_of(&q, &p);
    for (size_t i = 0; i < p.n; i++)
        path = arena_printf(r->arena, "%s/%s", path, coord_path_part(r->arena, p.part[i]));
    return path;
}

const char *coord_tree_path(const struct coord_request *r)
{
    const char *path = coord_path_asked(r), *slash = strrchr(path, '/');
    return arena_printf(r->arena, "%.*s/tree", (int)(slash - path), path);
}

/* ---- samples ---- */

/* Returns the samples; *n is 0 if they are unknown. */
static const int64_t *find_samples(struct coord_request *r, size_t *n)
{
    json_t *list = json_object_get(r->parameters, "requested_times"), *item,
           *range = json_object_get(r->parameters, "requested_timerange");
    int64_t begin, end, samples, *v = arena_new(r->arena, int64_t, json_array_size(list) + 1);
    size_t i;
    *n = 0;
    if (json_array_size(list)) {
        json_array_foreach (list, i, item)
            if (!coord_integer(item, &v[i]) || (i && v[i] < v[i - 1]))
                return NULL;
        *n = json_array_size(list);
        return v;
    }
    if (!coord_integer(json_object_get(range, "nbTimes"), &samples) || samples < 1 || samples > MOST_LISTED ||
        json_object_get(range, "nbSamples") || !coord_integer(json_object_get(range, "start"), &begin) ||
        !coord_integer(json_object_get(range, "end"), &end) || begin > end)
        return NULL;
    return tsp_sample_times(r->arena, begin, end, samples, n);
}

const int64_t *coord_samples(struct coord_request *r, size_t *n)
{
    if (!r->samples_known)
        r->samples = find_samples(r, &r->n_samples);
    r->samples_known = true;
    *n = r->n_samples;
    return r->samples;
}

/* ---- servers ---- */

uint64_t coord_node_key(const struct coord_request *r, const struct node *n)
{
    return n->number == SIZE_MAX ? atomic_load(&n->key) : r->keys[n->number];
}

bool coord_node_is_same(const struct coord_request *r, const struct node *n)
{
    return r->keys[n->number] == atomic_load(&n->key);
}

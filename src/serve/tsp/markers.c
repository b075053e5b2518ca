/* SPDX-License-Identifier: MIT */
/* Marker sets: named points and spans of time that viewers draw over every chart. */
#include "tsp/markers.h"

#include "tsp/routes.h"

enum { MAX_CATEGORIES = 100 };

void tsp_marker_sets(struct call *c)
{
    struct text t = {.fd = -1};
    struct json j = JSON_TO(&t);
    pthread_mutex_lock(&c->s->lock);
    bool known = tsp_model_experiment(c->s, c->arg[0]) != NULL;
    json_begin_object(&j);
    json_key(&j, "model");
    json_begin_array(&j);
    for (size_t i = 0; i < c->s->configs.n; i++) {
        json_begin_object(&j);
        json_kv_string(&j, "id", c->s->configs.v[i].id);
        json_kv_string(&j, "name", c->s->configs.v[i].name);
        json_end_object(&j);
    }
    json_end_array(&j);
    json_kv_string(&j, "status", "COMPLETED");
    json_kv_string(&j, "statusMessage", "Completed");
    json_end_object(&j);
    pthread_mutex_unlock(&c->s->lock);
    if (known) {
        tsp_call_json(c, 200, &t);
    } else {
        text_fini(&t);
        tsp_call_error(c, 404, "No such experiment", NULL);
    }
}

static const char *category_of(const struct tsp_config *c, json_t *marker)
{
    const char *category = tsp_string(marker, "category");
    return category && *category ? category : c->name;
}

/* True: i is the first marker of its category. */
static bool is_first(const struct tsp_config *c, json_t *list, size_t i)
{
    const char *category = category_of(c, json_array_get(list, i));
    for (size_t k = 0; k < i; k++)
        if (!strcmp(category_of(c, json_array_get(list, k)), category))
            return false;
    return true;
}

bool tsp_markers_write_category(struct tsp_server *s, const char *set, struct json *j)
{
    pthread_mutex_lock(&s->lock);
    const struct tsp_config *c = tsp_model_config(s, set);
    json_t *list = c ? json_object_get(c->parameters, "markers") : NULL;
    for (size_t i = 0, n = 0; i < json_array_size(list) && n < MAX_CATEGORIES; i++)
        if (is_first(c, list, i)) {
            json_write_string(j, category_of(c, json_array_get(list, i)));
            n++;
        }
    pthread_mutex_unlock(&s->lock);
    return c != NULL;
}

static void write_markers(const struct tsp_config *c, json_t *list, const char *category, const struct tsp_query *q,
    struct tsp_answer *answer)
{
    json_t *m;
    size_t i;
    json_array_foreach (list, i, m) {
        int64_t time = 0, duration = 0;
        const char *label = tsp_string(m, "label"), *color = tsp_string(m, "color");
        tsp_integer(json_object_get(m, "time"), &time);
        tsp_integer(json_object_get(m, "duration"), &duration);
        if (!strcmp(category_of(c, m), category) && time <= q->end &&
            (time >= q->begin || (duration > 0 && (uint64_t)q->begin - (uint64_t)time <= (uint64_t)duration)))
            tsp_write_annotation(answer, time, duration, -1, label ? label : c->name, color ? color : "#ff8000", 0.5);
    }
}

void tsp_markers_write(struct tsp_server *s, const char *set, const struct tsp_query *q, struct tsp_answer *answer)
{
    pthread_mutex_lock(&s->lock);
    const struct tsp_config *c = tsp_model_config(s, set);
    json_t *list = c ? json_object_get(c->parameters, "markers") : NULL;
    for (size_t i = 0, n = 0; i < json_array_size(list) && n < MAX_CATEGORIES; i++) {
        const char *category = category_of(c, json_array_get(list, i));
        if (!is_first(c, list, i))
            continue;
        n++;
        if (!tsp_wants_category(q, category))
            continue;
        json_key(&answer->json, category);
        json_begin_array(&answer->json);
        write_markers(c, list, category, q, answer);
        json_end_array(&answer->json);
    }
    pthread_mutex_unlock(&s->lock);
}

/* SPDX-License-Identifier: MIT */
/* Stored times of an experiment are in the clock of its answers. They are converted when that clock changes: the server
 * was started with another reference, or more traces made another clock better known. */
#include "tsp/open.h"
#include "tsp/persist.h"

/* Conversion between both clocks, as the opening knows them. */
struct retimed {
    const struct tsp_backend *backend;
    struct tsp_data *data;
    const char *from;
};

static int64_t by_now(const struct retimed *r, int64_t t)
{
    return r->backend->by_reference(r->data, r->from, t);
}

static void retime_derived(const struct retimed *r, struct tsp_derived *d)
{
    const char *const *keys = d->provider->derivation ? d->provider->derivation->times : NULL;
    bool changed = false;
    for (; keys && *keys; keys++) {
        json_t *v = json_object_get(d->config.parameters, *keys);
        if (json_is_integer(v) &&
            !json_object_set_new(d->config.parameters, *keys, json_integer(by_now(r, json_integer_value(v)))))
            changed = true;
    }
    if (!changed)
        return;
    free(d->config.text);
    d->config.text = json_dumps(d->config.parameters, JSON_COMPACT);
}

void tsp_retime(struct tsp_server *s, struct tsp_experiment *x, struct tsp_data *data)
{
    const struct retimed r = {&s->o.backend, data, x->reference};
    if (!data->reference || (x->reference && !strcmp(x->reference, data->reference)))
        return;
    for (size_t i = 0; x->reference && i < x->bookmarks.n; i++) {
        x->bookmarks.v[i].start = by_now(&r, x->bookmarks.v[i].start);
        x->bookmarks.v[i].end = by_now(&r, x->bookmarks.v[i].end);
    }
    for (size_t i = 0; x->reference && i < x->derived.n; i++)
        retime_derived(&r, &x->derived.v[i]);
    free(x->reference);
    x->reference = mem_strdup(data->reference);
    tsp_persist_note(s, PERSIST_EXPERIMENT, x->uuid);
}

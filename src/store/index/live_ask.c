/* SPDX-License-Identifier: MIT */
/* Present state of growing recordings, as an experiment. */
#include <stdlib.h>

#include "base/map.h"
#include "ctf/feed.h"
#include "index/growing.h"

/* Returns the present history of the live index; the caller frees it. */
static struct index_history history_of(const struct index_live *l)
{
    struct index_history h = {.disorder = l->sealed.disorder};
    for (size_t i = 0; i < l->sealed.chunks.n; i++)
        vec_push(&h.chunks, l->sealed.chunks.v[i]);
    for (size_t i = 0; i < l->small.n; i++)
        vec_push(&h.chunks, l->small.v[i]);
    if (l->tail.number)
        vec_push(&h.chunks, l->tail);
    return h;
}

static uint64_t fingerprint_of(const struct index_history *h)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < h->chunks.n; i++)
        sum = map_mix(sum + h->chunks.v[i].key + h->chunks.v[i].packets);
    return sum;
}

static int open_stores(struct experiment *x, size_t trace, const struct index_live *l, struct err *e)
{
    struct arena names = {0};
    struct index_files files = l->files;
    struct index_history h = history_of(l);
    struct index_trace *t = &x->traces.v[trace];
    files.trace = t->trace;
    files.names = &names;
    int rc = index_open_history(x, t, &files, &h, e);
    if (rc)
        err_wrap(e, "%s", x->hosts.v[t->host].name);
    index_history_free(&h);
    arena_fini(&names);
    return rc;
}

static void take_traces(struct experiment *x, struct index_live *const *lives, const char *const *names, size_t n)
{
    struct ctf_trace **traces = arena_new(&x->arena, struct ctf_trace *, n);
    const char **none = arena_new(&x->arena, const char *, n);
    for (size_t i = 0; i < n; i++) {
        struct index_history h = history_of(lives[i]);
        traces[i] = ctf_trace_still(lives[i]->files.trace, fingerprint_of(&h));
        index_history_free(&h);
    }
    index_experiment_take_traces(x, traces, names ? names : none, n);
}

int index_live_ask(
    struct index_live *const *lives, const char *const *names, size_t n, struct experiment **out, struct err *e)
{
    int rc = n ? 0 : err_set(e, ERR_ARG, "no recording given");
    for (size_t i = 0; i < n && !rc; i++)
        rc = index_live_settle(lives[i], e);
    if (rc)
        return rc;
    struct experiment *x = index_experiment_new();
    x->states = true;
    take_traces(x, lives, names, n);
    for (size_t i = 0; i < n && !rc; i++)
        rc = open_stores(x, i, lives[i], e);
    index_experiment_note_losses(x);
    index_experiment_note_calls(x);
    return index_experiment_made(x, rc, out);
}

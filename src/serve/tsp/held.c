/* SPDX-License-Identifier: MIT */
/* Long computations stay with the version in which they began. It answers as long as somebody keeps asking, even if a
 * newer version replaced it. Otherwise traces that grow faster than an answer is computed would never get one. */
#include "base/time.h"
#include "tsp/model.h"

enum { MAX_WAITED = 64 };
static const int64_t PATIENCE_NS = 10 * NS_PER_S, /* timeout after the last request */
    REST_NS = 2 * NS_PER_S; /* related parts of an answer (states, arrows) are requested right after it */

static struct tsp_waited *find(struct tsp_opening *o, const char *output)
{
    for (size_t i = 0; i < o->waited.n; i++)
        if (!strcmp(o->waited.v[i].output, output))
            return &o->waited.v[i];
    return NULL;
}

static void forget(struct tsp_opening *o, struct tsp_waited *w)
{
    free(w->output);
    *w = o->waited.v[--o->waited.n];
}

static bool is_waited_for(struct tsp_opening *o)
{
    int64_t now = time_monotonic_ns();
    for (size_t i = o->waited.n; i-- > 0;)
        if (o->waited.v[i].until_ns < now)
            forget(o, &o->waited.v[i]);
    return o->waited.n > 0;
}

void tsp_held_fini(struct tsp_opening *o)
{
    while (o->waited.n)
        forget(o, o->waited.v);
    vec_free(&o->waited);
}

struct tsp_opening *tsp_held_for(struct tsp_experiment *x, const char *output)
{
    return x->earlier && find(x->earlier, output) ? x->earlier : NULL;
}

struct tsp_opening *tsp_held_instead(struct tsp_experiment *x, struct tsp_opening *old)
{
    if (x->earlier || !is_waited_for(old))
        return old;
    x->earlier = old;
    return NULL;
}

struct tsp_opening *tsp_held_release(struct tsp_experiment *x, bool at_once)
{
    struct tsp_opening *o = x->earlier;
    if (!o || (!at_once && is_waited_for(o)))
        return NULL;
    x->earlier = NULL;
    return o;
}

void tsp_held_note(struct tsp_server *s, struct tsp_opening *o, const char *output, bool running)
{
    pthread_mutex_lock(&s->lock);
    int64_t now = time_monotonic_ns();
    struct tsp_waited *w = find(o, output);
    if (!w && running && o->waited.n < MAX_WAITED) {
        vec_push(&o->waited, ((struct tsp_waited){.output = mem_strdup(output)}));
        w = &o->waited.v[o->waited.n - 1];
    }
    if (w && !w->done) {
        w->done = !running;
        w->until_ns = now + (running ? PATIENCE_NS : REST_NS);
    }
    pthread_mutex_unlock(&s->lock);
}

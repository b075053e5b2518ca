/* SPDX-License-Identifier: MIT */
/* References of an opening, and its end. */
#include "tsp/opening.h"

#include "base/progress.h"
#include "tsp/model.h"

static void close_opening(struct tsp_server *s, struct tsp_opening *o)
{
    tsp_entry_tables_free(o->entries);
    tsp_kept_rows_free(o->rows);
    tsp_ids_unref(o->ids);
    if (o->data)
        s->o.backend.close(o->data);
    tsp_held_fini(o);
    progress_free(o->request.progress);
    arena_fini(&o->arena);
    free(o);
    mem_give_back();
}

void tsp_opening_unref_locked(struct tsp_server *s, struct tsp_opening *o)
{
    if (--o->refs)
        return;
    pthread_mutex_unlock(&s->lock);
    close_opening(s, o);
    pthread_mutex_lock(&s->lock);
}

void tsp_opening_unref(struct tsp_server *s, struct tsp_opening *o)
{
    pthread_mutex_lock(&s->lock);
    tsp_opening_unref_locked(s, o);
    pthread_mutex_unlock(&s->lock);
}

int tsp_opening_intact(struct tsp_server *s, struct tsp_opening *o, struct err *e)
{
    int rc = s->o.backend.intact(o->data, e);
    if (!rc)
        return 0;
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->experiments.n; i++) {
        struct tsp_experiment *x = s->experiments.v[i];
        if (x->earlier == o) {
            x->earlier = NULL;
            tsp_opening_unref_locked(s, o);
            break;
        }
        if (x->open != o)
            continue;
        x->open = x->next;
        x->next = NULL;
        tsp_opening_unref_locked(s, o);
        break;
    }
    pthread_mutex_unlock(&s->lock);
    return rc;
}

void tsp_opening_give_memory(void *server)
{
    struct tsp_server *s = server;
    size_t done = 0;
    struct tsp_opening *o;
    pthread_mutex_lock(&s->lock);
    while (done < s->experiments.n) {
        if ((o = tsp_held_release(s->experiments.v[done], true)))
            tsp_opening_unref_locked(s, o); /* releases the lock for a moment */
        if (done >= s->experiments.n)
            break;
        o = s->experiments.v[done++]->open;
        if (!o || o->stage != STAGE_OPEN)
            continue;
        o->refs++;
        pthread_mutex_unlock(&s->lock);
        s->o.backend.give_memory(o->data);
        tsp_kept_rows_give_memory(o->rows);
        tsp_opening_unref(s, o);
        pthread_mutex_lock(&s->lock);
    }
    pthread_mutex_unlock(&s->lock);
}

void tsp_opening_abandon(struct tsp_opening *o)
{
    atomic_store_explicit(&o->unwanted, true, memory_order_relaxed);
}

struct tsp_opening *tsp_opening_ref(struct tsp_experiment *x)
{
    if (x->open)
        x->open->refs++;
    return x->open;
}

struct tsp_opening *tsp_opening_ref_for(struct tsp_experiment *x, const char *output)
{
    struct tsp_opening *o = tsp_held_for(x, output);
    if (!o)
        return tsp_opening_ref(x);
    o->refs++;
    return o;
}

const struct tsp_output *tsp_opening_output(const struct tsp_opening *o, const char *id)
{
    for (size_t i = 0; i < o->data->n_outputs; i++)
        if (!strcmp(o->data->outputs[i].id, id))
            return &o->data->outputs[i];
    return NULL;
}

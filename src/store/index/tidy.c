/* SPDX-License-Identifier: MIT */
/* Joins small chunks of an experiment that stays in use: those of its traces as they were opened, and only if the
 * stores are still the same. Building is left to the next opening. */
#include <unistd.h>

#include "index/stores.h"

static int join_locked(const struct index_files *f, const struct index_options *o, bool *joined, struct err *e)
{
    struct index_history h;
    int rc = index_history_read(f, &h, e);
    rc = rc ?: index_history_intact(f, &h, e);
    rc = rc ?: index_join(f, &h, o, joined, e);
    index_history_free(&h);
    return rc;
}

/* Returns, without the lock, whether there is nothing to do. */
static bool is_settled(const struct index_files *f, const struct index_options *o)
{
    struct index_history h;
    bool settled = index_history_read(f, &h, &(struct err){0}) || index_history_settled(f, &h, o);
    index_history_free(&h);
    return settled;
}

static int join_trace(struct index_files *f, const struct index_options *o, bool *joined, struct err *e)
{
    if (is_settled(f, o))
        return 0;
    f->lock = index_lock_dir(f->dir, 0, e);
    if (f->lock < 0)
        return f->lock == ERR_CANCELLED ? 0 : f->lock;
    int rc = join_locked(f, o, joined, e);
    close(f->lock);
    return rc;
}

/* Joins chunks of all traces. A failure of one trace stops no other, unless the caller asked to stop. */
int index_experiment_join(struct experiment *x, const struct index_options *options, bool *joined, struct err *e)
{
    struct index_options o = *options;
    int rc = 0;
    o.join = true;
    *joined = false;
    for (size_t i = 0; i < x->traces.n && !*joined && rc != ERR_CANCELLED; i++) {
        const struct index_trace *t = &x->traces.v[i];
        struct arena names = {0};
        if (!t->types) /* stores were unavailable */
            continue;
        const char *dir = t->is_kernel ? x->hosts.v[t->host].store_dir : t->store_dir;
        struct index_files files = index_files_in(&names, dir, t);
        int failed = join_trace(&files, &o, joined, e);
        rc = failed ? failed : rc;
        arena_fini(&names);
    }
    return *joined ? 0 : rc;
}

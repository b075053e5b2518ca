/* SPDX-License-Identifier: MIT */
/* Paths of requests that continue on other machines of a cluster. */
#include <stdlib.h>

#include "base/mem.h"
#include "path/remote.h"
#include "views/served_list.h"
#include "views/views.h"

static int walk(void *arg, const struct request_walk *w, size_t n, struct request_paths *out, struct err *e)
{
    const struct served_far *f = arg;
    const struct view_host *first = n ? served_host(f->x, w->thread.host) : f->x->hosts;
    const struct view_host *reference = first->map ? &f->x->hosts[first->map->reference] : first;
    struct views_far_request *asked = mem_zalloc((n + 1) * sizeof *asked);
    int rc = 0;
    for (size_t i = 0; i < n && !rc; i++) {
        const struct view_host *h = served_host(f->x, w[i].thread.host);
        asked[i] = (struct views_far_request){.host = h->index->key,
            .thread = index_row_id(h->index, w[i].thread.row),
            .begin = w[i].begin,
            .end = w[i].end};
        asked[i].from = w[i].from.row < 0 ? path_remote_cpu(w[i].from.row) : asked[i].thread;
        if (h != first && !h->map)
            rc = err_set(e, ERR_ARG, "paths of requests end at this server: its machines are not synchronised");
    }
    if (!rc)
        rc = f->x->far->requests(f->x->far->arg, reference->index->key, asked, n, f->stop, out, e);
    free(asked);
    return rc;
}

static void release(void *arg, struct request_paths *p)
{
    const struct served_far *f = arg;
    f->x->far->release_requests(f->x->far->arg, p);
}

void served_far_init(struct served_far *f, const struct views *x, const atomic_bool *stop)
{
    *f = (struct served_far){.x = x, .stop = stop};
    f->is = (struct requests_far){f, walk, release};
}

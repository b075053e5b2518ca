/* SPDX-License-Identifier: MIT */
/* A node's part in sharing traces: it has a share of those that were indexed, and indexes those that are asked for. */
#include <stdlib.h>

#include "base/file.h"
#include "share/assignment.h"
#include "share/worker.h"

struct sharer {
    const struct cluster_node_context *node;
    char *root; /* a real path */
    struct share_assignment *assignment;
    struct worker *worker;
};

static int open_part(
    const void *options, const struct cluster_node_context *node, void **part, const char **directory, struct err *e)
{
    const char *given = options;
    char *root = file_real_path(given);
    *part = NULL;
    if (!root)
        return err_sys(e, "--share %s", given);
    struct sharer *s = *part = mem_zalloc(sizeof *s);
    s->node = node;
    *directory = s->root = root;
    return 0;
}

static int start_part(void *part, struct err *e)
{
    struct sharer *s = part;
    const struct cluster_node_context *n = s->node;
    struct share_assignment_options shares = {n->cluster, n->node, n->instance, n->changed, n->changed_arg};
    struct share_worker_options work = {n->cluster, n->node, s->root, n->store, n->tell, n->tell_arg};
    int rc = share_assignment_start(n->bus, &shares, &s->assignment, e);
    return rc ? rc : share_worker_start(n->bus, &work, &s->worker, e);
}

static void close_part(void *part)
{
    struct sharer *s = part;
    share_worker_stop(s->worker);
    share_assignment_stop(s->assignment);
    free(s->root);
    free(s);
}

static bool list(void *part, struct cluster_share *out, int64_t *again_ns)
{
    return share_assignment_list(((struct sharer *)part)->assignment, out, again_ns);
}

static int resolve(const void *part, const char *path, char **real, struct err *e)
{
    return share_resolve(((const struct sharer *)part)->root, path, real, e);
}

static void opened(void *part, const struct cluster_share *share)
{
    share_assignment_opened(((struct sharer *)part)->assignment, share);
}

static void stop_work(void *part)
{
    struct sharer *s = part;
    share_worker_stop(s->worker);
    s->worker = NULL;
}

static void hand_over(void *part, int64_t deadline_ns)
{
    share_assignment_hand_over(((struct sharer *)part)->assignment, deadline_ns);
}

const struct cluster_sharing share_part = {.open = open_part,
    .start = start_part,
    .close = close_part,
    .list = list,
    .resolve = resolve,
    .opened = opened,
    .stop_work = stop_work,
    .hand_over = hand_over};

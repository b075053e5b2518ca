/* SPDX-License-Identifier: MIT */
#include "cli/found.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/time.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "cli/nodes.h"

#define WAIT_NS (2 * NS_PER_S)
#define PATIENCE_NS (3 * NS_PER_S) /* timeout for nodes that do not answer */
#define TOLD_NS (2 * NS_PER_S)     /* lifetime of the cached answer, so that many readers cause one query */
#define LAST_NS (10 * NS_PER_S)    /* lifetime of the cached answer while nodes are asked again */

enum { LOOK_US = 20000 };

/* Waits a moment for nodes, and notes if none has announced a server: the user may have started the coordinator first,
 * or the nodes may not announce theirs. */
static void await_first(struct cli_cluster *c, struct cli_found *f)
{
    struct arena a = {0};
    struct cluster_server *seen;
    size_t n;
    bool all;
    for (int64_t end = time_monotonic_ns() + WAIT_NS;;) {
        all = cluster_servers_list(f->servers, &a, &seen, &n);
        if (all || time_monotonic_ns() > end)
            break;
        usleep(LOOK_US);
    }
    if (all && !n)
        cli_note("cluster %s has no node yet that says where its server is; they appear as they come (`weft serve "
                 "--cluster URL --node NAME TRACE…`)",
            c->name ? c->name : CLUSTER_DEFAULT);
    arena_fini(&a);
}

int cli_found_open(struct cli_cluster *c, struct cli_found *out, struct err *e)
{
    *out = (struct cli_found){.cluster = c->name};
    pthread_mutex_init(&out->lock, NULL);
    pthread_cond_init(&out->answered, NULL);
    int rc = cli_cluster_connect(c, "weft coordinate", false, &out->bus, e);
    if (!rc)
        rc = cluster_servers_watch(out->bus, c->name, &out->servers, e);
    if (!rc)
        await_first(c, out);
    return rc;
}

void cli_found_close(struct cli_found *f)
{
    cluster_servers_close(f->servers);
    if (f->bus)
        bus_close(f->bus);
    free(f->told);
    *f = (struct cli_found){0};
}

bool cli_found_list(void *arg, struct arena *a, struct coord_found **out, size_t *n)
{
    const struct cli_found *f = arg;
    struct cluster_server *seen;
    bool known = cluster_servers_list(f->servers, a, &seen, n);
    *out = arena_new(a, struct coord_found, *n + 1);
    for (size_t i = 0; i < *n; i++)
        (*out)[i] = (struct coord_found){seen[i].node, seen[i].url,
            seen[i].here_only ? "it can be reached on its own machine only: start it with --listen ADDRESS:PORT, or "
                                "tell others its address with --public-url URL"
                              : NULL};
    return known;
}

/* Called with the lock held; releases it while nodes are asked. */
static void ask_nodes(struct cli_found *f)
{
    struct cli_nodes nodes;
    struct text t = {.fd = -1};
    struct err problem = {0};
    int64_t begun_ns = time_monotonic_ns();
    f->asking = true;
    pthread_mutex_unlock(&f->lock);
    int rc = cli_nodes_ask(f->bus, f->cluster, PATIENCE_NS, &nodes, &problem);
    if (!rc)
        cli_nodes_write_json(&nodes, &t);
    cli_nodes_close(&nodes);
    pthread_mutex_lock(&f->lock);
    free(f->told);
    f->told = rc ? NULL : text_take(&t);
    f->problem = problem;
    f->told_ns = begun_ns;
    f->asking = false;
    pthread_cond_broadcast(&f->answered);
}

static bool is_older(const struct cli_found *f, int64_t age_ns)
{
    return !f->told_ns || time_monotonic_ns() - f->told_ns > age_ns;
}

int cli_found_tell(void *arg, struct text *out, struct err *e)
{
    struct cli_found *f = arg;
    pthread_mutex_lock(&f->lock);
    if (!f->asking && is_older(f, TOLD_NS))
        ask_nodes(f);
    while (f->asking && is_older(f, LAST_NS))
        pthread_cond_wait(&f->answered, &f->lock);
    bool told = f->told != NULL;
    if (told)
        text_puts(out, f->told);
    else
        *e = f->problem;
    pthread_mutex_unlock(&f->lock);
    return told ? 0 : e->code;
}

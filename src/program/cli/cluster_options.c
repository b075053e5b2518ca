/* SPDX-License-Identifier: MIT */
/* Options of a cluster, checked before anything of it is opened. */
#include "cli/cluster.h"

void cli_cluster_give_way(struct cli_cluster *c, size_t n)
{
    if (n && cli_is_setting(&c->url))
        c->url = NULL;
    if (!c->url && cli_is_setting(&c->timeout))
        c->timeout = NULL;
}

int cli_cluster_check(struct cli_cluster *c, size_t n, struct err *e)
{
    cli_cluster_give_way(c, n);
    if (c->url && n)
        return err_set(e, ERR_ARG, "the traces of a cluster are with its nodes: give --cluster, or TRACEs, not both");
    if (!c->url && c->timeout)
        return err_set(e, ERR_ARG, "--timeout is for the nodes of a cluster: give --cluster URL");
    return c->url ? 0 : cli_need_traces(n, e);
}

/* SPDX-License-Identifier: MIT */
/* weft sync --cluster: the clocks that the nodes share. */
#include "cli/sync.h"

#include <unistd.h>

int cli_sync_ask_cluster(struct cli_cluster *cluster, const struct cli_clocks *clocks, int format)
{
    struct err e = {0};
    struct cli_asked a;
    int rc = cli_cluster_ask(cluster, clocks, &a, &e);
    const struct clock_net *net = rc ? NULL : cluster_clocks(a.cluster);
    if (!rc && !net)
        rc = err_set(&e, ERR_ARG, "every host keeps its own clock (--no-sync): there is nothing to show");
    if (!rc)
        rc = clock_net_relates(net, SIZE_MAX, &e);
    int code;
    if (rc) {
        code = cli_fail(&e);
    } else {
        struct text out = TEXT_TO(STDOUT_FILENO);
        cli_sync_write(net, format, &out);
        code = cli_asked_finish(&a, &out, false);
    }
    cli_asked_close(&a);
    return code;
}

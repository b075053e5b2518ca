/* SPDX-License-Identifier: MIT */
/* weft flows --cluster: lines and delays from the nodes. */
#include <stdlib.h>

#include "base/mem.h"
#include "cli/flows.h"

static int relate_nodes(const struct cli_asked *a, struct flows_choice *q, struct flows_found *f, struct err *e)
{
    const struct clock_net *net = cluster_clocks(a->cluster);
    int rc = net && q->clocks.reference ? clock_net_relates(net, SIZE_MAX, e) : 0;
    f->hosts = mem_zalloc((a->n + 1) * sizeof *f->hosts);
    for (size_t i = 0; i < a->n && !rc; i++)
        cli_flows_add_host(f, a->hosts[i].name, cluster_clock_map(a->cluster, i), a->hosts[i].begin, a->hosts[i].end);
    return rc ? rc : cli_flows_settle(q, f, e);
}

/* *lacking: something is missing, and was reported. Fails if everything is missing. */
static int ask(
    const struct cli_asked *a, const struct flows_choice *q, struct flows_found *f, bool *lacking, struct err *e)
{
    struct cluster_flows_question is = {q->begin, q->end, q->by_flow};
    size_t n_told = 0, without = 0;
    bool *told = mem_zalloc((a->n + 1) * sizeof *told);
    size_t away = cluster_find_flows(a->cluster, &is, a->deadline_ns, &f->lines, told, e);
    for (size_t i = 0; i < a->n; i++)
        n_told += f->hosts[i].told = told[i];
    int rc = away && !n_told ? e->code : 0;
    if (!rc && away)
        cli_note("%s; what its hosts saw is not shown", e->text);
    if (!rc)
        without = cluster_find_delays(a->cluster, &is, told, a->deadline_ns, &f->delays, e);
    if (without)
        cli_note("delays of %zu %s are not shown: %s", without, without > 1 ? "hosts" : "host", e->text);
    *lacking = cli_asked_note_copies(a) || away || without;
    free(told);
    return rc;
}

int cli_flows_ask_cluster(struct flows_choice *q, struct cli_cluster *cluster)
{
    struct err e = {0};
    struct cli_asked a;
    struct flows_found f = {.names = CLI_HOSTS_NONE};
    bool lacking = false;
    int rc = cli_cluster_ask(cluster, &q->clocks, &a, &e), code;
    if (!rc)
        rc = relate_nodes(&a, q, &f, &e);
    if (!rc)
        rc = ask(&a, q, &f, &lacking, &e);
    if (rc) {
        code = cli_fail(&e);
    } else {
        struct text out = TEXT_TO(1);
        cli_flows_show(q, &f, &out);
        code = cli_asked_finish(&a, &out, lacking);
    }
    cli_flows_found_fini(&f);
    cli_asked_close(&a);
    return code;
}

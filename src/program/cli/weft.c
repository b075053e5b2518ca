/* SPDX-License-Identifier: MIT */
/* The program weft: verbs over traces run here, and `span`, which starts weft-span; all others run in weft-net. */
#include <string.h>

#include "cli/cli.h"
#include "cli/critpath.h"
#include "cli/flows.h"
#include "cli/programs.h"
#include "cli/spread.h"
#include "cli/sync.h"
#include "cli/threads.h"

static const struct cli_verb *const local_verbs[] = {&verb_info, &verb_events, &verb_index, &verb_flows, &verb_threads,
    &verb_sync, &verb_critpath, &verb_requests, &verb_verify, &verb_span};

/* ---- parts of these verbs that ask a cluster: weft-net reads the arguments again ---- */

int cli_flows_ask_cluster(struct flows_choice *q, struct cli_cluster *c)
{
    return cli_run_net();
}

int cli_threads_ask_cluster(struct threads_choice *q, struct cli_cluster *c)
{
    return cli_run_net();
}

int cli_sync_ask_cluster(struct cli_cluster *c, const struct cli_clocks *clocks, int format)
{
    return cli_run_net();
}

int cli_critpath_ask_cluster(struct critpath_question *q)
{
    return cli_run_net();
}

int cli_spread_index(struct cli_spread *s, char **paths, size_t n)
{
    return cli_run_net();
}

int main(int argc, char **argv)
{
    cli_start(argv);
    for (size_t i = 0; argc > 1 && i < sizeof local_verbs / sizeof *local_verbs; i++)
        if (!strcmp(argv[1], local_verbs[i]->name))
            return local_verbs[i]->run(argc - 1, argv + 1);
    if (argc > 1 && (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")))
        return cli_version();
    return cli_run_net();
}

/* SPDX-License-Identifier: MIT */
/* weft sync: clock maps of all hosts, of traces or of a cluster. */
#ifndef WEFT_CLI_SYNC_H
#define WEFT_CLI_SYNC_H

#include "cli/cli.h"
#include "cli/cluster.h"
#include "clock/clock.h"

/* ---- verb_sync.c ---- */

/* Writes the clock maps as an enum cli_format. */
void cli_sync_write(const struct clock_net *, int format, struct text *out);

/* ---- sync_cluster.c ---- */

/* Answers by asking the nodes of a cluster; returns the exit code. */
int cli_sync_ask_cluster(struct cli_cluster *, const struct cli_clocks *, int format);

#endif

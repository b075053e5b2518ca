/* SPDX-License-Identifier: MIT */
/* Verbs that print their arguments, so that main.c can be tested alone. */
#include <stdio.h>
#include <unistd.h>

#include "cli/cli.h"

static int report(int argc, char **argv)
{
    for (int i = 0; i < argc; i++)
        printf("[%s]", argv[i]);
    printf("\n");
    return CLI_OK;
}

/* Writes enough output to notice that the reader of a pipe has gone. */
static int flood(int argc, char **argv)
{
    struct text out = TEXT_TO(STDOUT_FILENO);
    for (int i = 0; i < 100000 && text_drain(&out, 4096, NULL) == ERR_OK; i++)
        text_printf(&out, "line %d\n", i);
    return cli_finish(&out, CLI_OK);
}

/* The number that the first file opened gets. */
static int descriptor(int argc, char **argv)
{
    FILE *f = fopen("/dev/null", "r");
    return f ? fileno(f) : CLI_FAILED;
}

const struct cli_verb verb_info = {"info", "TRACE…", "reports its arguments", NULL, report};
const struct cli_verb verb_events = {"events", "TRACE…", "writes much", NULL, flood};
const struct cli_verb verb_index = {"index", "TRACE…", "opens a file", NULL, descriptor};
const struct cli_verb verb_flows = {"flows", "TRACE…", "reports its arguments", NULL, report};
const struct cli_verb verb_threads = {"threads", "TRACE…", "reports its arguments", NULL, report};
const struct cli_verb verb_sync = {"sync", "TRACE…", "reports its arguments", NULL, report};
const struct cli_verb verb_critpath = {"critpath", "TRACE…", "reports its arguments", NULL, report};
const struct cli_verb verb_requests = {"requests", "TRACE…", "reports its arguments", NULL, report};
const struct cli_verb verb_coordinate = {"coordinate", "", "reports its arguments", NULL, report};
const struct cli_verb verb_serve = {"serve", "[TRACE…]", "reports its arguments", NULL, report};
const struct cli_verb verb_span = {"span", "", "reports its arguments", NULL, report};
const struct cli_verb verb_collect = {"collect", "", "reports its arguments", NULL, report};
const struct cli_verb verb_spans = {"spans", "", "reports its arguments", NULL, report};
const struct cli_verb verb_status = {"status", "", "reports its arguments", NULL, report};
const struct cli_verb verb_place = {"place", "", "reports its arguments", NULL, report};
const struct cli_verb verb_verify = {"verify", "TRACE…", "reports its arguments", NULL, report};
const struct cli_verb verb_config = {"config", "[VERB]", "reports its arguments", NULL, report};
const struct cli_verb verb_completion = {"completion", "SHELL", "reports its arguments", NULL, report};

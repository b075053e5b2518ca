/* SPDX-License-Identifier: MIT */
/* The program weft-net, which has all verbs: finds the verb and runs it. */
#include "cli/cli.h"

#include <unistd.h>

#include "base/near.h"
#include "cli/programs.h"

const struct cli_verb *const cli_verbs[] = {
    &verb_info,
    &verb_events,
    &verb_index,
    &verb_flows,
    &verb_threads,
    &verb_sync,
    &verb_critpath,
    &verb_requests,
    &verb_serve,
    &verb_coordinate,
    &verb_status,
    &verb_place,
    &verb_span,
    &verb_collect,
    &verb_spans,
    &verb_verify,
    &verb_config,
    &verb_completion,
    NULL,
};
enum { N_VERBS = sizeof cli_verbs / sizeof *cli_verbs - 1 };

static const struct cli_verb *find_verb(const char *name)
{
    for (size_t i = 0; i < N_VERBS; i++)
        if (strcmp(cli_verbs[i]->name, name) == 0)
            return cli_verbs[i];
    return NULL;
}

static int unknown_verb(const char *name)
{
    const char *names[N_VERBS + 1] = {0};
    for (size_t i = 0; i < N_VERBS; i++)
        names[i] = cli_verbs[i]->name;
    const char *near = near_name(name, names);
    struct err e = {0};
    if (near)
        err_set(&e, ERR_ARG, "no verb \"%s\"; did you mean %s?", name, near);
    else
        err_set(&e, ERR_ARG, "no verb \"%s\"; weft --help lists them", name);
    return cli_fail(&e);
}

static void write_overview(struct text *t)
{
    text_puts(t,
        "Usage: weft VERB [options] TRACE…\n\n"
        "  Where did the time go, and which machine, thread and cause took it?\n"
        "  A TRACE is a directory that holds a CTF trace, or a tree of them; NAME=PATH names its host.\n\nVerbs:\n");
    for (size_t i = 0; i < N_VERBS; i++)
        text_printf(t, "  %-10s  %s\n", cli_verbs[i]->name, cli_verbs[i]->summary);
    text_puts(t, "\nweft help VERB shows the options of a verb; weft --version the version.\n\n");
    cli_help_status(cli_width(), t);
    text_puts(t, "\nExample:\n  weft critpath --thread client:204 examples/three-tier\n");
}

static int overview(int fd, int code)
{
    struct text t = TEXT_TO(fd);
    write_overview(&t);
    return cli_finish(&t, code);
}

static int help(int argc, char **argv)
{
    if (argc < 3)
        return overview(STDOUT_FILENO, CLI_OK);
    const struct cli_verb *verb = find_verb(argv[2]);
    if (!verb)
        return unknown_verb(argv[2]);
    char flag[] = "--help", *for_verb[] = {argv[2], flag, NULL};
    return verb->run(2, for_verb);
}

int main(int argc, char **argv)
{
    cli_start(argv);
    if (argc < 2)
        return overview(STDERR_FILENO, CLI_USAGE);
    const char *first = argv[1];
    if (!strcmp(first, "--help") || !strcmp(first, "-h") || !strcmp(first, "help"))
        return help(argc, argv);
    if (!strcmp(first, "--version") || !strcmp(first, "-V"))
        return cli_version();
    const struct cli_verb *verb = find_verb(first);
    return verb ? verb->run(argc - 1, argv + 1) : unknown_verb(first);
}

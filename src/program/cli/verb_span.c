/* SPDX-License-Identifier: MIT */
/* weft span: hands over to weft-span, which starts in a fraction of the time that this program takes. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/cli.h"
#include "cli/settings.h"
#include "script/script.h"

enum { MOST_OPTIONS = 32 };

/* Takes the place of this program if weft-span lies beside `program`. */
static void become_beside(const char *program, char **argv)
{
    char path[4096];
    size_t n = (size_t)(file_name(program) - program);
    if (n > 0 && snprintf(path, sizeof path, "%.*sweft-span", (int)n, program) < (int)sizeof path)
        execv(path, argv);
}

static int hand_over(char **argv)
{
    char name[] = "weft-span", self[4096];
    const char *called = (const char *)getauxval(AT_EXECFN);
    struct err e = {0};
    argv[0] = name;
    signal(SIGPIPE, SIG_DFL); /* default, as the command to run expects */
    if (called)
        become_beside(called, argv);
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n > 0) {
        self[n] = '\0';
        become_beside(self, argv);
    }
    execvp(name, argv);
    err_set(&e, ERR_NOTFOUND, "span: the program weft-span is neither beside weft nor in the PATH (%s): install it too",
        strerror(errno));
    return cli_fail(&e);
}

static int run(int argc, char **argv)
{
    static const char *nothing;
    struct cli_option options[MOST_OPTIONS] = {0};
    int n;
    for (size_t i = 0; script_options[i].name && i < MOST_OPTIONS - 1; i++)
        options[i] = (struct cli_option){script_options[i].name, script_options[i].letter, CLI_STRING,
            script_options[i].value, script_options[i].help, &nothing};
    bool help = argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"));
    return help || cli_survey ? cli_parse(&verb_span, options, argc, argv, &n) : hand_over(argv);
}

const struct cli_verb verb_span = {"span", "run|start|event|end|emit|context|flush …",
    "spans from shell scripts: of a command, or from start to end", "weft span run --name listing -- ls -l /usr", run,
    true};

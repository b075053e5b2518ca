/* SPDX-License-Identifier: MIT */
/* Arguments of the commands, by the table in script.h. */
#ifndef WEFT_SCRIPT_OPTIONS_H
#define WEFT_SCRIPT_OPTIONS_H

#include <stdbool.h>

#include "base/mem.h"
#include "base/text.h"
#include "script/script.h"

enum { SCRIPT_RUN = 1, SCRIPT_START = 2, SCRIPT_END = 4, SCRIPT_EVENT = 8, SCRIPT_EMIT = 16, SCRIPT_CONTEXT = 32,
    SCRIPT_FLUSH = 64 };
struct script_arguments {
    const char *name, *service, *kind, *status, *message, *start, *end, *format;
    VEC(const char *) attributes;
    VEC(char *) wrong;          /* `run`: arguments left out, and why; owned */
    bool quiet, help;
    int n;                      /* positional arguments: argv[0 .. n - 1] */
    char **argv;
};

/* Reads the arguments behind the command's name. For `run`, the first argument that is no option begins the command to
 * run; for others, options may stand anywhere. ERR_ARG: wrong use. `run` never returns it, but leaves out what makes no
 * sense: after an unknown option its command begins at "--", or else at the next argument that is no option. */
int script_read_arguments(unsigned command, int argc, char **argv, struct script_arguments *, struct err *);
void script_arguments_fini(struct script_arguments *);
void script_write_help(struct text *);

#endif

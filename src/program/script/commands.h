/* SPDX-License-Identifier: MIT */
/* Common parts of the commands of weft-span and pfeil. */
#ifndef WEFT_SCRIPT_COMMANDS_H
#define WEFT_SCRIPT_COMMANDS_H

#include "script/settings.h"

enum { SCRIPT_EXIT_OK = 0, SCRIPT_EXIT_FAILED = 1, SCRIPT_EXIT_USAGE = 2, SCRIPT_EXIT_PARTIAL = 3 };

/* Makes a new span below the context of the environment, or the first of a new trace. */
void script_new_span(const struct script_settings *, bool pfeil, struct script_span *);
/* pfeil [-v] [-y|-n] [-s SERVICE] [-t KEY=VALUE[,…]]… OPERATION [COMMAND ARGUMENT…] */
int script_pfeil(int argc, char **argv);

#endif

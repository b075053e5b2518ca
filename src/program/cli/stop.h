/* SPDX-License-Identifier: MIT */
/* Stop signals (ctrl-C, SIGTERM) for long-running verbs that must clean up. */
#ifndef WEFT_CLI_STOP_H
#define WEFT_CLI_STOP_H

#include <stdbool.h>

/* Holds the signals, or lets them end the program again. Hold them before threads start, so that no thread gets
 * them. */
void cli_stop_hold(bool hold);
/* Returns whether a signal has come. asked: a bool that remembers it, false at first. */
bool cli_stop_asked(void *asked);

#endif

/* SPDX-License-Identifier: MIT */
/* Verbs that go on for long and have something to put in order when they are stopped (ctrl-C, SIGTERM). */
#ifndef WEFT_CLI_STOP_H
#define WEFT_CLI_STOP_H

#include <stdbool.h>

/* The signals are held, or end the program again. To be held before there are threads, which then never get them. */
void cli_stop_hold(bool hold);
/* Has one come? asked: a bool that remembers it, false at first. */
bool cli_stop_asked(void *asked);

#endif

/* SPDX-License-Identifier: MIT */
/* The two programs. `weft` has the verbs that read traces only, and links few libraries: its start takes a fifth of the
 * time. `weft-net` has all verbs, and links what servers, brokers and databases need. `weft` replaces itself by
 * `weft-net` where one of those is wanted: a caller sees one program. */
#ifndef WEFT_CLI_PROGRAMS_H
#define WEFT_CLI_PROGRAMS_H

/* Prepares the process; main() calls it first, with its argv. Opens the standard descriptors that a caller closed (a
 * trace or store opened as number 1 would be overwritten), ignores SIGPIPE, keeps a copy of argv for cli_run_net. */
void cli_start(char **argv);
/* Prints the version; returns the exit code. */
int cli_version(void);
/* Replaces this program by weft-net, with the arguments of cli_start. Looks for it beside this program, then where both
 * are installed (WEFT_NET, from the folder of this program). Returns only where it cannot be run: the exit code, after
 * a message. */
int cli_run_net(void);

#endif

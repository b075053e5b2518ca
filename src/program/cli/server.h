/* SPDX-License-Identifier: MIT */
/* Private to cli: common parts of verbs that serve. */
#ifndef WEFT_CLI_SERVER_H
#define WEFT_CLI_SERVER_H

#include <stdbool.h>

#include "bus/bus.h"

/* Prepares the process for many connections and for lack of memory. Before threads start. */
void cli_prepare_server(void);
/* The option --host of verbs that serve. */
#define CLI_HOSTS(list) \
    {"host", 0, CLI_LIST, "NAME", \
        "answer to this host name, too (default: addresses, localhost, this machine's name); without a token, " \
        "requests for others are refused; may be given several times", (list)}
/* Notes who can read from this address, if the user may not expect it. */
void cli_note_reach(const char *address, bool has_token);
/* Finds the URL by which others reach a server that listens there. For all addresses ("http://0.0.0.0:8080") it has the
 * address used to talk to the broker. Returns false if that is unknown. */
enum { CLI_URL = 600 };
bool cli_reached_at(const char *listening, struct bus *, char out[CLI_URL]);
/* Returns whether only this machine can reach the URL. */
bool cli_is_loopback(const char *url);

#endif

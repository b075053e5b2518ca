/* SPDX-License-Identifier: MIT */
/* Private to cli: what verbs that serve have in common. */
#ifndef WEFT_CLI_SERVER_H
#define WEFT_CLI_SERVER_H

#include <stdbool.h>

#include "bus/bus.h"

/* The process shall hold many connections, and survive the want of memory. Before threads start. */
void cli_prepare_server(void);
/* The option --host of verbs that serve. */
#define CLI_HOSTS(list) \
    {"host", 0, CLI_LIST, "NAME", \
        "answer to this host name, too (default: addresses, localhost, this machine's name); without a token, " \
        "requests for others are refused; may be given several times", (list)}
/* What somebody who starts it may not expect: who can read there. */
void cli_note_reach(const char *address, bool has_token);
/* Where others reach a server that listens there ("http://0.0.0.0:8080"): for all addresses stands that by which it
 * talks to the broker. False: that is not known. */
enum { CLI_URL = 600 };
bool cli_reached_at(const char *listening, struct bus *, char out[CLI_URL]);
/* Only this machine reaches it. */
bool cli_is_loopback(const char *url);

#endif

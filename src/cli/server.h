/* Private to cli: what verbs that serve have in common. */
#ifndef WEFT_CLI_SERVER_H
#define WEFT_CLI_SERVER_H

#include <stdbool.h>

/* The process shall hold many connections, and survive the want of memory. Before threads start. */
void cli_prepare_server(void);
/* What somebody who starts it may not expect: who can read there. */
void cli_note_reach(const char *address, bool has_token);

#endif

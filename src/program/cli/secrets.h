/* SPDX-License-Identifier: MIT */
/* Secrets come from files, never from the command line, where everybody sees them. */
#ifndef WEFT_CLI_SECRETS_H
#define WEFT_CLI_SECRETS_H

#include "base/err.h"

/* The first line of a file; free() it. `option`: which names the file. */
int cli_read_token(const char *option, const char *path, char **token, struct err *e);

#endif

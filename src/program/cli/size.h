/* SPDX-License-Identifier: MIT */
/* Private to cli: sizes as people write them. */
#ifndef WEFT_CLI_SIZE_H
#define WEFT_CLI_SIZE_H

#include <stdint.h>

#include "base/err.h"

/* "512M", "2G", plain bytes. */
int cli_parse_size(const char *option, const char *s, uint64_t *out, struct err *e);

#endif

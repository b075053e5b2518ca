/* SPDX-License-Identifier: MIT */
/* Resources of the machine that this process may use. */
#ifndef WEFT_BASE_MACHINE_H
#define WEFT_BASE_MACHINE_H

#include <stdint.h>

/* Memory that this process may use, bytes: the machine's, or the limit of a control group that the process is in, or
 * of a group above it, where that is less. Version 2 (memory.max) and version 1 (memory.limit_in_bytes) count. Limits
 * of what grows with the machine are made of this. */
uint64_t machine_memory_bytes(void);
/* The least limit of the process' control groups; UINT64_MAX: there is none. root: where /proc is looked for ("": the
 * system's), and where the mounted groups are. */
uint64_t machine_group_limit(const char *root);

#endif

/* SPDX-License-Identifier: MIT */
/* Resources of the machine that this process may use. */
#ifndef WEFT_BASE_MACHINE_H
#define WEFT_BASE_MACHINE_H

#include <stdint.h>

/* Memory that this process may use, bytes: the machine's, or the limit of a control group of the process or of a group
 * above it, if lower. Versions 2 (memory.max) and 1 (memory.limit_in_bytes) count. Limits that scale with the machine
 * are computed from it. */
uint64_t machine_memory_bytes(void);
/* Lowest limit of the process' control groups; UINT64_MAX: none. root: prefix of /proc and of the mounted groups ("":
 * the system's). */
uint64_t machine_group_limit(const char *root);

#endif

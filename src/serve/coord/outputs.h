/* SPDX-License-Identifier: MIT */
/* Private to coord: lists of outputs. */
#ifndef WEFT_COORD_OUTPUTS_H
#define WEFT_COORD_OUTPUTS_H

#include "coord/gather.h"

/* Writes the outputs (or configuration types) of all servers, each once. Those of missing servers are written as last
 * offered. */
coord_merge coord_merge_outputs;

#endif

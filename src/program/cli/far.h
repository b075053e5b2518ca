/* SPDX-License-Identifier: MIT */
/* Critical paths of a server that is a node: they go on to the other nodes of its cluster. */
#ifndef WEFT_CLI_FAR_H
#define WEFT_CLI_FAR_H

#include <stdatomic.h>

#include "views/views.h"

struct cluster_cache;

/* `cache` may be set at any time, once; until then nothing is known of other nodes. The struct is views_far.arg. */
struct cli_far { _Atomic(struct cluster_cache *) cache; };
struct views_far cli_far_of(struct cli_far *);

#endif

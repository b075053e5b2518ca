/* Critical paths of a server that is a node: they go on to the other nodes of its cluster. */
#ifndef WEFT_CLI_FAR_H
#define WEFT_CLI_FAR_H

#include "views/views.h"

struct cluster_memory;

/* `memory` may be set later, but before the first question; the struct is views_far.arg. */
struct cli_far { struct cluster_memory *memory; };
struct views_far cli_far_of(struct cli_far *);

#endif

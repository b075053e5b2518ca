/* Private to the room: asks nodes for what clocks need of their hosts' packets, and finds the clocks. */
#ifndef WEFT_CLUSTER_GATHER_H
#define WEFT_CLUSTER_GATHER_H

#include "cluster/clocks.h"

struct bus; struct gathered;
/* What was gathered stays, as long as neither host nor question changes. */
struct gathered *gathered_new(void);
void gathered_free(struct gathered *);
/* used: by host of the roster, the hash of what was gathered, 0: nothing could be had; then its clock stands alone. */
int gather_clocks(struct gathered *, struct bus *, const char *cluster, const struct roster *,
    const struct clock_options *, struct clocks_host *used, struct clock_net **out, struct err *e);

#endif

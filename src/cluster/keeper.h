/* Private to the room: one of the nodes keeps the clocks of all: whenever hosts come, go or grow, it gathers what each
 * has of flows that another has too, finds the clocks and shares them. When it goes, another takes its place. */
#ifndef WEFT_CLUSTER_KEEPER_H
#define WEFT_CLUSTER_KEEPER_H

#include "base/err.h"

struct bus; struct keeper;
/* tell: something that people should know; called by a thread of the keeper. */
int keeper_start(struct bus *, const char *cluster, const char *node, void (*tell)(void *arg, const char *what),
    void *tell_arg, struct keeper **out, struct err *e);
void keeper_stop(struct keeper *);

#endif

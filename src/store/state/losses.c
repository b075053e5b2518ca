/* SPDX-License-Identifier: MIT */
#include "state/losses.h"

#include <stdlib.h>

#include "base/order.h"

static int by_begin(const void *a, const void *b)
{
    const struct state_disk_loss *x = a, *y = b;
    return order_of(x->begin, y->begin) ?: order_of(x->end, y->end) ?: order_of(x->cpu, y->cpu)
        ?: order_of(x->count, y->count);
}

void state_losses_sort(struct state_disk_loss *v, size_t n)
{
    if (n)
        qsort(v, n, sizeof *v, by_begin);
}

struct state_loss state_loss_of(const struct state_disk_loss *l)
{
    return (struct state_loss){l->begin, l->end > l->begin ? l->end : l->begin, l->count, l->cpu < -1 ? -1 : l->cpu};
}

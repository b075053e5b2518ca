/* SPDX-License-Identifier: MIT */
/* Private to graph: where events are missing. */
#ifndef WEFT_GRAPH_LOSSES_H
#define WEFT_GRAPH_LOSSES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"

/* [begin, end): an event at `begin` is the last before the gap, one at `end` the first after it. */
struct graph_window {
    int64_t begin, end;
    int64_t reach; /* greatest end of this one and all before it */
    uint32_t cpu;
    bool open; /* ends when its CPU is heard of again */
};
struct graph_windows { VEC(struct graph_window) by_begin; }; /* zero-initialise */

void graph_windows_add(struct graph_windows *, uint32_t cpu, int64_t begin, int64_t end, bool open);
/* The CPU's open window ends at ts at the latest; when nothing is left of it, it goes. */
void graph_windows_close(struct graph_windows *, uint32_t cpu, int64_t ts);
/* Hull of all windows between an event at `begin` and one at `end`, cut to them; false when there is none. O(log n) */
bool graph_windows_hull(const struct graph_windows *, int64_t begin, int64_t end, int64_t *from, int64_t *to);

/* Drops windows that no question after now can depend on, where questions are of hulls that begin at one of the times
 * that graph_windows_keep is told of, or now or later, and end now or later; those that end before ask for the begin
 * only. Open windows stay: they may yet be found to be shorter, or none. */
struct graph_windows_kept { VEC(uint8_t) by_window; struct graph_windows closed; VEC(size_t) numbers; };
void graph_windows_keep_begin(const struct graph_windows *, struct graph_windows_kept *);
void graph_windows_keep(struct graph_windows_kept *, int64_t begin);
void graph_windows_keep_end(struct graph_windows *, struct graph_windows_kept *);

#endif

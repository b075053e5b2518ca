/* SPDX-License-Identifier: MIT */
/* Private to graph: gaps in the events. */
#ifndef WEFT_GRAPH_LOSSES_H
#define WEFT_GRAPH_LOSSES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"

/* [begin, end): the event at `begin` is the last before the gap, the one at `end` the first after it. */
struct graph_window {
    int64_t begin, end;
    int64_t reach; /* greatest end of this one and all before */
    uint32_t cpu;
    bool open; /* ends at the next record of its CPU */
};
struct graph_windows { VEC(struct graph_window) by_begin; }; /* zero-initialise */

void graph_windows_add(struct graph_windows *, uint32_t cpu, int64_t begin, int64_t end, bool open);
/* Ends the CPU's open window at ts at the latest; removes it if nothing is left. */
void graph_windows_close(struct graph_windows *, uint32_t cpu, int64_t ts);
/* Hull of all windows between an event at `begin` and one at `end`, cut to them; false: none. O(log n) */
bool graph_windows_hull(const struct graph_windows *, int64_t begin, int64_t end, int64_t *from, int64_t *to);

/* Drops windows on which no later query can depend. Later queries are for hulls that begin at a time passed to
 * graph_windows_keep, or now or later, and that end now or later; queries that end earlier use the begin only. Open
 * windows are kept, since they may become shorter or empty. */
struct graph_windows_kept { VEC(uint8_t) by_window; struct graph_windows closed; VEC(size_t) numbers; };
void graph_windows_keep_begin(const struct graph_windows *, struct graph_windows_kept *);
void graph_windows_keep(struct graph_windows_kept *, int64_t begin);
void graph_windows_keep_end(struct graph_windows *, struct graph_windows_kept *);

#endif

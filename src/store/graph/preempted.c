/* SPDX-License-Identifier: MIT */
/* Preempted rows: the threads that held their CPU. Computed when read, since the store has the CPUs' occupants. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "graph/series.h"

enum { CANDIDATES = 8, MOST_OCCUPANTS = 4096 };

/* Time per occupant. A new one replaces the least when the table is full, which keeps any that has more than 1/8 of the
 * time. */
struct shares {
    struct {
        int32_t row;
        int64_t ns;
    } v[CANDIDATES];
    int n;
};

static void add_share(struct shares *s, int32_t row, int64_t ns)
{
    int least = 0;
    for (int i = 0; i < s->n; i++) {
        if (s->v[i].row == row) {
            s->v[i].ns += ns;
            return;
        }
        if (s->v[i].ns < s->v[least].ns)
            least = i;
    }
    int at = s->n < CANDIDATES ? s->n++ : least;
    s->v[at].row = row;
    s->v[at].ns = ns;
}

/* Text "by 31 kworker/0:2", with the name that it had for most of [begin, end]. Made once per name: a thread that loses
 * the race frees its copy. */
static const char *by_row(const struct graph *g, int32_t row, int64_t begin, int64_t end)
{
    size_t former = graph_former(g, row, begin, end), slot = former < g->n_formers ? g->n_rows + former : (size_t)row;
    char *known = atomic_load_explicit(&g->by_row[slot], memory_order_acquire);
    if (known)
        return known;
    struct graph_row r;
    char text[64];
    graph_row_then(g, row, begin, end, &r);
    snprintf(text, sizeof text, "by %d %.40s", r.tid, r.name);
    char *mine = mem_strdup(text);
    if (atomic_compare_exchange_strong(&g->by_row[slot], &known, mine))
        return mine;
    free(mine);
    return known;
}

const char *graph_preempted_detail(const struct graph *g, int32_t row, uint32_t cpu, int64_t begin, int64_t end)
{
    struct graph_occupant o;
    if (!graph_occupant_find(g, cpu, begin, &o))
        return NULL;
    struct shares shares = {.n = 0};
    int64_t idle = 0;
    bool became_idle = false, more = true;
    for (uint32_t steps = 0; more && o.e.begin < end && steps < MOST_OCCUPANTS;
         more = graph_occupant_next(&o), steps++) {
        int64_t from = o.e.begin > begin ? o.e.begin : begin, to = o.e.end < end ? o.e.end : end;
        int32_t occupant = graph_host_row(o.chunk, o.row);
        if (o.row >= 0 && o.row == o.idle_row) {
            idle += to - from;
            became_idle |= o.e.begin >= begin;
        } else if (occupant >= 0 && occupant != row) {
            add_share(&shares, occupant, to - from);
        }
    }
    /* Idle time counts as throttling if the CPU became idle beside a runnable thread, not if it only takes its time to
     * answer the wake. */
    if (became_idle && idle * 2 >= end - begin)
        return "throttled";
    int most = -1;
    for (int i = 0; i < shares.n; i++)
        if (most < 0 || shares.v[i].ns > shares.v[most].ns)
            most = i;
    return most >= 0 && shares.v[most].ns > idle ? by_row(g, shares.v[most].row, begin, end) : NULL;
}

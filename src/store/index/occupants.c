/* SPDX-License-Identifier: MIT */
/* Threads on CPUs, and numbers of events before a time, for readers of single events. */
#include "graph/graph.h"
#include "index/index.h"
#include "state/state.h"

bool index_occupant_at(const struct index_host *h, int32_t cpu, int64_t t, struct index_occupant *out)
{
    struct state_interval i;
    int64_t row = h->states && cpu >= 0 ? state_find_row(h->states, STATE_CPU_THREAD, cpu) : -1;
    if (row < 0 || !state_at(h->states, STATE_CPU_THREAD, (size_t)row, t, &i))
        return false;
    *out = (struct index_occupant){i.begin, i.end, i.thread};
    return true;
}

int32_t index_occupant_row(const struct index_host *h, int32_t cpu, int64_t t)
{
    return h->graph && cpu >= 0 ? graph_cpu_occupant(h->graph, (uint32_t)cpu, t) : -1;
}

bool index_thread(const struct index_host *h, int32_t row, int64_t t, int32_t *tid, int32_t *tgid)
{
    struct graph_row r;
    if (!h->graph || row < 0)
        return false;
    graph_row_then(h->graph, row, t, t, &r);
    *tid = r.tid;
    *tgid = r.tgid;
    return true;
}

bool index_events_before(const struct index_host *h, int64_t t, uint64_t *out)
{
    bool exact;
    if (h->states)
        state_event_counts(h->states, &t, 1, out, &exact);
    return h->states;
}

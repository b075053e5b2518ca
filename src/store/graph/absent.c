/* SPDX-License-Identifier: MIT */
/* CPUs with missing streams: a thread that is not seen to run may run there. */
#include "graph/builder.h"
#include "graph/layout.h"

static void tell(struct graph_builder *b, uint32_t cpu, int64_t at)
{
    const struct graph_building_cpu *c = &b->cpus.v[cpu];
    int64_t end = c->absent_to < GRAPH_MOST_TIME ? c->absent_to : GRAPH_MOST_TIME;
    vec_push(
        &b->losses, ((struct graph_loss){.begin = at, .end = end > at ? end : at, .cpu = cpu, .absent = c->absent}));
}

void graph_builder_absent(struct graph_builder *b, const struct kernel_record *rec)
{
    struct graph_building_cpu *c = graph_builder_cpu(b, rec->cpu);
    int64_t begin = rec->u.absent.begin;
    if (c->absent)
        graph_builder_present(b, rec->cpu);
    graph_builder_lose_current(b, rec->cpu, begin);
    c->lost = true;
    c->heard = false;
    c->absent = rec->u.absent.by_target ? GRAPH_ABSENT_BY_TARGET : GRAPH_ABSENT;
    c->absent_from = begin;
    c->absent_to = rec->u.absent.end;
    b->n_absent++;
    tell(b, rec->cpu, begin > b->now ? begin : b->now);
}

void graph_builder_present(struct graph_builder *b, uint32_t cpu)
{
    struct graph_building_cpu *c = &b->cpus.v[cpu];
    int64_t end = c->absent_to < b->now ? c->absent_to : b->now;
    c->absent = GRAPH_NOT_ABSENT;
    b->n_absent--;
    if (c->absent_from < end)
        graph_windows_add(&b->windows, cpu, c->absent_from, end, false);
}

void graph_builder_absent_again(struct graph_builder *b)
{
    for (uint32_t cpu = 0; cpu < b->cpus.n; cpu++) {
        b->n_absent += b->cpus.v[cpu].absent != GRAPH_NOT_ABSENT;
        if (b->cpus.v[cpu].absent && b->cpus.v[cpu].absent_to > b->now)
            tell(b, cpu, b->now);
    }
}

bool graph_builder_missing(
    const struct graph_builder *b, int64_t begin, int64_t end, bool stayed, int64_t *from, int64_t *to)
{
    bool any = graph_windows_hull(&b->windows, begin, end, from, to);
    for (size_t i = 0; i < b->cpus.n && b->n_absent && !stayed; i++) {
        const struct graph_building_cpu *c = &b->cpus.v[i];
        if (!c->absent || c->absent_from > end || c->absent_to <= begin)
            continue;
        int64_t first = c->absent_from > begin ? c->absent_from : begin, last = c->absent_to < end ? c->absent_to : end;
        *from = any && *from < first ? *from : first;
        *to = any && *to > last ? *to : last;
        any = true;
    }
    return any;
}

/* SPDX-License-Identifier: MIT */
/* Containers of an open graph: maps each chunk's list to the host's, with identities and names. */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "graph/layout.h"
#include "kernel/kernel.h"

/* ---- joining of chunks ---- */

static uint8_t kind_of(const struct graph_disk_container *d)
{
    return (uint8_t)(d->flags & GRAPH_DISK_CGROUP ? KERNEL_SPACE_CGROUP
            : d->flags & GRAPH_DISK_NET           ? KERNEL_SPACE_NET
                                                  : KERNEL_SPACE_PID);
}

/* Containers of all chunks with the same key are one; the last chunk's knowledge counts. */
static uint64_t key_of(const struct graph_disk_container *d)
{
    const int64_t who[] = {d->since, d->tid, kind_of(d)};
    return map_hash(who, sizeof who);
}

static void join_chunk(struct graph *g, struct graph_chunk *c, struct map *by_key)
{
    bool is_last = c == &g->chunks[g->n_chunks - 1];
    c->host_containers = mem_alloc((c->n_containers + 1) * sizeof *c->host_containers);
    for (size_t i = 0; i < c->n_containers; i++) {
        const struct graph_disk_container d = c->containers[i];
        bool fresh;
        uint64_t *number = map_put(by_key, key_of(&d), &fresh);
        if (fresh) {
            *number = g->containers.n;
            vec_push(&g->containers, (struct graph_container){0});
        }
        c->host_containers[i] = (int32_t)*number;
        g->containers.v[*number] = (struct graph_container){.since = d.since,
            .tid = d.tid,
            .kind = kind_of(&d),
            .pid_ns = d.pid_ns,
            .net_ns = d.net_ns,
            .uts_ns = d.uts_ns,
            .cgroup_ns = d.cgroup_ns,
            .is_counted = is_last || (d.flags & GRAPH_DISK_LASTING),
            .called = graph_string(c, d.name),
            .first = graph_string(c, d.first)};
    }
}

/* ---- names ---- */

static char *name_of(const struct graph_container *c, bool alone)
{
    uint32_t number = c->kind == KERNEL_SPACE_CGROUP ? c->cgroup_ns
        : c->kind == KERNEL_SPACE_NET && c->net_ns   ? c->net_ns
                                                     : c->pid_ns;
    const char *what = *c->called ? c->called : *c->first ? c->first : "container";
    if (*c->called && alone)
        return mem_strdup(c->called);
    return number ? mem_printf("%s %u", what, number) : mem_printf("%s tid %d", what, c->tid);
}

static uint64_t hash_of(const struct graph_container *c)
{
    return map_hash(c->called, strlen(c->called));
}

void graph_containers_join(struct graph *g)
{
    struct map by_key = {0}, by_name = {0};
    for (size_t k = 0; k < g->n_chunks; k++)
        join_chunk(g, &g->chunks[k], &by_key);
    for (size_t i = 0; i < g->containers.n; i++) {
        const struct graph_container *c = &g->containers.v[i];
        *map_put(&by_name, hash_of(c), NULL) += c->is_counted;
    }
    for (size_t i = 0; i < g->containers.n; i++) {
        struct graph_container *c = &g->containers.v[i];
        c->name = name_of(c, *map_find(&by_name, hash_of(c)) <= c->is_counted);
    }
    map_fini(&by_key);
    map_fini(&by_name);
}

void graph_containers_free(struct graph *g)
{
    for (size_t i = 0; i < g->containers.n; i++)
        free((char *)(uintptr_t)g->containers.v[i].name);
    vec_free(&g->containers);
}

int32_t graph_host_container(const struct graph_chunk *c, uint32_t number)
{
    return number && number <= c->n_containers ? c->host_containers[number - 1] : GRAPH_NO_CONTAINER;
}

/* ---- public functions ---- */

size_t graph_containers(const struct graph *g, const struct graph_container **out)
{
    *out = g->containers.v;
    return g->containers.n;
}

bool graph_container_is(const struct graph *g, int32_t container, const char *pattern)
{
    if (container < 0 || (size_t)container >= g->containers.n)
        return false;
    const struct graph_container *c = &g->containers.v[container];
    return !fnmatch(pattern, c->name, 0) || (*c->called && !fnmatch(pattern, c->called, 0));
}

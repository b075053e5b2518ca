/* SPDX-License-Identifier: MIT */
/* Grouping of hosts that are boots of one machine, and their names. */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "index/index.h"

/* A machine of a name, and the ends of what it recorded last. */
struct machine {
    const char *name;
    VEC(size_t) hosts;
};
/* The machines that would be called the same. */
struct namesakes {
    VEC(struct machine) v;
    VEC(int64_t) least; /* a tree: leaf `leaves` + i is the end of machine i, a node the lesser of the two below it */
    size_t leaves;
    uint32_t number; /* number of the latest machine */
};
struct naming {
    struct arena *arena;
    struct index_named *hosts;
    struct strings wanted;
    VEC(struct namesakes) v; /* indexed by number of the name */
    struct map boots;        /* name, machine, boot: it has a host of that boot; name, boot: the first it may be of */
};

static uint64_t key_of(uint32_t name, size_t machine, const uint8_t *boot)
{
    return map_mix(map_mix(((uint64_t)name << 32) + machine + 1) ^ map_hash(boot, 16));
}

/* ---- the first machine that recorded nothing any more ---- */

static void set_end(struct namesakes *s, size_t machine, int64_t end)
{
    size_t i = s->leaves + machine;
    for (s->least.v[i] = end; i > 1; i /= 2) {
        int64_t a = s->least.v[i & ~(size_t)1], b = s->least.v[i | 1];
        s->least.v[i / 2] = a < b ? a : b;
    }
}

static void add_leaf(struct namesakes *s, int64_t end)
{
    size_t n = s->v.n - 1;
    if (n >= s->leaves) {
        size_t leaves = s->leaves ? 2 * s->leaves : 1;
        int64_t *ends = mem_alloc((n + 1) * sizeof *ends);
        for (size_t i = 0; i < n; i++)
            ends[i] = s->least.v[s->leaves + i];
        s->least.n = 0;
        for (size_t i = 0; i < 2 * leaves; i++)
            vec_push(&s->least, INT64_MAX);
        s->leaves = leaves;
        for (size_t i = 0; i < n; i++)
            set_end(s, i, ends[i]);
        free(ends);
    }
    set_end(s, n, end);
}

/* The first machine, from number `from` on, whose end is before t; SIZE_MAX: there is none. */
static size_t first_ended(const struct namesakes *s, size_t from, int64_t t)
{
    if (from >= s->v.n)
        return SIZE_MAX;
    size_t i = s->leaves + from;
    while (s->least.v[i] >= t) {
        while (i & 1) /* the last one below its parent */
            i /= 2;
        if (!i)
            return SIZE_MAX;
        i++;
    }
    while (i < s->leaves)
        i = 2 * i + (s->least.v[2 * i] >= t);
    return i - s->leaves;
}

/* ---- machines ---- */

static bool is_apart(const struct index_named *a, const struct index_named *b)
{
    return a->boot && b->boot && memcmp(a->boot, b->boot, 16) != 0 && (a->begin > b->end || a->end < b->begin);
}

static bool may_be_of(const struct naming *n, const struct machine *m, const struct index_named *h)
{
    for (size_t i = 0; i < m->hosts.n; i++)
        if (!is_apart(&n->hosts[m->hosts.v[i]], h))
            return false;
    return true;
}

/* Returns the first machine of which the host is another boot; the number of machines: there is none. Hosts with a
 * kernel trace come in order of time, so only the latest recording of a machine matters. */
static size_t machine_of(struct naming *n, uint32_t name, const struct index_named *h)
{
    struct namesakes *s = &n->v.v[name];
    size_t i = 0;
    if (!h->boot)
        return s->v.n;
    if (!h->is_kernel) {
        while (i < s->v.n && !may_be_of(n, &s->v.v[i], h))
            i++;
        return i;
    }
    uint64_t *first = map_put(&n->boots, key_of(name, SIZE_MAX, h->boot), NULL);
    while (*first < s->v.n && map_find(&n->boots, key_of(name, *first, h->boot)))
        ++*first;
    i = first_ended(s, *first, h->begin);
    while (i != SIZE_MAX && map_find(&n->boots, key_of(name, i, h->boot)))
        i = first_ended(s, i + 1, h->begin);
    return i == SIZE_MAX ? s->v.n : i;
}

/* Returns the next numbered name that no host has by itself. */
static const char *numbered_name(struct naming *n, struct namesakes *s, const char *wanted)
{
    const char *name;
    do {
        name = arena_printf(n->arena, "%s#%u", wanted, ++s->number);
    } while (map_find(&n->wanted.by_hash, map_hash(name, strlen(name))));
    return name;
}

static void add_host(struct naming *n, size_t host)
{
    struct index_named *h = &n->hosts[host];
    uint32_t name = strings_intern(&n->wanted, h->wanted, strlen(h->wanted));
    struct namesakes *s = &n->v.v[name];
    size_t at = machine_of(n, name, h);
    int64_t end = h->boot ? h->end : INT64_MAX;
    if (at == s->v.n) {
        s->number += !s->number;
        struct machine m = {.name = at ? numbered_name(n, s, h->wanted) : h->wanted};
        vec_push(&s->v, m);
        add_leaf(s, end);
    } else if (end > s->least.v[s->leaves + at]) {
        set_end(s, at, end);
    }
    vec_push(&s->v.v[at].hosts, host);
    if (h->boot)
        map_put(&n->boots, key_of(name, at, h->boot), NULL);
    h->name = s->v.v[at].name;
}

/* Boots of one machine in order of time: "solo", "solo@2", … A machine may be called just that. */
static void name_clocks(struct naming *n, const struct machine *m)
{
    for (size_t i = 0; i < m->hosts.n; i++) {
        struct index_named *h = &n->hosts[m->hosts.v[i]];
        int number = 1;
        for (size_t k = 0; k < m->hosts.n; k++)
            number += n->hosts[m->hosts.v[k]].begin < h->begin;
        h->clock_name = number == 1 ? h->name : arena_printf(n->arena, "%s@%d", h->name, number);
        if (number > 1 && map_find(&n->wanted.by_hash, map_hash(h->clock_name, strlen(h->clock_name))))
            h->clock_name = arena_printf(n->arena, "%s@%d of %s", h->name, number, h->name);
    }
}

void index_name_hosts(struct arena *a, struct index_named *hosts, size_t n)
{
    struct naming naming = {.arena = a, .hosts = hosts};
    for (size_t i = 0; i < n; i++)
        strings_intern(&naming.wanted, hosts[i].wanted, strlen(hosts[i].wanted));
    for (size_t i = 0; i < naming.wanted.n; i++)
        vec_push(&naming.v, ((struct namesakes){0}));
    for (size_t i = 0; i < n; i++)
        add_host(&naming, i);
    for (size_t i = 0; i < naming.v.n; i++) {
        struct namesakes *s = &naming.v.v[i];
        for (size_t k = 0; k < s->v.n; k++) {
            name_clocks(&naming, &s->v.v[k]);
            vec_free(&s->v.v[k].hosts);
        }
        vec_free(&s->v);
        vec_free(&s->least);
    }
    vec_free(&naming.v);
    map_fini(&naming.boots);
    strings_fini(&naming.wanted);
}

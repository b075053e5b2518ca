/* SPDX-License-Identifier: MIT */
#include "coord/inventory.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum { MAX_HOSTS = 4096, MAX_GROUPS = 1024, MAX_MEMBERS = 1 << 18 };

void coord_inventory_fini(struct inventory *v)
{
    for (size_t i = 0; i < v->groups.n; i++) {
        vec_free(&v->groups.v[i].hosts);
        vec_free(&v->groups.v[i].children);
    }
    vec_free(&v->groups);
    vec_free(&v->hosts);
    map_fini(&v->host_of);
    map_fini(&v->group_of);
    strings_fini(&v->names);
    arena_fini(&v->arena);
}

static const char *place(struct inventory *v)
{
    return v->column ? arena_printf(&v->arena, "%s: line %u, column %u", v->path, v->line, v->column)
                     : arena_printf(&v->arena, "%s: line %u", v->path, v->line);
}

int coord_inventory_wrong(const struct inventory *v, const char *what)
{
    return v->column ? err_set(v->e, ERR_FORMAT, "%s: line %u, column %u: %s", v->path, v->line, v->column, what)
                     : err_set(v->e, ERR_FORMAT, "%s: line %u: %s", v->path, v->line, what);
}

/* ---- groups ---- */

int coord_inventory_group(struct inventory *v, const char *name, uint32_t *group)
{
    bool fresh;
    uint32_t number = strings_intern(&v->names, name, strlen(name));
    uint64_t *at = map_put(&v->group_of, number, &fresh);
    if (fresh && v->groups.n == MAX_GROUPS)
        return coord_inventory_wrong(v, "there are too many groups");
    if (fresh) {
        *at = v->groups.n;
        vec_push(&v->groups, ((struct inventory_group){.name = number}));
    }
    *group = (uint32_t)*at;
    return 0;
}

int coord_inventory_child(struct inventory *v, uint32_t group, const char *name)
{
    uint32_t child;
    int rc = coord_inventory_group(v, name, &child);
    struct inventory_group *g = &v->groups.v[group];
    for (size_t i = 0; !rc && i < g->children.n; i++)
        if (g->children.v[i].group == child)
            return 0;
    if (!rc)
        vec_push(&g->children, ((struct inventory_child){child, place(v)}));
    return rc;
}

/* ---- hosts ---- */

int coord_inventory_port(const struct inventory *v, const char *text, unsigned *port)
{
    char *end;
    unsigned long n = strtoul(text, &end, 10);
    if (!text_is_digit(*text) || *end || !n || n > 65535)
        return coord_inventory_wrong(v, "the port is no number from 1 to 65535");
    *port = (unsigned)n;
    return 0;
}

static int add(struct inventory *v, uint32_t group, const char *name, const char *address, unsigned port)
{
    bool fresh;
    uint32_t number = strings_intern(&v->names, name, strlen(name));
    uint64_t *at = map_put(&v->host_of, number, &fresh);
    struct inventory_group *g = &v->groups.v[group];
    if ((fresh && v->hosts.n == MAX_HOSTS) || g->hosts.n == MAX_MEMBERS)
        return coord_inventory_wrong(v, "there are too many hosts");
    if (fresh) {
        *at = v->hosts.n;
        vec_push(&v->hosts, ((struct inventory_host){.name = number}));
    }
    struct inventory_host *h = &v->hosts.v[*at];
    h->address = address ? address : h->address;
    h->port = port ? port : h->port;
    vec_push(&g->hosts, (uint32_t)*at);
    return 0;
}

/* Adds a range: node[01:20].cluster is all numbers from the first to the last, with as many digits as the first. */
static int add_range(struct inventory *v, uint32_t group, const char *name, const char *address, unsigned port)
{
    const char *open = strchr(name, '['), *close = open ? strchr(open, ']') : NULL;
    unsigned long first, last;
    char *end;
    if (!open)
        return add(v, group, name, address, port);
    first = strtoul(open + 1, &end, 10);
    int width = (int)(end - open - 1);
    if (!close || *end != ':' || !text_is_digit(open[1]))
        return coord_inventory_wrong(v, "a range of hosts is written node[01:20]");
    last = strtoul(end + 1, &end, 10);
    if (end != close || last < first || last - first >= MAX_HOSTS || width > 9)
        return coord_inventory_wrong(v, "a range of hosts goes from a number to a larger one: node[01:20]");
    for (unsigned long i = first; i <= last; i++) {
        const char *one = arena_printf(&v->arena, "%.*s%0*lu%s", (int)(open - name), name, width, i, close + 1);
        int rc = add_range(v, group, one, address, port); /* name may contain another range */
        if (rc)
            return rc;
    }
    return 0;
}

static bool is_name(const char *s)
{
    return *s && !s[strcspn(s, "\"'\\{}#,= \t\r\n")];
}

int coord_inventory_hosts(struct inventory *v, uint32_t group, const char *names, const char *address, unsigned port)
{
    const char *colon = strrchr(names, ':');
    if (colon && strchr(names, ':') == colon && !strchr(names, '[')) {
        int rc = port ? 0 : coord_inventory_port(v, colon + 1, &port);
        if (rc)
            return rc;
        names = arena_strndup(&v->arena, names, (size_t)(colon - names));
    }
    if (!is_name(names) || (address && !is_name(address)))
        return coord_inventory_wrong(v, "this is no name of a host");
    return add_range(v, group, names, address, port);
}

/* ---- choosing ---- */

enum { NEW, ENTERED, LEFT };

/* Sorts groups from the lowest to the uppermost, each once, into `order`. */
static int sort(struct inventory *v, uint32_t group, uint32_t *order, size_t *n)
{
    struct inventory_group *g = &v->groups.v[group];
    g->stage = ENTERED;
    for (size_t i = 0; i < g->children.n; i++) {
        const struct inventory_group *child = &v->groups.v[g->children.v[i].group];
        if (child->stage == ENTERED)
            return err_set(v->e, ERR_FORMAT, "%s: the group %s is below itself; take it off here",
                g->children.v[i].place, strings_get(&v->names, child->name));
        int rc = child->stage == NEW ? sort(v, g->children.v[i].group, order, n) : 0;
        if (rc)
            return rc;
    }
    g->stage = LEFT;
    order[(*n)++] = group;
    return 0;
}

/* Orders groups from the uppermost to the lowest: children after parents, else in order of creation. */
static int by_depth(const void *a, const void *b)
{
    const struct inventory_group *const *x = a, *const *y = b;
    return (*x)->depth != (*y)->depth ? ((*x)->depth > (*y)->depth ? 1 : -1) : (*x > *y) - (*x < *y);
}

typedef void visit(struct inventory *, struct inventory_host *, unsigned port);

/* Visits all hosts of a group and of its children, recursively. */
static void each_host(struct inventory *v, uint32_t group, visit *to, unsigned port)
{
    struct inventory_group *g = &v->groups.v[group];
    if (g->stage == ENTERED)
        return;
    g->stage = ENTERED;
    for (size_t i = 0; i < g->hosts.n; i++)
        to(v, &v->hosts.v[g->hosts.v[i]], port);
    for (size_t i = 0; i < g->children.n; i++)
        each_host(v, g->children.v[i].group, to, port);
}

static void each_host_of(struct inventory *v, uint32_t group, visit *to, unsigned port)
{
    for (size_t i = 0; i < v->groups.n; i++)
        v->groups.v[i].stage = NEW;
    each_host(v, group, to, port);
}

/* Visits all hosts: each is in the group "all", even if that is not stated. */
static void each_of_all(struct inventory *v, visit *to, unsigned port)
{
    for (size_t i = 0; i < v->hosts.n; i++)
        to(v, &v->hosts.v[i], port);
}

static bool is_all(const struct inventory *v, const struct inventory_group *g)
{
    return !strcmp(strings_get(&v->names, g->name), "all");
}

static void choose(struct inventory *v, struct inventory_host *h, unsigned port)
{
    h->chosen = true;
}

static void give_port(struct inventory *v, struct inventory_host *h, unsigned port)
{
    h->port = h->port ? h->port : port;
}

/* Sets the hosts' ports. The lowest groups come first, and the first port of a host stays. */
static void give_ports(struct inventory *v)
{
    const struct inventory_group **sorted = arena_new(&v->arena, const struct inventory_group *, v->groups.n + 1);
    for (size_t i = 0; i < v->groups.n; i++)
        sorted[i] = &v->groups.v[i];
    if (v->groups.n)
        qsort(sorted, v->groups.n, sizeof *sorted, by_depth);
    for (size_t i = v->groups.n; i--;)
        if (sorted[i]->port)
            each_host_of(v, (uint32_t)(sorted[i] - v->groups.v), give_port, sorted[i]->port);
    for (size_t i = 0; i < v->groups.n; i++)
        if (is_all(v, &v->groups.v[i]))
            each_of_all(v, give_port, v->groups.v[i].port);
}

static int find_depths(struct inventory *v)
{
    uint32_t *order = arena_new(&v->arena, uint32_t, v->groups.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < v->groups.n; i++)
        v->groups.v[i].stage = NEW;
    for (uint32_t i = 0; i < v->groups.n; i++) {
        int rc = v->groups.v[i].stage == NEW ? sort(v, i, order, &n) : 0;
        if (rc)
            return rc;
    }
    while (n--) {
        const struct inventory_group *g = &v->groups.v[order[n]];
        for (size_t i = 0; i < g->children.n; i++) {
            struct inventory_group *child = &v->groups.v[g->children.v[i].group];
            child->depth = child->depth > g->depth ? child->depth : g->depth + 1;
        }
    }
    return 0;
}

int coord_inventory_choose(struct inventory *v, const char *const *groups)
{
    int rc = find_depths(v);
    if (rc)
        return rc;
    give_ports(v);
    for (size_t i = 0; i < v->hosts.n; i++)
        v->hosts.v[i].chosen = !groups;
    for (const char *const *g = groups; g && *g; g++) {
        const uint64_t *at = map_find(&v->group_of, strings_intern(&v->names, *g, strlen(*g)));
        if (at)
            each_host_of(v, (uint32_t)*at, choose, 0);
        if (!strcmp(*g, "all"))
            each_of_all(v, choose, 0);
    }
    return 0;
}

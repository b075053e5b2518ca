/* SPDX-License-Identifier: MIT */
/* Private to coord: an inventory of machines, as lists of hosts and Ansible have them: groups of hosts and of other
 * groups. Names are numbers of `names`. */
#ifndef WEFT_COORD_INVENTORY_H
#define WEFT_COORD_INVENTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"

struct inventory_host {
    uint32_t name;
    const char *address;             /* NULL: its name */
    unsigned port;                   /* of its trace server; 0: not said */
    bool chosen;
};
struct inventory_child { uint32_t group; const char *place; };
struct inventory_group {
    uint32_t name;
    unsigned port;                   /* of its hosts that do not say; 0: not said */
    VEC(uint32_t) hosts;
    VEC(struct inventory_child) children;
    unsigned depth;                  /* below the uppermost: what the lowest says holds */
    uint8_t stage;                   /* of whoever walks through the groups */
};
struct inventory {
    struct arena arena;
    struct strings names;
    struct map host_of, group_of;    /* by name */
    VEC(struct inventory_host) hosts;
    VEC(struct inventory_group) groups;
    const char *path;                /* what is read, and where in it: for messages */
    unsigned line, column;           /* column 0: lines are all that is known */
    struct err *e;
};
void inventory_fini(struct inventory *);

/* What is wrong at the place at hand: an error. */
int inventory_wrong(const struct inventory *, const char *what);
/* The group, made where there is none. */
int inventory_group(struct inventory *, const char *name, uint32_t *group);
int inventory_child(struct inventory *, uint32_t group, const char *child);
/* NAME, NAME:PORT, node[01:20]: one or many, now in the group. What is said of one that is there already holds from now
 * on. */
int inventory_hosts(struct inventory *, uint32_t group, const char *names, const char *address, unsigned port);
int inventory_port(const struct inventory *, const char *text, unsigned *port);
/* Chooses the hosts of these groups and of those below (NULL: all), and gives them the ports of their groups. Groups
 * that are below themselves are an error. */
int inventory_choose(struct inventory *, const char *const *groups);

/* inventory_yaml.c: reads an inventory in YAML. Does text look like one? */
bool inventory_is_yaml(const char *text);
int inventory_read_yaml(struct inventory *, const char *text, size_t n);

#endif

/* SPDX-License-Identifier: MIT */
/* Private to coord: an inventory of machines, from host lists or Ansible: groups of hosts and of other groups. Names
 * are numbers of `names`. */
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
    unsigned port;                   /* port of its trace server; 0: not set */
    bool chosen;
};
struct inventory_child { uint32_t group; const char *place; };
struct inventory_group {
    uint32_t name;
    unsigned port;                   /* default port of its hosts; 0: not set */
    VEC(uint32_t) hosts;
    VEC(struct inventory_child) children;
    unsigned depth;                  /* depth below the uppermost group: settings of the deepest one win */
    uint8_t stage;                   /* mark of the current walk through the groups */
};
struct inventory {
    struct arena arena;
    struct strings names;
    struct map host_of, group_of;    /* indices of hosts and groups, by name */
    VEC(struct inventory_host) hosts;
    VEC(struct inventory_group) groups;
    const char *path;                /* file that is read, and the position in it, for messages */
    unsigned line, column;           /* column 0: only the line is known */
    struct err *e;
};
void coord_inventory_fini(struct inventory *);

/* Returns an error for the current position. */
int coord_inventory_wrong(const struct inventory *, const char *what);
/* Finds the group; adds it if it is missing. */
int coord_inventory_group(struct inventory *, const char *name, uint32_t *group);
int coord_inventory_child(struct inventory *, uint32_t group, const char *child);
/* Adds hosts to the group: NAME, NAME:PORT or node[01:20]. Settings replace those of a host that exists. */
int coord_inventory_hosts(struct inventory *, uint32_t group, const char *names, const char *address, unsigned port);
int coord_inventory_port(const struct inventory *, const char *text, unsigned *port);
/* Chooses the hosts of these groups and of their children (NULL: all), and sets the ports from their groups. Groups
 * that contain themselves are an error. */
int coord_inventory_choose(struct inventory *, const char *const *groups);

/* inventory_yaml.c: recognizes and reads an inventory in YAML. */
bool coord_inventory_is_yaml(const char *text);
int coord_inventory_read_yaml(struct inventory *, const char *text, size_t n);

#endif

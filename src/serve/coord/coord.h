/* SPDX-License-Identifier: MIT */
/* Trace coordinator: one endpoint of the Trace Server Protocol over many servers. It keeps no traces: it asks, in
 * parallel, and merges. What clients see is said in docs/coordinator.md. */
#ifndef WEFT_COORD_COORD_H
#define WEFT_COORD_COORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/text.h"
#include "clock/clock.h"
#include "http/http.h"

/* ---- which servers there are ---- */

/* A trace server. All texts live as long as the configuration. */
struct coord_server {
    const char *name;              /* unique; says who it is to clients, and in ids */
    const char *url;               /* "http://host:8080", without a slash at the end */
    const char *token;             /* bearer token; NULL: none */
    const char *ca_file;           /* NULL: the system's */
    unsigned connect_ms, answer_ms; /* 0: usual ones */
    VEC(const char *) traces;      /* that are opened on it */
    const struct clock_map *clock; /* from its times to those of all; NULL: they are the same */
    const char *clock_host;        /* whose clock of the file of clocks it is; NULL: that of its name, if any */
    const char *clock_place;       /* where that is said: "FILE: line 3, column 12"; NULL: nowhere */
    double weight;                 /* of its machines in what groups of machines tell; 0: not said, which is 1 */
    unsigned line;                 /* of the file; 0: not from a file */
};
/* Servers that belong together, by their names. place: where a name is said, "FILE: line 3, column 12". */
struct coord_member { const char *server, *place; };
/* Does the member of a group of machines mean all whose names fit, as shells have it (node-*)? "[::1]:8080" is a name.
 */
static inline bool coord_is_pattern(const char *member)
{
    return strpbrk(member, "*?") || (*member && strchr(member + 1, '['));
}
struct coord_group { const char *name, *place; VEC(struct coord_member) members; };
struct coord_groups { struct coord_group *v; size_t n, cap; };
/* Is one of the first n called so? */
static inline bool coord_has_group(const struct coord_groups *g, size_t n, const char *name)
{
    bool has = false;
    for (size_t i = 0; i < n && !has; i++)
        has = !strcmp(g->v[i].name, name);
    return has;
}
/* Made on all servers that have traces whose path fits. */
struct coord_experiment { const char *name; VEC(const char *) patterns; unsigned line; };

struct coord_config {
    struct arena arena;
    VEC(struct coord_server) servers;
    VEC(struct coord_experiment) experiments;
    struct coord_groups rotations; /* pieces of one machine's session */
    struct coord_groups groups;    /* of machines: servers, and the former */
    const char *clocks;            /* a file as `weft sync --format json` writes it; NULL: none */
    VEC(const char *) notes;       /* what is in the file and does nothing, with line and column */
};
void coord_config_fini(struct coord_config *);
/* Adds what a file in the form of .trace-coordinator.yml says. Errors name the file, line and column. */
int coord_config_read(struct coord_config *, const char *path, struct err *e);
/* The same of text; `path` is for messages and what is relative to it. */
int coord_config_parse(struct coord_config *, const char *path, const char *text, size_t n, struct err *e);
/* Gives servers the clocks of a file (NULL: of the one that the configuration names), once all servers are there. */
int coord_config_clocks(struct coord_config *, const char *path, struct err *e);
/* The same of text. */
int coord_config_clocks_parse(struct coord_config *, const char *path, const char *text, size_t n, struct err *e);
/* Adds "NAME=URL" or "URL". */
int coord_config_add(struct coord_config *, const char *server, struct err *e);
/* Is there a server, and is each its own? others: servers that are found later, by names that are not known yet, may be
 * all, and members of groups of machines. `path` for messages; NULL: none was read. */
int coord_config_check(const struct coord_config *, const char *path, bool others, struct err *e);

/* Writes a configuration with all machines of lists of hosts, one on a line, or Ansible inventories, in INI form or in
 * YAML. */
struct coord_generate {
    const char *const *hosts, *const *groups; /* files, groups to take with those below (NULL: all); NULL at the end */
    const char *traces;            /* path of the traces on each; NULL: none are opened */
    unsigned port;
};
int coord_generate(const struct coord_generate *, struct text *out, struct err *e);

/* Servers that come and go, beside those of the configuration. */
struct coord_found {
    const char *name, *url;        /* as of struct coord_server */
    const char *unusable;          /* why it cannot be reached from here, for users; NULL: it can */
};
struct coord_finder {
    void *arg;
    /* Into the arena, each name once. Asked each second, by one thread at a time. False: not known yet. */
    bool (*list)(void *arg, struct arena *, struct coord_found **out, size_t *n);
    /* What the machines behind the servers are doing, as JSON, and what answers lack; by any thread. NULL: no route
     * /cluster. */
    int (*tell)(void *arg, struct text *out, struct err *e);
    struct coord_server like;      /* token, ca_file and times of all of them */
};

/* ---- the coordinator ---- */

struct coord_options {
    struct http_options http;
    const struct coord_config *config; /* borrowed, as the next; may have no server if there is a finder */
    const struct coord_finder *finder; /* or NULL */
    const char *name;              /* an experiment of all traces of all servers, made at start; NULL: none */
    const char *state_dir;         /* ids and bookmarks are kept over a restart; NULL: they are not */
    const char *version;
    uint64_t answers_bytes;        /* that answers of servers hold together; 0: 512 MiB */
    /* A server is away, or is there again. Thread-safe; NULL: nobody is told. */
    void (*tell)(const char *what);
};
struct coordinator;
int coord_start(const struct coord_options *, struct coordinator **out, struct err *e);
const char *coord_address(const struct coordinator *);
void coord_stop(struct coordinator *); /* NULL-safe */

#endif

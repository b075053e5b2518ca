/* SPDX-License-Identifier: MIT */
/* Trace coordinator: one endpoint of the Trace Server Protocol over many servers. It stores no traces: it asks servers
 * in parallel and merges their answers. docs/coordinator.md describes what clients see. */
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

/* ---- configuration ---- */

/* Trace server. All texts live as long as the configuration. */
struct coord_server {
    const char *name;              /* unique; shown to clients, and hashed into ids */
    const char *url;               /* "http://host:8080", without a slash at the end */
    const char *token;             /* bearer token; NULL: none */
    const char *ca_file;           /* file of CA certificates; NULL: the system's */
    unsigned connect_ms, answer_ms; /* timeouts; 0: defaults */
    VEC(const char *) traces;      /* traces to open on the server */
    const struct clock_map *clock; /* map from its times to common times; NULL: they are equal */
    const char *clock_host;        /* host in the file of clocks that has its clock; NULL: its own name, if there */
    const char *clock_place;       /* place of that setting, "FILE: line 3, column 12"; NULL: none */
    double weight;                 /* weight of its machines in lines of groups; 0: not set, counts as 1 */
    unsigned line;                 /* line in the file; 0: not from a file */
};
/* Member of a group, by name. place: where it is named, "FILE: line 3, column 12". */
struct coord_member { const char *server, *place; };
/* Returns whether the member of a group is a shell pattern (node-*) for names. "[::1]:8080" is a name. */
static inline bool coord_is_pattern(const char *member)
{
    return strpbrk(member, "*?") || (*member && strchr(member + 1, '['));
}
struct coord_group { const char *name, *place; VEC(struct coord_member) members; };
struct coord_groups { struct coord_group *v; size_t n, cap; };
/* Returns whether one of the first n groups has this name. */
static inline bool coord_has_group(const struct coord_groups *g, size_t n, const char *name)
{
    bool has = false;
    for (size_t i = 0; i < n && !has; i++)
        has = !strcmp(g->v[i].name, name);
    return has;
}
/* Experiment to create on all servers that have traces with matching paths. */
struct coord_experiment { const char *name; VEC(const char *) patterns; unsigned line; };

struct coord_config {
    struct arena arena;
    VEC(struct coord_server) servers;
    VEC(struct coord_experiment) experiments;
    struct coord_groups rotations; /* groups of pieces of one machine's session */
    struct coord_groups groups;    /* groups of machines: servers, and rotations */
    const char *clocks;            /* file in the format of `weft sync --format json`; NULL: none */
    VEC(const char *) notes;       /* warnings about settings without effect, with line and column */
};
void coord_config_fini(struct coord_config *);
/* Adds a file in the format of .trace-coordinator.yml. Errors name the file, line and column. */
int coord_config_read(struct coord_config *, const char *path, struct err *e);
/* Adds such a file's text. `path` is for messages and relative paths. */
int coord_config_parse(struct coord_config *, const char *path, const char *text, size_t n, struct err *e);
/* Assigns the clocks of a file to the servers; call once all servers are added. path NULL: the configured file. */
int coord_config_clocks(struct coord_config *, const char *path, struct err *e);
/* Assigns the clocks of such a file's text. */
int coord_config_clocks_parse(struct coord_config *, const char *path, const char *text, size_t n, struct err *e);
/* Adds "NAME=URL" or "URL". */
int coord_config_add(struct coord_config *, const char *server, struct err *e);
/* Checks that there are servers and that they are distinct. others: a finder may add servers, even all of them, and
 * names in groups of machines that are not known yet. path: for messages; NULL: no file was read. */
int coord_config_check(const struct coord_config *, const char *path, bool others, struct err *e);

/* Writes a configuration with all machines of host lists (one a line) or Ansible inventories (INI or YAML). */
struct coord_generate {
    const char *const *hosts, *const *groups; /* NULL-terminated; groups: with their children; NULL: all */
    const char *traces;            /* path of the traces on each machine; NULL: none are opened */
    unsigned port;
};
int coord_generate(const struct coord_generate *, struct text *out, struct err *e);

/* Discovered server, in addition to the configured ones. */
struct coord_found {
    const char *name, *url;        /* texts as in struct coord_server */
    const char *unusable;          /* reason why this host cannot reach it, for users; NULL: reachable */
};
struct coord_finder {
    void *arg;
    /* Lists the servers in the arena, each name once. Called every second, by one thread at a time. False: unknown
     * yet. */
    bool (*list)(void *arg, struct arena *, struct coord_found **out, size_t *n);
    /* Writes the activity of the machines behind the servers and missing sources, as JSON; called by any thread. NULL:
     * there is no route /cluster. */
    int (*status)(void *arg, struct text *out, struct err *e);
    struct coord_server like;      /* template for token, ca_file and timeouts of found servers */
};

/* ---- the coordinator ---- */

struct coord_options {
    struct http_options http;
    const struct coord_config *config; /* borrowed, as the next; may be without servers if there is a finder */
    const struct coord_finder *finder; /* NULL: none */
    const char *name;              /* experiment of all traces of all servers, created at start; NULL: none */
    const char *state_dir;         /* directory for ids and bookmarks; NULL: they do not survive a restart */
    const char *version;
    uint64_t answers_bytes;        /* memory limit for all servers' answers; 0: 512 MiB */
    /* Reports that a server went away or came back. Thread-safe; NULL: no reports. */
    void (*report)(const char *what);
};
struct coordinator;
int coord_start(const struct coord_options *, struct coordinator **out, struct err *e);
const char *coord_address(const struct coordinator *);
void coord_stop(struct coordinator *); /* NULL-safe */

#endif

/* SPDX-License-Identifier: MIT */
/* Private to coord: what the client asked, and of which servers. */
#ifndef WEFT_COORD_REQUEST_H
#define WEFT_COORD_REQUEST_H

#include <jansson.h>

#include "coord/node.h"
#include "tsp/request.h"

struct coord_request {
    struct arena *arena;
    const char *path;                /* decoded */
    const char *arg[TSP_MAX_STARS];  /* experiment, output, … */
    json_t *body, *parameters;       /* body of the request, owned; without one: NULL and an empty object */
    struct node **servers; size_t n_servers; /* servers when the request came */
    const uint64_t *keys;            /* node keys by number, at the same time: no answer mixes two runs of a server */
    unsigned *epochs;                /* epochs by server number, at the same time; NULL: not of an experiment */
    struct node **members; size_t n_members; /* servers that have, or may have, the operation's experiment */
    bool several;                    /* experiment had several members when the request came */
    const char *via;                 /* header by which coordinators detect that they ask each other in a circle */
    const int64_t *samples; size_t n_samples; bool samples_known; /* made when first needed: see coord_samples */
    uint64_t output;                 /* hash of experiment and output; 0: not made yet (rotation.c) */
};

const char *coord_text(json_t *object, const char *key); /* NULL: no string there */
bool coord_integer(const json_t *, int64_t *out);
/* Returns a body as text in the arena; releases the object. */
const char *coord_body_text(struct arena *, json_t *);
/* Returns one escaped segment of a path. */
const char *coord_path_part(struct arena *, const char *);
/* Returns the operation's path as requested, for the members. */
const char *coord_path_asked(const struct coord_request *);
/* Returns the path of the tree of the output whose data are requested. */
const char *coord_tree_path(const struct coord_request *);
/* Returns the requested samples, ascending; NULL: unknown. */
const int64_t *coord_samples(struct coord_request *, size_t *n);

/* Returns whether the server is still the same process as when the request came, as far as is known. */
bool coord_node_is_same(const struct coord_request *, const struct node *);
/* Returns the key of the server's entries in this answer. */
uint64_t coord_node_key(const struct coord_request *, const struct node *);

#endif

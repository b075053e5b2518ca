/* Data providers over traces on this machine: what the Trace Server Protocol's outputs show. */
#ifndef WEFT_VIEWS_VIEWS_H
#define WEFT_VIEWS_VIEWS_H

#include <stdbool.h>

struct tsp_backend;

struct views_options {
    const char *store;                   /* index stores, as --store */
    bool no_sync;                        /* do not synchronise experiments of several traces */
};
/* The options are borrowed as long as the backend is used. */
struct tsp_backend views_backend(const struct views_options *);

#endif

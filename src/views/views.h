/* Data providers over traces on this machine: what the Trace Server Protocol's outputs show. */
#ifndef WEFT_VIEWS_VIEWS_H
#define WEFT_VIEWS_VIEWS_H

struct tsp_backend;
struct clock_options;

struct views_options {
    const char *store;                   /* index stores, as --store */
    const struct clock_options *clocks;  /* how experiments of several traces are synchronised; NULL: the defaults */
};
/* The options are borrowed as long as the backend is used. */
struct tsp_backend views_backend(const struct views_options *);

#endif

/* Private to tsp: the latencies of an experiment by kind, with their names numbered; what the four latency providers show. */
#ifndef WEFT_TSP_LATENCIES_H
#define WEFT_TSP_LATENCIES_H

#include "tsp/provider.h"

struct latency_name { size_t host; const char *name; };
/* All latencies of one kind, made on first use. */
struct latencies {
    uint64_t *order; size_t n;           /* host << 40 | number, by begin on the reference clock */
    struct latency_name *names; size_t n_names; /* by host, then in order of first use */
    uint16_t **name_of;                  /* [host][number] -> name; UINT16_MAX when there are too many */
};
/* The analyses, as members of each of the providers. */
size_t latency_members(struct tsp_experiment *);
void latency_member(struct tsp_experiment *, size_t i, const char **suffix, const char **name);
/* Kind of the member that the query names. */
int latency_kind(const struct tsp_query *);
const struct latencies *latencies_of(struct tsp_experiment *, int kind);
/* One of them, with its times on the reference clock. */
void latency_get(const struct tsp_experiment *, int kind, uint64_t order, struct state_latency *out, size_t *host);
/* First place in `order` whose begin is at or after t. */
size_t latency_find(const struct tsp_experiment *, const struct latencies *, int kind, int64_t t);
bool latency_has_data(struct tsp_experiment *);
extern const struct tsp_provider tsp_latency_scatter, tsp_latency_statistics, tsp_latency_table, tsp_latency_density;

#endif

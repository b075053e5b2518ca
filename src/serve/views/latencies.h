/* SPDX-License-Identifier: MIT */
/* Private to views: the latencies of an experiment by kind, with their names numbered; what the views of latencies
 * show. */
#ifndef WEFT_VIEWS_LATENCIES_H
#define WEFT_VIEWS_LATENCIES_H

#include "views/view.h"

struct latency_name { size_t host; const char *name; };
/* The names of one kind of latencies; made on first use. */
struct latency_names {
    struct latency_name *names; size_t n_names; /* by host, then as the host's store numbers them */
    size_t *first_name;                  /* [host]: where its names begin; one more: n_names */
};
/* Whether some machine has latencies of the kind. */
bool latency_present(const struct views *, int kind);
/* The analyses, as members of each of the providers. */
size_t latency_members(struct views *);
void latency_member(struct views *, size_t i, const char **suffix, const char **name);
/* Suffix and name of the kind's analysis. */
void latency_analysis(int kind, const char **suffix, const char **name);
/* Kind of the member that the query names; else the view's. */
int latency_kind(const struct view *, const struct tsp_query *);
const struct latency_names *latency_names(struct views *, int kind);
/* First latency of the host's store that begins at or after t, a time of the reference clock. */
size_t latency_find(const struct views *, size_t host, int kind, int64_t t);

bool latency_has_data(const struct view *, struct views *);

#endif

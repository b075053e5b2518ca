/* SPDX-License-Identifier: MIT */
/* Private to views: latencies of an experiment by kind, with numbered names; shared by the views of latencies. */
#ifndef WEFT_VIEWS_LATENCIES_H
#define WEFT_VIEWS_LATENCIES_H

#include "views/view.h"

struct latency_name { size_t host; const char *name; };
/* Names of one kind of latencies; made on first use. */
struct latency_names {
    struct latency_name *names; size_t n_names; /* order: host, then number in the host's store */
    size_t *first_name;                  /* [host]: number of its first name; one item more: n_names */
};
/* Returns whether some machine has latencies of the kind. */
bool latency_present(const struct views *, int kind);
/* Analyses, as members of each provider. */
size_t latency_members(struct views *);
void latency_member(struct views *, size_t i, const char **suffix, const char **name);
/* Suffix and name of the kind's analysis. */
void latency_analysis(int kind, const char **suffix, const char **name);
/* Kind of the member that the query names; else the view's. */
int latency_kind(const struct view *, const struct tsp_query *);
const struct latency_names *latency_names(struct views *, int kind);
/* Number of the first latency of the host's store that begins at or after t (reference clock). */
size_t latency_find(const struct views *, size_t host, int kind, int64_t t);

bool latency_has_data(const struct view *, struct views *);

#endif

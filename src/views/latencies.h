/* Private to views: the latencies of an experiment by kind, with their names numbered; what the four latency providers
 * show. */
#ifndef WEFT_VIEWS_LATENCIES_H
#define WEFT_VIEWS_LATENCIES_H

#include "views/view.h"

struct latency_name { size_t host; const char *name; };
/* All latencies of one kind; made on first use. */
struct latencies {
    size_t n;
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
/* Kind of the member that the query names. */
int latency_kind(const struct tsp_query *);
const struct latencies *latencies_of(struct views *, int kind);
/* First latency of the host's store that begins at or after t, a time of the reference clock. */
size_t latency_find(const struct views *, size_t host, int kind, int64_t t);

/* A place in the order of all latencies of a kind: by begin on the reference clock, then by host. */
struct latency_cursor {
    const struct views *x;
    int kind;
    size_t place;
    size_t *next;                        /* [host]: of its store, first one not before the place */
    size_t host;                         /* of the latency at the place */
    int64_t duration;                    /* of that latency by its host's clock: clocks that drift make differences
                                          * of mapped times a little other */
};
void latency_cursor_init(struct latency_cursor *, const struct views *, int kind, struct arena *);
/* The latency at a place that there is, with its times on the reference clock. Cheap next to the one before; else O(log
 * time · hosts · log n). */
void latency_at(struct latency_cursor *, size_t place, struct state_latency *out);
bool latency_has_data(const struct view *, struct views *);

#endif

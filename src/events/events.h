/* The merged event table as questions ask it: columns, selection, search, pairs of events. */
#ifndef WEFT_EVENTS_EVENTS_H
#define WEFT_EVENTS_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "ctf/ctf.h"

/* ---- which events are wanted: by name, CPU, thread and expression (docs/verbs/events.md) ---- */

struct event_filter_options {
    const char *const *names; size_t n_names; /* each a comma-separated list of patterns as the shell's */
    int64_t cpu, tid;        /* -1: all */
    const char *where;       /* expression, or NULL */
    const char *const *hosts; /* name of each source's host; entries may be NULL. Borrowed */
};

struct event_filter;
/* `window` is the one that the merge will be given: the threads running at its begin are found out where the filter
 * asks for threads. */
int event_filter_new(const struct event_filter_options *, const struct ctf_source *sources, size_t n,
    struct ctf_window window,
                     struct event_filter **out, struct err *e);
/* To be asked for every item in order, since it follows which thread runs where. Losses only pass or fail by CPU. */
bool event_filter_keep(struct event_filter *, const struct ctf_merge *, const struct ctf_event *);
/* Calls `tell` for every pattern that no event's name matches and every name of the expression that no event has:
 * likely misspelt. */
void event_filter_check(struct event_filter *, void (*tell)(bool is_pattern, const char *name));
void event_filter_free(struct event_filter *);

#endif

/* SPDX-License-Identifier: MIT */
/* Private to index: the experiment and the steps that make it. */
#ifndef WEFT_INDEX_EXPERIMENT_H
#define WEFT_INDEX_EXPERIMENT_H

#include <pthread.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/progress.h"
#include "clock/clock.h"
#include "flow/flow.h"
#include "graph/graph.h"
#include "index/index.h"
#include "kernel/kernel.h"
#include "stack/stack.h"
#include "state/state.h"

struct experiment {
    struct arena arena;
    struct ctf_schemas *schemas;
    VEC(struct index_host) hosts;
    VEC(struct ctf_source) sources;
    VEC(struct index_trace) traces; /* indexed by source */
    VEC(struct index_note) notes;
    struct clock_net *clocks;
    const char *store;           /* --store, or NULL */
    VEC(const char *) catalogues; /* files of the catalogues that it was opened with */
    bool whole, states;          /* from index_options */
    struct user_marks *user_marks; /* user_marks.c */
    pthread_mutex_t lock;        /* guards arena and notes while hosts are indexed side by side */
};

/* Returns whether the error fails the whole opening, instead of leaving a trace out. */
static inline bool experiment_needs(const struct experiment *x, const struct err *e)
{
    return x->whole && e->code == ERR_NOMEM;
}
/* Opens the traces that the arguments name: hosts, sources, notes. After a failure the experiment has none. */
int index_experiment_open_traces(struct experiment *, const char *const *args, size_t n, const struct index_options *,
    struct err *e);

/* Adds open traces and takes them over. names: of their hosts, or NULL. */
void index_experiment_take_traces(struct experiment *, struct ctf_trace *const *traces, const char *const *names,
    size_t n);

/* Returns an experiment without traces. */
struct experiment *index_experiment_new(void);
/* Hands it out, or closes it if something failed; its notes are complete. */
int index_experiment_made(struct experiment *, int rc, struct experiment **out);

/* user_marks.c: creates the marks, with nothing read yet. */
struct user_marks *index_experiment_user_marks_new(void);
void index_experiment_user_marks_free(struct user_marks *);

/* identity.c: sets the keys of hosts and traces. */
void index_experiment_set_keys(struct experiment *);
/* Returns the key of the host of that name that has only this trace. */
uint64_t index_key_alone(const char *name, const struct ctf_trace *);

/* notes.c: adds a note; `text` may begin with a file, "FILE: …". Thread-safe. */
void index_experiment_note(struct experiment *, int kind, const char *host, const char *text, uint64_t count);
void index_experiment_note_losses(struct experiment *);
void index_experiment_note_calls(struct experiment *);
/* failed: reason for missing clock maps, or NULL. Drops the notes of an earlier synchronisation. */
void index_experiment_note_clocks(struct experiment *, const char *failed);
void index_experiment_sort_notes(struct experiment *);

/* stores.c: opens the stores of a trace, building them first when they are missing, stale or damaged (or force). */
int index_open_stores(struct experiment *, struct index_trace *, const struct index_options *, struct err *e);

#endif

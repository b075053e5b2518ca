/* SPDX-License-Identifier: MIT */
/* Private to tsp: a version of an experiment's open traces. What requests read is immutable once STAGE_OPEN. Its
 * references keep it while requests use it. */
#ifndef WEFT_TSP_OPENING_H
#define WEFT_TSP_OPENING_H

#include <stdatomic.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "tsp/entries.h"
#include "tsp/kept_rows.h"
#include "tsp/provider.h"

/* Figures of a trace while it is being opened, set by its readers. */
struct tsp_growing { _Atomic uint64_t events; _Atomic int64_t begin, end; };

/* Derived output that is being computed (or was just now), and the time until which somebody waits for it
 * (monotonic). */
struct tsp_waited { char *output; bool done; int64_t until_ns; };

enum tsp_stage { STAGE_OPENING, STAGE_OPEN, STAGE_FAILED };
/* Opening of an experiment's traces: a version, immutable once it is open. `stage` changes once, under the server's
 * lock; all else is written before it becomes STAGE_OPEN. */
struct tsp_opening {
    unsigned refs;                   /* references (server's lock): of the experiment, the opener, and requests */
    enum tsp_stage stage;
    struct err error;
    struct arena arena;
    struct tsp_open_request request;
    struct tsp_growing *growing;     /* figures by path of the request */
    struct tsp_data *data;           /* NULL until it is open */
    VEC(struct tsp_waited) waited;   /* guarded by the server's lock */
    const char *experiment;          /* uuid of the experiment */
    atomic_bool unwanted;            /* asks the readers of its traces to end */
    struct tsp_ids *ids;             /* ids of the experiment */
    struct entry_tables *entries;    /* NULL until it is open */
    struct kept_rows *rows;          /* NULL until it is open */
};

struct tsp_server;
struct tsp_experiment;

/* opening.c. Asks the readers of its traces to end: they are no longer needed. With the lock held. */
void tsp_opening_abandon(struct tsp_opening *);
/* Returns a reference for a request, or NULL. With the lock held. */
struct tsp_opening *tsp_opening_ref(struct tsp_experiment *);
/* Returns a reference for queries about an output, which an earlier version may be about to answer. */
struct tsp_opening *tsp_opening_ref_for(struct tsp_experiment *, const char *output);
void tsp_opening_unref(struct tsp_server *, struct tsp_opening *); /* called without the lock */
/* Called with the lock; may release it briefly. */
void tsp_opening_unref_locked(struct tsp_server *, struct tsp_opening *);
/* Checks the files of an opening. ERR_LOST: some were truncated, so what was computed from it must not be sent. The
 * model then drops it, and the next request opens what is left. Without the lock. */
int tsp_opening_intact(struct tsp_server *, struct tsp_opening *, struct err *);
/* Frees what opened experiments keep only for speed, when memory is short. `server`: a tsp_server. */
void tsp_opening_give_memory(void *server);
/* Output with that id; NULL: none. The experiment must be open. */
const struct tsp_output *tsp_opening_output(const struct tsp_opening *, const char *id);

/* held.c. All functions but tsp_held_note: with the lock held.
 * Returns the earlier version that computes the derived output; NULL: the newest one answers. */
struct tsp_opening *tsp_held_for(struct tsp_experiment *, const char *output);
/* Keeps `old`, which was replaced, while somebody waits for what it computes; otherwise returns it, to be released. */
struct tsp_opening *tsp_held_instead(struct tsp_experiment *, struct tsp_opening *old);
/* Returns the version to be released, since nobody waits for it any more, or at once; NULL: none. */
struct tsp_opening *tsp_held_release(struct tsp_experiment *, bool at_once);
/* Notes a request for a derived output. running: it is still being computed. */
void tsp_held_note(struct tsp_server *, struct tsp_opening *, const char *output, bool running);
void tsp_held_fini(struct tsp_opening *);

#endif

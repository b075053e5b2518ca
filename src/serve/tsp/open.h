/* SPDX-License-Identifier: MIT */
/* Private to tsp: opening of experiments in the background. */
#ifndef WEFT_TSP_OPEN_H
#define WEFT_TSP_OPEN_H

#include "tsp/model.h"

/* Finds the experiment, and opens it in the background unless it is open or being opened, or failed a moment ago.
 * NULL: none. With the lock held, which may be released for a moment. */
struct tsp_experiment *tsp_open_wanted(struct tsp_server *, const char *uuid);
/* Opens the current state of the traces as the next version, in the background. The experiment must be open, and no
 * next version may be under way. With the lock held. */
void tsp_open_next(struct tsp_server *, struct tsp_experiment *);

/* tsp_retime.c. Converts stored times to the opening's clock. With the lock held. */
void tsp_retime(struct tsp_server *, struct tsp_experiment *, struct tsp_data *);

/* tidy.c. Has the backend tidy its files after an opening, as long as no newer version waits. Without the lock. */
void tsp_tidy_run(struct tsp_server *, struct tsp_opening *);

#endif

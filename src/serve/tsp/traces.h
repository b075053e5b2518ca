/* SPDX-License-Identifier: MIT */
/* Private to tsp: opening of traces. */
#ifndef WEFT_TSP_TRACES_H
#define WEFT_TSP_TRACES_H

#include "tsp/model.h"

/* Opens the trace at `uri`, as a client would. status: HTTP; title, detail: the error; uuid: of the trace, or
 * of the one in conflict (409). trusted: given by the operator of the server. Takes the lock. */
struct tsp_trace_result { int status; const char *title, *detail; char uuid[UUID_TEXT]; };
struct tsp_trace_result tsp_trace_open(struct tsp_server *, struct arena *, const char *uri, const char *name,
    const char *type, bool trusted);
/* True: the path may be opened, judged by its name. It must be a real path. */
bool tsp_trace_is_allowed(const struct tsp_server *, const char *real);

#endif

/* SPDX-License-Identifier: MIT */
/* Trace server: the Trace Server Protocol over one or more experiments, and the viewer's files. The protocol's facts:
 * docs/tsp.md. */
#ifndef WEFT_TSP_TSP_H
#define WEFT_TSP_TSP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "http/http.h"
#include "tsp/provider.h"

struct tsp_options {
    struct http_options http;
    struct tsp_backend backend;      /* who has the data */
    const char *trace_root;          /* traces may be opened below this directory only; NULL: only those given */
    /* What lasts over a restart: traces, experiments, bookmarks, configurations, uploads. NULL: nothing does. */
    const char *state_dir;
    const char *const *traces;       /* TRACE arguments, opened as one experiment at start; NULL at the end */
    /* Told of each of them that has no trace, as long as another has; NULL: nobody is told. */
    void (*left_out)(const char *why);
    const char *experiment_name;     /* of those; NULL: the name of the first trace's directory */
    /* Traces that change stay as they were opened. Else what appears in their directories is opened beside them, and
     * takes their place. */
    bool frozen;
    /* What has changed cannot be opened; `experiment` goes on as it was. Thread-safe; NULL: nobody is told. */
    void (*not_opened)(const char *experiment, const char *why);
    const char *version;
    uint64_t max_upload_bytes;       /* 0, or no state_dir: uploads refused */
    size_t max_open;                 /* experiments at once: the one not used for longest closes; 0: 32 */
};
struct tsp_server;
int tsp_server_start(const struct tsp_options *, struct tsp_server **out, struct err *e);
const char *tsp_server_address(const struct tsp_server *);
/* Ends running requests and frees all. False: traces are still being opened after a few seconds; then nothing is freed
 * and the process should end (_exit: what is written is written in one step). */
bool tsp_server_stop(struct tsp_server *);

#endif

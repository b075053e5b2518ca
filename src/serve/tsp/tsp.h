/* SPDX-License-Identifier: MIT */
/* Trace server: the Trace Server Protocol over one or more experiments, and the viewer's files. Facts about the
 * protocol: docs/tsp.md. */
#ifndef WEFT_TSP_TSP_H
#define WEFT_TSP_TSP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "http/http.h"
#include "tsp/provider.h"

struct tsp_options {
    struct http_options http;
    struct tsp_backend backend;      /* access to the data */
    const char *trace_root;          /* directory below which traces may be opened; NULL: only the given ones */
    /* Directory of what survives a restart: traces, experiments, bookmarks, configurations, uploads. NULL: nothing
     * does. */
    const char *state_dir;
    const char *const *traces;       /* TRACE arguments, opened as one experiment at start; NULL at the end */
    /* Called for each TRACE without a trace, as long as another one has some; or NULL. */
    void (*left_out)(const char *why);
    const char *experiment_name;     /* name of that experiment; NULL: the name of the first trace's directory */
    /* True: traces stay as they were opened. False: if they change, what is in their directories is opened beside them,
     * and then replaces them. */
    bool frozen;
    /* Called when changed traces cannot be opened; `experiment` stays as it was. Thread-safe; or NULL. */
    void (*not_opened)(const char *experiment, const char *why);
    const char *version;
    uint64_t max_upload_bytes;       /* limit of an upload; 0, or no state_dir: uploads are refused */
    size_t max_open;                 /* limit of open experiments; the least recently used one closes; 0: 32 */
};
struct tsp_server;
int tsp_server_start(const struct tsp_options *, struct tsp_server **out, struct err *e);
const char *tsp_server_address(const struct tsp_server *);
/* Ends running requests and frees everything. False: traces are still being opened after a few seconds. Then nothing is
 * freed, and the process should end with _exit, which is safe: files are replaced in one step. */
bool tsp_server_stop(struct tsp_server *);

#endif

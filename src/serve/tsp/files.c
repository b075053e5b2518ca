/* SPDX-License-Identifier: MIT */
/* Viewer's files, part of the program. */
#include "tsp/files.h"

#include <string.h>

#include "tsp/request.h"

/* Policy: nothing is loaded from elsewhere, and only these files run. Only their scripts may set styles. */
static const char policy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "font-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

void tsp_serve_viewer(struct http_request *q)
{
    const char *path = !strcmp(q->path, "/") ? "/index.html" : q->path;
    http_header(q, "Content-Security-Policy", policy);
    http_header(q, "Referrer-Policy", "no-referrer");
    http_header(q, "Cache-Control", "no-cache");
    for (size_t i = 0; i < files_n; i++)
        if (!strcmp(files_list[i].path, path)) {
            http_reply_static(q, files_list[i].type, files_list[i].data, files_list[i].n, true, files_list[i].etag);
            return;
        }
    struct text t = {.fd = -1};
    tsp_put_error(&t, TSP_CODE_NOT_FOUND, "No such resource", NULL);
    http_reply(q, 404, "application/json", &t);
}

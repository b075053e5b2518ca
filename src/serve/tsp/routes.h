/* SPDX-License-Identifier: MIT */
/* Private to tsp: the operations, by their routes. */
#ifndef WEFT_TSP_ROUTES_H
#define WEFT_TSP_ROUTES_H

#include "tsp/call.h"

typedef void call_handler(struct call *);
call_handler traces_list, traces_below, traces_post, traces_get, traces_delete;
call_handler experiments_list, experiments_post, experiments_get, experiments_delete;
call_handler bookmarks_list, bookmarks_post, bookmarks_get, bookmarks_put, bookmarks_delete;
call_handler config_types, config_type, configs_list, configs_post, configs_get, configs_put, configs_delete;
call_handler outputs_list, outputs_get, outputs_config_types, outputs_config_type, outputs_post, outputs_delete;
call_handler marker_sets, upload_post, analysis_run;
/* information.c: answers `health` and `identifier`. */
void server_tell(struct call *, const char *what);
void routes_handle(void *server, struct http_request *);
/* True: the request needs little work. */
bool routes_small(struct http_request *);

#endif

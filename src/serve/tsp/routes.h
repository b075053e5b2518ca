/* SPDX-License-Identifier: MIT */
/* Private to tsp: the operations, by their routes. */
#ifndef WEFT_TSP_ROUTES_H
#define WEFT_TSP_ROUTES_H

#include "tsp/call.h"

typedef void call_handler(struct call *);
call_handler tsp_traces_list, tsp_traces_below, tsp_traces_post, tsp_traces_get, tsp_traces_delete;
call_handler tsp_experiments_list, tsp_experiments_post, tsp_experiments_get, tsp_experiments_delete;
call_handler tsp_bookmarks_list, tsp_bookmarks_post, tsp_bookmarks_get, tsp_bookmarks_put, tsp_bookmarks_delete;
call_handler tsp_config_types, tsp_config_type, tsp_configs_list, tsp_configs_post, tsp_configs_get,
    tsp_configs_put, tsp_configs_delete;
call_handler tsp_outputs_list, tsp_outputs_get, tsp_outputs_config_types, tsp_outputs_config_type,
    tsp_outputs_post, tsp_outputs_delete;
call_handler tsp_marker_sets, tsp_upload_post, tsp_analysis_run;
/* information.c: answers `health` and `identifier`. */
void tsp_information_answer(struct call *, const char *what);
void tsp_routes_handle(void *server, struct http_request *);
/* True: the request needs little work. */
bool tsp_routes_small(struct http_request *);

#endif

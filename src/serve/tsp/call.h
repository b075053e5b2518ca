/* SPDX-License-Identifier: MIT */
/* Private to tsp: the current request, and its answer. */
#ifndef WEFT_TSP_CALL_H
#define WEFT_TSP_CALL_H

#include <jansson.h>

#include "tsp/model.h"
#include "tsp/request.h"
#include "tsp/values.h"

struct call {
    struct tsp_server *s;
    struct http_request *q;
    const char *arg[TSP_MAX_STARS];  /* path parts that match the route's stars */
    json_t *body;                    /* object; NULL for requests without */
    json_t *parameters;              /* member of the body; never NULL if the route needs a body; owned */
    json_t *configuration;           /* copy of a derived output's; owned */
    struct tsp_opening *open;        /* referenced while the call runs, or NULL */
    bool reads;                      /* the answer is made from the open traces */
    bool changes;                    /* the request may change stored things */
    enum tsp_operation operation;    /* operation of the route */
};
/* Sends an error with the code of the status; tsp_call_refuse: with a more exact code. */
void tsp_call_error(struct call *, int status, const char *title, const char *detail);
void tsp_call_refuse(struct call *, int status, enum tsp_code, const char *title, const char *detail);
void tsp_call_errorf(struct call *, int status, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Sends the text as JSON, and empties it. */
void tsp_call_json(struct call *, int status, struct text *);

#endif

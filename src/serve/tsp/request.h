/* SPDX-License-Identifier: MIT */
/* Common parts of all endpoints of the protocol, for all servers: paths, bodies, errors, the viewer's files,
 * identifiers. */
#ifndef WEFT_TSP_REQUEST_H
#define WEFT_TSP_REQUEST_H

#include <jansson.h>

#include "base/text.h"
#include "http/http.h"
#include "tsp/answer.h"
#include "tsp/uuid.h"

/* Parts of a path below /tsp/api. */
enum { TSP_MAX_PARTS = 8, TSP_MAX_STARS = 4 };
struct tsp_path { const char *part[TSP_MAX_PARTS]; size_t n; };
/* Returns false for a path that is not below /tsp/api. A path with too many parts matches no route. */
bool tsp_path_of(struct http_request *, struct tsp_path *);
/* True: the request has the method. HEAD counts as GET. */
bool tsp_method_is(const struct http_request *, const char *method);
/* Head of each entry of a routing table. Patterns are parts joined by slashes; a star stands for one part. Literal
 * parts come before stars that would hide them. */
struct tsp_route { const char *method, *pattern; };
/* Returns the number of the matching entry, of n of `size` bytes each, and its stars. -1: none. */
int tsp_route_match(const struct http_request *, const struct tsp_path *, const void *routes, size_t n, size_t size,
    const char *star[TSP_MAX_STARS]);
/* Finds a route like tsp_route_match, for the server that answers. For -1, *status is 404, or 405 with the available
 * methods in "Allow"; *title states the error. */
int tsp_route_find(struct http_request *, const struct tsp_path *, const void *routes, size_t n, size_t size,
    const char *star[TSP_MAX_STARS], int *status, const char **title);

/* Parses the body as an object, and its member "parameters", which is never NULL; the caller owns both. Returns 0, or
 * the HTTP status of the error, with title and detail (or NULL). */
int tsp_body(struct http_request *, json_t **body, json_t **parameters, const char **title, const char **detail);

/* Times of a range with so many samples: begin, begin + step, … below end, and end. The step is a whole number. Lives
 * in the arena. */
const int64_t *tsp_sample_times(struct arena *, int64_t begin, int64_t end, int64_t samples, size_t *n);

/* True: weft's servers keep configurations of this type. NULL: false. */
bool tsp_config_type_known(const char *type);

/* Appends {"title": …, "detail"?: …, "code": …}. */
void tsp_put_error(struct text *, enum tsp_code, const char *title, const char *detail);

/* True: the request is for the viewer's files, which are outside /tsp. */
bool tsp_is_for_viewer(const struct http_request *);
void tsp_serve_viewer(struct http_request *);

#endif

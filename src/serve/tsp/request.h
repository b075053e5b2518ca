/* SPDX-License-Identifier: MIT */
/* What every endpoint of the protocol does with a request, whoever answers: paths, bodies, errors, the viewer's files,
 * identifiers. */
#ifndef WEFT_TSP_REQUEST_H
#define WEFT_TSP_REQUEST_H

#include <jansson.h>

#include "base/text.h"
#include "http/http.h"
#include "tsp/answer.h"
#include "tsp/uuid.h"

/* The parts of a path below /tsp/api. */
enum { TSP_MAX_PARTS = 8, TSP_MAX_STARS = 4 };
struct tsp_path { const char *part[TSP_MAX_PARTS]; size_t n; };
/* False: it is not below /tsp/api. One with too many parts fits nothing. */
bool tsp_path_of(struct http_request *, struct tsp_path *);
/* HEAD asks what GET does. */
bool tsp_method_is(const struct http_request *, const char *method);
/* What a table of routes is made of: entries that begin so. Patterns are parts joined by slashes; a star stands for one
 * part. Literal parts come before stars that would hide them. */
struct tsp_route { const char *method, *pattern; };
/* The number of the entry, of n of `size` bytes each, that fits; its stars. -1: none. */
int tsp_route_match(const struct http_request *, const struct tsp_path *, const void *routes, size_t n, size_t size,
    const char *star[TSP_MAX_STARS]);
/* The same for who answers then: of -1 *status is 404, or 405 with the
 * methods that there are in "Allow", *title says it. */
int tsp_route_find(struct http_request *, const struct tsp_path *, const void *routes, size_t n, size_t size,
    const char *star[TSP_MAX_STARS], int *status, const char **title);

/* The body as an object, and its member "parameters", which is never NULL: both are the caller's. A number: HTTP's
 * status of what is wrong, with title and detail (or NULL); 0: nothing. */
int tsp_body(struct http_request *, json_t **body, json_t **parameters, const char **title, const char **detail);

/* The times that a range with so many samples stands for: begin, begin + step, … below end, and end, with the step that
 * whole numbers allow. Lives in the arena. */
const int64_t *tsp_sample_times(struct arena *, int64_t begin, int64_t end, int64_t samples, size_t *n);

/* Is it a type that a server of weft keeps configurations of? NULL: no. */
bool tsp_config_type_known(const char *type);

/* {"title": …, "detail"?: …, "code": …} */
void tsp_put_error(struct text *, enum tsp_code, const char *title, const char *detail);

/* Is it a question for the viewer's files? They are outside /tsp. */
bool tsp_is_for_viewer(const struct http_request *);
void tsp_serve_viewer(struct http_request *);

#endif

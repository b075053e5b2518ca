/* SPDX-License-Identifier: MIT */
/* Private to tsp: values of clients' JSON. */
#ifndef WEFT_TSP_VALUES_H
#define WEFT_TSP_VALUES_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* String member `key` of an object, or NULL. */
const char *tsp_string(json_t *object, const char *key);
/* False: not a whole number. */
bool tsp_integer(const json_t *, int64_t *out);

#endif

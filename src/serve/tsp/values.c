/* SPDX-License-Identifier: MIT */
/* Values of clients' JSON. */
#include "tsp/values.h"

#include <math.h>

const char *tsp_string(json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

bool tsp_integer(const json_t *v, int64_t *out)
{
    double d = json_number_value(v);
    if (json_is_integer(v)) {
        *out = json_integer_value(v);
        return true;
    }
    if (!json_is_real(v) || d != floor(d) || fabs(d) >= 9.2e18)
        return false;
    *out = (int64_t)d;
    return true;
}

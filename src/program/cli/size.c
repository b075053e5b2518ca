/* SPDX-License-Identifier: MIT */
#include "cli/size.h"

#include <stdlib.h>
#include <string.h>

int cli_parse_size(const char *option, const char *s, uint64_t *out, struct err *e)
{
    static const char units[] = "KMGT";
    char *end;
    unsigned long long v = strtoull(s, &end, 10);
    const char *unit = *end ? strchr(units, *end) : NULL;
    if (end == s || *s == '-' || (*end && (!unit || end[1])))
        return err_set(e, ERR_ARG, "%s %s: give bytes, or a number with K, M, G or T", option, s);
    unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;
    if (v > UINT64_MAX >> shift >> 6)
        return err_set(e, ERR_ARG, "%s %s: too large", option, s);
    *out = (uint64_t)v << shift;
    return 0;
}

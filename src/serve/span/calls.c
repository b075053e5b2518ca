/* SPDX-License-Identifier: MIT */
#include "span/calls.h"

const int64_t call_widths_s[CALL_WIDTHS] = {1, 60, 3600, 24 * 3600};

static size_t add(int64_t width_s, int64_t begin_s, int64_t end_s, struct call_range *out)
{
    *out = (struct call_range){width_s, begin_s / width_s, end_s / width_s};
    return begin_s < end_s;
}

size_t call_ranges(int64_t begin_s, int64_t end_s, struct call_range out[CALL_RANGES])
{
    size_t n = 0;
    for (size_t i = 0; i < CALL_WIDTHS && begin_s < end_s; i++) {
        const int64_t next_s = i + 1 < CALL_WIDTHS ? call_widths_s[i + 1] : INT64_MAX;
        const int64_t up_s = begin_s / next_s * next_s + (begin_s % next_s ? next_s : 0);
        const int64_t down_s = end_s / next_s * next_s;
        if (up_s >= down_s)
            return n + add(call_widths_s[i], begin_s, end_s, &out[n]);
        n += add(call_widths_s[i], begin_s, up_s, &out[n]);
        n += add(call_widths_s[i], down_s, end_s, &out[n]);
        begin_s = up_s;
        end_s = down_s;
    }
    return n;
}

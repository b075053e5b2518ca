/* SPDX-License-Identifier: MIT */
/* Name nearest to a mistyped one. */
#include "base/near.h"

#include <string.h>

static size_t smallest(size_t a, size_t b, size_t c)
{
    size_t m = a < b ? a : b;
    return m < c ? m : c;
}

/* Edit distance of two words, with swaps of neighbours; long words count as far apart. */
static size_t distance(const char *a, const char *b)
{
    enum { LONGEST = 32 };
    size_t n = strlen(a), m = strlen(b), d[LONGEST + 1][LONGEST + 1];
    if (n > LONGEST || m > LONGEST)
        return LONGEST;
    for (size_t i = 0; i <= n; i++)
        for (size_t j = 0; j <= m; j++) {
            if (!i || !j) {
                d[i][j] = i + j;
                continue;
            }
            d[i][j] = smallest(d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && d[i - 2][j - 2] + 1 < d[i][j])
                d[i][j] = d[i - 2][j - 2] + 1;
        }
    return d[n][m];
}

const char *near_name(const char *typed, const char *const *names)
{
    const char *best = NULL;
    size_t length = strlen(typed),
           best_distance = length < 3 ? 2 : length / 3 + 2; /* limit: from there on it is a different word */
    for (; *names; names++) {
        size_t d = distance(typed, *names);
        if (length >= 2 && strncmp(typed, *names, length) == 0)
            d = 1;
        if (d < best_distance) {
            best = *names;
            best_distance = d;
        }
    }
    return best;
}

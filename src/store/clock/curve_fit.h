/* SPDX-License-Identifier: MIT */
/* Curve of a pair, made from its course. */
#ifndef WEFT_CLOCK_CURVE_FIT_H
#define WEFT_CLOCK_CURVE_FIT_H

#include "clock/corridor.h"
#include "clock/curve.h"

struct pair_frame { int64_t x0, y0; };         /* absolute times = relative + x0, y0 */
struct straight { long double x, d, slope; };  /* line through (x, d) with slope - 1 */

/* Middle of the course between relative times begin and end, reduced to few knots: nowhere more than 3 % farther from a
 * bound than the middle is. With `line`: that line instead, with the error that the course implies. */
void clock_curve_of_course(const struct course *, const struct pair_frame *, int64_t begin, int64_t end,
    const struct straight *line, struct curve *out);
/* Line with a constant error. */
void clock_curve_of_line(const struct straight *, const struct pair_frame *, int64_t begin, int64_t end, int64_t error,
    int64_t growth, struct curve *out);

#endif

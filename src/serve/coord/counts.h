/* SPDX-License-Identifier: MIT */
/* Private to coord: sums of counts by ranges of durations that are equal on every server. */
#ifndef WEFT_COORD_COUNTS_H
#define WEFT_COORD_COUNTS_H

#include "coord/gather.h"

/* Returns whether each tree is one entry of one key that states TSP_COUNTS. Models at NULL (servers without a tree) are
 * skipped. */
bool coord_counts_are_stated(const struct slice *models, size_t n);
/* Answers a question for series if the members' trees state counts. False: they do not, and nothing was sent. */
bool coord_counts_answer(struct coord_call *);
/* Writes the sum of the answers as one series with that id; null: no server has data. Answers of another form, or by
 * other ranges, are dropped and noted. */
void coord_merge_counts(struct coord_answers *, int64_t id, struct json *);

#endif

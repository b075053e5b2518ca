/* What tables share, whether their rows are at hand or read from traces: search expressions and
 * lines. */
#ifndef WEFT_TSP_SEARCH_H
#define WEFT_TSP_SEARCH_H

#include "base/terms.h"
#include "tsp/provider.h"

/* {column id: regular expression}, or NULL */
void search_init(struct terms *, json_t *expressions, const struct tsp_column *, size_t n);

/* Places of the columns asked for; all when none were. */
size_t search_columns(const struct tsp_query *, const struct tsp_column *, size_t n, const size_t **places);
void search_begin_lines(struct tsp_answer *, uint64_t low, uint64_t size, const struct tsp_column *, const size_t *places,
    size_t n);
void search_write_line(struct tsp_answer *, uint64_t index, int tags,
    tsp_cell *cell, void *arg, size_t row,
    const size_t *places, size_t n);
void search_end_lines(struct tsp_answer *);

#endif

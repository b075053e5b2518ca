/* SPDX-License-Identifier: MIT */
/* Private to tsp: cache of the rows of tables that match a filter, for clients that read them page by page. Kept while
 * the traces are open. */
#ifndef WEFT_TSP_KEPT_ROWS_H
#define WEFT_TSP_KEPT_ROWS_H

#include <stddef.h>

/* Rows of the most recently used filters. Thread-safe. */
struct kept_rows;
struct kept_rows *tsp_kept_rows_new(void);
void tsp_kept_rows_free(struct kept_rows *);
/* Frees what nobody uses. */
void tsp_kept_rows_give_memory(struct kept_rows *);

/* Rows, ascending, of an output that has `of` rows in all. */
struct kept_list { const size_t *rows; size_t n; };
/* Cached rows, to be given back; NULL: none. */
const struct kept_list *tsp_kept_rows_find(struct kept_rows *, const char *output, const char *filter, size_t of);
/* Takes over `rows` (malloc), and returns them like tsp_kept_rows_find. */
const struct kept_list *tsp_kept_rows_put(struct kept_rows *, const char *output, const char *filter, size_t of,
    size_t *rows, size_t n);
void tsp_kept_rows_give_back(struct kept_rows *, const struct kept_list *);

#endif

/* SPDX-License-Identifier: MIT */
/* Private to tsp: which rows of tables fit a filter, kept while the traces are open for whoever goes through them page
 * by page. */
#ifndef WEFT_TSP_KEPT_ROWS_H
#define WEFT_TSP_KEPT_ROWS_H

#include <stddef.h>

/* Of the filters used last. Thread-safe. */
struct kept_rows;
struct kept_rows *kept_rows_new(void);
void kept_rows_free(struct kept_rows *);
/* Lets go what nobody uses. */
void kept_rows_give_memory(struct kept_rows *);

/* Rows, ascending, of an output that has `of` rows in all. */
struct kept_list { const size_t *rows; size_t n; };
/* Those that are kept, to be given back; NULL: none are. */
const struct kept_list *kept_rows_find(struct kept_rows *, const char *output, const char *filter, size_t of);
/* Takes over `rows` (malloc), and returns them as the other does. */
const struct kept_list *kept_rows_put(struct kept_rows *, const char *output, const char *filter, size_t of,
    size_t *rows, size_t n);
void kept_rows_give_back(struct kept_rows *, const struct kept_list *);

#endif

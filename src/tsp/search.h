/* What tables share, whether their rows are at hand or read from traces: search expressions and
 * lines. */
#ifndef WEFT_TSP_SEARCH_H
#define WEFT_TSP_SEARCH_H

#include "base/regex.h"
#include "tsp/provider.h"

enum { SEARCH_MAX = 64 };
struct search_term { size_t column; /* place */ const char *plain; /* or NULL: regex */ struct regex *regex; };
struct search {
    size_t n;
    bool impossible;         /* asks for a column that is not there */
    struct text cell;
    struct search_term terms[SEARCH_MAX];
};

bool search_term_fits(const struct search_term *, const char *text);
/* expressions may be NULL */
void search_init(struct search *, json_t *expressions, const struct tsp_column *, size_t n);
/* Do all expressions find something in the row? False without expressions. */
bool search_fits(struct search *, tsp_cell *cell, void *arg,
    size_t row);
void search_fini(struct search *);

/* Places of the columns asked for; all when none were. */
size_t search_columns(const struct tsp_query *, const struct tsp_column *, size_t n, const size_t **places);
void search_begin_lines(struct tsp_answer *, uint64_t low, uint64_t size, const struct tsp_column *, const size_t *places,
    size_t n);
void search_write_line(struct tsp_answer *, uint64_t index, int tags,
    tsp_cell *cell, void *arg, size_t row,
    const size_t *places, size_t n);
void search_end_lines(struct tsp_answer *);

#endif

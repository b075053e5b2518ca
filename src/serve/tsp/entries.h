/* SPDX-License-Identifier: MIT */
/* Private to tsp: what the backend's numbers of entries are to clients. The backend numbers entries as it likes while
 * its traces are open; clients know them by ids that stay (ids.h). A table for each output, filled by the trees that
 * are written, and, when a number or an id is asked for that it does not have, by listing the output's tree. */
#ifndef WEFT_TSP_ENTRIES_H
#define WEFT_TSP_ENTRIES_H

#include "tsp/ids.h"
#include "tsp/provider.h"

/* All tables of what is open. Thread-safe. */
struct entry_tables;
/* Borrows all but the ids, of which it keeps a reference. */
struct entry_tables *entry_tables_new(const struct tsp_backend *, struct tsp_data *, struct tsp_ids *);
void entry_tables_free(struct entry_tables *);

/* The entries of the output that a request is about. Borrows all; an answer that has it speaks of entries by ids. */
struct tsp_entries {
    struct entry_tables *all;
    struct entry_table *table;
    const struct tsp_provider *provider;
    const struct tsp_query *query;
    bool listing;                    /* nothing is to be written: the tree is gone through for its entries */
    bool listed;                     /* that has been done for this request */
    bool growing;                    /* the tree is still being computed */
    bool waits;                      /* an id was asked for that nobody has, but that may come */
};
struct tsp_entries entries_of(struct entry_tables *, const struct tsp_provider *, const struct tsp_query *);
/* The query's ids become the backend's numbers, ascending; those that nobody has are left out, or TSP_NO_ENTRY. */
void entries_take_query(struct tsp_entries *, struct tsp_query *);
/* Ids of an entry that is written, and of its parent (-1: none). */
void entries_name(struct tsp_entries *, const struct tsp_entry *, int64_t *id, int64_t *parent);
/* The id of the backend's entry, which may not have been written yet; -1: there is none. */
int64_t entries_id(struct tsp_entries *, int64_t number);

#endif

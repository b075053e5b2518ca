/* SPDX-License-Identifier: MIT */
/* Private to tsp: mapping of the backend's entry numbers to clients' ids. The backend numbers entries freely while its
 * traces are open; ids are permanent (ids.h). Each output has a table, filled by the trees that are written. A number
 * or id that it lacks is looked up by listing the output's tree. */
#ifndef WEFT_TSP_ENTRIES_H
#define WEFT_TSP_ENTRIES_H

#include "tsp/ids.h"
#include "tsp/provider.h"

/* Tables of all outputs of an opening. Thread-safe. */
struct entry_tables;
/* Borrows its arguments, except for the ids: it keeps a reference. */
struct entry_tables *tsp_entry_tables_new(const struct tsp_backend *, struct tsp_data *, struct tsp_ids *);
void tsp_entry_tables_free(struct entry_tables *);

/* Entries of the output of a request. Borrows everything. An answer with it writes ids of entries. */
struct tsp_entries {
    struct entry_tables *all;
    struct entry_table *table;
    const struct tsp_provider *provider;
    const struct tsp_query *query;
    bool listing;                    /* listing mode: nothing is written, the tree is read for its entries */
    bool listed;                     /* the tree was listed for this request */
    bool growing;                    /* the tree is still being computed */
    bool waits;                      /* an unknown id was requested that may still appear */
};
struct tsp_entries tsp_entries_of(struct entry_tables *, const struct tsp_provider *, const struct tsp_query *);
/* Replaces the query's ids by the backend's numbers, ascending. Unknown ids are dropped, or become TSP_NO_ENTRY. */
void tsp_entries_take_query(struct tsp_entries *, struct tsp_query *);
/* Returns ids of an entry that is written, and of its parent (-1: none). */
void tsp_entries_name(struct tsp_entries *, const struct tsp_entry *, int64_t *id, int64_t *parent);
/* Id of the backend's entry, which may not have been written yet; -1: none. */
int64_t tsp_entries_id(struct tsp_entries *, int64_t number);

#endif

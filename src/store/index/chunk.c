/* SPDX-License-Identifier: MIT */
/* File of a chunk: its stores, and facts beside them: the host's rows of its rows, the state carried into the next
 * chunk, counts of events by class, and problems of the input. So an answer from stores is as partial as the one that
 * made them. docs/formats/chunk.md */
#include <string.h>

#include "index/stores.h"

enum { VERSION = 2, SECTIONS = 7 };

/* State carried out of the chunk. As large as all that is open at its end, and used only to build the next chunk. */
static const char carry_section[] = "carry";

struct store_writer *index_chunk_create(const struct index_files *f, const struct index_chunk *c)
{
    size_t n = SECTIONS;
    for (int part = 0; part < INDEX_PARTS; part++)
        n += index_part_kind(f->is_kernel, part) != NULL;
    return store_create(index_path(f, INDEX_CHUNK, c->number), "chunk", VERSION, c->key, n);
}

int index_chunk_write(struct store_writer *s, const struct index_outcome *o, const struct text *problems,
    struct types_builder *types, struct err *e)
{
    store_add(s, "rows", o->rows.v, sizeof *o->rows.v, o->rows.n);
    store_add(s, "leaving", o->leaving.v, sizeof *o->leaving.v, o->leaving.n);
    store_add(s, carry_section, o->carry.v, 1, o->carry.n);
    store_add(s, "problems", problems->v, 1, problems->n);
    index_types_builder_store(types, s);
    return store_commit(s, e);
}

int index_chunk_open(const char *path, uint64_t key, struct store **out, struct err *e)
{
    return store_open_unread(path, "chunk", VERSION, &key, out, e);
}

/* Rows of the host from 0 on, each at most once. */
static bool good_rows(const int32_t *rows, size_t n)
{
    int32_t signs = 0; /* sum of signs, without a branch per row: each opening checks all rows */
    for (size_t i = 0; i < n; i++)
        signs |= rows[i];
    return signs >= 0;
}

int index_chunk_read(const struct index_files *f, const struct index_chunk *c, struct index_known *out, struct err *e)
{
    const char *path = index_path(f, INDEX_CHUNK, c->number);
    *out = (struct index_known){0};
    int rc = store_open_but(path, "chunk", VERSION, &c->key, carry_section, &out->store, e);
    if (rc)
        return rc;
    out->rows = store_section(out->store, "rows", sizeof *out->rows, &out->n_rows);
    out->leaving = store_section(out->store, "leaving", sizeof *out->leaving, &out->n_leaving);
    out->problems = store_section(out->store, "problems", 1, &out->n_problems);
    if (out->rows && out->leaving && out->problems && good_rows(out->rows, out->n_rows) &&
        good_rows(out->leaving, out->n_leaving))
        return 0;
    store_close(out->store);
    out->store = NULL;
    return err_set(e, ERR_FORMAT, "%s: what is known of the chunk is missing", path);
}

int index_chunk_carry(const struct index_files *f, const struct index_chunk *c, struct index_known *k, struct err *e)
{
    int rc = store_check_section(k->store, index_path(f, INDEX_CHUNK, c->number), carry_section, e);
    if (!rc)
        k->carry = store_section(k->store, carry_section, 1, &k->n_carry);
    return rc;
}

void index_outcome_free(struct index_outcome *o)
{
    vec_free(&o->rows);
    vec_free(&o->leaving);
    text_fini(&o->carry);
}

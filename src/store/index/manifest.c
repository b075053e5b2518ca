/* SPDX-License-Identifier: MIT */
/* Manifest: the chunks of a trace's stores, and the inputs of each. It is replaced as a whole after files of chunks
 * were added, or before they are removed. So a killed process leaves complete chunks, and files without an entry, which
 * the next build removes. It seals the files of the chunks by their stamps: an untouched file is opened without reading
 * it. With any other stamp a file's checksums are compared first, once; if they are right, it is sealed anew. */
#include <stdlib.h>
#include <string.h>

#include "index/stores.h"

enum { VERSION = 7, DISORDER = 1 };

/* Files that were appended to count as they are now: all chunks are of what the trace has. */
static void take_growth(const struct index_files *f, struct index_history *h)
{
    for (size_t i = 0; i < h->chunks.n && ctf_trace_has_grown(f->trace); i++)
        h->chunks.v[i].packets = ctf_trace_range_fingerprint(f->trace, h->chunks.v[i].begin, h->chunks.v[i].end);
}

bool index_chunk_current(const struct index_files *f, const struct index_chunk *c)
{
    return c->packets == ctf_trace_range_fingerprint(f->trace, c->begin, c->end) ||
        (ctf_trace_has_grown(f->trace) && c->packets == ctf_trace_range_before(f->trace, c->begin, c->end));
}

int index_history_write(const struct index_files *f, struct index_history *h, struct err *e)
{
    struct ctf_file_state *states;
    const uint64_t head[2] = {h->disorder ? DISORDER : 0, h->rows = index_rows_stamp(f->dir)};
    for (size_t i = 0; i < h->chunks.n; i++) {
        struct index_chunk *c = &h->chunks.v[i];
        int rc = file_stamp(index_path(f, INDEX_CHUNK, c->number), &c->seal, e);
        if (rc)
            return rc;
    }
    take_growth(f, h);
    size_t n = ctf_trace_file_states(f->trace, &states);
    struct store_writer *s = store_create(index_path(f, INDEX_MANIFEST, 0), "manifest", VERSION, index_rules_of(f), 3);
    store_add(s, "head", head, sizeof head, 1);
    store_add(s, "chunks", h->chunks.v, sizeof *h->chunks.v, h->chunks.n);
    store_add(s, "files", states, sizeof *states, n);
    free(states);
    return store_commit(s, e);
}

/* Returns the first defect of the chunks, or NULL. Each must begin where the one before ends, with the state that it
 * left. Numbers must be unique. */
static const char *defect(const struct index_chunk *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!v[i].number || v[i].begin > v[i].end ||
            (i && (v[i].begin != v[i - 1].end || v[i].before != v[i - 1].after)))
            return "chunks that do not follow each other";
        if (i + 1 < n && (v[i].end == INT64_MAX || !v[i].after))
            return "a chunk behind the last";
        for (size_t k = 0; k < i; k++)
            if (v[k].number == v[i].number)
                return "two chunks of one number";
    }
    return NULL;
}

int index_history_read(const struct index_files *f, struct index_history *h, struct err *e)
{
    const char *path = index_path(f, INDEX_MANIFEST, 0);
    uint64_t key = index_rules_of(f);
    struct store *s;
    size_t n, n_heads, n_states;
    *h = (struct index_history){0};
    int rc = store_open(path, "manifest", VERSION, &key, &s, e);
    if (rc)
        return rc;
    const uint64_t(*head)[2] = store_section(s, "head", sizeof *head, &n_heads);
    const struct index_chunk *v = store_section(s, "chunks", sizeof *v, &n);
    const struct ctf_file_state *states = store_section(s, "files", sizeof *states, &n_states);
    const char *what = n_heads != 1 || !v || !states ? "a section is missing" : defect(v, n);
    if (what) {
        rc = err_set(e, ERR_FORMAT, "%s: %s", path, what);
    } else {
        h->disorder = **head & DISORDER;
        h->rows = (*head)[1];
        for (size_t i = 0; i < n; i++)
            vec_push(&h->chunks, v[i]);
        ctf_trace_grew_from((struct ctf_trace *)f->trace, states, n_states);
    }
    store_close(s);
    return rc;
}

int index_chunk_sealed(const struct index_files *f, const struct index_chunk *c, struct err *e)
{
    const char *path = index_path(f, INDEX_CHUNK, c->number);
    struct file_stamp now;
    int rc = file_stamp(path, &now, e);
    if (rc || !memcmp(&now, &c->seal, sizeof now))
        return rc;
    return err_set(e, ERR_STALE, "%s: not as it was written", path);
}

int index_chunk_check(const struct index_files *f, const struct index_chunk *c, struct err *e)
{
    const char *path = index_path(f, INDEX_CHUNK, c->number);
    return store_check(path, e) ?: store_check_key(path, c->key, e);
}

struct index_totals index_history_totals(const struct index_history *h)
{
    struct index_totals sum = {.begin = INT64_MAX, .end = INT64_MIN};
    for (size_t i = 0; i < h->chunks.n; i++) {
        const struct index_totals *t = &h->chunks.v[i].totals;
        sum.events += t->events;
        sum.lost_events += t->lost_events;
        sum.begin = t->begin < sum.begin ? t->begin : sum.begin;
        sum.end = t->end > sum.end ? t->end : sum.end;
    }
    return sum;
}

void index_history_free(struct index_history *h)
{
    vec_free(&h->chunks);
}

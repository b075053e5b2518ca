/* SPDX-License-Identifier: MIT */
/* Packets stores: the number of events of each packet, for random access. The store of a chunk has the packets that
 * were read to their end while it was built, with keys that identify them (docs/formats/packets.md). Stores are read
 * when somebody needs the counts; the events of a packet in none of them are counted then. Until then their files stay
 * open: chunks may be joined by another process, and their files removed. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "index/stores.h"

enum { VERSION = 4 };

int index_counts_write(struct store_place place, const struct index_chunk *chunk, struct ctf_merge *m, struct err *e)
{
    struct ctf_counts c;
    ctf_merge_counts(m, chunk->end, &c);
    struct store_writer *s = store_create_at(place, "packets", VERSION, chunk->key, 2);
    store_add(s, "packets", c.packets, sizeof *c.packets, c.n_packets);
    store_add(s, "marks", c.marks, sizeof *c.marks, c.n_marks);
    int rc = store_commit(s, e);
    free(c.packets);
    free(c.marks);
    return rc;
}

/* Opens the part of a chunk's file; its arrays are borrowed. */
static int open_counts(
    const char *path, const struct store *file, struct store **s, struct ctf_counts *c, struct err *e)
{
    size_t marks = 0;
    int rc = store_open_from(file, path, "packets", VERSION, s, e);
    if (rc)
        return rc;
    c->packets = (struct ctf_packet_count *)store_section(*s, "packets", sizeof *c->packets, &c->n_packets);
    c->marks = (struct ctf_mark *)store_section(*s, "marks", sizeof *c->marks, &c->n_marks);
    for (size_t i = 0; i < c->n_packets && marks <= c->n_marks; i++)
        marks += c->packets[i].marks;
    if (marks == c->n_marks)
        return 0;
    store_close(*s);
    return err_set(e, ERR_FORMAT, "%s: other marks than its packets have", path);
}

int index_counts_check(const char *path, const struct store *file, struct err *e)
{
    struct ctf_counts c;
    struct store *s;
    int rc = open_counts(path, file, &s, &c, e);
    if (!rc)
        store_close(s);
    return rc;
}

/* ---- return to the trace ---- */

struct remembered {
    size_t n;
    struct remembered_chunk {
        char *path;
        struct store *file;
    } chunks[];
};

typedef VEC(struct ctf_packet_count) counts_vec;
typedef VEC(struct ctf_mark) marks_vec;

static void forget(void *arg)
{
    struct remembered *r = arg;
    for (size_t i = 0; i < r->n; i++) {
        free(r->chunks[i].path);
        store_close(r->chunks[i].file);
    }
    free(r);
}

static void add_chunk(const struct remembered_chunk *chunk, counts_vec *packets, marks_vec *marks)
{
    struct ctf_counts c;
    struct store *s;
    struct err e = {0};
    if (open_counts(chunk->path, chunk->file, &s, &c, &e))
        return;
    for (size_t k = 0; k < c.n_packets; k++)
        vec_push(packets, c.packets[k]);
    for (size_t k = 0; k < c.n_marks; k++)
        vec_push(marks, c.marks[k]);
    if (store_intact(s, &e)) { /* damaged file: its entries are dropped */
        packets->n -= c.n_packets;
        marks->n -= c.n_marks;
    }
    store_close(s);
}

static void give(void *arg, struct ctf_counts *out)
{
    const struct remembered *r = arg;
    counts_vec packets = {0};
    marks_vec marks = {0};
    for (size_t i = 0; i < r->n; i++)
        add_chunk(&r->chunks[i], &packets, &marks);
    *out = (struct ctf_counts){packets.v, packets.n, marks.v, marks.n};
}

void index_counts_remember(const struct index_files *f, const struct index_history *h, struct index_known *known)
{
    struct remembered *r = mem_alloc(sizeof *r + h->chunks.n * sizeof *r->chunks);
    r->n = h->chunks.n;
    for (size_t i = 0; i < r->n; i++) {
        r->chunks[i] = (struct remembered_chunk){
            mem_strdup(index_path(f, INDEX_CHUNK, h->chunks.v[i].number)), known[i].store};
        known[i].store = NULL;
    }
    ctf_trace_remember((struct ctf_trace *)f->trace, give, r, forget);
}

/* SPDX-License-Identifier: MIT */
/* Pieces of the registry of a host's rows: files, and unsaved rows. */
#include "kernel/registry.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/order.h"
#include "base/store.h"
#include "kernel/kernel.h"

/* ---- order ---- */

static int compare_rows(const void *x, const void *y)
{
    const struct rows_disk_row *a = x, *b = y;
    return order_of(a->row, b->row);
}

static int compare_spells(const void *x, const void *y)
{
    const struct rows_disk_spell *a = x, *b = y;
    int by = order_of(a->tid, b->tid);
    by = by ? by : order_of(a->from, b->from);
    return by ? by : order_of(a->row, b->row);
}

static int compare_ids(const void *x, const void *y)
{
    const struct rows_disk_id *a = x, *b = y;
    return order_of(a->id, b->id);
}

const struct rows_disk_row *kernel_rows_piece_row(const struct rows_piece *p, int32_t row)
{
    struct rows_disk_row key = {.row = row};
    if (!p->n || row < p->rows[0].row || row > p->rows[p->n - 1].row)
        return NULL;
    return bsearch(&key, p->rows, p->n, sizeof key, compare_rows);
}

size_t kernel_rows_piece_spells_before(const struct rows_piece *p, int32_t tid, int64_t from, int32_t row)
{
    struct rows_disk_spell key = {.tid = tid, .from = from, .row = row};
    size_t low = 0, high = p->n_spells;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_spells(&p->spells[middle], &key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* ---- pieces in memory ---- */

struct rows_piece kernel_rows_piece_make(
    struct rows_disk_row *rows, size_t n, char *text, size_t n_text, uint64_t n_rows)
{
    struct rows_disk_spell *spells = mem_alloc((2 * n + 1) * sizeof *spells);
    struct rows_disk_id *ids = mem_alloc((n + 1) * sizeof *ids);
    struct rows_piece p = {.rows = rows,
        .spells = spells,
        .ids = ids,
        .text = text,
        .n = n,
        .n_ids = n,
        .n_text = n_text,
        .n_rows = n_rows};
    if (n)
        qsort(rows, n, sizeof *rows, compare_rows);
    for (size_t i = 0; i < n; i++) {
        ids[i] = (struct rows_disk_id){.id = rows[i].id, .row = rows[i].row};
        spells[p.n_spells++] = (struct rows_disk_spell){rows[i].begin, rows[i].tid, rows[i].row};
        if (rows[i].later_tid >= 0)
            spells[p.n_spells++] = (struct rows_disk_spell){rows[i].renumbered, rows[i].later_tid, rows[i].row};
    }
    if (n) {
        qsort(spells, p.n_spells, sizeof *spells, compare_spells);
        qsort(ids, n, sizeof *ids, compare_ids);
    }
    return p;
}

void kernel_rows_piece_free(struct rows_piece *p)
{
    if (p->store) {
        store_close(p->store);
        return;
    }
    free((void *)(uintptr_t)p->rows);
    free((void *)(uintptr_t)p->spells);
    free((void *)(uintptr_t)p->ids);
    free((void *)(uintptr_t)p->text);
}

/* ---- files ---- */

static int damaged(const char *path, const char *what, struct err *e)
{
    return err_set(e, ERR_FORMAT,
        "%s: the registry of rows is damaged: %s; bring it back from a copy, or remove the "
        "stores of this host, which then get new ids",
        path, what);
}

int kernel_rows_piece_open(const char *path, uint64_t host, struct rows_piece *out, struct err *e)
{
    struct store *s;
    size_t n;
    int rc = store_open_unread(path, "rows", ROWS_VERSION, &host, &s, e);
    if (rc)
        return rc;
    *out = (struct rows_piece){.store = s};
    const struct rows_disk_head *h = store_section(s, "head", sizeof *h, &n);
    const char *wrong = n != 1 ? "it has no head" : NULL;
    out->rows = store_section(s, "rows", sizeof *out->rows, &out->n);
    out->spells = store_section(s, "spells", sizeof *out->spells, &out->n_spells);
    out->ids = store_section(s, "ids", sizeof *out->ids, &out->n_ids);
    out->text = store_section(s, "text", 1, &out->n_text);
    if (!wrong && (h->host != host || h->first > h->last || h->n_rows > INT32_MAX))
        wrong = "its head makes no sense";
    if (!wrong && (out->n > h->n_rows || out->n_ids != out->n || out->n_spells < out->n || out->n_spells > 2 * out->n))
        wrong = "its tables do not belong together";
    if (!wrong && (!out->n_text || out->text[0] || out->text[out->n_text - 1]))
        wrong = "its names do not end";
    if (wrong) {
        store_close(s);
        return damaged(path, wrong, e);
    }
    out->first = h->first;
    out->last = h->last;
    out->n_rows = h->n_rows;
    return ERR_OK;
}

static const char *row_defect(const struct rows_piece *p, size_t i)
{
    const struct rows_disk_row *r = &p->rows[i];
    if (r->row < 0 || (uint64_t)r->row >= p->n_rows || (i && r->row <= r[-1].row))
        return "rows out of order";
    if (r->name >= p->n_text)
        return "a name lies outside the text";
    if (!r->id || r->id >> 52)
        return "an id is none";
    if (r->tid == 0 || r->later_tid < -1 || (r->birth != KERNEL_UNBORN && r->birth != r->begin))
        return "a row makes no sense";
    return NULL;
}

int kernel_rows_piece_check(const struct rows_piece *p, const char *path, struct err *e)
{
    const char *wrong = NULL;
    for (size_t i = 0; i < p->n && !wrong; i++)
        wrong = row_defect(p, i);
    for (size_t i = 0; i < p->n_spells && !wrong; i++) {
        const struct rows_disk_spell *s = &p->spells[i];
        const struct rows_disk_row *r = kernel_rows_piece_row(p, s->row);
        bool is_its = r &&
            ((s->tid == r->tid && s->from == r->begin) || (s->tid == r->later_tid && s->from == r->renumbered));
        if (!is_its || (i && compare_spells(&s[-1], s) >= 0))
            wrong = "tids are not those of the rows";
    }
    for (size_t i = 0; i < p->n_ids && !wrong; i++) {
        const struct rows_disk_row *r = kernel_rows_piece_row(p, p->ids[i].row);
        if (!r || r->id != p->ids[i].id || (i && p->ids[i].id <= p->ids[i - 1].id))
            wrong = "ids are not those of the rows";
    }
    return wrong ? damaged(path, wrong, e) : ERR_OK;
}

/* ---- joining of pieces ---- */

struct joining {
    const struct rows_piece *pieces;
    size_t n;
    size_t *at; /* position by piece */
    struct strings names;
    VEC(uint32_t) places; /* position of the names in the text, by their number; grows */
    size_t n_text;
};

/* Returns whether a newer piece has that row. */
static bool is_old(const struct joining *j, size_t piece, int32_t row)
{
    for (size_t i = piece + 1; i < j->n; i++)
        if (kernel_rows_piece_row(&j->pieces[i], row))
            return true;
    return false;
}

static uint32_t place_of(struct joining *j, const char *name)
{
    uint32_t number = strings_intern(&j->names, name, strlen(name));
    while (j->places.n < j->names.n) {
        vec_push(&j->places, (uint32_t)j->n_text);
        j->n_text += strlen(j->names.v[j->places.n - 1]) + 1;
    }
    return j->places.v[number];
}

static void join_rows(struct joining *j, struct store_writer *w)
{
    for (;;) {
        const struct rows_piece *from = NULL;
        const struct rows_disk_row *least = NULL;
        for (size_t i = 0; i < j->n; i++) { /* the newest of those with the lowest number */
            const struct rows_piece *p = &j->pieces[i];
            const struct rows_disk_row *r = j->at[i] < p->n ? &p->rows[j->at[i]] : NULL;
            if (r && (!least || r->row <= least->row)) {
                least = r;
                from = p;
            }
        }
        if (!least)
            return;
        struct rows_disk_row copy = *least;
        copy.name = place_of(j, copy.name < from->n_text ? from->text + copy.name : "");
        store_append(w, &copy, 1);
        for (size_t i = 0; i < j->n; i++)
            while (j->at[i] < j->pieces[i].n && j->pieces[i].rows[j->at[i]].row <= copy.row)
                j->at[i]++;
    }
}

static void join_spells(struct joining *j, struct store_writer *w)
{
    for (;;) {
        size_t from = 0;
        const struct rows_disk_spell *least = NULL;
        for (size_t i = 0; i < j->n; i++) {
            const struct rows_piece *p = &j->pieces[i];
            while (j->at[i] < p->n_spells && is_old(j, i, p->spells[j->at[i]].row))
                j->at[i]++;
            const struct rows_disk_spell *s = j->at[i] < p->n_spells ? &p->spells[j->at[i]] : NULL;
            if (s && (!least || compare_spells(s, least) < 0)) {
                least = s;
                from = i;
            }
        }
        if (!least)
            return;
        store_append(w, least, 1);
        j->at[from]++;
    }
}

static void join_ids(struct joining *j, struct store_writer *w)
{
    for (;;) {
        const struct rows_disk_id *least = NULL;
        for (size_t i = 0; i < j->n; i++) {
            const struct rows_piece *p = &j->pieces[i];
            if (j->at[i] < p->n_ids && (!least || p->ids[j->at[i]].id < least->id))
                least = &p->ids[j->at[i]];
        }
        if (!least)
            return;
        struct rows_disk_id copy = *least;
        store_append(w, &copy, 1);
        for (size_t i = 0; i < j->n; i++)
            while (j->at[i] < j->pieces[i].n_ids && j->pieces[i].ids[j->at[i]].id <= copy.id)
                j->at[i]++;
    }
}

static void join_text(struct joining *j, struct store_writer *w)
{
    for (size_t i = 0; i < j->names.n; i++)
        store_append(w, j->names.v[i], strlen(j->names.v[i]) + 1);
}

int kernel_rows_pieces_write(const struct rows_piece *pieces, size_t n, const char *path, uint64_t host, struct err *e)
{
    struct joining j = {.pieces = pieces, .n = n, .at = mem_zalloc((n + 1) * sizeof *j.at)};
    struct rows_disk_head head = {host, pieces[0].first, pieces[n - 1].last, pieces[n - 1].n_rows};
    struct store_writer *w = store_create(path, "rows", ROWS_VERSION, host, 5);
    strings_intern(&j.names, "", 0);
    store_add(w, "head", &head, sizeof head, 1);
    store_begin(w, "rows", sizeof(struct rows_disk_row));
    join_rows(&j, w);
    memset(j.at, 0, n * sizeof *j.at);
    store_begin(w, "spells", sizeof(struct rows_disk_spell));
    join_spells(&j, w);
    memset(j.at, 0, n * sizeof *j.at);
    store_begin(w, "ids", sizeof(struct rows_disk_id));
    join_ids(&j, w);
    store_begin(w, "text", 1);
    join_text(&j, w);
    strings_fini(&j.names);
    vec_free(&j.places);
    free(j.at);
    if (j.n_text > UINT32_MAX) {
        store_abort(w);
        return err_set(e, ERR_LIMIT, "%s: names of threads take more than 4 GB", path);
    }
    return store_commit(w, e);
}

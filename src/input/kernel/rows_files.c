/* SPDX-License-Identifier: MIT */
/* Files of the registry of a host's rows. Each is named after the saves whose rows it holds, `rows.3-7`. A file whose
 * saves are also in another one is left over from an interrupted save. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/nolinks.h"
#include "base/order.h"
#include "base/store.h"
#include "base/text.h"
#include "kernel/registry.h"
#include "kernel/rows.h"

struct range {
    uint64_t first, last;
};
typedef VEC(struct range) range_list;

static char *path_of(const char *directory, uint64_t first, uint64_t last)
{
    struct text t = {.fd = -1};
    text_printf(&t, "%s/rows.%llu-%llu", directory, (unsigned long long)first, (unsigned long long)last);
    return text_take(&t);
}

static int compare_ranges(const void *x, const void *y)
{
    const struct range *a = x, *b = y;
    int by = order_of(a->first, b->first);
    return by ? by : order_of(b->last, a->last);
}

/* Sorted; of those with the same begin the longest comes first. */
static int list_files(const char *directory, range_list *out, struct err *e)
{
    DIR *d = nolinks_opendir(directory);
    if (!d)
        return err_set(e, errno == ENOENT ? ERR_NOTFOUND : ERR_IO, "%s: %s", directory, strerror(errno));
    for (struct dirent *entry; (entry = readdir(d));) {
        unsigned long long first, last;
        int end = 0;
        if (sscanf(entry->d_name, "rows.%llu-%llu%n", &first, &last, &end) == 2 && !entry->d_name[end])
            vec_push(out, ((struct range){first, last}));
    }
    closedir(d);
    if (out->n)
        qsort(out->v, out->n, sizeof *out->v, compare_ranges);
    return ERR_OK;
}

/* Opens the valid ones: together they hold every save once. */
static int open_files(struct kernel_rows *r, const range_list *files, struct err *e)
{
    for (size_t i = 0; i < files->n; i++) {
        struct range f = files->v[i];
        struct rows_piece p;
        if (f.last <= r->n_saved)
            continue;
        if (f.first != r->n_saved + 1)
            return err_set(e, ERR_FORMAT,
                "%s: a file of the registry of rows is missing, rows.%llu-…: bring it back "
                "from a copy, or remove the stores of this host, which then get new ids",
                r->directory, (unsigned long long)r->n_saved + 1);
        char *path = path_of(r->directory, f.first, f.last);
        int rc = kernel_rows_piece_open(path, r->host, &p, e);
        if (!rc && (p.first != f.first || p.last != f.last || p.n_rows < r->n_rows)) {
            kernel_rows_piece_free(&p);
            rc = err_set(e, ERR_FORMAT, "%s: it is not the file that its name says", path);
        }
        free(path);
        if (rc)
            return rc;
        vec_push(&r->pieces, p);
        r->n_saved = f.last;
        r->n_rows = p.n_rows;
    }
    return ERR_OK;
}

int kernel_rows_open(const char *directory, uint64_t host, struct kernel_rows **out, struct err *e)
{
    struct kernel_rows *r = mem_zalloc(sizeof *r);
    range_list files = {0};
    r->directory = mem_strdup(directory);
    r->host = host;
    int rc = list_files(directory, &files, e);
    rc = rc ? rc : open_files(r, &files, e);
    vec_free(&files);
    if (rc)
        kernel_rows_close(r);
    else
        *out = r;
    return rc;
}

void kernel_rows_close(struct kernel_rows *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->pieces.n; i++)
        kernel_rows_piece_free(&r->pieces.v[i]);
    vec_free(&r->pieces);
    vec_free(&r->ended);
    free(r->directory);
    free(r);
}

int kernel_rows_intact(const struct kernel_rows *r, struct err *e)
{
    int rc = ERR_OK;
    for (size_t i = 0; i < r->pieces.n && !rc; i++)
        rc = r->pieces.v[i].store ? store_intact(r->pieces.v[i].store, e) : ERR_OK;
    return rc;
}

int kernel_rows_check(const char *directory, uint64_t host, struct err *e)
{
    struct kernel_rows *r = NULL;
    int rc = kernel_rows_open(directory, host, &r, e);
    for (size_t i = 0; !rc && i < r->pieces.n; i++) {
        char *path = path_of(directory, r->pieces.v[i].first, r->pieces.v[i].last);
        rc = store_check(path, e);
        rc = rc ? rc : kernel_rows_piece_check(&r->pieces.v[i], path, e);
        free(path);
    }
    if (!rc)
        rc = kernel_rows_intact(r, e);
    kernel_rows_close(r);
    return rc;
}

/* ---- saving ---- */

/* Returns the first piece to be joined: all unsaved ones, and the last ones before that are not much larger than all
 * behind them. So a row is written again only if its file becomes at least half as large again. */
static size_t first_to_join(const struct kernel_rows *r)
{
    size_t first = r->pieces.n, rows = 0;
    while (first && !r->pieces.v[first - 1].store)
        rows += r->pieces.v[--first].n;
    while (first && r->pieces.v[first - 1].n <= 2 * rows)
        rows += r->pieces.v[--first].n;
    return first;
}

/* Checks joined files completely: a damaged file must not become a valid one. */
static int check_joined(const struct kernel_rows *r, size_t from, struct err *e)
{
    int rc = ERR_OK;
    for (size_t i = from; i < r->pieces.n && !rc; i++) {
        const struct rows_piece *p = &r->pieces.v[i];
        if (!p->store)
            continue;
        char *path = path_of(r->directory, p->first, p->last);
        rc = store_check(path, e);
        rc = rc ? rc : kernel_rows_piece_check(p, path, e);
        free(path);
    }
    return rc;
}

/* Removes files whose saves others hold, too; a leftover does no harm. */
static void remove_joined(const struct kernel_rows *r)
{
    range_list files = {0};
    list_files(r->directory, &files, NULL);
    for (size_t i = 0; i < files.n; i++) {
        bool counts = files.v[i].last > r->n_saved;
        for (size_t k = 0; k < r->pieces.n; k++)
            counts |= r->pieces.v[k].first == files.v[i].first && r->pieces.v[k].last == files.v[i].last;
        char *path = path_of(r->directory, files.v[i].first, files.v[i].last);
        if (!counts)
            nolinks_remove(path);
        free(path);
    }
    vec_free(&files);
}

int kernel_rows_save(struct kernel_rows *r, struct err *e)
{
    size_t from = first_to_join(r), n = r->pieces.n - from;
    struct rows_piece joined;
    if (!n || r->pieces.v[r->pieces.n - 1].store)
        return ERR_OK;
    uint64_t last = r->n_saved + 1;
    for (size_t i = from; i < r->pieces.n; i++)
        if (!r->pieces.v[i].store)
            r->pieces.v[i].first = r->pieces.v[i].last = last;
    char *path = path_of(r->directory, r->pieces.v[from].first, last);
    int rc = check_joined(r, from, e);
    rc = rc ? rc : kernel_rows_pieces_write(r->pieces.v + from, n, path, r->host, e);
    rc = rc ? rc : kernel_rows_piece_open(path, r->host, &joined, e);
    free(path);
    if (rc)
        return rc;
    for (size_t i = from; i < r->pieces.n; i++)
        kernel_rows_piece_free(&r->pieces.v[i]);
    r->pieces.n = from;
    vec_push(&r->pieces, joined);
    r->n_saved = last;
    remove_joined(r);
    return ERR_OK;
}

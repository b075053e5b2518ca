/* SPDX-License-Identifier: MIT */
/* Recording that an earlier run indexed: finds the chunks that can be continued. */
#include <stdlib.h>
#include <unistd.h>

#include "ctf/feed.h"
#include "index/growing.h"

/* ---- contents of the directory ---- */

static bool is_good(const struct index_live *l, const struct index_chunk *c)
{
    const struct index_files *f = &l->files;
    struct err e = {0};
    if (c->end == INT64_MAX || !c->after ||
        (!l->fed && c->packets != ctf_trace_range_fingerprint(f->trace, c->begin, c->end)))
        return false;
    return !index_chunk_sealed(f, c, &e) || !index_chunk_check(f, c, &e);
}

/* Loads the state that the last chunk left. */
static int load_left(struct index_live *l, struct err *e)
{
    const struct index_history *h = &l->sealed;
    struct index_known k;
    if (!h->chunks.n)
        return 0;
    const struct index_chunk *last = &h->chunks.v[h->chunks.n - 1];
    int rc = index_chunk_read(&l->files, last, &k, e);
    rc = rc ?: index_chunk_carry(&l->files, last, &k, e);
    if (!rc) {
        text_put(&l->left.carry, (const char *)k.carry, k.n_carry);
        for (size_t i = 0; i < k.n_leaving; i++)
            vec_push(&l->left.leaving, k.leaving[i]);
        l->left_hash = last->after;
    }
    store_close(k.store);
    return rc;
}

static void forget_left(struct index_live *l)
{
    index_outcome_free(&l->left);
    l->left = (struct index_outcome){.carry = {.fd = -1}};
    l->left_hash = 0;
    l->sealed.chunks.n = 0;
}

/* The first ones, up to one that is not as it should be. */
static void find_good(struct index_live *l)
{
    struct err e = {0};
    struct index_history *h = &l->sealed;
    size_t n = 0;
    while (n < h->chunks.n && !h->disorder && is_good(l, &h->chunks.v[n]))
        n++;
    h->chunks.n = n;
    h->disorder = false;
    if (n && l->files.is_kernel &&
        (kernel_rows_check(l->files.dir, index_host_key(l->files.trace), &e) || index_has_rows(&l->files, h, &e)))
        forget_left(l);
    if (load_left(l, &e))
        forget_left(l);
}

int index_again_find(struct index_live *l, const struct index_options *o, struct err *e)
{
    struct index_history *h = &l->sealed;
    uint32_t *numbers;
    if (index_history_read(&l->files, h, &(struct err){0}) || o->force)
        h->chunks.n = 0;
    find_good(l);
    numbers = mem_alloc((h->chunks.n + 1) * sizeof *numbers);
    for (size_t i = 0; i < h->chunks.n; i++) {
        const struct index_chunk *c = &h->chunks.v[i];
        numbers[i] = c->number;
        l->last_number = c->number > l->last_number ? c->number : l->last_number;
        l->last = c->totals.end > l->last && c->totals.begin <= c->totals.end ? c->totals.end : l->last;
    }
    l->begin = h->chunks.n ? h->chunks.v[h->chunks.n - 1].end : INT64_MIN;
    l->again.n = l->fed ? h->chunks.n : 0;
    /* The manifest first: it never names files that are not there. */
    int rc = index_history_write(&l->files, h, e);
    if (!rc)
        index_remove_chunks(l->files.dir, numbers, h->chunks.n);
    free(numbers);
    arena_fini(&l->names);
    return rc;
}

/* ---- data that are fed again ---- */

static int refuse(const struct index_live *l, struct err *e)
{
    return err_set(e, ERR_STALE,
        "%s: the stores are of other events than those that come: feed the recording from its begin, or begin anew in "
        "another directory",
        l->files.dir);
}

/* Chunks that end at or before that time have got all their events. */
static int compare_until(struct index_live *l, int64_t t, struct err *e)
{
    const struct index_history *h = &l->sealed;
    while (l->again.chunk < l->again.n && h->chunks.v[l->again.chunk].end <= t) {
        if (h->chunks.v[l->again.chunk++].packets != l->again.sum)
            return refuse(l, e);
        l->again.sum = 0;
    }
    return 0;
}

int64_t index_again_skip(struct index_live *l, struct ctf_event *ev, size_t n, struct err *e)
{
    const struct index_history *h = &l->sealed;
    size_t kept = 0;
    int rc = 0;
    for (size_t i = 0; i < n && !rc; i++) {
        if (l->again.chunk < l->again.n)
            rc = compare_until(l, ev[i].ts, e);
        if (l->again.chunk == l->again.n)
            ev[kept++] = ev[i];
        else if (ev[i].ts >= h->chunks.v[l->again.chunk].begin)
            l->again.sum += index_item_hash(&ev[i]);
    }
    return rc ? rc : (int64_t)kept;
}

int index_again_until(struct index_live *l, int64_t until, struct err *e)
{
    return l->again.chunk < l->again.n ? compare_until(l, until, e) : 0;
}

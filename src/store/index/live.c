/* SPDX-License-Identifier: MIT */
/* Reading a recording that grows. */
#include "index/live.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/time.h"
#include "ctf/feed.h"
#include "index/growing.h"

enum { LOCK_PATIENCE_S = 120, BATCHES_PER_SIGN = 1024 };

/* ---- making and freeing ---- */

/* A registry of rows that is damaged, or of another host, is begun anew; so are the chunks then. */
static int open_shared(struct index_live *l, struct err *e)
{
    int rc = l->kind->open(&l->files, NULL, &l->shared, e);
    if (rc != ERR_FORMAT && rc != ERR_STALE)
        return rc;
    *e = (struct err){0};
    index_rows_forget(l->files.dir);
    return l->kind->open(&l->files, NULL, &l->shared, e);
}

/* Creates the named directory. Links on the way to it are followed once, now. */
static int take_directory(struct index_live *l, struct err *e)
{
    int rc = file_make_dirs(l->files.dir, e);
    char *real = rc ? NULL : file_real_path(l->files.dir);
    if (!rc && !real)
        rc = err_sys(e, "%s", l->files.dir);
    if (real)
        l->files.dir = arena_strdup(&l->lasting, real);
    free(real);
    return rc;
}

static int begin(struct index_live *l, const struct index_options *o, struct err *e)
{
    struct ctf_source source = {.trace = (struct ctf_trace *)(uintptr_t)l->files.trace};
    struct ctf_window window = {INT64_MIN, INT64_MAX};
    int rc = 0;
    if (l->files.dir)
        rc = take_directory(l, e);
    else if (!(l->files.dir = index_store_dirs(&l->lasting, l->files.trace, o->store, true, e).dir))
        rc = e->code;
    if (!rc && (l->files.lock = index_lock_dir(l->files.dir, LOCK_PATIENCE_S * NS_PER_S, e)) < 0)
        rc = e->code;
    rc = rc ?: index_again_find(l, o, e);
    if (!l->fed) /* data of the earlier run is not read again */
        window.begin = l->begin;
    rc = rc ?: ctf_merge_new(&source, 1, window, -1, &l->merge, e);
    rc = rc ?: open_shared(l, e);
    if (!rc) {
        const struct ctf_event_class *const *classes;
        l->n_classes = ctf_trace_classes(l->files.trace, &classes);
        l->n_streams = ctf_trace_streams(l->files.trace);
        l->until = l->greatest = l->begin;
        l->greatest -= l->greatest > INT64_MIN;
        rc = index_levels_begin(l, l->begin, e);
    }
    arena_fini(&l->names);
    return rc;
}

int index_live_new(struct ctf_trace *trace, const char *directory, const struct index_options *o,
    struct index_live **out, struct err *e)
{
    struct index_live *l = mem_zalloc(sizeof *l);
    l->files = (struct index_files){.trace = trace,
        .from = INT64_MIN,
        .until = INT64_MAX,
        .is_kernel = kernel_is_kernel_trace(trace),
        .dir = directory ? arena_strdup(&l->lasting, directory) : NULL,
        .lock = -1,
        .names = &l->names};
    l->kind = l->files.is_kernel ? &index_kernel : &index_user;
    l->fed = ctf_trace_is_fed(trace);
    l->left.carry.fd = -1;
    l->last = INT64_MIN;
    l->most_events = index_most_events(&l->files, o) / LEVELS;
    int rc = begin(l, o, e);
    if (rc) {
        index_live_free(l);
        return err_wrap(e, "cannot index %s while it grows", ctf_trace_path(trace));
    }
    *out = l;
    return 0;
}

static void remove_unsealed(struct index_live *l)
{
    uint32_t *numbers = mem_alloc((l->sealed.chunks.n + 1) * sizeof *numbers);
    for (size_t i = 0; i < l->sealed.chunks.n; i++)
        numbers[i] = l->sealed.chunks.v[i].number;
    index_remove_chunks(l->files.dir, numbers, l->sealed.chunks.n);
    free(numbers);
}

void index_live_free(struct index_live *l)
{
    if (!l)
        return;
    index_levels_drop(l);
    if (l->shared) {
        l->kind->close(l->shared);
        remove_unsealed(l);
    }
    if (l->files.lock >= 0)
        close(l->files.lock);
    ctf_merge_free(l->merge);
    index_outcome_free(&l->left);
    index_history_free(&l->sealed);
    vec_free(&l->small);
    arena_fini(&l->names);
    arena_fini(&l->lasting);
    free(l);
}

int64_t index_live_until(const struct index_live *l)
{
    return l->until;
}

uint64_t index_live_left_out(const struct index_live *l)
{
    return l->left_out;
}

/* ---- reading ---- */

static int extend(struct index_live *l, struct err *e)
{
    const struct ctf_event_class *const *classes;
    size_t n_classes = ctf_trace_classes(l->files.trace, &classes), n_streams = ctf_trace_streams(l->files.trace);
    if (n_classes == l->n_classes && n_streams == l->n_streams)
        return 0;
    l->n_classes = n_classes;
    l->n_streams = n_streams;
    return index_levels_extend(l, e);
}

/* Drops items before level 0's chunk: chunks that have ended cannot take them. */
static size_t leave_out(struct index_live *l, struct ctf_event *ev, size_t n)
{
    int64_t begin = l->levels[0].chunk.begin;
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (ev[i].ts >= begin)
            ev[kept++] = ev[i];
    l->left_out += n - kept;
    l->sealed.disorder |= kept < n;
    return kept;
}

static int take(struct index_live *l, struct ctf_event *ev, size_t n, struct err *e)
{
    int rc = 0;
    if (l->again.chunk < l->again.n) {
        int64_t left = index_again_skip(l, ev, n, e);
        if (left < 0)
            return (int)left;
        n = (size_t)left;
    } else if (!l->fed && ev->ts <= l->begin) {
        n = index_drop_earlier(ev, n, l->begin);
    }
    /* Cut between two times: all events of one time are in one chunk. */
    if (n && index_chunk_held(&l->levels[l->n_levels - 1].chunk) >= l->most_events && ev->ts > l->greatest)
        rc = index_levels_cut(l, ev->ts, true, e);
    n = rc ? 0 : leave_out(l, ev, n);
    return n ? index_levels_feed(l, ev, n, e) : rc;
}

/* Takes the time up to which all certain items were returned. */
static int note_until(struct index_live *l, struct err *e)
{
    int64_t until = ctf_merge_ended(l->merge) ? INT64_MAX : ctf_merge_until(l->merge);
    int rc = ctf_merge_intact(l->merge, e);
    rc = rc ?: index_again_until(l, until, e);
    l->until = !rc && until > l->until ? until : l->until;
    return rc;
}

static int read_some(struct index_live *l, size_t most, bool *more, struct err *e)
{
    struct ctf_event batch[INDEX_MOST_BATCH];
    size_t read = 0, batches = 0;
    int rc = extend(l, e);
    *more = true;
    while (!rc && read < most) {
        size_t n = ctf_merge_next(l->merge, batch, l->kind->batch);
        if (!n) {
            *more = false;
            return note_until(l, e);
        }
        rc = take(l, batch, n, e);
        read += n;
        if (++batches % BATCHES_PER_SIGN == 0)
            index_lock_alive(l->files.lock);
    }
    return rc;
}

static int failed(const struct index_live *l, struct err *e)
{
    if (e)
        *e = l->failed;
    return l->failed.code;
}

int index_live_read(struct index_live *l, size_t most, bool *more, struct err *e)
{
    *more = false;
    if (l->failed.code || l->ended)
        return failed(l, e);
    if (read_some(l, most, more, &l->failed))
        err_wrap(&l->failed, "cannot index %s while it grows", ctf_trace_path(l->files.trace));
    return failed(l, e);
}

/* ---- preparation of queries, and the end ---- */

int index_live_settle(struct index_live *l, struct err *e)
{
    bool more;
    int rc = index_live_read(l, SIZE_MAX, &more, e);
    if (rc || l->ended)
        return rc;
    if (l->until == INT64_MAX)
        return index_live_end(l, e);
    if (l->levels[0].items && l->until > l->levels[0].chunk.begin && index_levels_cut(l, l->until, false, &l->failed))
        err_wrap(&l->failed, "cannot index %s while it grows", ctf_trace_path(l->files.trace));
    return l->failed.code ? failed(l, e) : index_tail_make(l, e);
}

int index_live_end(struct index_live *l, struct err *e)
{
    bool more;
    int rc = index_live_read(l, SIZE_MAX, &more, e);
    if (rc || l->ended)
        return rc;
    if (l->until < INT64_MAX)
        return err_set(e, ERR_ARG, "%s: is still being recorded", ctf_trace_path(l->files.trace));
    if (index_levels_finish(l, &l->failed))
        err_wrap(&l->failed, "cannot index %s while it grows", ctf_trace_path(l->files.trace));
    l->ended = !l->failed.code;
    return failed(l, e);
}

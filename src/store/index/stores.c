/* SPDX-License-Identifier: MIT */
/* Stores of a trace: opens them, and first builds those that are missing, stale or damaged. A builder holds the lock of
 * the store directory (flock: it ends with its process). After waiting for the lock it looks again before building. The
 * holder gives signs of life; a stopped or hanging one is not waited for. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/store.h"
#include "base/time.h"
#include "index/stores.h"

/* Signs of life come every few seconds while a trace is read, and with every write; between them is sorting. */
enum { LOCK_PATIENCE_S = 120 };

/* ---- opening ---- */

struct opening {
    struct experiment *x;
    struct index_trace *trace;
    const struct index_files *from;
    const struct index_history *history;
    struct index_known *known; /* indexed by chunk */
    struct index_rows *rows;
    struct chunk_rows *list; /* kernel: of the host in the chunks */
    struct index_types *types;
};

static void widen(struct index_rows *r, size_t n)
{
    size_t had = r->by_host.n;
    if (n <= had)
        return;
    vec_reserve(&r->by_host, n - had);
    r->by_host.n = n;
    memset(r->by_host.v + had, 0xff, (n - had) * sizeof *r->by_host.v); /* KERNEL_NO_ROW */
}

static int32_t new_row(struct index_rows *r, size_t host_row)
{
    widen(r, host_row + 1);
    vec_push(&r->of_host, (int32_t)host_row);
    return r->by_host.v[host_row] = (int32_t)r->of_host.n - 1;
}

/* Rows of this opening: those that its chunks speak of, in the order in which they do, which is that of one pass. */
static void number_rows(struct opening *o)
{
    struct index_rows *r = o->rows;
    size_t n = o->history->chunks.n, *n_rows = mem_alloc((n + 1) * sizeof *n_rows);
    for (size_t c = 0; c < n; c++)
        n_rows[c] = o->known[c].n_rows;
    o->list = chunk_rows_blank(n_rows, n);
    widen(r, (size_t)kernel_rows_count(r->registry));
    for (size_t c = 0; c < n; c++) {
        const int32_t *of = o->known[c].rows;
        int32_t *rows = chunk_rows_fill(o->list, c);
        for (size_t i = 0, in_chunk = n_rows[c]; i < in_chunk; i++) {
            size_t host_row = (size_t)of[i];
            int32_t row = host_row < r->by_host.n ? r->by_host.v[host_row] : KERNEL_NO_ROW;
            rows[i] = row >= 0 ? row : new_row(r, host_row);
        }
    }
    chunk_rows_filled(o->list, r->of_host.n);
    free(n_rows);
}

/* Returns whether there is one chunk, and its rows have the host's numbers. */
static bool are_same(const struct opening *o)
{
    const int32_t *rows = chunk_rows_of(o->list, 0);
    size_t n = o->history->chunks.n == 1 ? o->known->n_rows : 0, i = 0;
    while (i < n && rows[i] == (int32_t)i)
        i++;
    return o->history->chunks.n == 1 && i == n;
}

static struct chunk *list_of(struct opening *o, struct arena *a)
{
    const struct index_history *h = o->history;
    struct chunk *v = arena_new(a, struct chunk, h->chunks.n);
    bool same = o->list && are_same(o);
    for (size_t i = 0; i < h->chunks.n; i++) {
        const struct index_chunk *c = &h->chunks.v[i];
        v[i] = (struct chunk){.path = index_path(o->from, INDEX_CHUNK, c->number),
            .in = o->known[i].store,
            .begin = c->begin,
            .end = c->end};
        if (o->list && !same) {
            v[i].rows = chunk_rows_of(o->list, i);
            v[i].n_rows = o->known[i].n_rows;
            v[i].list = o->list;
        }
    }
    return v;
}

static int open_kernel(struct opening *o, struct err *e)
{
    struct index_host *h = &o->x->hosts.v[o->trace->host];
    struct arena lists = {0};
    struct graph *graph = NULL;
    struct flow_store *flows = NULL;
    struct state_store *states = NULL;
    size_t n = o->history->chunks.n;
    struct index_rows *r = o->rows = mem_zalloc(sizeof *r);
    int rc = kernel_rows_open(o->from->dir, index_host_key(o->from->trace), &r->registry, e);
    if (!rc)
        number_rows(o);
    const struct chunk *chunks = list_of(o, &lists);
    (void)(rc || (rc = graph_open_list(chunks, n, &graph, e)) || (rc = flow_open_list(chunks, n, &flows, e)) ||
        (o->x->states && (rc = state_open_list(chunks, n, &states, e))));
    arena_fini(&lists);
    chunk_rows_free(o->list);
    if (rc) {
        graph_close(graph);
        flow_close(flows);
        state_close(states);
        index_rows_free(r);
        return rc;
    }
    h->graph = graph;
    h->flows = flows;
    h->states = states;
    h->rows = r;
    return 0;
}

static int open_user(struct opening *o, struct err *e)
{
    struct arena lists = {0};
    struct stack_store *stacks = NULL;
    int rc = stack_open_list(list_of(o, &lists), o->history->chunks.n, &stacks, e);
    arena_fini(&lists);
    o->trace->stacks = stacks;
    return rc;
}

/* Notes the lines of a chunk: "COUNT TEXT". */
static void note_problems(struct experiment *x, const char *host, const struct index_known *k)
{
    const char *lines = k->problems;
    for (size_t i = 0, n = k->n_problems; i < n;) {
        const char *end = memchr(lines + i, '\n', n - i);
        size_t length = end ? (size_t)(end - lines) - i : n - i;
        struct arena line = {0};
        char *text = arena_strndup(&line, lines + i, length), *rest;
        uint64_t count = strtoull(text, &rest, 10);
        index_experiment_note(x, INDEX_NOTE_INPUT, host, *rest == ' ' ? rest + 1 : rest, count);
        arena_fini(&line);
        i += length + 1;
    }
}

static int open_chunks(struct opening *o, struct err *e)
{
    const struct index_history *h = o->history;
    int rc = 0;
    for (size_t i = 0; i < h->chunks.n && !rc; i++)
        rc = index_chunk_read(o->from, &h->chunks.v[i], &o->known[i], e);
    rc = rc ?: index_types_open(o->from->trace, o->known, h, &o->types, e);
    rc = rc ?: o->from->is_kernel ? open_kernel(o, e) : open_user(o, e);
    return rc;
}

int index_open_history(struct experiment *x, struct index_trace *t, const struct index_files *from,
    const struct index_history *h, struct err *e)
{
    struct index_host *host = &x->hosts.v[t->host];
    struct opening o = {
        .x = x, .trace = t, .from = from, .history = h, .known = mem_zalloc((h->chunks.n + 1) * sizeof *o.known)};
    int rc = open_chunks(&o, e);
    for (size_t i = 0; i < h->chunks.n && !rc; i++)
        note_problems(x, host->name, &o.known[i]);
    if (!rc)
        index_counts_remember(from, h, o.known);
    for (size_t i = 0; i < h->chunks.n; i++)
        store_close(o.known[i].store);
    free(o.known);
    if (rc) {
        index_types_close(o.types);
        return rc;
    }
    t->types = o.types;
    if (t->is_kernel) {
        const struct index_totals totals = index_history_totals(h);
        host->types = o.types;
        host->events = totals.events;
        host->lost_events = totals.lost_events;
        host->begin = totals.begin;
        host->end = totals.end;
        host->sealed_from = host->sealed_until = h->chunks.v[0].begin;
        if (h->chunks.n > 1 && !h->disorder)
            host->sealed_until = h->chunks.v[h->chunks.n - 1].begin;
    }
    return 0;
}

int index_history_intact(const struct index_files *from, const struct index_history *h, struct err *e)
{
    int rc = 0;
    if (!index_history_fits(from, h))
        rc = err_set(e, ERR_STALE, "%s: made from other files", from->dir);
    if (!rc && index_rows_stamp(from->dir) != h->rows)
        rc = err_set(e, ERR_STALE, "%s: the registry of rows is not as it was written", from->dir);
    for (size_t i = 0; i < h->chunks.n && !rc; i++)
        rc = index_chunk_sealed(from, &h->chunks.v[i], e);
    return rc;
}

/* Checks stores that cannot be sealed anew, since somebody else built or copied them. A file with another stamp is
 * read. */
static int history_sound(const struct index_files *from, const struct index_history *h, struct err *e)
{
    int rc = index_history_fits(from, h) ? 0 : err_set(e, ERR_STALE, "%s: made from other files", from->dir);
    if (!rc && from->is_kernel && index_rows_stamp(from->dir) != h->rows)
        rc = kernel_rows_check(from->dir, index_host_key(from->trace), e) ?: index_has_rows(from, h, e);
    for (size_t i = 0; i < h->chunks.n && !rc; i++)
        if (index_chunk_sealed(from, &h->chunks.v[i], &(struct err){0}))
            rc = index_chunk_check(from, &h->chunks.v[i], e);
    return rc;
}

typedef int intact_check(const struct index_files *, const struct index_history *, struct err *);

/* Opens stores as they are, if there is nothing to build. */
static int open_stores(struct experiment *x, struct index_trace *t, const struct index_files *from,
    const struct index_options *o, intact_check *intact, struct err *e)
{
    struct index_history h;
    int rc = index_history_read(from, &h, e);
    rc = rc ?: intact(from, &h, e);
    if (!rc && !index_history_settled(from, &h, o))
        rc = err_set(e, ERR_STALE, "%s: chunks are to be forgotten or joined", from->dir);
    rc = rc ?: index_open_history(x, t, from, &h, e);
    index_history_free(&h);
    return rc;
}

/* ---- building ---- */

/* A store that was found damaged, and was built again. */
static void note_damage(struct experiment *x, const char *host, const struct err *found)
{
    char text[sizeof found->text + 64];
    if (found->code != ERR_FORMAT)
        return;
    snprintf(text, sizeof text, "%s; built again", found->text);
    index_experiment_note(x, INDEX_NOTE_STORE, host, text, 1);
}

/* Builds what must be built, and opens all. */
static int update_and_open(struct experiment *x, struct index_trace *t, const struct index_files *files,
    const struct index_options *o, bool *built, struct err *found, struct err *e)
{
    struct index_history h;
    if (index_history_read(files, &h, found) != ERR_FORMAT)
        found->code = 0;
    int rc = index_update(files, &h, o, built, found, e);
    rc = rc ?: index_open_history(x, t, files, &h, e);
    index_history_free(&h);
    return rc;
}

static int build_locked(struct experiment *x, struct index_trace *t, struct index_files *files,
    const struct index_options *o, struct err *e)
{
    struct err found = {0}, opening = {0};
    struct index_options all = *o;
    bool built = false;
    int fd = files->lock = index_lock_dir(files->dir, LOCK_PATIENCE_S * NS_PER_S, e);
    if (fd < 0)
        return fd;
    int rc = update_and_open(x, t, files, o, &built, &found, &opening);
    if (rc && !built && (rc == ERR_FORMAT || rc == ERR_STALE)) {
        /* Files are as sealed, but their contents are inconsistent: build all again. */
        found = opening;
        all.force = true;
        opening = (struct err){0};
        rc = update_and_open(x, t, files, &all, &built, &(struct err){0}, &opening);
    }
    if (rc)
        *e = opening;
    else
        note_damage(x, x->hosts.v[t->host].name, &found);
    *(t->is_kernel ? &x->hosts.v[t->host].built : &t->built) = !rc && built;
    close(fd);
    files->lock = -1;
    return rc;
}

/* Notes that stores of others are not used, and where those of this user lie. */
static void note_place(struct experiment *x, const char *host, const char *place, const char *why, const char *dir)
{
    char text[2048];
    snprintf(text, sizeof text, "%s: %s; stores are kept in %s", place, why, dir);
    index_experiment_note(x, INDEX_NOTE_STORE, host, text, 1);
}

/* Stores that somebody else built beside the trace, if they are whole and of it. */
static bool open_theirs(struct experiment *x, struct index_trace *t, const struct index_dirs *d, struct arena *names,
    const struct index_options *o)
{
    const char *host = x->hosts.v[t->host].name;
    struct err why = {0};
    if (d->link)
        note_place(x, host, d->link, "is a symbolic link, which is not followed", d->dir);
    if (!d->theirs || o->force)
        return false;
    struct index_files files = index_files_in(names, d->theirs, t);
    int rc = open_stores(x, t, &files, o, history_sound, &why);
    if (rc && rc != ERR_NOTFOUND && rc != ERR_STALE)
        note_place(x, host, d->theirs, why.text, d->dir);
    return !rc;
}

/* Reports the progress of stores that needed no building. */
static void tell_opened(const struct experiment *x, const struct index_trace *t, const struct index_options *o)
{
    const struct index_host *h = &x->hosts.v[t->host];
    progress_add(o->progress, index_stream_bytes(t->trace));
    if (o->tell && t->is_kernel)
        o->tell(o->tell_arg, t->trace, h->events, h->begin, h->end);
}

static int open_or_build(struct experiment *x, struct index_trace *t, const char **dir, struct arena *names,
    const struct index_options *o, struct err *e)
{
    struct err found = {0};
    struct index_dirs d = index_store_dirs(names, t->trace, x->store, false, &found);
    if (open_theirs(x, t, &d, names, o)) {
        *dir = d.theirs;
        tell_opened(x, t, o);
        return 0;
    }
    *dir = index_store_dirs(names, t->trace, x->store, true, e).dir;
    if (!*dir)
        return e->code;
    struct index_files files = index_files_in(names, *dir, t);
    if (o->force || open_stores(x, t, &files, o, index_history_intact, &found))
        return build_locked(x, t, &files, o, e);
    tell_opened(x, t, o);
    return 0;
}

int index_open_stores(struct experiment *x, struct index_trace *t, const struct index_options *o, struct err *e)
{
    struct arena names = {0};
    const char *dir = NULL;
    int rc = open_or_build(x, t, &dir, &names, o, e);
    if (dir) {
        pthread_mutex_lock(&x->lock);
        *(t->is_kernel ? &x->hosts.v[t->host].store_dir : &t->store_dir) = arena_strdup(&x->arena, dir);
        pthread_mutex_unlock(&x->lock);
    }
    if (rc && t->is_kernel)
        err_wrap(e, "cannot index");
    else if (rc)
        err_wrap(e, "cannot index %s", ctf_trace_path(t->trace));
    arena_fini(&names);
    return rc;
}

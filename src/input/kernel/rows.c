/* SPDX-License-Identifier: MIT */
/* Rows of a host. The lives of one tid do not overlap: entries of two chunks for one tid are one life unless a birth or
 * a death lies between. */
#include "kernel/rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/order.h"
#include "kernel/kernel.h"
#include "kernel/registry.h"

/* ---- looking up ---- */

/* Newest version, and the piece that has it. */
static const struct rows_disk_row *version_of(const struct kernel_rows *r, int32_t row, const struct rows_piece **in)
{
    bool exists = row >= 0 && (uint64_t)row < r->n_rows;
    for (size_t i = r->pieces.n; exists && i-- > 0;) {
        const struct rows_disk_row *found = kernel_rows_piece_row(&r->pieces.v[i], row);
        if (found) {
            *in = &r->pieces.v[i];
            return found;
        }
    }
    return NULL;
}

int32_t kernel_rows_count(const struct kernel_rows *r)
{
    return (int32_t)r->n_rows;
}

bool kernel_rows_get(const struct kernel_rows *r, int32_t row, struct kernel_row *out)
{
    const struct rows_piece *in;
    const struct rows_disk_row *d = version_of(r, row, &in);
    if (!d)
        return false;
    *out = (struct kernel_row){.tid = d->tid < 0 ? 0 : d->tid,
        .idle_cpu = d->tid < 0 ? -1 - d->tid : -1,
        .later_tid = d->later_tid,
        .renumbered = d->renumbered,
        .birth = d->birth,
        .first = d->begin,
        .last = d->last,
        .death = d->death,
        .id = d->id,
        .name = d->name < in->n_text ? in->text + d->name : ""};
    return true;
}

static int compare_id(const void *key, const void *item)
{
    const uint64_t *id = key;
    const struct rows_disk_id *i = item;
    return order_of(*id, i->id);
}

int32_t kernel_rows_find(const struct kernel_rows *r, uint64_t id)
{
    for (size_t i = r->pieces.n; i-- > 0;) {
        const struct rows_piece *p = &r->pieces.v[i];
        const struct rows_disk_id *found = p->n_ids ? bsearch(&id, p->ids, p->n_ids, sizeof *found, compare_id) : NULL;
        if (found)
            return found->row >= 0 && (uint64_t)found->row < r->n_rows ? found->row : KERNEL_NO_ROW;
    }
    return KERNEL_NO_ROW;
}

/* ---- resolving ---- */

/* Life of the chunk that was not carried into it. */
struct fact {
    int64_t begin, end; /* end: time of death, else INT64_MAX */
    int64_t renumbered;
    int32_t local;
    int32_t tid, later_tid, last_tid;
    bool born;
};

struct resolving {
    struct kernel_rows *rows;
    const struct kernel_thread *threads;
    const char *const *strings;
    size_t n;
    int64_t begin, until;
    int32_t *out;
    VEC(struct rows_disk_row) changed;
    struct map where; /* index in `changed` by row */
    struct map taken; /* rows already mapped to the chunk's */
    struct map ids;   /* ids of new rows */
    VEC(char) text;
    struct map names;       /* position in the text, by the string's number */
    VEC(int32_t) first_tid; /* first tid by local row; 0: the present one */
    VEC(int64_t) renumbered;
    uint64_t n_rows;
};

static uint32_t name_place(struct resolving *g, const char *name)
{
    uint32_t at = (uint32_t)g->text.n;
    do
        vec_push(&g->text, *name);
    while (*name++);
    return at;
}

static uint32_t string_place(struct resolving *g, uint32_t string)
{
    bool fresh;
    uint64_t *at = map_put(&g->names, string, &fresh);
    if (fresh)
        *at = string ? name_place(g, g->strings[string]) : 0;
    return (uint32_t)*at;
}

/* Reads the version in progress, or the newest one. False: there is none. */
static bool look_at(const struct resolving *g, int32_t row, struct rows_disk_row *out)
{
    const uint64_t *at = map_find(&g->where, (uint64_t)row);
    const struct rows_piece *in;
    const struct rows_disk_row *d = at ? &g->changed.v[*at] : version_of(g->rows, row, &in);
    if (d)
        *out = *d;
    return d != NULL;
}

static struct rows_disk_row *change(struct resolving *g, int32_t row)
{
    bool fresh;
    const struct rows_piece *in;
    uint64_t *at = map_put(&g->where, (uint64_t)row, &fresh);
    if (fresh) {
        *at = g->changed.n;
        const struct rows_disk_row *d = version_of(g->rows, row, &in);
        struct rows_disk_row copy = d ? *d : (struct rows_disk_row){.row = row};
        copy.name = d && d->name < in->n_text ? name_place(g, in->text + d->name) : 0;
        vec_push(&g->changed, copy);
    }
    return &g->changed.v[*at];
}

/* Ends a row at t: later chunks referred to another life by it. They are resolved again, and restore what is right. */
static void end_by(struct resolving *g, struct rows_disk_row *d, int64_t t)
{
    if (d->last > t || (d->death > t && d->death != KERNEL_UNDEAD) || (d->renumbered > t && d->later_tid >= 0))
        vec_push(&g->rows->ended, d->row);
    if (d->death > t)
        d->death = KERNEL_UNDEAD;
    if (d->last > t)
        d->last = t;
    if (d->renumbered > t) {
        d->later_tid = -1;
        d->renumbered = INT64_MAX;
    }
}

/* Adds the chunk's knowledge to a known row. For a carried row, others have described its begin. */
static void extend(struct resolving *g, int32_t row, const struct fact *f, bool carried)
{
    const struct kernel_thread *k = &g->threads[f->local];
    int64_t last = k->died ? k->end : g->until;
    struct rows_disk_row *d = change(g, row);
    if (f->begin <= d->begin && !carried) {
        d->tid = f->tid;
        d->birth = f->born ? f->begin : d->birth;
    }
    if (f->begin < d->begin)
        d->begin = f->begin;
    if (f->later_tid >= 0 && f->renumbered < d->renumbered) {
        if (d->later_tid >= 0)
            end_by(g, d, f->renumbered);
        d->later_tid = f->later_tid;
        d->renumbered = f->renumbered;
    }
    if (k->died)
        end_by(g, d, last);
    if (k->name && (k->died || last >= d->last || !d->name))
        d->name = string_place(g, k->name);
    if (k->died)
        d->death = last;
    if (last > d->last)
        d->last = last;
}

/* Removes what an earlier resolve of the chunk added to a row. */
static void withdraw(struct resolving *g, int32_t row)
{
    struct rows_disk_row d;
    if (!look_at(g, row, &d))
        return;
    bool died = d.death >= g->begin && d.death<g->until, lived = d.last> g->begin && d.last <= g->until;
    bool renumbered = d.renumbered >= g->begin && d.renumbered < g->until;
    if (!died && !lived && !renumbered)
        return;
    struct rows_disk_row *to = change(g, row);
    if (died)
        to->death = KERNEL_UNDEAD;
    if (lived)
        to->last = d.begin > g->begin ? d.begin : g->begin;
    if (renumbered) {
        to->later_tid = -1;
        to->renumbered = INT64_MAX;
    }
}

static uint64_t new_id(struct resolving *g, const struct fact *f)
{
    int64_t key[4] = {(int64_t)g->rows->host, f->tid, f->born ? f->begin : KERNEL_UNBORN, 0};
    for (;; key[3]++) {
        bool fresh;
        uint64_t id = map_hash(key, sizeof key) >> 12;
        if (!id || kernel_rows_find(g->rows, id) >= 0)
            continue;
        map_put(&g->ids, id, &fresh);
        if (fresh)
            return id;
    }
}

static int32_t add(struct resolving *g, const struct fact *f)
{
    if (g->n_rows >= INT32_MAX)
        return KERNEL_NO_ROW;
    int32_t row = (int32_t)g->n_rows++;
    struct rows_disk_row *d = change(g, row);
    *d = (struct rows_disk_row){.birth = f->born ? f->begin : KERNEL_UNBORN,
        .begin = f->begin,
        .last = f->begin,
        .death = KERNEL_UNDEAD,
        .renumbered = INT64_MAX,
        .row = row,
        .tid = f->tid,
        .later_tid = -1};
    d->id = new_id(g, f);
    extend(g, row, f, false);
    return row;
}

static bool is_free(const struct resolving *g, int32_t row)
{
    return !map_find(&g->taken, (uint64_t)row);
}

/* Returns whether the spell is still in the newest version of its row, *d. */
static bool is_current(const struct resolving *g, const struct rows_disk_spell *s, struct rows_disk_row *d)
{
    return look_at(g, s->row, d) &&
        ((s->tid == d->tid && s->from == d->begin) || (s->tid == d->later_tid && s->from == d->renumbered));
}

static bool has_tid_when(const struct fact *f, const struct rows_disk_row *d)
{
    return d->tid == f->tid ? f->begin < d->renumbered : d->later_tid == f->tid && f->begin >= d->renumbered;
}

/* The first thread of a process keeps its tid, so no thread is renumbered twice. */
static bool renumbered_twice(const struct fact *f, const struct rows_disk_row *d)
{
    return f->later_tid >= 0 && d->later_tid >= 0 && f->renumbered != d->renumbered;
}

/* Returns whether it may be the life that had the tid when f began. */
static bool goes_on(const struct fact *f, const struct rows_disk_row *d)
{
    if (!has_tid_when(f, d) || renumbered_twice(f, d))
        return false;
    if (d->begin == f->begin && d->tid == f->tid)
        return f->born == (d->birth != KERNEL_UNBORN) || d->birth == KERNEL_UNBORN;
    return !f->born && f->begin < d->death;
}

/* Finds the rows whose spell of f's tid begins when f begins: the first one that is free and matches. *any: there are
 * some. */
static int32_t same_begin(const struct resolving *g, const struct fact *f, bool *any)
{
    int32_t best = KERNEL_NO_ROW;
    *any = false;
    for (size_t i = 0; i < g->rows->pieces.n; i++) {
        const struct rows_piece *p = &g->rows->pieces.v[i];
        struct rows_disk_row d;
        for (size_t at = kernel_rows_piece_spells_before(p, f->tid, f->begin, 0); at < p->n_spells; at++) {
            const struct rows_disk_spell *s = &p->spells[at];
            if (s->tid != f->tid || s->from != f->begin)
                break;
            if (!is_current(g, s, &d))
                continue;
            *any = true;
            if (is_free(g, s->row) && goes_on(f, &d) && (best < 0 || s->row < best))
                best = s->row;
        }
    }
    return best;
}

/* Row that had f's tid last before f began, at `not_before` at least. */
static int32_t latest_before(const struct resolving *g, const struct fact *f, int64_t not_before)
{
    struct rows_disk_spell last = {.row = KERNEL_NO_ROW};
    struct rows_disk_row d;
    for (size_t i = 0; i < g->rows->pieces.n; i++) {
        const struct rows_piece *p = &g->rows->pieces.v[i];
        for (size_t at = kernel_rows_piece_spells_before(p, f->tid, f->begin, 0); at-- > 0;) {
            const struct rows_disk_spell *s = &p->spells[at];
            if (s->tid != f->tid || s->from < not_before)
                break;
            if (!is_current(g, s, &d))
                continue;
            if (last.row < 0 || s->from > last.from || (s->from == last.from && s->row > last.row))
                last = *s;
            break;
        }
    }
    return last.row;
}

/* Returns that row if it is f. */
static int32_t before(const struct resolving *g, const struct fact *f, int64_t not_before)
{
    struct rows_disk_row d;
    int32_t row = latest_before(g, f, not_before);
    return row >= 0 && is_free(g, row) && look_at(g, row, &d) && goes_on(f, &d) ? row : KERNEL_NO_ROW;
}

/* Row that has f's tid next, if it is f: its begin was not seen, nor f's death. */
static int32_t after(const struct resolving *g, const struct fact *f, int64_t not_after)
{
    struct rows_disk_spell next = {.row = KERNEL_NO_ROW};
    struct rows_disk_row d;
    int64_t since = f->later_tid >= 0 ? f->renumbered : f->begin;
    for (size_t i = 0; i < g->rows->pieces.n; i++) {
        const struct rows_piece *p = &g->rows->pieces.v[i];
        for (size_t at = kernel_rows_piece_spells_before(p, f->last_tid, since, INT32_MAX); at < p->n_spells; at++) {
            const struct rows_disk_spell *s = &p->spells[at];
            if (s->tid != f->last_tid || s->from >= not_after)
                break;
            if (!is_current(g, s, &d))
                continue;
            if (next.row < 0 || s->from < next.from || (s->from == next.from && s->row < next.row))
                next = *s;
            break;
        }
    }
    if (next.row < 0 || !is_free(g, next.row) || !look_at(g, next.row, &d))
        return KERNEL_NO_ROW;
    return d.tid == f->last_tid && !renumbered_twice(f, &d) && d.birth == KERNEL_UNBORN && d.begin <= f->end
        ? next.row
        : KERNEL_NO_ROW;
}

/* ---- the chunk's lives ---- */

static int compare_facts(const void *x, const void *y)
{
    const struct fact *a = x, *b = y;
    int by = order_of(a->tid, b->tid);
    by = by ? by : order_of(a->begin, b->begin);
    return by ? by : order_of(a->local, b->local);
}

/* Reads the first tid of each row in the chunk, and when it got its present one. */
static void read_formers(struct resolving *g, const struct kernel_tracker *t)
{
    const struct kernel_former *of;
    size_t n = kernel_tracker_formers(t, &of);
    for (size_t i = 0; i < g->n; i++) {
        vec_push(&g->first_tid, 0);
        vec_push(&g->renumbered, INT64_MAX);
    }
    for (size_t i = 0; i < n; i++) {
        int32_t row = of[i].row;
        if (!g->first_tid.v[row])
            g->first_tid.v[row] = of[i].tid;
        if (of[i].tid != g->threads[row].tid)
            g->renumbered.v[row] = of[i].until;
    }
}

static struct fact fact_of(const struct resolving *g, int32_t local)
{
    const struct kernel_thread *k = &g->threads[local];
    struct fact f = {.begin = k->begin,
        .end = k->died ? k->end : INT64_MAX,
        .renumbered = g->renumbered.v[local],
        .local = local,
        .tid = k->idle_cpu >= 0     ? -1 - k->idle_cpu
            : g->first_tid.v[local] ? g->first_tid.v[local]
                                    : k->tid,
        .later_tid = -1,
        .born = k->born};
    if (f.renumbered != INT64_MAX)
        f.later_tid = k->tid;
    f.last_tid = f.later_tid >= 0 ? f.later_tid : f.tid;
    return f;
}

static bool take(struct resolving *g, const struct fact *f, int32_t row)
{
    g->out[f->local] = row;
    map_put(&g->taken, (uint64_t)row, NULL);
    return row >= 0;
}

static void take_carried(struct resolving *g, const int32_t *carried, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct fact f = fact_of(g, (int32_t)i);
        struct rows_disk_row d;
        take(g, &f, carried[i]);
        if (look_at(g, carried[i], &d))
            extend(g, carried[i], &f, true);
    }
}

/* A birth ends the tid's life before. */
static void end_other(struct resolving *g, const struct fact *f)
{
    struct rows_disk_row d;
    int32_t other = f->born ? latest_before(g, f, INT64_MIN) : KERNEL_NO_ROW;
    if (other >= 0 && look_at(g, other, &d) && has_tid_when(f, &d))
        end_by(g, change(g, other), f->begin);
}

/* Begin of the chunk's next life with f's last tid. */
static int64_t next_begin(const struct fact *all, size_t n, const struct fact *f)
{
    struct fact key = {.tid = f->last_tid, .begin = f->later_tid >= 0 ? f->renumbered : f->begin, .local = INT32_MAX};
    size_t low = f->later_tid >= 0 ? 0 : (size_t)(f - all) + 1, high = f->later_tid >= 0 ? n : low;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_facts(&all[middle], &key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < n && all[low].tid == f->last_tid ? all[low].begin : INT64_MAX;
}

/* Takes new lives, by tid and time. */
static bool take_new(struct resolving *g, const struct fact *f, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bool any;
        int32_t row = same_begin(g, &f[i], &any);
        if (row < 0 && !any)
            row = before(g, &f[i], i && f[i - 1].tid == f[i].tid ? f[i - 1].begin : INT64_MIN);
        if (row < 0)
            row = after(g, &f[i], next_begin(f, n, &f[i]));
        if (row >= 0)
            extend(g, row, &f[i], false);
        else
            row = add(g, &f[i]);
        if (row < 0 || !take(g, &f[i], row))
            return false;
        end_other(g, &f[i]);
    }
    return true;
}

static bool take_all(struct resolving *g, size_t n_carried)
{
    VEC(struct fact) facts = {0};
    for (size_t i = n_carried; i < g->n; i++)
        vec_push(&facts, fact_of(g, (int32_t)i));
    if (facts.n)
        qsort(facts.v, facts.n, sizeof *facts.v, compare_facts);
    bool fits = take_new(g, facts.v, facts.n);
    vec_free(&facts);
    return fits;
}

static bool is_as_stored(const struct resolving *g, const struct rows_disk_row *d)
{
    const struct rows_piece *in;
    const struct rows_disk_row *stored = version_of(g->rows, d->row, &in);
    struct rows_disk_row copy = *d;
    if (!stored || stored->name >= in->n_text || strcmp(in->text + stored->name, g->text.v + d->name) != 0)
        return false;
    copy.name = stored->name;
    return !memcmp(&copy, stored, sizeof copy);
}

/* Drops known facts, as when a chunk is rebuilt, so that they are not saved again. */
static void drop_known(struct resolving *g)
{
    size_t n = 0;
    for (size_t i = 0; i < g->changed.n; i++)
        if (!is_as_stored(g, &g->changed.v[i]))
            g->changed.v[n++] = g->changed.v[i];
    g->changed.n = n;
}

int kernel_rows_resolve(struct kernel_rows *r, const struct kernel_rows_chunk *c, int32_t *rows, struct err *e)
{
    struct resolving g = {.rows = r, .begin = c->begin, .until = c->until, .out = rows, .n_rows = r->n_rows};
    const struct kernel_tracker *t = c->tracker;
    g.n = kernel_tracker_threads(t, &g.threads);
    kernel_tracker_strings(t, &g.strings);
    vec_push(&g.text, '\0');
    read_formers(&g, t);
    r->ended.n = 0;
    for (size_t i = 0; i < c->n_before; i++)
        withdraw(&g, c->before[i]);
    take_carried(&g, c->carried, kernel_tracker_carried(t));
    bool fits = take_all(&g, kernel_tracker_carried(t));
    drop_known(&g);
    if (fits && (g.changed.n || g.n_rows > r->n_rows)) {
        struct rows_piece p = kernel_rows_piece_make(g.changed.v, g.changed.n, g.text.v, g.text.n, g.n_rows);
        r->n_rows = g.n_rows;
        vec_push(&r->pieces, p);
    } else {
        vec_free(&g.changed);
        vec_free(&g.text);
    }
    map_fini(&g.where);
    map_fini(&g.taken);
    map_fini(&g.ids);
    map_fini(&g.names);
    vec_free(&g.first_tid);
    vec_free(&g.renumbered);
    return fits ? ERR_OK : err_set(e, ERR_LIMIT, "more than 2^31 threads on one host");
}

size_t kernel_rows_ended(const struct kernel_rows *r, const int32_t **rows)
{
    *rows = r->ended.v;
    return r->ended.n;
}

/* SPDX-License-Identifier: MIT */
/* Files at a cut: carries tables of descriptors that are not empty, and files that are open or in use. */
#include <stdlib.h>

#include "base/order.h"
#include "state/carry_parts.h"
#include "state/files.h"

enum { DESCRIPTOR_UNKNOWN, DESCRIPTOR_HIDDEN, DESCRIPTOR_NAMED, DESCRIPTORS, LEAST_NAME = 6, LEAST_ACCESS = 20 };

/* Items to carry, in order; by index here: the place there + 1, or 0: not carried. */
struct chosen {
    VEC(uint32_t) v;
    VEC(uint32_t) place;
};
struct files_visit {
    struct state_carry *all;
    struct builder_files *f;
    struct chosen tables, names, accesses;
};

static void begin_choice(struct chosen *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        vec_push(&x->place, 0);
}

static void choose(struct chosen *x, uint32_t i)
{
    if (x->place.v[i])
        return;
    vec_push(&x->v, i);
    x->place.v[i] = (uint32_t)x->v.n;
}

static void end_choice(struct chosen *x)
{
    vec_free(&x->v);
    vec_free(&x->place);
}

static int by_key(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return order_of(*x, *y);
}

/* Keys of a map in order; to be freed. */
static uint64_t *keys_of(const struct map *m)
{
    uint64_t *keys = mem_alloc((m->n + 1) * sizeof *keys);
    size_t n = 0;
    for (size_t i = 0; i < m->cap; i++)
        if (m->used[i])
            keys[n++] = m->keys[i];
    qsort(keys, n, sizeof *keys, by_key);
    return keys;
}

/* ---- choice ---- */

static void choose_tables(struct files_visit *x)
{
    struct builder_files *f = x->f;
    const struct state_carry *v = x->all;
    const struct map *maps[2] = {&f->table_of, &f->at_address};
    begin_choice(&x->tables, f->tables.n);
    for (size_t i = 0; i < v->c->n_rows; i++)
        if ((size_t)v->rows.v[i] < f->calls.n && f->calls.v[v->rows.v[i]].table)
            choose(&x->tables, f->calls.v[v->rows.v[i]].table - 1);
    for (int k = 0; k < 2; k++) {
        uint64_t *keys = keys_of(maps[k]);
        for (size_t i = 0; i < maps[k]->n; i++) {
            uint32_t table = (uint32_t)*map_find(maps[k], keys[i]);
            if (k || f->tables.v[table - 1].n)
                choose(&x->tables, table - 1);
        }
        free(keys);
    }
}

static int by_file_and_thread(const void *a, const void *b, void *visit)
{
    const struct files_visit *x = visit;
    const struct file_access *p = &x->f->accesses.v[*(const uint32_t *)a], *q = &x->f->accesses.v[*(const uint32_t *)b];
    const struct named_file *m = &x->f->names.v[p->file], *n = &x->f->names.v[q->file];
    const struct carry *c = x->all->c;
    return order_of(state_carry_row_number(c, p->thread), state_carry_row_number(c, q->thread))
        ?: strcmp(strings_get(&x->f->paths, m->name), strings_get(&x->f->paths, n->name))
        ?: order_of(m->unknown, n->unknown) ?: order_of(m->before_loss, n->before_loss);
}

/* Earliest begin of a further use: the thread's call in progress may use the file, also if it has opened it; otherwise
 * delayed records may. */
static int64_t next_use(const struct state_builder *b, const struct file_access *a)
{
    const struct builder_files *f = b->files;
    const struct file_call none = {0}, *c = (size_t)a->thread < f->calls.n ? &f->calls.v[a->thread] : &none;
    return c->io ? c->begin : builder_first_held(&b->held);
}

/* Returns whether the thread holds it open, or a use may follow that begins where another one ended. */
static bool is_held(const struct state_builder *b, const struct file_access *a)
{
    return a->opened || (a->series.n && series_last(&a->series) >= next_use(b, a));
}

/* Chooses the accesses of open files, and of calls in progress. */
static void choose_accesses(struct files_visit *x)
{
    struct builder_files *f = x->f;
    const struct state_carry *v = x->all;
    begin_choice(&x->accesses, f->accesses.n);
    for (uint32_t i = 0; i < f->accesses.n; i++)
        if (is_held(v->b, &f->accesses.v[i]))
            choose(&x->accesses, i);
    for (size_t i = 0; i < v->c->n_rows; i++) {
        const struct file_call none = {0}, *c = (size_t)v->rows.v[i] < f->calls.n ? &f->calls.v[v->rows.v[i]] : &none;
        if (c->first)
            choose(&x->accesses, c->first - 1);
        if (c->second)
            choose(&x->accesses, c->second - 1);
    }
    struct chosen *all = &x->accesses;
    if (all->v.n)
        qsort_r(all->v.v, all->v.n, sizeof *all->v.v, by_file_and_thread, x);
    for (size_t i = 0; i < all->v.n; i++)
        all->place.v[all->v.v[i]] = (uint32_t)i + 1;
}

static void choose_names(struct files_visit *x)
{
    struct builder_files *f = x->f;
    begin_choice(&x->names, f->names.n);
    for (size_t i = 0; i < x->accesses.v.n; i++)
        choose(&x->names, f->accesses.v[x->accesses.v.v[i]].file);
    for (size_t i = 0; i < x->tables.v.n; i++) {
        const file_table *t = &f->tables.v[x->tables.v.v[i]];
        for (size_t fd = 0; fd < t->n; fd++)
            if (t->v[fd].file > 0)
                choose(&x->names, (uint32_t)t->v[fd].file - 1);
    }
}

/* ---- visits ---- */

/* Visits an index + 1 of a chosen item; 0: none. */
static void carry_place(struct files_visit *x, const struct chosen *of, size_t n, uint32_t *index)
{
    uint32_t number = *index;
    if (x->all->c->way == CARRY_SAVE && number)
        number = of->place.v[number - 1];
    state_carry_index(x->all->c, &number, n + 1);
    if (x->all->c->way == CARRY_LOAD)
        *index = number;
}

static void visit_name(struct files_visit *x, struct named_file *n)
{
    struct carry *c = x->all->c;
    carry_string(c, &x->f->paths, &n->name);
    carry_bool(c, &n->unknown);
    carry_bool(c, &n->before_loss);
}

static void visit_names(struct files_visit *x)
{
    struct builder_files *f = x->f;
    bool load = x->all->c->way == CARRY_LOAD;
    size_t n = carry_count(x->all->c, x->names.v.n, LEAST_NAME);
    for (size_t i = 0; i < n; i++) {
        struct named_file fresh = {0};
        visit_name(x, load ? &fresh : &f->names.v[x->names.v.v[i]]);
        if (!load)
            continue;
        vec_push(&f->names, fresh);
        *map_put(&f->name_of, files_name_key(fresh), NULL) = i;
    }
}

/* Begin of the row's current busy time without a pause, up to the next use. Earlier entries may have been dropped at a
 * cut, and are dropped now. INT64_MAX: idle. */
static int64_t busy_since(const struct series *s, int64_t next)
{
    size_t i = s->n;
    i -= i && s->v[i - 1].number == STATE_FILE_NOTHING && s->v[i - 1].time >= next;
    while (i && s->v[i - 1].number != STATE_FILE_NOTHING)
        i--;
    return i < s->n ? s->v[i].time : INT64_MAX;
}

/* LOAD: checks that entries moved no more than the total. */
static bool makes_sense(const struct builder_files *f, const struct file_access *a)
{
    int64_t left = f->bytes;
    for (size_t i = 0; i < a->series.n; i++) {
        int64_t bytes = a->series.v[i].number >> STATE_FILE_USE_BITS;
        if (bytes < 0 || bytes > left)
            return false;
        left -= bytes;
    }
    return true;
}

static void visit_entries(struct files_visit *x, struct file_access *a)
{
    int64_t from = INT64_MAX, next = INT64_MAX;
    if (x->all->c->way == CARRY_SAVE) {
        next = next_use(x->all->b, a);
        from = busy_since(&a->series, next);
    }
    state_carry_series_from(x->all, &a->series, from, next);
}

static void visit_accesses(struct files_visit *x)
{
    struct builder_files *f = x->f;
    struct carry *c = x->all->c;
    bool load = c->way == CARRY_LOAD;
    size_t n = carry_count(c, x->accesses.v.n, LEAST_ACCESS);
    for (size_t i = 0; i < n && !c->damaged; i++) {
        struct file_access fresh = {.series = {.sum = SERIES_BYTES, .pairs = true}, .thread = -1},
                           *a = load ? &fresh : &f->accesses.v[x->accesses.v.v[i]];
        uint32_t name = load ? 0 : a->file + 1;
        carry_place(x, &x->names, f->names.n, &name);
        carry_row(c, &a->thread);
        carry_number(c, &a->opened);
        if (load && (!name || a->thread < 0))
            state_carry_refuse(c);
        if (c->damaged)
            return;
        visit_entries(x, a);
        if (!load)
            continue;
        a->file = name - 1;
        if (!makes_sense(f, a))
            state_carry_refuse(c);
        vec_push(&f->accesses, fresh);
        *map_put(&f->access_of, (uint64_t)fresh.file << 32 | (uint32_t)fresh.thread, NULL) = f->accesses.n;
        f->open += fresh.opened > 0;
    }
}

static void visit_descriptor(struct files_visit *x, struct file_descriptor *d)
{
    struct carry *c = x->all->c;
    uint8_t kind = d->file == FILE_HIDDEN ? DESCRIPTOR_HIDDEN : d->file > 0 ? DESCRIPTOR_NAMED : DESCRIPTOR_UNKNOWN;
    uint32_t name = d->file > 0 ? (uint32_t)d->file : 0, opener = (uint32_t)(d->opener + 1);
    carry_below(c, &kind, DESCRIPTORS);
    carry_bool(c, &d->close_on_exec);
    if (c->way == CARRY_LOAD)
        *d = (struct file_descriptor){.file = kind == DESCRIPTOR_HIDDEN ? FILE_HIDDEN : FILE_UNKNOWN,
            .opener = -1,
            .user = -1,
            .close_on_exec = d->close_on_exec};
    if (kind != DESCRIPTOR_NAMED)
        return;
    carry_place(x, &x->names, x->f->names.n, &name);
    carry_place(x, &x->accesses, x->f->accesses.n, &opener);
    carry_number(c, &d->losses);
    if (c->way != CARRY_LOAD)
        return;
    d->file = (int32_t)name;
    d->opener = (int32_t)opener - 1;
}

static void visit_tables(struct files_visit *x)
{
    struct builder_files *f = x->f;
    bool load = x->all->c->way == CARRY_LOAD;
    size_t n = load ? f->tables.n : x->tables.v.n;
    for (size_t i = 0; i < n; i++) {
        file_table *t = &f->tables.v[load ? i : x->tables.v.v[i]];
        carry_vec(x->all->c, t, 2);
        if (t->n > FILE_MOST_DESCRIPTORS || (load && t->n > FILE_MOST_IN_ALL - f->descriptors)) {
            state_carry_refuse(x->all->c);
            t->n = 0;
        }
        for (size_t fd = 0; fd < t->n; fd++)
            visit_descriptor(x, &t->v[fd]);
        if (load)
            f->descriptors += t->n;
    }
}

/* Visits the mapping of processes to carried tables. */
static void visit_map(struct files_visit *x, struct map *m)
{
    struct carry *c = x->all->c;
    uint64_t *keys = c->way == CARRY_SAVE ? keys_of(m) : NULL, n = 0;
    for (size_t i = 0; i < m->n && keys; i++)
        n += x->tables.place.v[*map_find(m, keys[i]) - 1] > 0;
    n = carry_count(c, n, sizeof(uint64_t) + sizeof(uint32_t));
    for (size_t i = 0, k = 0; i < n; i++) {
        uint64_t key = 0;
        uint32_t table = 0;
        while (keys && !x->tables.place.v[*map_find(m, keys[k]) - 1])
            k++;
        if (keys) {
            key = keys[k];
            table = (uint32_t)*map_find(m, keys[k++]);
        }
        carry_number(c, &key);
        carry_place(x, &x->tables, x->f->tables.n, &table);
        if (c->way == CARRY_LOAD && table)
            *map_put(m, key, NULL) = table;
    }
    free(keys);
}

static void visit_calls(struct files_visit *x)
{
    struct builder_files *f = x->f;
    struct carry *c = x->all->c;
    for (size_t i = 0; i < c->n_rows && !c->damaged; i++) {
        struct file_call fresh = {0},
                         *k = c->way == CARRY_LOAD   ? &fresh
            : (size_t)x->all->rows.v[i] < f->calls.n ? &f->calls.v[x->all->rows.v[i]]
                                                     : &fresh;
        carry_place(x, &x->tables, f->tables.n, &k->table);
        carry_below(c, &k->io, KERNEL_IO_PAIR + 1);
        if (k->io) {
            carry_number(c, &k->begin);
            carry_number(c, &k->other);
            carry_number(c, &k->fd);
            carry_place(x, &x->accesses, f->accesses.n, &k->first);
            carry_place(x, &x->accesses, f->accesses.n, &k->second);
            carry_string(c, &f->paths, &k->path);
            carry_number(c, &k->flags);
        }
        if (c->way != CARRY_LOAD)
            continue;
        if (k->io > KERNEL_IO_OTHER)
            k->first = k->second = 0;
        vec_push(&f->calls, fresh);
    }
}

/* Marks threads with state, though they may be gone. */
static void mark_threads(struct files_visit *x)
{
    struct builder_files *f = x->f;
    for (size_t i = 0; i < f->accesses.n; i++)
        if (is_held(x->all->b, &f->accesses.v[i]))
            carry_row(x->all->c, &f->accesses.v[i].thread);
    for (size_t i = 0; i < f->calls.n; i++) {
        int32_t row = (int32_t)i;
        if (f->calls.v[i].io)
            carry_row(x->all->c, &row);
    }
}

void state_carry_files(struct state_carry *v)
{
    struct files_visit x = {.all = v, .f = v->b->files};
    if (v->c->way == CARRY_MARK) {
        mark_threads(&x);
        return;
    }
    if (v->c->way == CARRY_SAVE) {
        choose_tables(&x);
        choose_accesses(&x);
        choose_names(&x);
    }
    carry_number(v->c, &x.f->bytes);
    if (x.f->bytes < 0)
        state_carry_refuse(v->c);
    size_t n = carry_count(v->c, x.tables.v.n, sizeof(uint64_t));
    for (size_t i = 0; i < n && v->c->way == CARRY_LOAD; i++)
        vec_push(&x.f->tables, (file_table){0});
    visit_names(&x);
    visit_accesses(&x);
    visit_tables(&x);
    visit_map(&x, &x.f->table_of);
    visit_map(&x, &x.f->at_address);
    visit_calls(&x);
    end_choice(&x.tables);
    end_choice(&x.names);
    end_choice(&x.accesses);
}

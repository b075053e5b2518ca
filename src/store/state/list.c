/* SPDX-License-Identifier: MIT */
/* Joining of the rows of a list of chunks: which of them are the same row of the host. Rows of a kind are joined at the
 * first request: most users of a list request few kinds, and there may be a million rows of files. */
#include "state/list.h"

#include <stdlib.h>
#include <string.h>

#include "base/chunks.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/order.h"
#include "state/list_order.h"

struct join {
    struct state_store *s;
    list_items items; /* items of a kind */
    VEC(struct list_place) places;
    size_t n_files; /* rows of threads' bytes so far */
    size_t *gap;    /* by part: the first part from it on with a missing chunk behind, or SIZE_MAX */
};

/* ---- rows of chunks ---- */

static bool is_numbered_by_thread(int kind)
{
    return kind == STATE_THREAD || kind == STATE_COUNTER_ROWS + STATE_MEMORY || state_is_thread_io(kind) ||
        kind == STATE_COUNTER_ROWS + STATE_KVM_EXITS;
}

static bool is_known_by_name(int kind)
{
    return kind == STATE_FUTEX_USER || kind == STATE_FILE_ROWS;
}

static void take_rows(struct join *j, int kind)
{
    j->items.n = 0;
    for (size_t k = 0; k < j->s->n; k++) {
        const struct state_part *p = &j->s->parts[k];
        const struct state_chunk *c = p->chunk;
        for (size_t i = 0; i < state_row_count(c, kind); i++) {
            const struct state_disk_row *r = state_disk_row(c, kind, i);
            int32_t thread = kind == STATE_FILE_ROWS ? c->files[i].thread : kind == STATE_FUTEX_USER ? r->thread : -1;
            vec_push(&j->items,
                ((struct list_item){.part = (uint32_t)k,
                    .at = (uint32_t)i,
                    .row = r,
                    .name = state_name(c, r->name),
                    .number = is_numbered_by_thread(kind) ? state_host_row(p, r->number) : r->number,
                    .thread = state_host_row(p, thread)}));
        }
    }
}

static int by_first(const void *a, const void *b)
{
    const struct list_item *x = a, *y = b;
    return order_of(x->part, y->part) ?: order_of(x->at, y->at);
}

/* Numbers rows of futexes in order of their first appearance. The items are in order of name. */
static void number_futexes(struct join *j)
{
    VEC(struct list_item) firsts = {0};
    struct list_item *v = j->items.v;
    uint32_t *numbers = mem_alloc((j->items.n + 1) * sizeof *numbers);
    for (size_t i = 0; i < j->items.n; i++) {
        bool first = !i || !list_same_row(&v[i], &v[i - 1]);
        if (first)
            vec_push(&firsts, v[i]);
        v[i].number = (int32_t)firsts.n - 1;
        firsts.v[firsts.n - 1].number = v[i].number;
    }
    if (firsts.n)
        qsort(firsts.v, firsts.n, sizeof *firsts.v, by_first);
    for (size_t i = 0; i < firsts.n; i++)
        numbers[firsts.v[i].number] = (uint32_t)i;
    for (size_t k = 0; k < j->s->n; k++)
        j->s->parts[k].users = mem_alloc(
            (state_row_count(j->s->parts[k].chunk, STATE_FUTEX_USER) + 1) * sizeof(uint32_t));
    for (size_t i = 0; i < j->items.n; i++) {
        uint32_t number = numbers[v[i].number];
        v[i].number = (int32_t)number;
        j->s->parts[v[i].part].users[v[i].at] = number;
    }
    free(numbers);
    vec_free(&firsts);
}

/* Collects all items of a kind, in the order of the host's rows, those of a row in order of time. */
static void take_items(struct join *j, int kind)
{
    take_rows(j, kind);
    if (is_known_by_name(kind))
        state_list_order_by_name(j->s, &j->items);
    if (kind == STATE_FUTEX_USER)
        number_futexes(j);
    if (kind != STATE_FILE_ROWS)
        state_list_order_by_number(&j->items);
}

/* ---- rows of the host ---- */

/* Adds the chunk's bytes, with wrap-around for any contents. */
static void add_bytes(int64_t *to, const int64_t *bytes)
{
    for (int way = 0; way < STATE_WAYS; way++)
        if (bytes[way] > 0 && __builtin_add_overflow(to[way], bytes[way], &to[way]))
            to[way] = INT64_MAX;
}

static const struct state_disk_file *file_of(const struct state_store *s, const struct list_item *x)
{
    return &s->parts[x->part].chunk->files[x->at];
}

/* Sets the end of knowledge: a state open at the end of a place continues in the next part, unless that is missing; it
 * also may have ended at once, so that the row has no entry there. Counters continue. */
static void set_until(const struct join *j, const struct list_row *r, struct list_place *p, uint32_t next_part)
{
    bool counts = r->kind >= STATE_COUNTER_ROWS && r->kind < STATE_FILE_ROWS;
    bool missing = p->row->flags & STATE_ROW_GOES && !counts && j->gap[p->part] < next_part;
    p->until = missing ? p->row->end : INT64_MAX;
}

static void find_gaps(struct join *j)
{
    const struct state_store *s = j->s;
    j->gap = mem_alloc(s->n * sizeof *j->gap);
    for (size_t k = s->n; k-- > 0;) {
        bool last = k + 1 == s->n, gap = s->parts[k].end < (last ? INT64_MAX : s->parts[k + 1].begin);
        j->gap[k] = gap ? k : last ? SIZE_MAX : j->gap[k + 1];
    }
}

/* Entries that begin before the end of the chunk before are invalid: they count as missing. */
static void add_places(struct join *j, struct list_row *to, const struct list_item *v, size_t n)
{
    struct list_place *last = NULL;
    for (size_t i = 0; i < n; i++) {
        const struct state_disk_row *r = v[i].row;
        if (!r || !r->n_cells)
            continue;
        if (last && r->first < (last->row->flags & STATE_ROW_GOES ? last->row->end : last->first))
            continue;
        struct list_place p = {.part = v[i].part, .row = r, .first = r->first, .next = INT64_MAX};
        if (last) {
            last->next = r->first;
            set_until(j, to, last, p.part);
        }
        if (to->kind == STATE_FILE_ROWS) {
            if (last)
                memcpy(p.moved, last->moved, sizeof p.moved);
            add_bytes(p.moved, file_of(j->s, &v[i])->counted);
        }
        vec_push(&j->places, p);
        last = &j->places.v[j->places.n - 1];
        to->n++;
        to->entries += r->n;
    }
    if (last)
        set_until(j, to, last, UINT32_MAX);
}

/* Sets begin and end: a thread's life; otherwise the whole span. */
static void set_life(struct join *j, struct list_row *to, const struct list_item *v, size_t n)
{
    const struct list_item *last = &v[n - 1];
    to->begin = INT64_MAX;
    to->end = INT64_MAX;
    for (size_t i = 0; i < n && to->kind == STATE_THREAD; i++)
        if (v[i].row->flags & STATE_ROW_BORN && v[i].row->begin < to->begin)
            to->begin = v[i].row->begin;
    if (to->begin == INT64_MAX)
        to->begin = INT64_MIN;
    if (to->kind == STATE_THREAD && last->row->flags & STATE_ROW_DIED)
        to->end = last->row->end;
    bool is_missing = last->part + 1 < j->s->n && j->s->parts[last->part].end < j->s->parts[last->part + 1].begin;
    if (to->kind == STATE_THREAD && last->row->flags & STATE_ROW_GOES && is_missing)
        to->end = j->s->parts[last->part + 1].begin; /* end of its life */
}

static void bound_life(const struct state_store *s, struct list_row *r)
{
    int64_t first = r->n ? r->places->first : INT64_MAX;
    r->begin = r->begin < first ? r->begin : first;
    r->begin = r->begin > s->begin ? r->begin : s->begin;
    r->end = r->end < s->end ? r->end : s->end;
    r->begin = r->begin < r->end ? r->begin : r->end;
}

static void join_row(struct join *j, int kind, const struct list_item *v, size_t n, struct list_row *to)
{
    const struct list_item *last = &v[n - 1];
    *to = (struct list_row){.kind = (uint8_t)kind, .number = last->number, .thread = last->thread, .name = last->name};
    for (size_t i = 0; i < n; i++) {
        to->waits |= v[i].row && v[i].row->waits;
        to->idle |= v[i].row && v[i].row->idle;
        to->lead = v[i].row ? v[i].row->lead : to->lead;
        if (state_may_fall(kind) && v[i].row->least < to->least)
            to->least = v[i].row->least;
    }
    for (size_t i = 0; i < n && kind == STATE_FILE_ROWS; i++)
        add_bytes(to->bytes, file_of(j->s, &v[i])->bytes);
    set_life(j, to, v, n);
    add_places(j, to, v, n);
}

/* Threads have their own names; their counters show the last one. */
static const char *thread_name(const struct state_store *s, int32_t row)
{
    const struct list_kind *threads = &s->kinds[STATE_THREAD];
    return row < 0 ? "total" : (size_t)row < threads->n ? threads->v[row].name : "";
}

/* Returns whether it is no row after all. */
static bool is_nothing(const struct list_row *r)
{
    return r->number < 0 ? r->kind != STATE_COUNTER_ROWS + STATE_MEMORY : r->kind == STATE_FILE_ROWS && !r->n;
}

/* Frees the places of an item that is no row of the host. */
static bool is_row(struct join *j, const struct list_row *r)
{
    if (!is_nothing(r))
        return true;
    j->places.n -= r->n;
    return false;
}

/* Adds threads that no chunk knows, those of a missing chunk. */
static void add_unknown_threads(struct join *j, struct list_kind *to, int32_t before)
{
    while ((int64_t)to->n < before) {
        to->v[to->n] = (struct list_row){
            .kind = STATE_THREAD, .number = (int32_t)to->n, .thread = -1, .name = "", .end = INT64_MIN};
        to->n++;
    }
}

static void settle_rows(struct join *j, struct list_kind *of)
{
    const struct list_place *places = of->places = j->places.v;
    for (size_t k = 0; k < of->n; k++) {
        of->v[k].places = places;
        places += of->v[k].n;
        bound_life(j->s, &of->v[k]);
    }
    j->places.v = NULL;
    j->places.n = j->places.cap = 0;
}

static void join_kind(struct join *j, int kind)
{
    struct list_kind *to = &j->s->kinds[kind];
    const struct list_item *v = j->items.v;
    size_t most = j->items.n;
    if (kind == STATE_THREAD && most)
        most += (size_t)(v[most - 1].number > 0 ? v[most - 1].number : 0);
    to->v = mem_alloc((most + 1) * sizeof *to->v);
    for (size_t i = 0, n; i < j->items.n; i += n) {
        if (kind == STATE_THREAD)
            add_unknown_threads(j, to, v[i].number);
        struct list_row *row = &to->v[to->n];
        n = 1;
        while (i + n < j->items.n && list_same_row(&v[i], &v[i + n]))
            n++;
        join_row(j, kind, &v[i], n, row);
        if (is_numbered_by_thread(kind) && kind != STATE_THREAD)
            row->name = thread_name(j->s, row->number);
        if (kind == STATE_FILE_ROWS)
            row->number = (int32_t)to->n;
        to->n += is_row(j, row);
    }
    settle_rows(j, to);
}

/* ---- bytes of threads ---- */

/* Threads that moved bytes only through files have rows, too. */
static void take_movers(struct join *j, int way)
{
    const struct list_kind *files = &j->s->kinds[STATE_FILE_ROWS];
    for (size_t i = 0; i < files->n; i++)
        if (files->v[i].bytes[way])
            vec_push(&j->items, ((struct list_item){.number = files->v[i].thread, .name = "", .thread = -1}));
    state_list_order_by_number(&j->items);
}

/* Collects the files that each thread's bytes went through. */
static void list_files_of(struct join *j, int way)
{
    const struct list_kind *files = &j->s->kinds[STATE_FILE_ROWS];
    struct list_kind *rows = &j->s->kinds[STATE_COUNTER_ROWS + STATE_IO_READ + way];
    for (size_t i = 0; i < files->n; i++)
        if (files->v[i].bytes[way] && files->v[i].thread >= 0)
            rows->v[search_first(k, 0, rows->n, rows->v[k].number >= files->v[i].thread)].n_files++;
    for (size_t k = 0; k < rows->n; k++) {
        rows->v[k].files = j->s->files + j->n_files;
        j->n_files += rows->v[k].n_files;
        rows->v[k].n_files = 0;
    }
    for (size_t i = 0; i < files->n; i++)
        if (files->v[i].bytes[way] && files->v[i].thread >= 0) {
            struct list_row *r = &rows->v[search_first(k, 0, rows->n, rows->v[k].number >= files->v[i].thread)];
            j->s->files[r->files - j->s->files + r->n_files++] = (uint32_t)i;
            r->entries += files->v[i].entries;
        }
}

static void join_thread_io(struct join *j, int way)
{
    int kind = STATE_COUNTER_ROWS + STATE_IO_READ + way;
    take_rows(j, kind);
    take_movers(j, way);
    join_kind(j, kind);
    list_files_of(j, way);
}

/* ---- names ---- */

/* Names of interrupts and disks are taken from the last chunk. */
static void join_names(struct state_store *s)
{
    struct map newest = {0}; /* part << 32 | code */
    for (size_t k = s->n; k-- > 0;) {
        struct state_chunk *c = s->parts[k].chunk;
        for (size_t i = 0; i < c->n_codes; i++) {
            const struct state_disk_code *of = &c->disk_codes[i];
            if (!of->of)
                continue;
            bool fresh;
            uint64_t *known = map_put(&newest, (uint64_t)of->of << 32 | of->ref, &fresh);
            if (fresh)
                *known = (uint64_t)k << 32 | i;
            c->codes[i].name = s->parts[*known >> 32].chunk->codes[*known & UINT32_MAX].name;
        }
    }
    map_fini(&newest);
}

/* ---- all of it ---- */

static void find_span(struct state_store *s)
{
    const struct state_disk_totals *last = s->parts[s->n - 1].chunk->totals;
    bool found = false;
    s->begin = last->begin;
    s->end = last->end;
    for (size_t k = 0; k < s->n; k++) {
        const struct state_chunk *c = s->parts[k].chunk;
        const struct state_disk_totals *t = c->totals;
        if (!t->events && !t->events_before && !c->n_cells) /* no events yet */
            continue;
        s->begin = found && s->begin < t->begin ? s->begin : t->begin;
        s->end = found && s->end > t->end ? s->end : t->end;
        found = true;
    }
}

/* First of the kinds that are joined together: bytes of threads with the files; waits and wakes of futexes with their
 * users. */
static int first_with(int kind)
{
    if (kind == STATE_FILE_ROWS || state_is_thread_io(kind))
        return STATE_FILE_ROWS;
    return kind == STATE_FUTEX_WAITS || kind == STATE_FUTEX_WAKES ? STATE_FUTEX_USER : kind;
}

/* The lock is held. */
static void join_one(struct state_store *s, int kind)
{
    struct join j = {.s = s};
    if (atomic_load_explicit(&s->kinds[kind].made, memory_order_relaxed))
        return;
    if (is_numbered_by_thread(kind) && kind != STATE_THREAD) /* threads have the names */
        join_one(s, STATE_THREAD);
    if (first_with(kind) != kind)
        join_one(s, first_with(kind));
    find_gaps(&j);
    if (state_is_thread_io(kind)) {
        j.n_files = s->n_files;
        join_thread_io(&j, kind - STATE_COUNTER_ROWS - STATE_IO_READ);
        s->n_files = j.n_files;
    } else {
        take_items(&j, kind);
        join_kind(&j, kind);
    }
    if (kind == STATE_FILE_ROWS)
        s->files = mem_alloc((STATE_WAYS * s->kinds[kind].n + 1) * sizeof *s->files);
    vec_free(&j.items);
    free(j.gap);
    atomic_store_explicit(&s->kinds[kind].made, true, memory_order_release);
}

void state_list_kind_join(const struct state_store *store, int kind)
{
    struct state_store *s = (struct state_store *)(uintptr_t)store;
    pthread_mutex_lock(&s->joining);
    join_one(s, kind);
    pthread_mutex_unlock(&s->joining);
}

const char *state_list_join(struct state_store *s, const struct chunk *v, size_t *part)
{
    for (*part = 0; *part < s->n && s->n > 1; ++*part)
        if (!v[*part].rows)
            return "it is not said which threads its rows are";
    s->kinds = mem_zalloc(STATE_ROW_KINDS * sizeof *s->kinds);
    pthread_mutex_init(&s->joining, NULL);
    find_span(s);
    join_names(s);
    return NULL;
}

void state_list_fini(struct state_store *s)
{
    for (int kind = 0; s->kinds && kind < STATE_ROW_KINDS; kind++) {
        free(s->kinds[kind].v);
        free(s->kinds[kind].places);
    }
    if (s->kinds)
        pthread_mutex_destroy(&s->joining);
    free(s->kinds);
    free(s->files);
}

/* SPDX-License-Identifier: MIT */
/* Trees of pieces folded into one: equal entries of several pieces. */
#include <string.h>

#include "coord/merge.h"
#include "coord/rotation.h"

enum { NO_ROW = SIZE_MAX };

struct row {
    int64_t key;
    size_t parent;
    uint64_t thread; /* hash of its number; 0: no thread */
    size_t last;     /* last piece so far that has it */
    struct piece_entry e;
};
struct folded {
    struct coord_call *call;
    const struct coord_rotation *pieces;
    VEC(struct row) rows;
    struct map by_key;      /* -> row */
    struct map by_identity; /* name and parent of a row -> last row with them */
};

/* ---- equal entries ---- */

static bool integer_of(struct slice entry, const char *key, int64_t *out)
{
    return slice_integer(slice_get(entry, key), out);
}

/* Returns the column with the number of a thread; SIZE_MAX: none. */
static size_t thread_column(const struct coord_call *c, struct slice headers)
{
    struct slice_walk w = slice_items(headers);
    size_t i = 0;
    for (struct slice h; slice_next(&w, &h); i++)
        if (!strcmp(coord_merge_rule_of(c->request.arg[1], h, i).key, "tid"))
            return i;
    return SIZE_MAX;
}

/* Returns a hash of the entry's thread; 0: none. label_hash: hash of its label. */
static uint64_t thread_of(struct slice entry, size_t thread_at, uint64_t *label_hash)
{
    struct slice_walk w = slice_items(slice_get(entry, "labels"));
    struct slice first = {0}, label, tid = {0};
    int64_t number;
    for (size_t i = 0; slice_next(&w, &label); i++) {
        first = i ? first : label;
        tid = i == thread_at && label.n > 2 ? (struct slice){label.at + 1, label.n - 2} : tid;
    }
    label = slice_get(slice_get(entry, "metadata"), "TID");
    w = slice_items(label);
    if (slice_next(&w, &label) || label.at)
        tid = label;
    *label_hash = map_hash(first.at, first.n);
    return slice_integer(tid, &number) ? ~map_hash(tid.at, tid.n) | 1 : 0;
}

/* Returns the identity: name and parent. A thread's name is its number, since its text may change. */
static uint64_t identity_of(struct slice entry, size_t thread_at, const struct row *above, bool *is_thread)
{
    uint64_t label, thread = thread_of(entry, thread_at, &label);
    *is_thread = thread && (!above || above->thread != thread); /* excludes parts of the thread above */
    uint64_t of[2] = {above ? (uint64_t)above->key : 0, *is_thread ? thread : label};
    return map_hash(of, sizeof of);
}

/* Returns whether an entry may continue a row. The row must last to the end of its piece, and the entry must not begin
 * later than its own piece. */
static bool goes_on(const struct folded *t, const struct row *r, size_t piece, struct slice entry)
{
    const struct coord_piece *last = &t->pieces->v[r->last], *next = &t->pieces->v[piece];
    int64_t end, begin;
    return (!integer_of(r->e.of[r->last], "end", &end) || coord_time_shown(last->node, end) >= last->range.end) &&
        (!integer_of(entry, "start", &begin) || coord_time_shown(next->node, begin) <= next->range.begin);
}

static size_t find_row(
    const struct folded *t, size_t piece, struct slice entry, int64_t key, uint64_t identity, bool by_name)
{
    const uint64_t *at = map_find(&t->by_key, (uint64_t)key);
    if (at)
        return t->rows.v[*at].e.of[piece].at ? (size_t)NO_ROW : *at;
    at = by_name ? map_find(&t->by_identity, identity) : NULL;
    if (!at || t->rows.v[*at].last == piece || !goes_on(t, &t->rows.v[*at], piece, entry))
        return NO_ROW;
    return *at;
}

static size_t add_row(struct folded *t, int64_t key, size_t parent)
{
    struct row r = {.key = key, .parent = parent};
    r.e.of = arena_new(t->call->arena, struct slice, t->pieces->n);
    vec_push(&t->rows, r);
    *map_put(&t->by_key, (uint64_t)key, NULL) = t->rows.n - 1;
    return t->rows.n - 1;
}

static void take_entries(struct folded *t, size_t piece)
{
    const struct coord_piece *p = &t->pieces->v[piece];
    struct slice_walk w = slice_items(slice_get(p->part->model, "entries"));
    const size_t thread_at = thread_column(t->call, slice_get(p->part->model, "headers"));
    struct map rows = {0}; /* rows by the piece's own id */
    int64_t own, above = -1;
    for (struct slice e; slice_next(&w, &e);) {
        if (!integer_of(e, "id", &own) || own < 0)
            continue;
        const uint64_t *up = integer_of(e, "parentId", &above) ? map_find(&rows, (uint64_t)above) : NULL;
        size_t parent = up ? *up : (size_t)NO_ROW;
        bool is_thread, renamed = up && t->rows.v[parent].key != above;
        uint64_t identity = identity_of(e, thread_at, up ? &t->rows.v[parent] : NULL, &is_thread), label;
        int64_t key = coord_piece_key(t->call, p->node, own);
        /* Content ids of one entry differ only for threads, and for entries below them: a thread whose begin was not
         * seen has another id. */
        size_t row = find_row(t, piece, e, key, identity, own < PIECE_CONTENT || is_thread || renamed);
        if (row == NO_ROW)
            row = add_row(t, key, parent);
        t->rows.v[row].e.of[piece] = e;
        t->rows.v[row].last = piece;
        t->rows.v[row].thread = thread_of(e, thread_at, &label);
        *map_put(&t->by_identity, identity, NULL) = row;
        *map_put(&rows, (uint64_t)own, NULL) = row;
        coord_piece_note_key(t->call, p->node, own, t->rows.v[row].key);
    }
    map_fini(&rows);
    coord_piece_note_known(t->call, p->node);
}

/* ---- writing ---- */

/* Return begin and end in the session. A row that covers its piece to the begin, or end, also covers the pieces before,
 * or after: without the row, they report no change. All of these pieces must be available. */
static int64_t begin_of(const struct coord_rotation *p, size_t first, int64_t begin)
{
    return begin <= p->v[first].range.begin && coord_rotation_is_there(p, 0, first) ? p->v[0].range.begin : begin;
}

static int64_t end_of(const struct coord_rotation *p, size_t last, int64_t end)
{
    if (end >= p->v[last].range.end && coord_rotation_is_there(p, last, p->n))
        for (size_t i = 0; i < p->n; i++)
            end = p->v[i].range.end > end ? p->v[i].range.end : end;
    return end;
}

static const struct row *root_of(const struct folded *t, const struct row *r)
{
    while (r->parent != NO_ROW)
        r = &t->rows.v[r->parent];
    return r;
}

static void put_row(const struct folded *t, struct json *j, const struct rotation_cells *cells, const struct row *r)
{
    size_t first = 0;
    int64_t time;
    while (!r->e.of[first].at)
        first++;
    const struct coord_piece *p = &t->pieces->v[first], *last = &t->pieces->v[r->last];
    struct slice_walk w = slice_members(r->e.of[first]);
    json_begin_object(j);
    for (struct slice key, value; slice_next_member(&w, &key, &value);) {
        slice_put_key(j, key);
        if (slice_equals(key, "id"))
            json_i64(j, r->key);
        else if (slice_equals(key, "parentId") && r->parent != NO_ROW)
            json_i64(j, t->rows.v[r->parent].key);
        else if (slice_equals(key, "start") && slice_integer(value, &time))
            json_i64(j, begin_of(t->pieces, first, coord_time_shown(p->node, time)));
        else if (slice_equals(key, "end") && integer_of(r->e.of[r->last], "end", &time))
            json_i64(j, end_of(t->pieces, r->last, coord_time_shown(last->node, time)));
        else if (slice_equals(key, "labels") && slice_is(value, '['))
            coord_rotation_put_labels(j, cells, &r->e, &root_of(t, r)->e);
        else if (slice_equals(key, "metadata") && slice_is(value, '{'))
            coord_rotation_put_metadata(j, cells, &r->e);
        else
            slice_put(j, value);
    }
    json_end_object(j);
}

/* Writes other members of the models: those of the first one. */
static void put_rest(const struct coord_rotation *p, struct json *j)
{
    size_t first = 0;
    while (!p->v[first].part)
        first++;
    struct slice_walk w = slice_members(p->v[first].part->model);
    for (struct slice key, value; slice_next_member(&w, &key, &value);)
        if (!slice_equals(key, "entries")) {
            slice_put_key(j, key);
            slice_put(j, value);
        }
}

static void fold(struct coord_answers *f, struct coord_rotation *p)
{
    struct folded t = {.call = f->call, .pieces = p};
    struct rotation_cells cells;
    struct text out = {.fd = -1};
    struct json j = JSON_TO(&out);
    for (size_t i = 0; i < p->n; i++)
        if (p->v[i].part)
            take_entries(&t, i);
    coord_rotation_cells_begin(&cells, f->call, p);
    json_begin_object(&j);
    put_rest(p, &j);
    json_key(&j, "entries");
    json_begin_array(&j);
    for (size_t i = 0; i < t.rows.n; i++)
        put_row(&t, &j, &cells, &t.rows.v[i]);
    json_end_array(&j);
    json_end_object(&j);
    vec_free(&t.rows);
    map_fini(&t.by_key);
    map_fini(&t.by_identity);
    coord_rotation_put(f, p, &out);
}

void coord_rotation_fold_tree(struct coord_answers *f)
{
    struct coord_rotation *rotations;
    size_t n = coord_rotations_of(f, &rotations);
    for (size_t g = 0; g < n; g++) {
        bool some = false;
        for (size_t i = 0; i < rotations[g].n; i++) {
            struct coord_piece *p = &rotations[g].v[i];
            if (p->part && !slice_is(slice_get(p->part->model, "entries"), '[')) {
                coord_answer_spoil(f, p->part, "its tree has no entries");
                p->part = NULL;
                p->missing = true;
            }
            some |= p->part != NULL;
        }
        if (some)
            fold(f, &rotations[g]);
    }
}

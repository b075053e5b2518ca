/* SPDX-License-Identifier: MIT */
/* States and series of pieces, joined into one row, piece after piece. */

#include "base/search.h"
#include "coord/merge.h"
#include "coord/question.h"
#include "coord/rotation.h"

/* Limit of lists: servers accept requests of 1 MiB. */
enum { MOST_LISTED = 16384 };

/* Row that some pieces have; at NULL: not in that piece. */
struct joined {
    int64_t key;
    struct slice *of;
};
struct all {
    VEC(struct joined) v;
    struct map by_key; /* -> in `v` */
};

static void take_rows(
    struct coord_answers *f, const struct coord_rotation *p, const char *array, const char *id, struct all *all)
{
    for (size_t i = 0; i < p->n; i++) {
        struct slice_walk w = slice_items(p->v[i].part ? slice_get(p->v[i].part->model, array) : (struct slice){0});
        int64_t own;
        bool fresh;
        for (struct slice row; slice_next(&w, &row);) {
            if (!slice_integer(slice_get(row, id), &own))
                continue;
            int64_t key = own < 0 ? own : coord_piece_key(f->call, p->v[i].node, own);
            uint64_t *at = map_put(&all->by_key, (uint64_t)key, &fresh);
            if (fresh) {
                *at = all->v.n;
                vec_push(&all->v, ((struct joined){key, arena_new(f->call->arena, struct slice, p->n)}));
            }
            all->v.v[*at].of[i] = row;
        }
    }
}

typedef void put_joined(struct coord_answers *, struct json *, const struct coord_rotation *, const struct joined *);

static void fold(struct coord_answers *f, struct coord_rotation *p, const char *array, const char *id, put_joined *put)
{
    struct all all = {0};
    struct text out = {.fd = -1};
    struct json j = JSON_TO(&out);
    size_t first = 0;
    while (!p->v[first].part)
        first++;
    take_rows(f, p, array, id, &all);
    struct slice_walk w = slice_members(p->v[first].part->model);
    json_begin_object(&j);
    for (struct slice key, value; slice_next_member(&w, &key, &value);)
        if (!slice_equals(key, array)) {
            slice_put_key(&j, key);
            slice_put(&j, value);
        }
    json_key(&j, array);
    json_begin_array(&j);
    for (size_t i = 0; i < all.v.n; i++)
        put(f, &j, p, &all.v.v[i]);
    json_end_array(&j);
    json_end_object(&j);
    vec_free(&all.v);
    map_fini(&all.by_key);
    coord_rotation_put(f, p, &out);
}

static void fold_all(struct coord_answers *f, const char *array, const char *id, put_joined *put)
{
    struct coord_rotation *rotations;
    size_t n = coord_rotations_of(f, &rotations);
    for (size_t g = 0; g < n; g++) {
        bool some = false;
        for (size_t i = 0; i < rotations[g].n; i++)
            some |= rotations[g].v[i].part != NULL;
        if (some)
            fold(f, &rotations[g], array, id, put);
    }
}

/* ---- states ---- */

struct state {
    int64_t begin, end;
    struct slice object;
    size_t piece;
};
struct states {
    VEC(struct state) v;
    const int64_t *samples; /* requested samples; NULL: unknown */
    size_t n_samples;
};

/* Returns whether a sample lies between the two. True if the samples are unknown. */
static bool is_sampled(const struct states *s, int64_t begin, int64_t end)
{
    size_t at = search_first(i, 0, s->n_samples, s->samples[i] >= begin);
    return !s->samples || (at < s->n_samples && s->samples[at] < end);
}

/* Drops the last state if it reaches its piece's end and covers no sample. It was requested at that end, but the next
 * piece knows the time of the sample. */
static void drop_unsampled(struct states *s, const struct coord_rotation *p)
{
    const struct state *last = s->v.n ? &s->v.v[s->v.n - 1] : NULL;
    if (last && last->end >= p->v[last->piece].range.end && !is_sampled(s, last->begin, last->end))
        s->v.n--;
}

static bool looks_alike(struct slice a, struct slice b)
{
    static const char *const keys[] = {"label", "style", "tags"};
    bool alike = true;
    for (size_t i = 0; i < sizeof keys / sizeof *keys && alike; i++) {
        struct slice x = slice_get(a, keys[i]), y = slice_get(b, keys[i]);
        alike = x.at && y.at ? slice_same_value(x, y) : !x.at && !y.at;
    }
    return alike;
}

/* Returns whether a state means "unknown", which some servers report. */
static bool is_unknown(struct slice state)
{
    struct slice style = slice_get(state, "style");
    return slice_equals(slice_get(style, "parentKey"), "Unknown") ||
        slice_equals(slice_get(style, "styleKey"), "Unknown");
}

/* Adds a state. A later piece wins from its begin on. A state at the end of a piece lasts until then, and the first
 * known state of all also covers the time before. */
static void add_state(struct states *s, const struct coord_rotation *p, struct state next)
{
    while (s->v.n && s->v.v[s->v.n - 1].piece < next.piece && s->v.v[s->v.n - 1].begin >= next.begin)
        s->v.n--;
    struct state *last = s->v.n ? &s->v.v[s->v.n - 1] : NULL;
    const bool from_begin = next.begin <= p->v[next.piece].range.begin;
    if (last && last->piece < next.piece && from_begin && is_unknown(next.object) &&
        coord_rotation_is_there(p, last->piece, next.piece))
        return;
    if (!last && from_begin && coord_rotation_is_there(p, 0, next.piece))
        next.begin = p->v[0].range.begin < next.begin ? p->v[0].range.begin : next.begin;
    if (last && last->piece < next.piece) {
        bool goes_on = last->end >= p->v[last->piece].range.end && coord_rotation_is_there(p, last->piece, next.piece);
        if (last->end > next.begin || (goes_on && is_sampled(s, last->end, next.begin)))
            last->end = next.begin;
        if (from_begin && goes_on && looks_alike(last->object, next.object)) {
            last->end = next.end;
            last->piece = next.piece;
            return;
        }
        drop_unsampled(s, p);
    }
    vec_push(&s->v, next);
}

static void put_states(struct json *j, const struct states *s)
{
    json_begin_array(j);
    for (size_t i = 0; i < s->v.n; i++) {
        struct slice_walk w = slice_members(s->v.v[i].object);
        json_begin_object(j);
        for (struct slice key, value; slice_next_member(&w, &key, &value);) {
            slice_put_key(j, key);
            if (slice_equals(key, "start"))
                json_i64(j, s->v.v[i].begin);
            else if (slice_equals(key, "end"))
                json_i64(j, s->v.v[i].end);
            else
                slice_put(j, value);
        }
        json_end_object(j);
    }
    json_end_array(j);
}

static void join_states(const struct coord_rotation *p, const struct joined *row, struct states *s)
{
    for (size_t i = 0; i < p->n; i++) {
        struct slice_walk w = slice_items(slice_get(row->of[i], "states"));
        struct state next = {.piece = i};
        while (slice_next(&w, &next.object))
            if (slice_integer(slice_get(next.object, "start"), &next.begin) &&
                slice_integer(slice_get(next.object, "end"), &next.end)) {
                next.begin = coord_time_shown(p->v[i].node, next.begin);
                next.end = coord_time_shown(p->v[i].node, next.end);
                add_state(s, p, next);
            }
    }
    struct state *last = s->v.n ? &s->v.v[s->v.n - 1] : NULL;
    if (last && last->end >= p->v[last->piece].range.end && coord_rotation_is_there(p, last->piece, p->n))
        for (size_t i = 0; i < p->n; i++)
            last->end = p->v[i].range.end > last->end ? p->v[i].range.end : last->end;
    drop_unsampled(s, p);
}

static void put_row(struct coord_answers *f, struct json *j, const struct coord_rotation *p, const struct joined *row)
{
    struct states s = {0};
    size_t first = 0;
    s.samples = coord_samples(&f->call->request, &s.n_samples);
    while (!row->of[first].at)
        first++;
    join_states(p, row, &s);
    struct slice_walk w = slice_members(row->of[first]);
    json_begin_object(j);
    for (struct slice key, value; slice_next_member(&w, &key, &value);) {
        slice_put_key(j, key);
        if (slice_equals(key, "entryId"))
            json_i64(j, row->key);
        else if (slice_equals(key, "states"))
            put_states(j, &s);
        else
            slice_put(j, value);
    }
    json_end_object(j);
    vec_free(&s.v);
}

void coord_rotation_fold_states(struct coord_answers *f)
{
    fold_all(f, "rows", "entryId", put_row);
}

/* ---- requests for states ---- */

const char *coord_rotation_states_body(
    struct coord_call *c, const struct coord_rotation *p, size_t piece, json_t *items)
{
    const struct time_range r = p->v[piece].range;
    size_t n, in = 0;
    const int64_t *v = coord_samples(&c->request, &n);
    if (!v)
        return coord_body_with(c, p->v[piece].node, "requested_items", items, NULL, NULL);
    json_t *own = json_copy(c->request.parameters), *times = json_array();
    for (size_t i = 0; i < n; i++)
        if (v[i] >= r.begin && v[i] < r.end) {
            json_array_append_new(times, json_integer(v[i]));
            in++;
        }
    if (n && v[n - 1] >= r.end && ++in)
        json_array_append_new(times, json_integer(r.end));
    json_object_set(own, "requested_items", items);
    json_object_set_new(own, "requested_times", times);
    json_object_del(own, "requested_timerange");
    const char *body = in ? coord_body_of(c, p->v[piece].node, own) : NULL;
    json_decref(own);
    return body;
}

/* ---- series ---- */

struct points {
    struct slice_walk x, y;
    struct slice y_at;
    int64_t x_at;
    bool some;
};

static void next_point(const struct coord_call *c, const struct coord_piece *p, struct points *s)
{
    struct slice x;
    s->some = slice_next(&s->x, &x) && slice_next(&s->y, &s->y_at) && slice_integer(x, &s->x_at);
    if (s->some)
        s->x_at = coord_sample_shown(c, p->node, s->x_at);
}

/* Returns the piece with the earliest next point; n: none. */
static size_t first_point(const struct points *s, size_t n)
{
    size_t best = n;
    for (size_t i = 0; i < n; i++)
        if (s[i].some && (best == n || s[i].x_at < s[best].x_at))
            best = i;
    return best;
}

static void put_y(struct json *j, bool some, double y)
{
    if (!some)
        json_write_null(j);
    else if (y > -9e15 && y < 9e15 && y == (double)(int64_t)y)
        json_i64(j, (int64_t)y);
    else
        json_double(j, y);
}

/* Writes the points in order of time: x, y into two arrays. Points at one time are merged, except in scatter charts: to
 * their sum, or to the value of the piece that has the time. */
static void join_points(struct coord_call *c, const struct coord_rotation *p, const struct joined *row, struct json *x,
    struct json *y, enum tsp_merge how)
{
    struct points *s = arena_new(c->arena, struct points, p->n + 1);
    for (size_t i = 0; i < p->n; i++) {
        s[i].x = slice_items(slice_get(row->of[i], "xValues"));
        s[i].y = slice_items(slice_get(row->of[i], "yValues"));
        next_point(c, &p->v[i], &s[i]);
    }
    for (size_t at; (at = first_point(s, p->n)) < p->n;) {
        int64_t t = s[at].x_at;
        size_t of = coord_rotation_at(p, t), several = 0;
        double sum = 0, v;
        bool some = false;
        struct slice one = s[at].y_at;
        json_i64(x, t);
        for (size_t i = at; i < p->n; i++) {
            if (!s[i].some || s[i].x_at != t || (how == TSP_CONCATENATE && i != at))
                continue;
            if ((how != TSP_LEVEL || i == of) && slice_number(s[i].y_at, &v)) {
                sum += v;
                some = true;
            }
            several++;
            next_point(c, &p->v[i], &s[i]);
        }
        if (several == 1)
            slice_put(y, one);
        else
            put_y(y, some, sum);
    }
}

void coord_put_series_like(
    struct json *j, struct slice series, int64_t id, const char *name, const struct text *x, const struct text *y)
{
    struct slice_walk w = slice_members(series);
    json_begin_object(j);
    for (struct slice key, value; slice_next_member(&w, &key, &value);) {
        slice_put_key(j, key);
        if (slice_equals(key, "seriesId"))
            json_i64(j, id);
        else if (name && slice_equals(key, "seriesName"))
            json_write_string(j, name);
        else if (slice_equals(key, "xValues"))
            slice_put(j, (struct slice){x->v, x->n});
        else if (slice_equals(key, "yValues"))
            slice_put(j, (struct slice){y->v, y->n});
        else
            slice_put(j, value);
    }
    json_end_object(j);
}

static void put_series(
    struct coord_answers *f, struct json *j, const struct coord_rotation *p, const struct joined *row)
{
    struct text x = {.fd = -1}, y = {.fd = -1};
    struct json jx = JSON_TO(&x), jy = JSON_TO(&y);
    size_t first = 0;
    while (!row->of[first].at)
        first++;
    json_begin_array(&jx);
    json_begin_array(&jy);
    join_points(f->call, p, row, &jx, &jy, coord_merge_of_series(f->call->request.arg[1], row->of[first]));
    json_end_array(&jx);
    json_end_array(&jy);
    coord_put_series_like(j, row->of[first], row->key, NULL, &x, &y);
    text_fini(&x);
    text_fini(&y);
}

void coord_rotation_fold_series(struct coord_answers *f)
{
    fold_all(f, "series", "seriesId", put_series);
}

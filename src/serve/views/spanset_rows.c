/* SPDX-License-Identifier: MIT */
/* Rows of spans. Below each trace are its critical paths and, for each service on a host, its lanes. Simultaneous units
 * lie below one another. Each unit has a lane per level of nesting, and more for simultaneous spans of one level. */
#include <stdlib.h>

#include "base/order.h"
#include "views/spanset.h"

/* Span while its trace is laid out. */
struct placed {
    int64_t begin, end;
    uint32_t row, depth;
    uint16_t place, slot, lane;
};
struct place {
    uint32_t service, host_text;
    int32_t host;
};
struct unit {
    int64_t begin, end;
    uint32_t number;
    uint16_t lane;
};
struct layout {
    struct spanset *o;
    uint32_t *depths; /* depth by row; SPANSET_NONE: not yet known */
    VEC(uint32_t) way;
    VEC(struct placed) spans;
    VEC(struct unit) units;
    uint16_t *slots; /* slot by unit, different for simultaneous units; SPANSET_LANES: too many units */
    struct place places[SPANSET_PLACES];
    size_t n_places;
    uint32_t *unit_first, *unit_order; /* units by trace */
};

/* ---- depth ---- */

/* Depth of a row: goes up to a row of known depth, and back down. Trees have no circles; one that exists all the same
 * begins at the top. */
static uint32_t depth_of(struct layout *l, uint32_t row)
{
    const struct spanset *o = l->o;
    int32_t at = (int32_t)row;
    l->way.n = 0;
    while (at >= 0 && l->depths[at] == SPANSET_NONE && l->way.n <= o->traces[o->rows[row].trace].rows) {
        vec_push(&l->way, (uint32_t)at);
        at = spanset_cause(o, (uint32_t)at);
    }
    uint32_t depth = at >= 0 && l->depths[at] != SPANSET_NONE ? l->depths[at] + 1 : 0;
    while (l->way.n)
        l->depths[l->way.v[--l->way.n]] = depth++;
    return l->depths[row];
}

/* ---- services and their lanes ---- */

static int by_begin(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    return order_of(x->begin, y->begin) ?: order_of(y->end, x->end) ?: order_of(x->row, y->row);
}

static int by_level(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    return order_of(x->place, y->place) ?: order_of(x->slot, y->slot) ?: order_of(x->depth, y->depth) ?: by_begin(a, b);
}

static int by_lane(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    return order_of(x->place, y->place) ?: order_of(x->lane, y->lane) ?: by_begin(a, b);
}

/* Number of a row's place. The last place takes the rows of all places above the limit. */
static uint16_t place_of(struct layout *l, uint32_t row)
{
    const struct spanset *o = l->o;
    struct place p = {o->rows[row].service, spans_own_value(o->s, o->rows + row, "host"), o->joined.threads[row].host};
    size_t i = 0;
    while (i < l->n_places && (l->places[i].service != p.service || l->places[i].host_text != p.host_text))
        i++;
    if (i == SPANSET_PLACES)
        return SPANSET_PLACES - 1;
    if (i == l->n_places) {
        if (i == SPANSET_PLACES - 1) /* the last place mixes services and hosts */
            p = (struct place){SPANSET_NONE, 0, -1};
        l->places[l->n_places++] = p;
    }
    return (uint16_t)i;
}

static void gather(struct layout *l, const struct spans_trace *t)
{
    l->spans.n = l->n_places = 0;
    for (uint32_t row = t->row; row < t->row + t->rows; row++) {
        struct placed p = {
            l->o->times[row].begin, l->o->times[row].end, row, depth_of(l, row), 0, l->slots[l->o->rows[row].unit], 0};
        vec_push(&l->spans, p);
    }
    qsort(l->spans.v, l->spans.n, sizeof *l->spans.v, by_begin);
    for (size_t i = 0; i < l->spans.n; i++)
        l->spans.v[i].place = place_of(l, l->spans.v[i].row);
    qsort(l->spans.v, l->spans.n, sizeof *l->spans.v, by_level);
}

/* First of ends[from … n) that is not after `begin`; n: none. */
static size_t first_free(const int64_t *ends, size_t from, size_t n, int64_t begin)
{
    while (from < n && ends[from] > begin)
        from++;
    return from;
}

/* Assigns lanes level by level. A span beyond the last lane gets SPANSET_LANES: none. */
static void find_lanes(struct layout *l)
{
    int64_t ends[SPANSET_LANES];
    size_t n = 0, from = 0;
    for (size_t i = 0; i < l->spans.n; i++) {
        struct placed *p = l->spans.v + i;
        const struct placed *before = i ? p - 1 : p;
        if (p->place != before->place)
            n = from = 0;
        else if (p->slot != before->slot || p->depth != before->depth)
            from = n;
        size_t lane = first_free(ends, from, n, p->begin);
        p->lane = (uint16_t)lane;
        if (lane == SPANSET_LANES)
            continue;
        n += lane == n;
        ends[lane] = p->end;
    }
}

/* ---- entries ---- */

static uint32_t add_entry(struct spanset *o, struct spanset_entry e)
{
    vec_push(&o->entries, e);
    return (uint32_t)o->entries.n - 1;
}

static void add_lanes(struct layout *l, uint32_t trace, uint32_t root)
{
    struct spanset *o = l->o;
    uint32_t place = SPANSET_NONE, lane = SPANSET_NONE;
    for (size_t i = 0; i < l->spans.n; i++) {
        const struct placed *p = l->spans.v + i, *before = i ? p - 1 : NULL;
        const struct place *at = l->places + p->place;
        struct spanset_entry e = {
            root, trace, (uint32_t)o->lanes.n, 0, at->service, at->host_text, 0, at->host, p->place, SPANSET_PLACE};
        if (!before || before->place != p->place) {
            place = add_entry(o, e);
            before = NULL;
        }
        if (p->lane == SPANSET_LANES) {
            o->entries.v[place].left_out++;
            continue;
        }
        if (!before || before->lane != p->lane) {
            e.parent = place;
            e.kind = SPANSET_LANE;
            e.number = p->lane;
            lane = add_entry(o, e);
        }
        o->entries.v[lane].n++;
        o->entry_of[p->row] = lane;
        vec_push(&o->lanes, p->row);
    }
}

/* ---- simultaneous units ---- */

static int by_unit_begin(const void *a, const void *b)
{
    const struct unit *x = a, *y = b;
    return order_of(x->begin, y->begin) ?: order_of(y->end, x->end) ?: order_of(x->number, y->number);
}

static struct unit extent_of(const struct spanset *o, uint32_t number)
{
    const struct spans_unit *u = o->units + number;
    const uint32_t *members = spans_members(o->s, u);
    struct unit out = {INT64_MAX, INT64_MIN, number, 0};
    for (uint32_t i = 0; i < u->members; i++) {
        const struct spanset_time *t = o->times + members[i];
        out.begin = t->begin < out.begin ? t->begin : out.begin;
        out.end = t->end > out.end ? t->end : out.end;
    }
    return out;
}

static void find_slots(struct layout *l, uint32_t trace)
{
    int64_t ends[SPANSET_LANES];
    size_t n = 0;
    l->units.n = 0;
    for (uint32_t i = l->unit_first[trace]; i < l->unit_first[trace + 1]; i++)
        vec_push(&l->units, extent_of(l->o, l->unit_order[i]));
    if (l->units.n)
        qsort(l->units.v, l->units.n, sizeof *l->units.v, by_unit_begin);
    for (size_t i = 0; i < l->units.n; i++) {
        size_t slot = first_free(ends, 0, n, l->units.v[i].begin);
        l->slots[l->units.v[i].number] = (uint16_t)slot;
        if (slot == SPANSET_LANES)
            continue;
        n += slot == n;
        ends[slot] = l->units.v[i].end;
    }
}

/* ---- critical paths ---- */

static int by_unit_lane(const void *a, const void *b)
{
    const struct unit *x = a, *y = b;
    return order_of(x->lane, y->lane) ?: by_unit_begin(a, b);
}

/* Converts a section by its host's clock. Queue time and time between spans use the clocks of the neighbouring
 * sections. */
static struct spanset_section joint_section(const struct spanset *o, const struct spans_sections *path, size_t i)
{
    const struct spans_section *x = path->v + i, *next = i + 1 < path->n ? x + 1 : x, *before = i ? x - 1 : x;
    int32_t first = x->row >= 0 ? x->row : before->row, last = x->row >= 0 ? x->row : next->row;
    return (struct spanset_section){first < 0 ? x->begin_ns : spanset_time_of(o, (uint32_t)first, x->begin_ns),
        last < 0 ? x->end_ns : spanset_time_of(o, (uint32_t)last, x->end_ns), x->row, 0};
}

void spanset_sections(const struct spanset *o, uint32_t unit, struct spanset_sections *out)
{
    struct spans_sections path = {0};
    spans_path(o->s, unit, &path);
    for (size_t i = 0; i < path.n; i++) {
        struct spanset_section mine = joint_section(o, &path, i);
        mine.unit = unit;
        if (mine.row == SPANS_QUEUE)
            mine.begin = o->times[o->units[unit].after].end;
        if (out->n && mine.begin < out->v[out->n - 1].end)
            mine.begin = out->v[out->n - 1].end;
        if (mine.begin < mine.end)
            vec_push(out, mine);
    }
    vec_free(&path);
}

static struct unit bounds_of(const struct spanset *o, uint32_t number)
{
    struct spanset_sections s = {0};
    spanset_sections(o, number, &s);
    struct unit u = {.number = number, .lane = SPANSET_PATHS};
    if (s.n) {
        u.begin = s.v[0].begin;
        u.end = s.v[s.n - 1].end;
    }
    vec_free(&s);
    return u;
}

static void add_paths(struct layout *l, uint32_t trace, uint32_t root)
{
    struct spanset *o = l->o;
    int64_t ends[SPANSET_PATHS];
    size_t n = 0;
    uint32_t entry = SPANSET_NONE, left_out = 0;
    l->units.n = 0;
    for (uint32_t i = l->unit_first[trace]; i < l->unit_first[trace + 1]; i++)
        if (o->units[l->unit_order[i]].members > 1)
            vec_push(&l->units, bounds_of(o, l->unit_order[i]));
    if (!l->units.n)
        return;
    qsort(l->units.v, l->units.n, sizeof *l->units.v, by_unit_begin);
    for (size_t i = 0; i < l->units.n; i++) {
        struct unit *u = l->units.v + i;
        size_t lane = first_free(ends, 0, n, u->begin);
        left_out += lane == SPANSET_PATHS;
        if (lane == SPANSET_PATHS || u->begin >= u->end)
            continue;
        u->lane = (uint16_t)lane;
        n += lane == n;
        ends[lane] = u->end;
    }
    qsort(l->units.v, l->units.n, sizeof *l->units.v, by_unit_lane);
    for (size_t i = 0; i < l->units.n && l->units.v[i].lane < SPANSET_PATHS; i++) {
        uint16_t lane = l->units.v[i].lane;
        struct spanset_entry e = {root, trace, (uint32_t)o->path_units.n, 0, 0, 0, 0, -1, lane, SPANSET_PATH};
        if (!i || l->units.v[i - 1].lane != lane)
            entry = add_entry(o, e);
        o->entries.v[entry].n++;
        vec_push(&o->path_units, l->units.v[i].number);
    }
    if (entry != SPANSET_NONE)
        o->entries.v[entry].left_out = left_out;
}

/* ---- traces ---- */

static void order_units(struct layout *l)
{
    const struct spanset *o = l->o;
    l->unit_first = mem_zalloc((o->n_traces + 2) * sizeof *l->unit_first);
    l->unit_order = mem_alloc((o->n_units + 1) * sizeof *l->unit_order);
    for (size_t i = 0; i < o->n_units; i++)
        l->unit_first[o->units[i].trace + 2]++;
    for (size_t i = 2; i < o->n_traces + 2; i++)
        l->unit_first[i] += l->unit_first[i - 1];
    for (uint32_t i = 0; i < o->n_units; i++)
        l->unit_order[l->unit_first[o->units[i].trace + 1]++] = i;
}

static void add_trace(struct layout *l, uint32_t trace)
{
    struct spanset *o = l->o;
    const struct spans_trace *t = o->traces + trace;
    struct spanset_shown *shown = o->shown + trace;
    find_slots(l, trace);
    gather(l, t);
    find_lanes(l);
    qsort(l->spans.v, l->spans.n, sizeof *l->spans.v, by_lane);
    shown->entry = add_entry(o, (struct spanset_entry){.parent = SPANSET_NONE, .trace = trace, .host = -1});
    shown->rows = t->rows;
    shown->begin = INT64_MAX;
    shown->end = INT64_MIN;
    for (uint32_t i = t->row; i < t->row + t->rows; i++) {
        shown->errors += o->rows[i].status == SPAN_ERROR;
        shown->begin = o->times[i].begin < shown->begin ? o->times[i].begin : shown->begin;
        shown->end = o->times[i].end > shown->end ? o->times[i].end : shown->end;
    }
    add_paths(l, trace, shown->entry);
    add_lanes(l, trace, shown->entry);
    shown->entries = (uint32_t)o->entries.n - shown->entry;
}

void spanset_lay_out(struct spanset *o)
{
    struct layout l = {.o = o};
    l.depths = mem_alloc((o->n_rows + 1) * sizeof *l.depths);
    o->entry_of = mem_alloc((o->n_rows + 1) * sizeof *o->entry_of);
    o->shown = mem_zalloc((o->n_traces + 1) * sizeof *o->shown);
    memset(l.depths, 0xff, o->n_rows * sizeof *l.depths);
    memset(o->entry_of, 0xff, o->n_rows * sizeof *o->entry_of);
    l.slots = mem_alloc((o->n_units + 1) * sizeof *l.slots);
    order_units(&l);
    for (uint32_t t = 0; t < o->n_traces; t++)
        if (o->traces[t].rows)
            add_trace(&l, t);
    free(l.depths);
    free(l.slots);
    free(l.unit_first);
    free(l.unit_order);
    vec_free(&l.way);
    vec_free(&l.spans);
    vec_free(&l.units);
}

/* SPDX-License-Identifier: MIT */
/* Critical paths. The walk goes backwards from a unit's end, always into the part that ended last. Time that no part
 * covers is the whole's own. This is the method of Jaeger's viewer and CRISP (Zhang et al. 2022), without recursion,
 * because input determines the depth of trees. */
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "span/spans.h"

/* Part, limited to the bounds of its whole. */
struct bounded {
    int64_t begin, end;
    uint32_t row;
};
/* Frame of the walk. Its parts are sides[first …] of the walk, the last to end first. */
struct descent {
    int32_t row; /* row, or SPANS_ENVELOPE */
    int64_t begin, end, cursor;
    int64_t limit;                /* longest time by which the unit ends earlier if all below took no time */
    int64_t last_end, passed_end; /* ends: of the first part on the path; of the skipped part that ended last */
    size_t first, next, n;
    bool taken, passed;
};
struct walk {
    const struct spans *s;
    VEC(struct descent) frames;
    VEC(struct bounded) sides;
    struct spans_sections *out; /* reversed until the walk ends */
    int64_t *limits;            /* limit by row on the path; NULL: not requested */
};

static int by_last_end(const void *a, const void *b)
{
    const struct bounded *x = a, *y = b;
    return order_of(y->end, x->end) ?: order_of(x->begin, y->begin) ?: order_of(x->row, y->row);
}

static void add_side(struct walk *w, uint32_t row, int64_t begin, int64_t end)
{
    const struct spans_row *r = w->s->rows.v + row;
    struct bounded b = {r->begin_ns > begin ? r->begin_ns : begin, r->end_ns < end ? r->end_ns : end, row};
    if (b.begin < b.end)
        vec_push(&w->sides, b);
}

static void enter(struct walk *w, int32_t row, const struct spans_unit *u, int64_t begin, int64_t end, int64_t limit)
{
    const struct spans *s = w->s;
    struct descent f = {.row = row, .begin = begin, .end = end, .cursor = end, .limit = limit, .first = w->sides.n};
    if (row >= 0) {
        for (uint32_t i = s->parts[row]; i < s->parts[row + 1]; i++)
            add_side(w, s->part[i], begin, end);
        if (w->limits)
            w->limits[row] = limit;
    } else {
        for (uint32_t i = 0; i < u->members; i++)
            if (s->rows.v[s->members[u->member + i]].parent < 0)
                add_side(w, s->members[u->member + i], begin, end);
    }
    f.n = w->sides.n - f.first;
    if (f.n)
        qsort(w->sides.v + f.first, f.n, sizeof *w->sides.v, by_last_end);
    vec_push(&w->frames, f);
}

static void tell(struct walk *w, int32_t row, int64_t begin, int64_t end)
{
    if (begin < end)
        vec_push(w->out, ((struct spans_section){begin, end, row}));
}

/* Returns the overlap that is still treated as a sequence, since clocks and hand-overs are inexact (CRISP: 1 % of the
 * whole). */
static int64_t slack_of(const struct descent *f)
{
    return (f->end - f->begin) / 100;
}

/* Returns the longest time by which the whole ends earlier if this part took no time, until it waits for another
 * part. */
static int64_t limit_of(const struct walk *w, const struct descent *f, const struct bounded *part)
{
    int64_t limit = part->end - part->begin;
    if (f->next < f->n) {
        const struct bounded *beside = w->sides.v + f->first + f->next;
        if (beside->end - part->begin > slack_of(f))
            limit = beside->end < part->end ? part->end - beside->end : 0;
    }
    if (f->passed && f->last_end - f->passed_end < limit)
        limit = f->last_end - f->passed_end;
    return f->limit < limit ? f->limit : limit;
}

/* Enters the next part of the path within the innermost frame; false: there is none. */
static bool descend(struct walk *w, const struct spans_unit *u)
{
    struct descent *f = w->frames.v + w->frames.n - 1;
    while (f->next < f->n) {
        struct bounded part = w->sides.v[f->first + f->next++];
        if (part.end > f->cursor && (part.end - f->cursor > slack_of(f) || part.begin >= f->cursor)) {
            f->passed_end = f->passed ? f->passed_end : part.end;
            f->passed = true;
            continue;
        }
        part.end = part.end < f->cursor ? part.end : f->cursor;
        if (!f->taken)
            f->last_end = part.end;
        f->taken = true;
        int64_t limit = limit_of(w, f, &part);
        tell(w, f->row, part.end, f->cursor);
        f->cursor = part.begin;
        enter(w, (int32_t)part.row, u, part.begin, part.end, limit);
        return true;
    }
    return false;
}

static void walk_unit(struct walk *w, uint32_t unit)
{
    const struct spans_unit *u = w->s->units.v + unit;
    w->out->n = 0;
    enter(w, u->root >= 0 ? u->root : SPANS_ENVELOPE, u, u->begin_ns, u->end_ns, INT64_MAX);
    while (w->frames.n) {
        if (descend(w, u))
            continue;
        struct descent f = w->frames.v[--w->frames.n];
        tell(w, f.row, f.begin, f.cursor);
        w->sides.n = f.first;
    }
    if (u->after >= 0)
        tell(w, SPANS_QUEUE, w->s->rows.v[u->after].end_ns, u->begin_ns);
    for (size_t i = 0; i < w->out->n / 2; i++) {
        struct spans_section x = w->out->v[i];
        w->out->v[i] = w->out->v[w->out->n - 1 - i];
        w->out->v[w->out->n - 1 - i] = x;
    }
}

void spans_path(const struct spans *s, uint32_t unit, struct spans_sections *out)
{
    struct walk w = {.s = s, .out = out};
    walk_unit(&w, unit);
    vec_free(&w.frames);
    vec_free(&w.sides);
}

/* ---- totals over units ---- */

/* Totals by cause. Causes are numbered as kinds; then follow the queue and the envelope. */
struct tally {
    const struct spans *s;
    struct spans_kinds kinds;
    struct spans_cause *causes;
    uint32_t *last_unit;   /* unit counted last for the cause, + 1 */
    int64_t *own, *limits; /* by row: time on the path of the current unit; 0 otherwise */
    struct spans_causes *out;
};

static void count(struct tally *t, size_t cause, uint32_t unit, int64_t own, int64_t limit)
{
    struct spans_cause *c = t->causes + cause;
    int64_t half = own / 2;
    c->spans++;
    c->units += t->last_unit[cause] != unit + 1;
    t->last_unit[cause] = unit + 1;
    c->path += own;
    c->drag += own < limit ? own : limit;
    c->half += half < limit ? half : limit;
    if (own > c->example_ns) {
        c->example_ns = own;
        c->example = unit;
    }
}

static void add_path(struct tally *t, uint32_t unit, const struct spans_sections *path)
{
    int64_t outside[2] = {0, 0};
    for (size_t i = 0; i < path->n; i++) {
        const struct spans_section *x = path->v + i;
        int64_t ns = x->end_ns - x->begin_ns;
        t->out->total += ns;
        *(x->row >= 0 ? t->own + x->row : outside + (x->row == SPANS_ENVELOPE)) += ns;
    }
    for (size_t i = 0; i < path->n; i++) {
        int32_t row = path->v[i].row;
        if (row < 0 || !t->own[row])
            continue;
        count(t, t->kinds.of[row], unit, t->own[row], t->limits[row]);
        t->own[row] = 0;
    }
    for (size_t k = 0; k < 2; k++)
        if (outside[k])
            count(t, t->kinds.v.n + k, unit, outside[k], INT64_MAX);
    t->out->units++;
}

static int by_path(const void *a, const void *b)
{
    const struct spans_cause *x = a, *y = b;
    return order_of(y->path, x->path) ?: order_of(x->row, y->row) ?: order_of(x->name, y->name)
        ?: order_of(x->service, y->service);
}

static void list_causes(struct tally *t)
{
    size_t n = t->kinds.v.n + 2;
    t->out->v = mem_alloc(n * sizeof *t->out->v);
    for (size_t i = 0; i < n; i++) {
        struct spans_cause c = t->causes[i];
        c.row = i < t->kinds.v.n ? 0 : i == t->kinds.v.n ? SPANS_QUEUE : SPANS_ENVELOPE;
        if (!c.row) {
            c.service = t->kinds.v.v[i].service;
            c.name = t->kinds.v.v[i].name;
        }
        if (c.path)
            t->out->v[t->out->n++] = c;
    }
    if (t->out->n)
        qsort(t->out->v, t->out->n, sizeof *t->out->v, by_path);
}

struct spans_causes *spans_causes(const struct spans *s)
{
    struct spans_sections path = {0};
    struct tally t = {.s = s, .out = mem_zalloc(sizeof *t.out)};
    t.own = mem_zalloc((s->rows.n + 1) * sizeof *t.own);
    t.limits = mem_alloc((s->rows.n + 1) * sizeof *t.limits);
    spans_kinds_make(s, NULL, &t.kinds);
    t.causes = mem_zalloc((t.kinds.v.n + 2) * sizeof *t.causes);
    t.last_unit = mem_zalloc((t.kinds.v.n + 2) * sizeof *t.last_unit);
    struct walk w = {.s = s, .out = &path, .limits = t.limits};
    for (uint32_t u = 0; u < s->units.n; u++) {
        walk_unit(&w, u);
        add_path(&t, u, &path);
    }
    list_causes(&t);
    vec_free(&w.frames);
    vec_free(&w.sides);
    free(path.v);
    free(t.own);
    free(t.limits);
    free(t.causes);
    free(t.last_unit);
    spans_kinds_fini(&t.kinds);
    return t.out;
}

void spans_causes_free(struct spans_causes *c)
{
    if (!c)
        return;
    free(c->v);
    free(c);
}

/* SPDX-License-Identifier: MIT */
/* Parents of spans, and corrections of clocks. */
#include <stdlib.h>
#include <string.h>

#include "base/time.h"
#include "span/spans.h"

enum { SMALL = 16, SAME_MOST = 64 }; /* SMALL: rows searched linearly; SAME_MOST: rows compared per id, at most */

struct family {
    struct spans *s;
    struct spans_row *rows; /* rows of the trace */
    uint32_t n;
    int32_t *why;
    uint32_t *seen, *same, *line; /* marks; next row of the same id, + 1; path upwards */
    struct map ids;               /* first row of each id, + 1 */
    size_t circles;
};

/* ---- parents ---- */

static void number_ids(struct family *f)
{
    memset(f->same, 0, f->n * sizeof *f->same);
    for (uint32_t i = f->n; i-- > 0 && f->n > SMALL;) {
        uint64_t *first = map_put(&f->ids, f->rows[i].id, NULL);
        f->same[i] = (uint32_t)*first;
        *first = i + 1;
    }
}

/* Returns the first row of the id from `from` on, + 1; 0: none. */
static uint32_t first_of(const struct family *f, uint64_t id, uint32_t from)
{
    if (f->n > SMALL && !from) {
        const uint64_t *first = map_find(&f->ids, id);
        return first ? (uint32_t)*first : 0;
    }
    if (f->n > SMALL)
        return f->same[from - 1];
    for (uint32_t i = from; i < f->n; i++)
        if (f->rows[i].id == id)
            return i + 1;
    return 0;
}

/* Returns the client that shares its id with a server, as in Zipkin; or -1. */
static int32_t client_of(const struct family *f, uint32_t row)
{
    uint32_t at = first_of(f, f->rows[row].id, 0);
    for (int i = 0; at && i < SAME_MOST; i++, at = first_of(f, f->rows[row].id, at))
        if (f->rows[at - 1].kind == SPAN_CLIENT)
            return (int32_t)at - 1;
    return -1;
}

static bool is_same_host(const struct spans *s, const struct spans_row *a, const struct spans_row *b)
{
    uint32_t host = spans_own_value(s, a, "host");
    return host && host == spans_own_value(s, b, "host");
}

/* Returns the parent among rows with its id: preferably of the same machine, then the same service, then a server, then
 * one that ran when the row began. */
static int32_t parent_of(const struct family *f, uint32_t row)
{
    const struct spans_row *r = f->rows + row;
    int32_t best = -1;
    int most = -1;
    uint32_t at = first_of(f, r->parent_id, 0);
    for (int i = 0; at && i < SAME_MOST; i++, at = first_of(f, r->parent_id, at)) {
        const struct spans_row *p = f->rows + at - 1;
        int fits = 4 * (p->service == r->service) + 2 * (p->kind == SPAN_SERVER) +
            (r->begin_ns >= p->begin_ns && r->begin_ns < p->end_ns);
        if (at - 1 == row)
            continue;
        if (i || first_of(f, r->parent_id, at)) /* parent id is ambiguous */
            fits += 8 * is_same_host(f->s, p, r);
        if (fits <= most)
            continue;
        best = (int32_t)at - 1;
        most = fits;
    }
    return best;
}

static void find_parents(struct family *f)
{
    map_fini(&f->ids);
    f->ids = (struct map){0};
    number_ids(f);
    for (uint32_t i = 0; i < f->n; i++) {
        struct spans_row *r = f->rows + i;
        r->parent = r->kind == SPAN_SERVER ? client_of(f, i) : -1;
        if (r->parent < 0 && r->parent_id)
            r->parent = parent_of(f, i);
        f->why[i] = r->parent_id ? SPANS_ORPHAN : SPANS_ROOT;
    }
}

/* Cuts circles, since ids are untrusted: of spans that are their own ancestors, one becomes a root. */
static void cut_circles(struct family *f)
{
    uint32_t *seen = f->seen; /* row, + 1, from which the search came; 0: none */
    memset(seen, 0, f->n * sizeof *seen);
    f->circles = 0;
    for (uint32_t i = 0; i < f->n; i++) {
        uint32_t at = i;
        while (!seen[at]) {
            seen[at] = i + 1;
            struct spans_row *r = f->rows + at;
            if (r->parent < 0)
                break;
            if (seen[r->parent] == i + 1) {
                r->parent = -1;
                f->why[at] = SPANS_ROOT;
                f->circles++;
                break;
            }
            at = (uint32_t)r->parent;
        }
    }
}

/* ---- clocks ---- */

/* Returns whether two rows have one clock. Machines are compared by name, else by address, else by service. A client
 * and its server are one process only if their machine is known to be the same. */
static bool share_clock(const struct spans *s, const struct spans_row *a, const struct spans_row *b)
{
    static const char *const keys[] = {"host", "ip"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        uint32_t x = spans_own_value(s, a, keys[i]), y = spans_own_value(s, b, keys[i]);
        if (x && y)
            return x == y;
    }
    return a->service == b->service && !(a->kind == SPAN_SERVER && b->kind == SPAN_CLIENT);
}

/* Returns whether the client waited for the server's end. A failed client of a server that did not fail gave up
 * before. */
static bool is_whole_call(const struct spans_row *client, const struct spans_row *server)
{
    return client->kind == SPAN_CLIENT && server->kind == SPAN_SERVER && client->life == SPAN_ENDED &&
        server->life == SPAN_ENDED && (client->status != SPAN_ERROR || server->status == SPAN_ERROR);
}

/* Returns the move that makes both rows possible; 0: they are. Deviations up to 1 % of the caller are within the
 * precision of clocks. A call that fits is centred, as if both ways took the same time. */
static int64_t skew_of(const struct spans_row *parent, const struct spans_row *r)
{
    int64_t lasted = spans_duration(r), room = spans_duration(parent), slack = room / 100;
    bool early = r->begin_ns < parent->begin_ns - slack, call = is_whole_call(parent, r), fits = lasted <= room;
    bool late = call && (r->begin_ns >= parent->end_ns || (fits && r->end_ns > parent->end_ns + slack));
    if (r->kind != SPAN_SERVER && r->kind != SPAN_CONSUMER)
        return 0;
    if (!early && !late)
        return 0;
    return parent->begin_ns - r->begin_ns + (call && fits ? (room - lasted) / 2 : 0);
}

static int64_t shift_of(struct family *f, const struct spans_row *parent, const struct spans_row *r)
{
    int64_t skew = skew_of(parent, r);
    if ((!skew && !parent->shift_ns) || (parent->shift_ns && share_clock(f->s, r, parent)))
        return parent->shift_ns;
    if (!skew || share_clock(f->s, r, parent))
        return 0;
    struct spans_told *told = &f->s->told;
    told->skewed++;
    told->skew_most_ns = llabs(skew) > told->skew_most_ns ? llabs(skew) : told->skew_most_ns;
    return skew;
}

static bool move(struct spans_row *r, int64_t shift)
{
    int64_t begin, end;
    if (!shift || __builtin_add_overflow(r->begin_ns, shift, &begin) ||
        __builtin_add_overflow(r->end_ns, shift, &end) || begin < 0) /* bounds differences of times */
        return false;
    r->begin_ns = begin;
    r->end_ns = end;
    r->shift_ns = shift;
    return true;
}

/* Aligns from the roots down; false: nothing was moved. */
static bool align_clocks(struct family *f)
{
    uint32_t *done = f->seen;
    bool moved = false;
    memset(done, 0, f->n * sizeof *done);
    for (uint32_t i = 0; i < f->n; i++) {
        uint32_t ways = 0;
        for (int32_t at = (int32_t)i; at >= 0 && !done[at]; at = f->rows[at].parent) {
            f->line[ways++] = (uint32_t)at;
            done[at] = 1;
        }
        while (ways) {
            struct spans_row *r = f->rows + f->line[--ways];
            if (r->parent >= 0)
                moved |= move(r, shift_of(f, f->rows + r->parent, r));
        }
    }
    return moved;
}

void spans_find_parents(struct spans *s, const struct spans_trace *t, int32_t *why, uint32_t *scratch)
{
    struct family f = {.s = s, .rows = s->rows.v + t->row, .n = t->rows, .why = why};
    f.seen = scratch;
    f.same = scratch + f.n;
    f.line = scratch + 2 * (size_t)f.n;
    find_parents(&f);
    cut_circles(&f);
    if (align_clocks(&f)) {
        spans_sort_rows(f.rows, f.n);
        find_parents(&f);
        cut_circles(&f);
    }
    s->told.circles += f.circles;
    for (uint32_t i = 0; i < f.n; i++)
        s->told.orphans += f.why[i] == SPANS_ORPHAN && f.rows[i].parent < 0;
    map_fini(&f.ids);
}

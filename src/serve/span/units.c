/* SPDX-License-Identifier: MIT */
/* Trees and units of rows. Stages reported one after the other, with nothing around them, are grouped; begins truncated
 * to the second are repaired. */
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/time.h"
#include "span/spans.h"

enum { ASKED = 64 }; /* limit of chains compared, and of stages searched */

/* Row without a whole, and the key of the rows that it may be a stage beside. */
struct top {
    int32_t why;
    uint64_t key;
    uint32_t row;
};
/* Chain of consecutive stages: its last one; `before`: an older chain that ended in the same second. */
struct chain {
    uint32_t last, group;
    int32_t before;
};

/* Unit, and its number before sorting. */
struct placed {
    struct spans_unit unit;
    uint32_t number;
};

struct making {
    struct spans *s;
    struct spans_trace *trace;
    int32_t *why;   /* by row of the trace: SPANS_ROOT …, while its parent is -1 */
    int32_t *after; /* parent that ended before the row began, or -1 */
    uint32_t *seen; /* scratch of three numbers per row */
    VEC(struct top) tops;
    VEC(struct chain) chains;
    VEC(uint32_t) previous; /* previous stage in the chain, by top of a set; UINT32_MAX: none */
    struct map by_second;
    VEC(struct placed) placed;
};

static struct spans_row *row_of(struct making *m, uint32_t i)
{
    return m->s->rows.v + m->trace->row + i;
}

/* Separates rows that began after their parent's end, and those that their parent does not wait for. */
static void part_later(struct making *m)
{
    for (uint32_t i = 0; i < m->trace->rows; i++) {
        struct spans_row *r = row_of(m, i);
        const struct spans_row *parent = r->parent < 0 ? NULL : row_of(m, (uint32_t)r->parent);
        bool later = parent && r->begin_ns >= parent->end_ns && (r->end_ns != parent->end_ns || r->follows);
        m->after[i] = later ? r->parent : -1;
        if (!parent || (!later && !r->follows))
            continue;
        m->why[i] = later ? SPANS_LATER : SPANS_ROOT;
        r->parent = -1;
    }
}

/* ---- groups of stages ---- */

static int by_key(const void *a, const void *b)
{
    const struct top *x = a, *y = b;
    return order_of(x->why, y->why) ?: order_of(x->key, y->key) ?: order_of(x->row, y->row);
}

static void find_tops(struct making *m)
{
    m->tops.n = 0;
    for (uint32_t i = 0; i < m->trace->rows; i++) {
        struct spans_row *r = row_of(m, i);
        if (r->parent >= 0)
            continue;
        uint64_t key = m->why[i] == SPANS_LATER ? (uint64_t)m->after[i] : m->why[i] == SPANS_ORPHAN ? r->parent_id : i;
        vec_push(&m->tops, ((struct top){m->why[i], key, i}));
    }
    if (m->tops.n > 1)
        qsort(m->tops.v, m->tops.n, sizeof *m->tops.v, by_key);
}

static bool is_whole(int64_t ns)
{
    return ns % NS_PER_S == 0;
}

static int64_t second_of(int64_t ns)
{
    return ns / NS_PER_S - (ns % NS_PER_S < 0);
}

static bool has_stage(const struct making *m, const struct top *set, uint32_t last, uint32_t name)
{
    const struct spans_row *rows = m->s->rows.v + m->trace->row;
    for (int i = 0; last != UINT32_MAX && i < ASKED; i++, last = m->previous.v[last])
        if (rows[set[last].row].name == name)
            return true;
    return false;
}

/* Returns whether the row continues the chain: it begins when the chain ended, or in that second if its begin is
 * truncated. */
static bool goes_on(const struct making *m, const struct top *set, const struct chain *c, const struct spans_row *r)
{
    const struct spans_row *rows = m->s->rows.v + m->trace->row, *last = rows + set[c->last].row;
    bool then = last->end_ns == r->begin_ns ||
        (is_whole(r->begin_ns) && second_of(last->end_ns) == second_of(r->begin_ns));
    return then && last->service == r->service && last->end_ns <= r->end_ns && !has_stage(m, set, c->last, r->name);
}

/* Returns the key of chains: host, service and second of the end. */
static uint64_t place_of(const struct making *m, const struct spans_row *r, int64_t ns)
{
    return map_mix((uint64_t)second_of(ns)) ^ ((uint64_t)spans_own_value(m->s, r, "host") << 32 | r->service);
}

/* Returns the chain that the row continues: the last one to end, if there are several; or NULL. */
static struct chain *find_chain(struct making *m, const struct top *set, const struct spans_row *r)
{
    const uint64_t *head = map_find(&m->by_second, place_of(m, r, r->begin_ns));
    struct chain *found = NULL;
    size_t fitting = 0;
    int32_t at = head ? (int32_t)*head - 1 : -1;
    for (int i = 0; at >= 0 && i < ASKED; i++, at = m->chains.v[at].before) {
        struct chain *c = m->chains.v + at;
        if (c->last == UINT32_MAX || !goes_on(m, set, c, r))
            continue;
        found = found ? found : c;
        fitting++;
    }
    m->s->told.doubtful += fitting > 1;
    return found;
}

/* Adds a chain that ends with this stage. */
static void end_chain(struct making *m, uint32_t last, uint32_t group, const struct spans_row *r)
{
    uint64_t *head = map_put(&m->by_second, place_of(m, r, r->end_ns), NULL);
    vec_push(&m->chains, ((struct chain){last, group, (int32_t)*head - 1}));
    *head = m->chains.n;
}

static uint32_t group_value(const struct spans *s, const struct spans_row *r)
{
    uint32_t value = 0;
    for (size_t i = 0; i < s->groups.n && !value; i++)
        value = spans_own_value(s, r, s->groups.v[i]);
    return value;
}

/* Numbers the groups of a set of sibling stages, which are sorted by end. Returns the number of groups. */
static uint32_t group_set(struct making *m, const struct top *set, size_t n, uint32_t *group, bool *guessed)
{
    struct map values = {0};
    uint32_t groups = 0;
    m->chains.n = m->previous.n = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct spans_row *r = row_of(m, set[i].row);
        uint32_t value = group_value(m->s, r), before = UINT32_MAX;
        bool fresh;
        if (value) {
            uint64_t *number = map_put(&values, value, &fresh);
            group[i] = (uint32_t)(*number = fresh ? groups++ : *number);
            vec_push(&m->previous, before);
            continue;
        }
        struct chain *c = find_chain(m, set, r);
        group[i] = c ? c->group : groups++;
        bool stays = false; /* key in by_second is unchanged */
        if (c) {
            before = c->last;
            stays = second_of(row_of(m, set[before].row)->end_ns) == second_of(r->end_ns);
            c->last = stays ? i : UINT32_MAX;
            *guessed = true;
        }
        vec_push(&m->previous, before);
        if (!stays)
            end_chain(m, i, group[i], r);
    }
    map_fini(&values);
    map_fini(&m->by_second);
    m->by_second = (struct map){0};
    return groups;
}

/* ---- truncated begins ---- */

static bool all_cut(struct making *m, const uint32_t *rows, size_t n)
{
    bool exact_end = false;
    for (size_t i = 0; i < n; i++) {
        if (!is_whole(row_of(m, rows[i])->recorded_ns))
            return false;
        exact_end |= !is_whole(row_of(m, rows[i])->end_ns);
    }
    return exact_end;
}

/* Repairs the stages of one job, sorted by end. A stage that began in the second in which the previous one ended began
 * at that end: scripts read the time once. */
static void repair(struct making *m, const uint32_t *rows, size_t n)
{
    if (m->s->as_recorded)
        return;
    for (size_t i = 0; i < n; i++) {
        struct spans_row *r = row_of(m, rows[i]);
        const struct spans_row *before = i ? row_of(m, rows[i - 1]) : NULL;
        if (!is_whole(r->begin_ns))
            continue;
        r->cut = !before || second_of(before->end_ns) != second_of(r->begin_ns);
        if (!r->cut)
            r->begin_ns = before->end_ns;
        m->s->told.repaired += !r->cut && r->begin_ns - r->shift_ns != r->recorded_ns;
        m->s->told.cut += r->cut;
    }
}

/* ---- units ---- */

static void add_unit(struct making *m, const struct top *t, bool envelope, bool guessed)
{
    const struct spans_row *r = row_of(m, t->row);
    struct spans_unit u = {.begin_ns = INT64_MAX,
        .end_ns = INT64_MIN,
        .trace = r->trace,
        .service = r->service,
        .name = envelope ? r->service : r->name,
        .root = envelope ? -1 : (int32_t)(m->trace->row + t->row),
        .after = t->why == SPANS_LATER ? (int32_t)m->trace->row + m->after[t->row] : -1,
        .guessed = guessed};
    vec_push(&m->s->units, u);
}

static void join_unit(struct making *m, uint32_t row, size_t unit)
{
    struct spans_row *r = row_of(m, row);
    struct spans_unit *u = m->s->units.v + unit;
    r->unit = (uint32_t)unit;
    u->begin_ns = r->begin_ns < u->begin_ns ? r->begin_ns : u->begin_ns;
    u->end_ns = r->end_ns > u->end_ns ? r->end_ns : u->end_ns;
}

struct grouped {
    uint32_t group, row;
};

static int by_group(const void *a, const void *b)
{
    const struct grouped *x = a, *y = b;
    return order_of(x->group, y->group) ?: order_of(x->row, y->row);
}

/* Makes a unit below an envelope from stages of a group, sorted by end. */
static void envelop(struct making *m, const struct top *set, const struct grouped *g, size_t n, bool cut, bool guessed)
{
    uint32_t *rows = mem_alloc(n * sizeof *rows);
    struct top first = *set;
    for (size_t i = 0; i < n; i++)
        rows[i] = g[i].row;
    first.row = rows[0];
    if (cut)
        repair(m, rows, n);
    add_unit(m, &first, true, guessed);
    for (size_t i = 0; i < n; i++)
        join_unit(m, rows[i], m->s->units.n - 1);
    free(rows);
}

/* Makes a unit of a stage without a group. */
static void make_one(struct making *m, const struct top *t, uint32_t row)
{
    add_unit(m, t, false, false);
    join_unit(m, row, m->s->units.n - 1);
}

static void make_set(struct making *m, const struct top *set, size_t n)
{
    if (n == 1) {
        make_one(m, set, set->row);
        return;
    }
    uint32_t *group = mem_alloc(n * sizeof *group), *rows = mem_alloc(n * sizeof *rows);
    struct grouped *g = mem_alloc(n * sizeof *g);
    bool guessed = false;
    uint32_t groups = set->why == SPANS_ROOT ? (uint32_t)n : group_set(m, set, n, group, &guessed);
    for (size_t i = 0; i < n; i++) {
        g[i] = (struct grouped){groups == n ? (uint32_t)i : group[i], set[i].row};
        rows[i] = set[i].row;
    }
    bool cut = groups < n && all_cut(m, rows, n);
    qsort(g, n, sizeof *g, by_group);
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && g[end].group == g[i].group; end++)
            ;
        if (groups < n) {
            envelop(m, set, g + i, end - i, cut, guessed);
        } else {
            make_one(m, set + i, g[i].row);
        }
    }
    free(group);
    free(rows);
    free(g);
}

/* Assigns parts to the unit of their whole. */
static void spread_units(struct making *m)
{
    for (uint32_t i = 0; i < m->trace->rows; i++) {
        uint32_t top = i, at = i;
        while (row_of(m, top)->parent >= 0 && row_of(m, top)->unit == UINT32_MAX)
            top = (uint32_t)row_of(m, top)->parent;
        for (uint32_t unit = row_of(m, top)->unit; at != top; at = (uint32_t)row_of(m, at)->parent)
            row_of(m, at)->unit = unit;
    }
}

/* ---- order ---- */

/* Converts row numbers within the trace to row numbers. */
static void number_parents(struct making *m)
{
    for (uint32_t i = 0; i < m->trace->rows; i++)
        if (row_of(m, i)->parent >= 0)
            row_of(m, i)->parent += (int32_t)m->trace->row;
}

static void list_parts(struct making *m)
{
    const uint32_t n = m->trace->rows;
    uint32_t *parts = m->s->parts + m->trace->row, *next = m->seen, at = parts[0];
    memset(parts + 1, 0, n * sizeof *parts);
    for (uint32_t i = 0; i < n; i++)
        if (row_of(m, i)->parent >= 0)
            parts[(uint32_t)row_of(m, i)->parent - m->trace->row + 1]++;
    for (uint32_t i = 0; i < n; i++) {
        next[i] = at;
        at = parts[i + 1] += at;
    }
    for (uint32_t i = 0; i < n; i++)
        if (row_of(m, i)->parent >= 0)
            m->s->part[next[(uint32_t)row_of(m, i)->parent - m->trace->row]++] = m->trace->row + i;
}

/* Repairs the parts of each row if all of them began at whole seconds, one after the other. */
static void repair_parts(struct making *m)
{
    struct spans *s = m->s;
    for (uint32_t i = 0; i < m->trace->rows; i++) {
        size_t row = m->trace->row + i;
        const uint32_t *part = s->part + s->parts[row];
        size_t n = s->parts[row + 1] - s->parts[row], k = 1;
        if (n < 2)
            continue;
        uint32_t *rows = mem_alloc(n * sizeof *rows);
        for (size_t j = 0; j < n; j++)
            rows[j] = part[j] - m->trace->row;
        while (k < n && second_of(row_of(m, rows[k])->begin_ns) >= second_of(row_of(m, rows[k - 1])->end_ns))
            k++;
        if (k == n && all_cut(m, rows, n))
            repair(m, rows, n);
        free(rows);
    }
}

static int by_begin(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    return order_of(x->unit.begin_ns, y->unit.begin_ns) ?: order_of(x->unit.end_ns, y->unit.end_ns)
        ?: order_of(x->number, y->number);
}

/* Sorts the units of the trace, which begin at `first`. */
static void order_units(struct making *m, size_t first)
{
    struct spans_unit *units = m->s->units.v + first;
    const uint32_t n = (uint32_t)(m->s->units.n - first);
    uint32_t *now = m->seen;
    uint8_t place[ORDER_FEW];
    bool ordered = true;
    m->placed.n = 0;
    for (uint32_t i = 0; i < n; i++) {
        vec_push(&m->placed, ((struct placed){units[i], i}));
        ordered = ordered && (!i || by_begin(m->placed.v + i - 1, m->placed.v + i) < 0);
    }
    if (ordered)
        return;
    if (n <= ORDER_FEW)
        order_few(place, m->placed.v, n, sizeof *m->placed.v, by_begin);
    else
        qsort(m->placed.v, n, sizeof *m->placed.v, by_begin);
    for (uint32_t i = 0; i < n; i++) {
        const struct placed *p = m->placed.v + (n <= ORDER_FEW ? place[i] : i);
        units[i] = p->unit;
        now[p->number] = (uint32_t)first + i;
    }
    for (uint32_t i = 0; i < m->trace->rows; i++)
        row_of(m, i)->unit = now[row_of(m, i)->unit - first];
}

/* Lists members by unit. Each row has a unit, so the trace's members have the same positions as its rows. */
static void list_members(struct making *m, size_t first)
{
    struct spans *s = m->s;
    uint32_t at = m->trace->row;
    for (uint32_t i = 0; i < m->trace->rows; i++)
        s->units.v[row_of(m, i)->unit].members++;
    for (size_t u = first; u < s->units.n; u++) {
        s->units.v[u].member = at;
        at += s->units.v[u].members;
        s->units.v[u].members = 0;
    }
    for (uint32_t i = 0; i < m->trace->rows; i++) {
        struct spans_unit *u = s->units.v + row_of(m, i)->unit;
        s->members[u->member + u->members++] = m->trace->row + i;
    }
}

/* ---- traces ---- */

static void make_trace(struct making *m)
{
    const size_t first = m->s->units.n;
    spans_find_parents(m->s, m->trace, m->why, m->seen);
    part_later(m);
    find_tops(m);
    for (uint32_t i = 0; i < m->trace->rows; i++)
        row_of(m, i)->unit = UINT32_MAX;
    for (size_t i = 0, end; i < m->tops.n; i = end) {
        const struct top *t = m->tops.v + i;
        for (end = i + 1; end < m->tops.n && m->tops.v[end].why == t->why && m->tops.v[end].key == t->key; end++)
            ;
        make_set(m, t, end - i);
    }
    spread_units(m);
    number_parents(m);
    list_parts(m);
    repair_parts(m);
    order_units(m, first);
    list_members(m, first);
}

/* Works trace by trace, so that the data stay in the CPU's caches. */
void spans_make_units(struct spans *s)
{
    struct making m = {.s = s};
    size_t most = 0, n = s->rows.n;
    for (size_t t = 0; t < s->traces.n; t++)
        most = s->traces.v[t].rows > most ? s->traces.v[t].rows : most;
    m.why = mem_alloc((most + 1) * sizeof *m.why);
    m.after = mem_alloc((most + 1) * sizeof *m.after);
    m.seen = mem_alloc((3 * most + 1) * sizeof *m.seen);
    s->parts = mem_alloc((n + 1) * sizeof *s->parts);
    s->part = mem_alloc((n + 1) * sizeof *s->part);
    s->members = mem_alloc((n + 1) * sizeof *s->members);
    s->parts[0] = 0;
    for (size_t t = 0; t < s->traces.n; t++) {
        m.trace = s->traces.v + t;
        make_trace(&m);
    }
    free(m.why);
    free(m.after);
    free(m.seen);
    vec_free(&m.tops);
    vec_free(&m.chains);
    vec_free(&m.previous);
    vec_free(&m.placed);
}

int64_t spans_covered(const struct spans *s, uint32_t row)
{
    const struct spans_row *r = s->rows.v + row;
    int64_t covered = 0, from = r->end_ns;
    for (uint32_t i = s->parts[row + 1]; i-- > s->parts[row];) { /* descending by end */
        const struct spans_row *part = s->rows.v + s->part[i];
        int64_t end = part->end_ns < from ? part->end_ns : from;
        int64_t begin = part->begin_ns > r->begin_ns ? part->begin_ns : r->begin_ns;
        if (begin >= end)
            continue;
        covered += end - begin;
        from = begin;
    }
    return covered;
}

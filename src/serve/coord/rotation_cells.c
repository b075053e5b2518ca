/* SPDX-License-Identifier: MIT */
/* Labels and metadata of an entry that several pieces have, by the rules of the columns (merge.h). Amounts are computed
 * from the numbers in the entries' metadata. Other columns with a rule get the first meaningful text. Columns without a
 * rule get the text that all pieces agree on, so that no piece's number stands for all of them. */
#include <stdlib.h>
#include <string.h>

#include "coord/experiments.h"
#include "coord/merge.h"
#include "coord/rotation.h"
#include "coord/sums.h"

enum { MOST_CELLS = 64, LONGEST_SHARE = 64 };

/* ---- columns ---- */

void coord_rotation_cells_begin(struct rotation_cells *t, struct coord_call *c, const struct coord_rotation *p)
{
    *t = (struct rotation_cells){.call = c, .pieces = p};
    t->place = arena_alloc(c->arena, sizeof *t->place * (p->n + 1));
    t->n_place = arena_new(c->arena, size_t, p->n + 1);
    t->rule = arena_new(c->arena, struct merge_rule, MOST_CELLS);
    for (size_t i = 0; i < p->n; i++) {
        struct slice_walk w = slice_items(p->v[i].part ? slice_get(p->v[i].part->model, "headers") : (struct slice){0});
        bool first = !t->n;
        for (struct slice header; t->n_place[i] < MOST_CELLS && slice_next(&w, &header);) {
            size_t at = coord_merge_find_column(t->header, t->n, header);
            if (at == t->n && first) {
                t->rule[at] = coord_merge_rule_of(c->request.arg[1], header, t->n_place[i]);
                t->timed[at] = coord_merge_is_time(c->request.arg[1], header, t->n_place[i]);
                t->header[t->n++] = header;
            }
            t->place[i][t->n_place[i]++] = (uint16_t)at;
        }
    }
}

/* Collects the cells of one piece's entry, without columns that the first piece lacks. Trees without headers have
 * labels in order. Returns the number of cells, some of which may be empty. */
static size_t cells_of(const struct rotation_cells *t, size_t piece, struct slice entry, struct slice cell[MOST_CELLS])
{
    struct slice_walk w = slice_items(slice_get(entry, "labels"));
    struct slice label;
    size_t given = 0;
    for (; given < MOST_CELLS && slice_next(&w, &label); given++) {
        size_t at = !t->n ? given : given < t->n_place[piece] ? t->place[piece][given] : (size_t)MOST_CELLS;
        if (at < MOST_CELLS)
            cell[at] = label;
    }
    return t->n ? t->n : given;
}

/* ---- amounts ---- */

static struct slice member_of(struct slice entry, const char *key)
{
    return slice_first(slice_get(slice_get(entry, "metadata"), key));
}

/* Computes minimum, maximum or sum over the pieces. False: no piece has the number. */
static bool number_of(
    const struct rotation_cells *t, const struct piece_entry *e, const char *key, enum tsp_merge how, int64_t *out)
{
    bool some = false;
    int64_t v;
    *out = 0;
    for (size_t i = 0; i < t->pieces->n; i++) {
        if (!e->of[i].at || !slice_integer(member_of(e->of[i], key), &v))
            continue;
        if (!some || (how == TSP_MAX && v > *out) || (how == TSP_MIN && v < *out))
            *out = v;
        else if (how != TSP_MAX && how != TSP_MIN)
            *out = figures_sum(*out, v);
        some = true;
    }
    return some;
}

/* Adds up figures of durations: shortest, longest, …; false: the entry has none. */
static bool figures_of(const struct rotation_cells *t, const struct piece_entry *e, struct root_sum *s)
{
    *s = (struct root_sum){0};
    for (size_t i = 0; i < t->pieces->n; i++)
        if (e->of[i].at && !coord_sum_add(s, t->pieces->v[i].node, slice_get(e->of[i], "metadata")))
            return false;
    return s->all.n;
}

/* Returns the requested range of the tree. */
static struct time_range range_of(const struct rotation_cells *t)
{
    json_t *range = json_object_get(t->call->request.parameters, "requested_timerange"),
           *times = json_object_get(t->call->request.parameters, "requested_times");
    struct time_range r;
    if (coord_integer(json_object_get(range, "start"), &r.begin) &&
        coord_integer(json_object_get(range, "end"), &r.end))
        return r;
    if (coord_integer(json_array_get(times, 0), &r.begin) &&
        coord_integer(json_array_get(times, json_array_size(times) - 1), &r.end))
        return r;
    return coord_experiment_range(t->call);
}

static double length_within(struct time_range r, int64_t begin, int64_t end)
{
    begin = begin > r.begin ? begin : r.begin;
    end = end < r.end ? end : r.end;
    return begin < end ? (double)((uint64_t)end - (uint64_t)begin) : 0;
}

/* Returns the mean of a share of time, weighted by the pieces' ranges. Negative: no piece has it. */
static double mean_of(const struct rotation_cells *t, const struct piece_entry *e, const char *key)
{
    struct time_range r = range_of(t);
    double busy = 0;
    int64_t begin = INT64_MAX, end = INT64_MIN;
    bool some = false;
    for (size_t i = 0; i < t->pieces->n; i++) {
        const struct coord_piece *p = &t->pieces->v[i];
        struct slice share = e->of[i].at ? member_of(e->of[i], key) : (struct slice){0};
        if (!e->of[i].at)
            continue;
        begin = p->range.begin < begin ? p->range.begin : begin;
        end = p->range.end > end ? p->range.end : end;
        if (!share.at || (!text_is_digit(*share.at) && *share.at != '-'))
            continue;
        some = true;
        busy += strtod(share.at, NULL) * length_within(r, p->range.begin, p->range.end);
    }
    double length = some ? length_within(r, begin, end) : 0;
    return !some ? -1 : length > 0 ? busy / length : 0;
}

/* ---- labels ---- */

static void put_percent(struct json *j, const char *form, double share)
{
    char text[LONGEST_SHARE];
    snprintf(text, sizeof text, form, 100 * share);
    json_write_string(j, text);
}

static void put_number(struct json *j, const struct merge_rule *r, int64_t number)
{
    struct text text = {.fd = -1};
    if (r->is_duration)
        text_duration(&text, number);
    else
        text_i64(&text, number);
    json_write_string(j, text_cstr(&text));
    text_fini(&text);
}

static void put_share(struct json *j, const struct rotation_cells *t, const struct merge_rule *r,
    const struct piece_entry *root, int64_t number)
{
    struct time_range range = range_of(t);
    double length = length_within(range, range.begin, range.end);
    int64_t all = 0;
    if (!*r->by)
        put_percent(j, "%.3f %%", (double)number / (length > 0 ? length : 1));
    else
        put_percent(j, "%.3f %%", number_of(t, root, r->by, TSP_SUM, &all) && all ? (double)number / (double)all : 0);
}

/* Computes the number of a column that is an amount. False: it is none, or no piece has the numbers. */
static bool amount_of(
    const struct rotation_cells *t, const struct merge_rule *r, const struct piece_entry *e, int64_t *number)
{
    int64_t by = 1;
    bool is_amount = r->how == TSP_SUM || r->how == TSP_MIN || r->how == TSP_MAX || r->how == TSP_SHARE,
         is_mean = r->how == TSP_MEAN && *r->by;
    if ((!is_amount && !is_mean) || r->is_range || !number_of(t, e, r->of, r->how, number) ||
        (is_mean && !number_of(t, e, r->by, TSP_SUM, &by)) || by <= 0)
        return false;
    *number /= by;
    return true;
}

/* Writes an amount. False: the column is none, or no piece has the numbers. */
static bool put_amount(struct json *j, const struct rotation_cells *t, const struct merge_rule *r,
    const struct piece_entry *e, const struct piece_entry *root)
{
    int64_t number;
    if (r->how == TSP_MEAN && !*r->by) {
        double mean = mean_of(t, e, r->of);
        if (mean >= 0)
            put_percent(j, "%.1f %%", mean);
        return mean >= 0;
    }
    if (!amount_of(t, r, e, &number))
        return false;
    if (r->how == TSP_SHARE)
        put_share(j, t, r, root, number);
    else
        put_number(j, r, number);
    return true;
}

static bool says_something(struct slice cell)
{
    return cell.at && !slice_equals(cell, "") && !slice_equals(cell, "-1");
}

/* Labels of an entry: the first meaningful text, its server, and whether another piece's text differs. */
struct chosen {
    struct slice cell[MOST_CELLS];
    const struct node *from[MOST_CELLS];
    bool differs[MOST_CELLS];
    size_t n;
};

static void choose(const struct rotation_cells *t, const struct piece_entry *e, struct chosen *c)
{
    struct slice cell[MOST_CELLS];
    *c = (struct chosen){.n = 0};
    for (size_t i = 0; i < t->pieces->n; i++) {
        if (!e->of[i].at)
            continue;
        memset(cell, 0, sizeof cell);
        size_t its = cells_of(t, i, e->of[i], cell);
        c->n = its > c->n ? its : c->n;
        for (size_t k = 0; k < its; k++) {
            bool says = says_something(cell[k]), said = says_something(c->cell[k]);
            c->differs[k] |= says && said && !slice_same_value(cell[k], c->cell[k]);
            if (c->cell[k].at && (said || !says))
                continue;
            c->cell[k] = cell[k];
            c->from[k] = t->pieces->v[i].node;
        }
    }
}

void coord_rotation_put_labels(
    struct json *j, const struct rotation_cells *t, const struct piece_entry *e, const struct piece_entry *root)
{
    static const struct merge_rule unstated;
    struct chosen c;
    struct root_sum figures;
    bool has_figures = figures_of(t, e, &figures);
    choose(t, e, &c);
    json_begin_array(j);
    for (size_t k = 0; k < c.n; k++) {
        const struct merge_rule *r = k < t->n ? &t->rule[k] : &unstated;
        if (!c.cell[k].at)
            json_write_string(j, "");
        else if (k && has_figures && coord_put_sum_label(j, &figures, r))
            continue;
        else if (k && says_something(c.cell[k]) && put_amount(j, t, r, e, root))
            continue;
        else if (k && c.differs[k] && r->how == TSP_MERGE_NONE)
            json_write_string(j, "");
        else if (k < t->n && t->timed[k])
            coord_put_time_text(j, c.from[k], c.cell[k], NULL);
        else
            slice_put(j, c.cell[k]);
    }
    json_end_array(j);
}

/* ---- metadata ---- */

/* Returns the rule for a member that columns are computed from, or that is their number. how: TSP_MERGE_NONE: no
 * rule. */
static struct merge_rule rule_of_member(const struct rotation_cells *t, struct slice key)
{
    for (size_t i = 0; i < t->n; i++) {
        struct merge_rule r = t->rule[i];
        bool whole = r.how == TSP_SUM || ((r.how == TSP_MIN || r.how == TSP_MAX) && !r.is_range);
        if ((whole || (r.how == TSP_MEAN && !*r.by)) && slice_equals(key, r.of))
            return r;
        if (r.how == TSP_MEAN && *r.by && slice_equals(key, r.key))
            return r;
        if (r.how == TSP_MEAN && *r.by && slice_equals(key, r.by)) {
            r.how = TSP_SUM;
            strcpy(r.of, r.by);
            *r.by = '\0';
            return r;
        }
    }
    return (struct merge_rule){0};
}

/* Returns whether no column states how the member is merged. Its column has no rule, or no column of the tree has
 * one. */
static bool is_unstated(const struct rotation_cells *t, struct slice key)
{
    bool some = false, unstated = false;
    for (size_t i = 0; i < t->n; i++) {
        some |= t->rule[i].how != TSP_MERGE_NONE;
        unstated |= t->rule[i].how == TSP_MERGE_NONE && slice_equals(key, t->rule[i].key);
    }
    return unstated || !some;
}

/* Returns whether pieces have different numbers there. */
static bool numbers_differ(const struct rotation_cells *t, const struct piece_entry *e, const char *name)
{
    int64_t least, most;
    return number_of(t, e, name, TSP_MIN, &least) && number_of(t, e, name, TSP_MAX, &most) && least != most;
}

static void put_member(struct json *j, const struct rotation_cells *t, const struct piece_entry *e, size_t piece,
    struct slice key, struct slice value)
{
    char name[MERGE_NAME] = "";
    struct merge_rule r = rule_of_member(t, key);
    int64_t number;
    if (key.n - 2 < sizeof name)
        memcpy(name, key.at + 1, key.n - 2);
    if (!r.how && is_unstated(t, key) && numbers_differ(t, e, name))
        return;
    slice_put_key(j, key);
    if (r.how == TSP_MEAN && !*r.by) {
        json_begin_array(j);
        json_double(j, mean_of(t, e, r.of));
        json_end_array(j);
    } else if (amount_of(t, &r, e, &number)) {
        json_begin_array(j);
        json_i64(j, number);
        json_end_array(j);
    } else if (slice_equals(key, "minimumBegin") || slice_equals(key, "maximumBegin")) {
        coord_put_time_numbers(j, t->pieces->v[piece].node, value);
    } else {
        slice_put(j, value);
    }
}

void coord_rotation_put_metadata(struct json *j, const struct rotation_cells *t, const struct piece_entry *e)
{
    struct root_sum figures;
    size_t first = 0;
    while (!e->of[first].at)
        first++;
    if (figures_of(t, e, &figures)) {
        coord_put_sum_metadata(j, &figures, slice_get(e->of[first], "metadata"));
        return;
    }
    json_begin_object(j);
    for (size_t i = first; i < t->pieces->n; i++) {
        struct slice_walk w = slice_members(e->of[i].at ? slice_get(e->of[i], "metadata") : (struct slice){0});
        for (struct slice key, value; slice_next_member(&w, &key, &value);) {
            bool written = false;
            char name[MOST_CELLS] = "";
            if (key.n - 2 < sizeof name)
                memcpy(name, key.at + 1, key.n - 2);
            for (size_t k = first; k < i && !written; k++)
                written = e->of[k].at && slice_get(slice_get(e->of[k], "metadata"), name).at;
            if (!written)
                put_member(j, t, e, i, key, value);
        }
    }
    json_end_object(j);
}

/* SPDX-License-Identifier: MIT */
/* Labels and metadata of an entry that several pieces have. Amounts are added up from the numbers in their metadata, as
 * weft's servers tell them (docs/tsp.md); of texts the first that says something is taken. */
#include <stdlib.h>
#include <string.h>

#include "coord/pieces.h"
#include "coord/sums.h"

enum { MOST_CELLS = 64, LONGEST_SHARE = 64 };

enum kind { COUNT, LARGEST, DURATION, OF_RANGE, OF_ROOT, BUSY };
/* What a label below a header says, and the member of the metadata that it is made of. */
static const struct rule {
    const char *header, *key;
    enum kind kind;
} rules[] = {{"Read", "read", COUNT}, {"Written", "written", COUNT}, {"Sent", "sent", COUNT},
    {"Received", "received", COUNT}, {"Events total", "events", COUNT}, {"Events in range", "eventsInRange", COUNT},
    {"Events", "events", COUNT}, {"Rows", "rows", LARGEST}, {"Lost", "lost", COUNT}, {"Network", "moved", COUNT},
    {"Waits", "count", COUNT}, {"Waited", "total", DURATION}, {"Waiting", "waited", DURATION},
    {"Time", "time", DURATION}, {"Busy", "cpus", BUSY}, {"Busy", "busy", DURATION}, {"Idle", "idle", DURATION},
    {"Unknown", "unknown", DURATION}, {"Running", "running", DURATION}, {"Preempted", "preempted", DURATION},
    {"Blocked", "blocked", DURATION}, {"Timer", "timer", DURATION}, {"Network", "network", DURATION},
    {"Disk", "block-device", DURATION}, {"Other", "other", DURATION}, {"%", "time", OF_RANGE},
    {"Percentage", "events", OF_ROOT}, {"Percentage in range", "eventsInRange", OF_ROOT}};
enum { N_RULES = sizeof rules / sizeof *rules };

/* ---- columns ---- */

void piece_cells_begin(struct piece_cells *t, struct coord_call *c, const struct coord_pieces *p)
{
    *t = (struct piece_cells){.call = c, .pieces = p};
    t->place = arena_alloc(c->q->arena, sizeof *t->place * (p->n + 1));
    t->n_place = arena_new(c->q->arena, size_t, p->n + 1);
    for (size_t i = 0; i < p->n; i++) {
        struct slice_walk w = slice_items(p->v[i].part ? slice_get(p->v[i].part->model, "headers") : (struct slice){0});
        bool first = !t->n;
        for (struct slice header; t->n_place[i] < MOST_CELLS && slice_next(&w, &header);) {
            struct slice name = slice_get(header, "name");
            size_t at = 0;
            while (at < t->n && !slice_same(t->header[at], name))
                at++;
            if (at == t->n && first)
                t->header[t->n++] = name;
            t->place[i][t->n_place[i]++] = (uint16_t)at;
        }
    }
}

/* The cells of one piece's entry; columns that the first piece has not are none. Trees without headers have labels as
 * they come. Returns how many there may be. */
static size_t cells_of(const struct piece_cells *t, size_t piece, struct slice entry, struct slice cell[MOST_CELLS])
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
    struct slice value = slice_get(slice_get(entry, "metadata"), key), item;
    struct slice_walk w = slice_items(value);
    return slice_is(value, '[') && slice_next(&w, &item) ? item : value;
}

/* False: no piece tells it. */
static bool sum_of(const struct piece_cells *t, const struct piece_entry *e, const char *key, int64_t *sum)
{
    bool some = false, largest = !strcmp(key, "rows"); /* the pieces have the same ones */
    int64_t v;
    *sum = 0;
    for (size_t i = 0; i < t->pieces->n; i++) {
        if (!e->of[i].at || !slice_integer(member_of(e->of[i], key), &v))
            continue;
        some = true;
        *sum = !largest ? figures_sum(*sum, v) : v > *sum ? v : *sum;
    }
    return some;
}

/* Shortest, longest, …, of durations; false: they are none. */
static bool figures_of(const struct piece_cells *t, const struct piece_entry *e, struct root_sum *s)
{
    *s = (struct root_sum){0};
    for (size_t i = 0; i < t->pieces->n; i++)
        if (e->of[i].at && !sum_add(s, t->pieces->v[i].node, slice_get(e->of[i], "metadata")))
            return false;
    return s->all.n;
}

/* What the tree is asked for. */
static struct time_range range_of(const struct piece_cells *t)
{
    json_t *range = json_object_get(t->call->parameters, "requested_timerange"),
           *times = json_object_get(t->call->parameters, "requested_times");
    struct time_range r;
    if (coord_integer(json_object_get(range, "start"), &r.begin) &&
        coord_integer(json_object_get(range, "end"), &r.end))
        return r;
    if (coord_integer(json_array_get(times, 0), &r.begin) &&
        coord_integer(json_array_get(times, json_array_size(times) - 1), &r.end))
        return r;
    return experiment_range(t->call);
}

static double length_within(struct time_range r, int64_t begin, int64_t end)
{
    begin = begin > r.begin ? begin : r.begin;
    end = end < r.end ? end : r.end;
    return begin < end ? (double)((uint64_t)end - (uint64_t)begin) : 0;
}

/* The share of a machine's time: each piece tells that of its own stretch. Negative: none does. */
static double busy_of(const struct piece_cells *t, const struct piece_entry *e)
{
    struct time_range r = range_of(t);
    double busy = 0;
    int64_t begin = INT64_MAX, end = INT64_MIN;
    bool some = false;
    for (size_t i = 0; i < t->pieces->n; i++) {
        const struct coord_piece *p = &t->pieces->v[i];
        struct slice share = e->of[i].at ? member_of(e->of[i], "busy") : (struct slice){0};
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

static void put_amount(struct json *j, const struct piece_cells *t, const struct rule *r, const struct piece_entry *e,
    const struct piece_entry *root, int64_t sum)
{
    struct text text = {.fd = -1};
    int64_t of = 0;
    switch (r->kind) {
    case COUNT:
    case LARGEST: text_i64(&text, sum); break;
    case DURATION: text_duration(&text, sum); break;
    case OF_RANGE: {
        struct time_range range = range_of(t);
        double length = length_within(range, range.begin, range.end);
        put_percent(j, "%.3f %%", (double)sum / (length > 0 ? length : 1));
        return;
    }
    case OF_ROOT: put_percent(j, "%.3f %%", sum_of(t, root, r->key, &of) && of ? (double)sum / (double)of : 0); return;
    case BUSY: put_percent(j, "%.1f %%", busy_of(t, e)); return;
    }
    json_write_string(j, text_cstr(&text));
    text_fini(&text);
}

/* The rule for a column of an entry; NULL: its label is no amount. */
static const struct rule *rule_for(
    const struct piece_cells *t, const struct piece_entry *e, struct slice header, int64_t *sum)
{
    for (size_t i = 0; i < N_RULES; i++)
        if (slice_equals(header, rules[i].header) && sum_of(t, e, rules[i].key, sum))
            return &rules[i];
    return NULL;
}

static bool says_something(struct slice cell)
{
    return cell.at && !slice_equals(cell, "") && !slice_equals(cell, "-1");
}

void piece_put_labels(
    struct json *j, const struct piece_cells *t, const struct piece_entry *e, const struct piece_entry *root)
{
    struct slice cell[MOST_CELLS] = {0}, chosen[MOST_CELLS] = {0};
    const struct node *from[MOST_CELLS] = {0};
    struct root_sum figures;
    bool has_figures = figures_of(t, e, &figures);
    size_t n = 0;
    for (size_t i = 0; i < t->pieces->n; i++) {
        if (!e->of[i].at)
            continue;
        memset(cell, 0, sizeof cell);
        size_t its = cells_of(t, i, e->of[i], cell);
        n = its > n ? its : n;
        for (size_t k = 0; k < its; k++)
            if (!chosen[k].at || (!says_something(chosen[k]) && says_something(cell[k]))) {
                chosen[k] = cell[k];
                from[k] = t->pieces->v[i].node;
            }
    }
    json_begin_array(j);
    for (size_t k = 0; k < n; k++) {
        struct slice header = k < t->n ? t->header[k] : (struct slice){0};
        int64_t sum;
        const struct rule *r;
        if (!chosen[k].at)
            json_write_string(j, "");
        else if (k && has_figures && put_sum_label(j, &figures, header))
            continue;
        else if (k && says_something(chosen[k]) && (r = rule_for(t, e, header, &sum)))
            put_amount(j, t, r, e, root, sum);
        else if (texts_are_times(header, (struct slice){0}))
            put_time_text(j, from[k], chosen[k], NULL);
        else
            put_slice(j, chosen[k]);
    }
    json_end_array(j);
}

/* ---- metadata ---- */

static bool is_amount(struct slice key)
{
    bool is = false;
    for (size_t i = 0; i < N_RULES && !is; i++)
        is = rules[i].kind != BUSY && slice_equals(key, rules[i].key);
    return is;
}

static void put_member(struct json *j, const struct piece_cells *t, const struct piece_entry *e, size_t piece,
    struct slice key, struct slice value)
{
    char name[MOST_CELLS] = "";
    int64_t sum;
    if (key.n - 2 < sizeof name)
        memcpy(name, key.at + 1, key.n - 2);
    put_slice_key(j, key);
    if (slice_equals(key, "busy") && member_of(e->of[piece], "cpus").at) {
        json_begin_array(j);
        json_double(j, busy_of(t, e));
        json_end_array(j);
    } else if (is_amount(key) && sum_of(t, e, name, &sum)) {
        json_begin_array(j);
        json_i64(j, sum);
        json_end_array(j);
    } else if (slice_equals(key, "minimumBegin") || slice_equals(key, "maximumBegin")) {
        put_time_numbers(j, t->pieces->v[piece].node, value);
    } else {
        put_slice(j, value);
    }
}

void piece_put_metadata(struct json *j, const struct piece_cells *t, const struct piece_entry *e)
{
    struct root_sum figures;
    size_t first = 0;
    while (!e->of[first].at)
        first++;
    if (figures_of(t, e, &figures)) {
        put_sum_metadata(j, &figures, slice_get(e->of[first], "metadata"));
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

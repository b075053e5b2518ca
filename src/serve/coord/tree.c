/* SPDX-License-Identifier: MIT */
/* Trees: the entries of all servers, one after the other, below common headers. */
#include <string.h>

#include "coord/counts.h"
#include "coord/entries.h"
#include "coord/groups.h"
#include "coord/merge.h"
#include "coord/model_cache.h"
#include "coord/numbering.h"
#include "coord/rotation.h"
#include "coord/sums.h"
#include "coord/times.h"
#include "coord/totals.h"
#include "coord/tree.h"

enum { MAX_HEADERS = 256, SEVERAL = UINT16_MAX };

/* Columns of all servers, and their places on each of them. */
struct headers {
    struct slice v[MAX_HEADERS]; /* objects */
    size_t place[MAX_HEADERS];   /* place in the list of the first server that has it */
    bool timed[MAX_HEADERS];     /* labels in it are times */
    bool some_timed;
    size_t n;
};

/* Takes a server's columns. places: their indices among those of all. */
static size_t take_headers(const struct coord_call *c, struct headers *h, struct slice list, uint16_t *places)
{
    struct slice_walk w = slice_items(list);
    size_t n = 0;
    for (struct slice header; n < MAX_HEADERS && slice_next(&w, &header); n++) {
        size_t at = coord_merge_find_column(h->v, h->n, header);
        if (at == h->n && h->n < MAX_HEADERS) {
            h->place[h->n] = n;
            h->timed[h->n] = coord_merge_is_time(c->request.arg[1], header, n);
            h->some_timed |= h->timed[h->n];
            h->v[h->n++] = header;
        }
        places[n] = (uint16_t)at;
    }
    return n;
}

struct tree {
    struct headers headers;
    struct sums sums;
    struct coord_totals totals;
    struct group_numbers numbering; /* numbers of roots; n 0: none */
    struct map roots;               /* first labels of roots, by hash -> their part, or SEVERAL */
    struct {
        uint16_t *place;
        size_t n;
    } * of;      /* columns by part */
    bool counts; /* entries of all servers are one, of counts that are added up */
    bool has_start;
    int64_t start; /* start of the first entry, from which clients count */
};

static bool same_places(const struct tree *t, size_t part)
{
    bool same = t->of[part].n == t->headers.n;
    for (size_t i = 0; i < t->of[part].n && same; i++)
        same = t->of[part].place[i] == i;
    return same;
}

static struct slice first_label(struct slice labels)
{
    struct slice_walk w = slice_items(labels);
    struct slice label = {0};
    return slice_next(&w, &label) && slice_is(label, '"') ? label : (struct slice){0};
}

static void note_roots(struct tree *t, size_t part, struct slice entries)
{
    struct slice_walk w = slice_items(entries);
    for (struct slice e; slice_next(&w, &e);) {
        struct slice label = first_label(slice_get(e, "labels"));
        bool fresh;
        if (!label.at || !coord_entry_is_root(e))
            continue;
        uint64_t *at = map_put(&t->roots, map_hash(label.at, label.n), &fresh);
        *at = fresh || *at == part ? part : SEVERAL;
    }
}

static bool is_ambiguous(const struct tree *t, struct slice label)
{
    const uint64_t *at = label.at ? map_find(&t->roots, map_hash(label.at, label.n)) : NULL;
    return at && *at == SEVERAL;
}

/* Writes the label of a root that several servers have, with its server: "db/Total". */
static void put_root_label(struct json *j, const struct node *n, struct slice label)
{
    json_before_value(j);
    json_quote(j->out, n->is->name, strlen(n->is->name));
    j->out->v[j->out->n - 1] = '/';
    text_put(j->out, label.at + 1, label.n - 1);
}

static void put_number(struct json *j, int64_t number)
{
    json_before_value(j);
    text_putc(j->out, '"');
    text_i64(j->out, number);
    text_putc(j->out, '"');
}

static void look_through(struct coord_answers *f, struct tree *t)
{
    struct arena *a = f->call->arena;
    t->of = arena_alloc(a, sizeof *t->of * (f->n + 1));
    for (size_t i = 0; i < f->n; i++) {
        struct coord_answer *p = &f->v[i];
        struct slice first, entries = slice_get(p->model, "entries");
        struct slice_walk w = slice_items(entries);
        int64_t start;
        if (p->model.at && !slice_is(entries, '['))
            coord_answer_spoil(f, p, "its tree has no entries");
        if (!t->counts)
            note_roots(t, i, entries);
        t->of[i].place = arena_new(a, uint16_t, MAX_HEADERS);
        t->of[i].n = take_headers(f->call, &t->headers, slice_get(p->model, "headers"), t->of[i].place);
        if (slice_next(&w, &first) && slice_integer(slice_get(first, "start"), &start)) {
            start = coord_time_shown(p->node, start);
            t->start = t->has_start && t->start < start ? t->start : start;
            t->has_start = true;
        }
    }
}

/* Collects sums. Roots that state it are sums over machines, even if only one server has any. They are added up if all
 * servers that have one state it, and report the numbers. */
static void add_up(struct coord_answers *f, struct tree *t)
{
    const bool several = coord_machines_several(f->call);
    t->sums.parts = f->n;
    for (size_t i = 0; i < f->n; i++) {
        struct slice_walk w = slice_items(slice_get(f->v[i].model, "entries"));
        for (struct slice e; slice_next(&w, &e);) {
            struct slice label = first_label(slice_get(e, "labels"));
            if (coord_entry_is_root(e) && (is_ambiguous(t, label) || (several && coord_merge_stated(e) == TSP_SUM)))
                coord_sums_take(&t->sums, f->call, f->v[i].node, i, e);
        }
    }
}

/* Changes of a server's entry. named: the server's name stands before the first label; sum: its sum; number: its
 * number, in the column "group", or as the first label. */
struct change {
    bool named;
    const struct root_sum *sum;
    int64_t number;
};

/* Returns the column with the number of a root. */
static size_t group_column(const struct tree *t, size_t first)
{
    size_t i = 0;
    while (i < t->headers.n && !coord_merge_has_key(t->headers.v[i], "group"))
        i++;
    return i < t->headers.n ? i : first;
}

/* Writes a figure of a sum. Other labels are empty if the sum is of several servers. False: the server's own label is
 * used. */
static bool put_figure(
    const struct coord_call *c, struct json *j, const struct tree *t, const struct root_sum *sum, size_t header)
{
    struct merge_rule r = coord_merge_rule_of(c->request.arg[1], t->headers.v[header], t->headers.place[header]);
    if (coord_put_sum_label(j, sum, &r))
        return true;
    if (sum->parts > 1)
        json_write_string(j, "");
    return sum->parts > 1;
}

/* Writes labels below their headers. */
static void put_labels(const struct coord_call *c, struct json *j, const struct tree *t, size_t part,
    struct slice labels, const struct node *n, const struct change *as)
{
    struct slice cell[MAX_HEADERS] = {0}, label;
    struct slice_walk w = slice_items(labels);
    size_t given = 0;
    for (; given < MAX_HEADERS && slice_next(&w, &label); given++) {
        size_t place = given < t->of[part].n ? t->of[part].place[given]
                                             : given; /* trees without headers have labels in order */
        if (place < MAX_HEADERS)
            cell[place] = label;
    }
    const size_t first = t->of[part].n ? t->of[part].place[0] : 0, group = group_column(t, first);
    json_begin_array(j);
    for (size_t i = 0; i < (t->headers.n ? t->headers.n : given); i++)
        if (as->number && i == group)
            put_number(j, as->number);
        else if (as->named && i == first && slice_is(cell[i], '"'))
            put_root_label(j, n, cell[i]);
        else if (as->sum && i < t->headers.n && i != first && put_figure(c, j, t, as->sum, i))
            continue;
        else if (cell[i].at && i < t->headers.n && t->headers.timed[i])
            coord_put_time_text(j, n, cell[i], NULL);
        else if (cell[i].at)
            slice_put(j, cell[i]);
        else
            json_write_string(j, "");
    json_end_array(j);
}

/* Writes metadata, the numbers behind labels. */
static void put_metadata(struct json *j, const struct node *n, struct slice metadata)
{
    struct slice_walk w = slice_members(metadata);
    json_begin_object(j);
    for (struct slice key, value; slice_next_member(&w, &key, &value);) {
        slice_put_key(j, key);
        if (slice_equals(key, "minimumBegin") || slice_equals(key, "maximumBegin"))
            coord_put_time_numbers(j, n, value);
        else
            slice_put(j, value);
    }
    json_end_object(j);
}

/* Writes an entry. number: its number; 0: none. */
static void put_entry(struct coord_call *c, struct json *j, const struct tree *t, const struct coord_answer *p,
    size_t part, struct slice entry, bool first, int64_t number)
{
    struct slice_walk w = slice_members(entry);
    const struct root_sum *sum = coord_sum_of(&t->sums, part, slice_get(entry, "id")),
                          *above = coord_sum_of(&t->sums, part, slice_get(entry, "parentId"));
    bool ambiguous = !sum && !number && coord_entry_is_root(entry) &&
        is_ambiguous(t, first_label(slice_get(entry, "labels")));
    struct change as = {above || ambiguous, sum, number};
    bool same = !as.named && !sum && !number && same_places(t, part) && !(t->headers.some_timed && p->node->is->clock);
    int64_t own;
    json_begin_object(j);
    for (struct slice key, value; slice_next_member(&w, &key, &value);) {
        slice_put_key(j, key);
        if (above && slice_equals(key, "parentId"))
            json_i64(j, above->id);
        else if ((slice_equals(key, "id") || slice_equals(key, "parentId")) && slice_integer(value, &own))
            json_i64(j, coord_id(c, p->node, own));
        else if (slice_equals(key, "labels") && !same)
            put_labels(c, j, t, part, value, p->node, &as);
        else if (first && t->has_start && slice_equals(key, "start"))
            json_i64(j, t->start);
        else if (t->totals.name && slice_equals(key, "isDefault"))
            json_bool(j, false); /* sums over servers are shown first */
        else if (slice_equals(key, "metadata") && sum)
            coord_put_sum_metadata(j, sum, value);
        else if (slice_equals(key, "metadata") && number)
            coord_put_number_metadata(j, p->node, number, value);
        else if (slice_equals(key, "metadata") && p->node->is->clock && slice_is(value, '{'))
            put_metadata(j, p->node, value);
        else if (!coord_put_times(c, j, p->node, entry, key, value))
            slice_put(j, value);
    }
    json_end_object(j);
}

static void put_entries(struct coord_answers *f, struct json *j, const struct tree *t)
{
    bool first = true;
    json_begin_array(j);
    coord_put_totals(j, &t->totals, t->headers.n);
    for (size_t i = 0; i < t->numbering.n; i++) {
        const struct numbered *g = &t->numbering.v[i];
        const struct coord_answer *p = &f->v[g->part];
        put_entry(f->call, j, t, p, g->part, g->entry, false, (int64_t)i + 1);
        for (size_t k = 0; k < g->n_below; k++)
            put_entry(f->call, j, t, p, g->part, g->below[k], false, 0);
    }
    for (size_t i = 0; i < f->n && !t->numbering.n; i++) {
        struct slice_walk w = slice_items(slice_get(f->v[i].model, "entries"));
        if (!first && t->counts)
            break; /* entry stands for all */
        for (struct slice e; slice_next(&w, &e);) {
            const struct root_sum *sum = coord_sum_of(&t->sums, i, slice_get(e, "id"));
            if ((sum && sum->first != i) || coord_totals_replace(&t->totals, i, slice_get(e, "id")))
                continue; /* written already */
            put_entry(f->call, j, t, &f->v[i], i, e, first, 0);
            first = false;
        }
    }
    json_end_array(j);
}

/* Writes other members of the models: those of the first one. */
static void put_rest(const struct coord_answers *f, struct json *j)
{
    for (size_t i = 0; i < f->n; i++) {
        struct slice_walk w = slice_members(f->v[i].model);
        for (struct slice key, value; slice_next_member(&w, &key, &value);)
            if (!slice_equals(key, "headers") && !slice_equals(key, "entries")) {
                slice_put_key(j, key);
                slice_put(j, value);
            }
        if (f->v[i].model.at)
            return;
    }
}

static struct slice *models_of(const struct coord_answers *f)
{
    struct slice *models = arena_new(f->call->arena, struct slice, f->n + 1);
    for (size_t i = 0; i < f->n; i++)
        models[i] = f->v[i].model;
    return models;
}

static void find_totals(struct coord_answers *f, struct tree *t)
{
    const struct slice *models = models_of(f);
    coord_totals_find(f->call, models, &t->totals);
    for (size_t i = 0; t->totals.name && i < f->n; i++)
        if (models[i].at)
            coord_model_note(f->call, f->v[i].node, models[i]);
}

static void put_tree(struct coord_answers *f, struct json *j, struct tree *t)
{
    if (!coord_numbering_take(f, &t->numbering)) {
        add_up(f, t);
        find_totals(f, t);
    }
    json_begin_object(j);
    json_key(j, "headers");
    json_begin_array(j);
    for (size_t i = 0; i < t->headers.n; i++)
        slice_put(j, t->headers.v[i]);
    json_end_array(j);
    json_key(j, "entries");
    put_entries(f, j, t);
    put_rest(f, j);
    json_end_object(j);
    coord_sums_fini(&t->sums);
    coord_totals_fini(&t->totals);
}

void coord_merge_tree(struct coord_answers *f, struct json *j)
{
    struct tree t = {0};
    coord_rotation_fold_tree(f);
    coord_groups_add_tree(f);
    t.counts = strstr(f->call->request.path, "/genericXY/") && coord_counts_are_stated(models_of(f), f->n);
    look_through(f, &t);
    if (coord_answers_some(f))
        put_tree(f, j, &t);
    else
        json_write_null(j);
    map_fini(&t.roots);
}

/* SPDX-License-Identifier: MIT */
#include "coord/entries.h"
#include "coord/group_lines.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/figures.h"
#include "base/search.h"
#include "base/time.h"
#include "coord/merge.h"

/* Outputs, and the lines below each machine. */
enum { OUTPUTS = 2, MOST_LINES = 3 };
static const struct output {
    const char *id;
    struct {
        const char *key, *name; /* key in machines' entries; name in groups */
    } lines[MOST_LINES];
} outputs[OUTPUTS] = {{"weft.summary", {{"cpus", "CPUs"}, {"threads", "Threads"}}},
    {"weft.summary.cpu", {{"minimum", "Minimum"}, {"mean", "Mean"}, {"maximum", "Maximum"}}}};
enum { LEAST, MEAN, MOST };

int coord_group_output(const struct coord_call *c)
{
    for (int i = 0; i < OUTPUTS && c->c->n_groups; i++)
        if (c->request.arg[1] && !strcmp(c->request.arg[1], outputs[i].id))
            return i;
    return -1;
}

int64_t coord_group_own_id(int output, size_t line)
{
    return output * (MOST_LINES + 1) + (int64_t)line;
}

bool coord_group_has(const struct coord_group *g, const struct node *machine)
{
    bool in = false;
    for (size_t i = 0; i < g->members.n && !in; i++)
        in = !strcmp(g->members.v[i].server, machine->is->name) ||
            (coord_is_pattern(g->members.v[i].server) && !fnmatch(g->members.v[i].server, machine->is->name, 0));
    return in;
}

const struct coord_group *coord_group_config(const struct coord_call *c, size_t group)
{
    return &c->c->o.config->groups.v[group];
}

double coord_machine_weight(const struct node *machine)
{
    return machine->is->weight > 0 ? machine->is->weight : 1;
}

/* Returns the index of a machine's line that an entry is; MOST_LINES: none. */
static size_t line_of(int output, struct slice entry)
{
    int64_t parent;
    size_t i = 0;
    if (!slice_integer(slice_get(entry, "parentId"), &parent) || parent < 0)
        return MOST_LINES;
    while (
        i < MOST_LINES && (!outputs[output].lines[i].key || !coord_merge_has_key(entry, outputs[output].lines[i].key)))
        i++;
    return i;
}

static void add_part(struct coord_answers *f, struct node *node, struct text *t)
{
    f->v[f->n++] = (struct coord_answer){
        .node = node, .fate = COORD_GOOD, .model = {arena_strndup(f->call->arena, t->v, t->n), t->n}};
    text_fini(t);
}

/* ---- trees ---- */

/* Content of a group's entry. */
struct entries {
    struct slice first;
    int64_t begin, end, rows;
    bool timed, counted;
};

static void take_entry(struct entries *e, const struct node *n, struct slice entry)
{
    struct slice rows = slice_get(slice_get(entry, "metadata"), "rows"), item;
    struct slice_walk w = slice_items(rows);
    int64_t begin, end, count;
    if (slice_integer(slice_get(entry, "start"), &begin) && slice_integer(slice_get(entry, "end"), &end)) {
        begin = coord_time_shown(n, begin);
        end = coord_time_shown(n, end);
        e->begin = !e->timed || begin < e->begin ? begin : e->begin;
        e->end = !e->timed || end > e->end ? end : e->end;
        e->timed = true;
    }
    if (slice_next(&w, &item) && slice_integer(item, &count)) {
        e->rows = figures_sum(e->rows, count);
        e->counted = true;
    }
    e->first = e->first.at ? e->first : entry;
}

/* Writes the name, and the number of rows if machines report it. */
static void put_labels(struct json *j, const struct entries *e, struct slice labels, const char *name)
{
    struct slice_walk w = slice_items(labels);
    bool first = true;
    char rows[24];
    snprintf(rows, sizeof rows, "%lld", (long long)e->rows);
    json_begin_array(j);
    for (struct slice label; slice_next(&w, &label); first = false)
        if (first)
            json_write_string(j, name);
        else if (e->counted)
            json_write_string(j, rows);
        else
            slice_put(j, label);
    json_end_array(j);
}

static void put_rows_number(struct json *j, int64_t rows)
{
    json_key(j, "metadata");
    json_begin_object(j);
    json_key(j, "rows");
    json_begin_array(j);
    json_i64(j, rows);
    json_end_array(j);
    json_end_object(j);
}

static void put_entry(struct json *j, const struct entries *e, int64_t id, int64_t parent, const char *name)
{
    struct slice_walk w = slice_members(e->first);
    json_begin_object(j);
    for (struct slice key, value; slice_next_member(&w, &key, &value);) {
        if (slice_equals(key, "metadata"))
            continue;
        slice_put_key(j, key);
        if (slice_equals(key, "id"))
            json_i64(j, id);
        else if (slice_equals(key, "parentId"))
            json_i64(j, parent);
        else if (slice_equals(key, "start") && e->timed)
            json_i64(j, e->begin);
        else if (slice_equals(key, "end") && e->timed)
            json_i64(j, e->end);
        else if (slice_equals(key, "labels"))
            put_labels(j, e, value, name);
        else
            slice_put(j, value);
    }
    if (e->counted)
        put_rows_number(j, e->rows);
    json_end_object(j);
}

static void add_tree(struct coord_answers *f, size_t parts, int output, size_t group)
{
    struct entries root = {0}, line[MOST_LINES] = {0};
    struct slice headers = {0};
    struct text t = {.fd = -1};
    struct json j = JSON_TO(&t);
    for (size_t i = 0; i < parts; i++) {
        const struct coord_answer *p = &f->v[i];
        struct slice_walk w = slice_items(slice_get(p->model, "entries"));
        for (struct slice e; coord_group_has(coord_group_config(f->call, group), p->node) && slice_next(&w, &e);) {
            size_t what = line_of(output, e);
            take_entry(what < MOST_LINES ? &line[what] : &root, p->node, e);
            headers = slice_get(p->model, "headers");
        }
    }
    if (!root.first.at)
        return;
    root.counted = false;
    json_begin_object(&j);
    json_key(&j, "headers");
    slice_put(&j, headers.at ? headers : (struct slice){"[]", 2});
    json_key(&j, "entries");
    json_begin_array(&j);
    put_entry(&j, &root, coord_group_own_id(output, 0), -1, coord_group_config(f->call, group)->name);
    for (size_t i = 0; i < MOST_LINES; i++)
        if (line[i].first.at)
            put_entry(&j, &line[i], coord_group_own_id(output, 1 + i), coord_group_own_id(output, 0),
                outputs[output].lines[i].name);
    json_end_array(&j);
    json_end_object(&j);
    add_part(f, &f->call->c->groups[group].self, &t);
}

void coord_groups_add_tree(struct coord_answers *f)
{
    int output = coord_group_output(f->call);
    const size_t parts = f->n;
    for (size_t g = 0; output >= 0 && g < f->call->c->n_groups; g++)
        add_tree(f, parts, output, g);
}

/* ---- asking ---- */

/* Finds the machines' lines in their current trees. False: the client is gone. */
static bool find_lines(struct coord_call *c, int output, struct group_lines *lines)
{
    VEC(struct machine_line) found = {0};
    struct coord_answers f;
    bool good = coord_trees_ask(&f, c);
    for (size_t i = 0; good && i < f.n; i++) {
        struct slice_walk w = slice_items(slice_get(f.v[i].model, "entries"));
        int64_t own;
        for (struct slice e; slice_next(&w, &e);) {
            size_t what = line_of(output, e);
            if (what < MOST_LINES && slice_integer(slice_get(e, "id"), &own) && own >= 0)
                vec_push(&found,
                    ((struct machine_line){.id = coord_id(c, f.v[i].node, own), .what = what, .machine = f.v[i].node}));
        }
    }
    coord_gather_end(&f);
    lines->v = arena_new(c->arena, struct machine_line, found.n + 1);
    if (found.n)
        memcpy(lines->v, found.v, found.n * sizeof *found.v);
    lines->n = found.n;
    vec_free(&found);
    return good;
}

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

void coord_group_lines_asked(struct coord_call *c, int output, struct group_lines *lines, json_t *rest)
{
    json_t *list = json_object_get(c->request.parameters, "requested_items"), *item;
    size_t i;
    for (size_t g = 0; g < c->c->n_groups; g++)
        for (i = 0; i <= MOST_LINES; i++)
            coord_id(c, &c->c->groups[g].self, coord_group_own_id(output, i)); /* known even without a tree request */
    lines->asked = arena_new(c->arena, struct group_asked, json_array_size(list) + 1);
    json_array_foreach (list, i, item) {
        uint64_t server = 0;
        int64_t own = 0;
        bool is_group = false,
             known = json_is_integer(item) && coord_id_owner(c->c->ids, json_integer_value(item), &server, &own);
        known = known && own >= 0 && own < coord_group_own_id(OUTPUTS, 0); /* excludes a node with a group's name */
        for (size_t g = 0; known && g < c->c->n_groups && !is_group; g++) {
            is_group = coord_node_key(&c->request, &c->c->groups[g].self) == server;
            if (is_group && own > coord_group_own_id(output, 0) && own <= coord_group_own_id(output, MOST_LINES))
                lines->asked[lines->n_asked++] = (struct group_asked){g, (size_t)(own - coord_group_own_id(output, 1))};
        }
        if (!is_group)
            json_array_append(rest, item);
    }
}

bool coord_groups_ask(struct coord_call *c)
{
    int output = coord_group_output(c);
    struct group_lines *lines = arena_new(c->arena, struct group_lines, 1);
    json_t *items = json_array();
    if (output >= 0)
        coord_group_lines_asked(c, output, lines, items);
    if (!lines->n_asked) {
        json_decref(items);
        return true;
    }
    struct map given = {0};
    json_t *item;
    size_t i;
    json_array_foreach (items, i, item)
        map_put(&given, (uint64_t)json_integer_value(item), NULL);
    bool good = find_lines(c, output, lines);
    lines->hidden = arena_new(c->arena, int64_t, lines->n + 1);
    for (i = 0; i < lines->n; i++) {
        const struct machine_line *l = &lines->v[i];
        bool wanted = false;
        for (size_t k = 0; k < lines->n_asked && !wanted; k++)
            wanted = lines->asked[k].what == l->what &&
                coord_group_has(coord_group_config(c, lines->asked[k].group), l->machine);
        if (!wanted || map_find(&given, (uint64_t)l->id))
            continue;
        json_array_append_new(items, json_integer(l->id));
        lines->hidden[lines->n_hidden++] = l->id;
    }
    qsort(lines->hidden, lines->n_hidden, sizeof *lines->hidden, by_number);
    json_object_set_new(c->request.parameters, "requested_items", items);
    map_fini(&given);
    c->question.lines = lines;
    return good;
}

bool coord_groups_hide(const struct coord_call *c, int64_t id)
{
    const struct group_lines *l = c->question.lines;
    size_t at = l ? search_first(i, 0, l->n_hidden, l->hidden[i] >= id) : 0;
    return l && at < l->n_hidden && l->hidden[at] == id;
}

/* ---- rows ---- */

void coord_group_lines_take(struct coord_answers *f, const char *array, const char *id)
{
    struct group_lines *lines = f->call->question.lines;
    struct map by_id = {0};
    for (size_t i = 0; i < lines->n; i++)
        *map_put(&by_id, (uint64_t)lines->v[i].id, NULL) = i;
    for (size_t i = 0; i < f->n; i++) {
        struct slice_walk w = slice_items(slice_get(f->v[i].model, array));
        int64_t own;
        for (struct slice row; slice_next(&w, &row);) {
            const uint64_t *at = slice_integer(slice_get(row, id), &own)
                ? map_find(&by_id, (uint64_t)coord_id(f->call, f->v[i].node, own))
                : NULL;
            if (at)
                lines->v[*at].row = row;
        }
    }
    map_fini(&by_id);
}

bool coord_group_line_counts(const struct coord_call *c, const struct machine_line *l, const struct group_asked *a)
{
    return l->row.at && l->what == a->what && coord_group_has(coord_group_config(c, a->group), l->machine);
}

void coord_group_lines_add(struct coord_answers *f, const char *array, const char *id, put_line *put)
{
    const struct group_lines *lines = f->call->question.lines;
    const size_t groups = f->call->c->n_groups;
    coord_group_lines_take(f, array, id);
    for (size_t g = 0; g < groups; g++) {
        struct text t = {.fd = -1};
        struct json j = JSON_TO(&t);
        size_t some = 0;
        json_begin_object(&j);
        json_key(&j, array);
        json_begin_array(&j);
        for (size_t i = 0; i < lines->n_asked; i++)
            if (lines->asked[i].group == g) {
                put(f->call, &j, &lines->asked[i]);
                some++;
            }
        json_end_array(&j);
        json_end_object(&j);
        if (some)
            add_part(f, &f->call->c->groups[g].self, &t);
        else
            text_fini(&t);
    }
}

/* ---- minimum, mean, maximum ---- */

struct machine_curve {
    const struct node *machine;
    struct slice_walk x, y;
    int64_t at;
    struct slice value;
    bool some;
};

static void next_point(const struct coord_call *c, struct machine_curve *s)
{
    struct slice x;
    s->some = slice_next(&s->x, &x) && slice_next(&s->y, &s->value) && slice_integer(x, &s->at);
    if (s->some)
        s->at = coord_sample_shown(c, s->machine, s->at);
}

/* Merges all curves at the next time of any of them; false: there is none. */
static bool join_point(
    const struct coord_call *c, struct machine_curve *s, size_t n, size_t what, int64_t *t, double *out)
{
    double sum = 0, weight = 0, least = 0, most = 0;
    *t = INT64_MAX;
    bool some = false;
    for (size_t i = 0; i < n; i++) {
        some |= s[i].some;
        *t = s[i].some && s[i].at < *t ? s[i].at : *t;
    }
    for (size_t i = 0; i < n; i++) {
        if (!s[i].some || s[i].at != *t)
            continue;
        double y, w = coord_machine_weight(s[i].machine);
        if (slice_number(s[i].value, &y)) {
            least = weight > 0 && least < y ? least : y;
            most = weight > 0 && most > y ? most : y;
            sum += w * y;
            weight += w;
        }
        next_point(c, &s[i]);
    }
    *out = what == LEAST ? least : what == MOST ? most : weight > 0 ? sum / weight : 0;
    return some;
}

static void put_curve(struct coord_call *c, struct json *j, const struct group_asked *a)
{
    const struct group_lines *lines = c->question.lines;
    struct machine_curve *s = arena_new(c->arena, struct machine_curve, lines->n + 1);
    struct text x = {.fd = -1}, y = {.fd = -1};
    struct json jx = JSON_TO(&x), jy = JSON_TO(&y);
    struct slice first = {0};
    size_t n = 0;
    int64_t t;
    double v;
    for (size_t i = 0; i < lines->n; i++) {
        const struct machine_line *l = &lines->v[i];
        if (!coord_group_line_counts(c, l, a))
            continue;
        first = first.at ? first : l->row;
        s[n] = (struct machine_curve){.machine = l->machine,
            .x = slice_items(slice_get(l->row, "xValues")),
            .y = slice_items(slice_get(l->row, "yValues"))};
        next_point(c, &s[n++]);
    }
    if (!first.at)
        return;
    json_begin_array(&jx);
    json_begin_array(&jy);
    while (join_point(c, s, n, a->what, &t, &v)) {
        json_i64(&jx, t);
        json_double(&jy, v);
    }
    json_end_array(&jx);
    json_end_array(&jy);
    coord_put_series_like(j, first, coord_group_own_id(OUTPUT_SERIES, 1 + a->what),
        arena_printf(
            c->arena, "%s: %s", coord_group_config(c, a->group)->name, outputs[OUTPUT_SERIES].lines[a->what].name),
        &x, &y);
    text_fini(&x);
    text_fini(&y);
}

void coord_groups_add_series(struct coord_answers *f)
{
    if (f->call->question.lines)
        coord_group_lines_add(f, "series", "seriesId", put_curve);
}

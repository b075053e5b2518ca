/* SPDX-License-Identifier: MIT */
/* Lines of groups of machines that are states: the dominant state of their machines. */
#include <string.h>

#include "base/time.h"
#include "coord/group_lines.h"

enum { MOST_LOOKS = 64 };

/* ---- dominant states ---- */

/* Walk over a machine's states, forward in time. */
struct states {
    const struct node *machine;
    struct slice_walk w;
    struct slice at;
    int64_t begin, end;
    bool some;
};

static void next_state(struct states *s)
{
    do
        s->some = slice_next(&s->w, &s->at);
    while (s->some &&
        (!slice_integer(slice_get(s->at, "start"), &s->begin) || !slice_integer(slice_get(s->at, "end"), &s->end)));
    if (s->some) {
        s->begin = coord_time_shown(s->machine, s->begin);
        s->end = coord_time_shown(s->machine, s->end);
    }
}

/* Returns the style at a time that the walk has reached; at NULL: none. */
static struct slice style_at(const struct states *s, int64_t t)
{
    struct slice style = s->some && s->begin <= t ? slice_get(s->at, "style") : (struct slice){0};
    return slice_is(style, '{') ? style : (struct slice){0};
}

/* Style shown by some machines at a time, in the order of their first one. */
struct look {
    struct slice style;
    double weight;
    size_t machines;
};

/* Returns whether styles are equal in value, whatever their servers' notation. Large ones are compared by bytes
 * only. */
static bool same_style(struct slice a, struct slice b)
{
    enum { LARGE = 4096 };
    return slice_same(a, b) || (a.n <= LARGE && b.n <= LARGE && slice_same_value(a, b));
}

/* Returns the index of a style among the looks; looks: none. Compares bytes first, since most servers' notations are
 * equal. */
static size_t find_look(const struct look *look, size_t looks, struct slice style)
{
    for (size_t k = 0; k < looks; k++)
        if (slice_same(look[k].style, style))
            return k;
    for (size_t k = 0; k < looks; k++)
        if (same_style(look[k].style, style))
            return k;
    return looks;
}

/* Returns the number of looks. */
static size_t looks_at(struct states *s, size_t n, int64_t t, struct look look[MOST_LOOKS])
{
    size_t looks = 0;
    for (size_t i = 0; i < n; i++) {
        while (s[i].some && s[i].end <= t)
            next_state(&s[i]);
        struct slice style = style_at(&s[i], t);
        if (!style.at)
            continue;
        size_t k = find_look(look, looks, style);
        if (k == MOST_LOOKS)
            continue;
        if (k == looks)
            look[looks++] = (struct look){.style = style};
        look[k].weight += coord_machine_weight(s[i].machine);
        look[k].machines++;
    }
    return looks;
}

/* Returns the index of the look with the most weight; the first one of equal ones. */
static size_t heaviest(const struct look *look, size_t looks)
{
    size_t best = 0;
    for (size_t k = 1; k < looks; k++)
        best = look[k].weight > look[best].weight ? k : best;
    return best;
}

/* Returns the dominant style; at NULL: no machine shows one. */
static struct slice dominant(struct states *s, size_t n, int64_t t)
{
    struct look look[MOST_LOOKS];
    size_t looks = looks_at(s, n, t, look);
    return looks ? look[heaviest(look, looks)].style : (struct slice){0};
}

/* Begins the walks over the states of the group's machines. Returns their number. */
static size_t states_begin(const struct coord_call *c, const struct group_asked *a, struct states **out)
{
    const struct group_lines *lines = c->question.lines;
    struct states *s = arena_new(c->arena, struct states, lines->n + 1);
    size_t n = 0;
    for (size_t i = 0; i < lines->n; i++) {
        if (!coord_group_line_counts(c, &lines->v[i], a))
            continue;
        struct slice states = slice_get(lines->v[i].row, "states");
        s[n] = (struct states){.machine = lines->v[i].machine, .w = slice_items(states)};
        next_state(&s[n++]);
    }
    *out = s;
    return n;
}

static void put_state(struct json *j, int64_t begin, int64_t end, struct slice style)
{
    if (!style.at || begin >= end)
        return;
    json_begin_object(j);
    json_kv_i64(j, "start", begin);
    json_kv_i64(j, "end", end);
    json_key(j, "style");
    slice_put(j, style);
    json_end_object(j);
}

static void put_dominant(struct coord_call *c, struct json *j, const struct group_asked *a)
{
    struct states *s;
    struct slice now = {0};
    int64_t begin = 0, last = INT64_MIN;
    size_t samples, n = states_begin(c, a, &s);
    const int64_t *times = coord_samples(&c->request, &samples);
    json_begin_object(j);
    json_kv_i64(j, "entryId", coord_group_own_id(OUTPUT_STATES, 1 + a->what));
    json_key(j, "states");
    json_begin_array(j);
    for (size_t i = 0; i < samples; i++) {
        struct slice next = dominant(s, n, times[i]);
        if (i && (!next.at || !now.at ? next.at != now.at : !same_style(next, now))) {
            put_state(j, begin, times[i], now);
            now = (struct slice){0};
        }
        begin = now.at ? begin : times[i];
        now = next;
        for (size_t k = 0; i + 1 == samples && k < n; k++)
            last = s[k].some && s[k].end > last ? s[k].end : last;
    }
    if (samples)
        put_state(j, begin, last > times[samples - 1] ? last : time_after(times[samples - 1]), now);
    json_end_array(j);
    json_end_object(j);
}

void coord_groups_add_states(struct coord_answers *f)
{
    if (f->call->question.lines)
        coord_group_lines_add(f, "rows", "entryId", put_dominant);
}

/* ---- tooltips: parts of a state ---- */

bool coord_groups_point(struct coord_call *c)
{
    struct group_lines lines = {0};
    const json_t *element = json_object_get(c->request.parameters, "requested_element");
    int64_t t;
    if (coord_group_output(c) != OUTPUT_STATES)
        return false;
    json_t *rest = json_array();
    coord_group_lines_asked(c, OUTPUT_STATES, &lines, rest);
    json_decref(rest);
    if (!lines.n_asked ||
        (!coord_integer(json_array_get(json_object_get(c->request.parameters, "requested_times"), 0), &t) &&
            !coord_integer(json_object_get(element, "time"), &t)))
        return false;
    json_object_del(c->request.parameters, "requested_element");
    json_object_del(c->request.parameters, "requested_times");
    json_object_set_new(c->request.parameters, "requested_timerange",
        json_pack("{s:I, s:I, s:i}", "start", (json_int_t)t, "end", (json_int_t)time_after(t), "nbTimes", 2));
    return true;
}

static void put_look(struct coord_call *c, struct json *j, const struct look *l)
{
    const char *key = slice_string(slice_get(l->style, "parentKey"), c->arena);
    const char *machines = arena_printf(c->arena, "%zu machine%s", l->machines, l->machines == 1 ? "" : "s");
    if (l->weight != (double)l->machines)
        machines = arena_printf(c->arena, "%s, weight %g", machines, l->weight);
    json_kv_string(j, key && *key ? key : "?", machines);
}

/* Returns why a machine shows nothing: the reason it is missing, or that it has no data for that time. */
static const char *why_silent(const struct coord_call *c, const struct node *machine)
{
    for (size_t i = 0; i < c->outcome.missing.n; i++) {
        const struct node *missing = c->outcome.missing.v[i].server;
        if (missing && (missing == machine || (missing->rotation && &missing->rotation->self == machine)))
            return c->outcome.missing.v[i].why;
    }
    return "shows nothing then";
}

static bool shows_something(const struct states *s, size_t n, const struct node *machine, int64_t t)
{
    for (size_t i = 0; i < n; i++)
        if (s[i].machine == machine && style_at(&s[i], t).at)
            return true;
    return false;
}

/* Writes how many of the group's machines are counted, and which are not. s: walks up to the time. */
static void put_machines(
    struct coord_call *c, struct json *j, const struct group_asked *a, const struct states *s, size_t n, int64_t t)
{
    struct arena *arena = c->arena;
    const char *without = NULL;
    size_t all = 0, counted = 0;
    for (size_t i = 0; i < c->request.n_members; i++) {
        const struct node *machine = c->request.members[i]->rotation ? &c->request.members[i]->rotation->self
                                                                     : c->request.members[i];
        bool again = false;
        for (size_t k = 0; k < i && c->request.members[i]->rotation && !again; k++)
            again = c->request.members[k]->rotation == c->request.members[i]->rotation;
        if (again || !coord_group_has(coord_group_config(c, a->group), machine))
            continue;
        all++;
        if (shows_something(s, n, machine, t)) {
            counted++;
            continue;
        }
        without = arena_printf(arena, "%s%s%s: %s", without ? without : "", without ? "; " : "", machine->is->name,
            why_silent(c, machine));
    }
    json_kv_string(j, "Machines", arena_printf(arena, "%zu of %zu", counted, all));
    if (without)
        json_kv_string(j, "Without", without);
}

void coord_groups_put_tips(struct coord_answers *f, struct json *j)
{
    struct coord_call *c = f->call;
    struct look look[MOST_LOOKS];
    struct states *s;
    size_t samples;
    const int64_t *times = coord_samples(&c->request, &samples);
    coord_group_lines_take(f, "rows", "entryId");
    size_t n = states_begin(c, &c->question.lines->asked[0], &s), looks = samples ? looks_at(s, n, times[0], look) : 0;
    json_begin_object(j);
    for (; looks; looks--) {
        size_t best = heaviest(look, looks);
        put_look(c, j, &look[best]);
        memmove(&look[best], &look[best + 1], (looks - best - 1) * sizeof *look);
    }
    if (samples)
        put_machines(c, j, &c->question.lines->asked[0], s, n, times[0]);
    json_end_object(j);
}

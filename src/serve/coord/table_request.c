/* SPDX-License-Identifier: MIT */
/* Requests for lines of a merged table, and their expressions for each member. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/terms.h"
#include "coord/numbering.h"
#include "coord/rotation.h"
#include "coord/table.h"
#include "coord/times.h"

enum { MAX_LINES = 10000 };

/* Returns the expression for a member's column; NULL: none of its lines has it. */
static json_t *expression_for(
    const struct merged_table *t, size_t member, const struct table_column *column, json_t *given)
{
    const struct node *n = t->call->request.members[member];
    const char *pattern = json_string_value(given);
    if (!pattern)
        return json_incref(given);
    if (column->timed)
        return json_string(coord_time_text_asked(t->call->arena, n, pattern));
    if (!column->numbers_of.at || !t->numbering)
        return json_incref(given);
    const char *own = coord_numbers_asked(t->numbering, t->call->arena, n, pattern);
    return own ? json_string(own) : NULL;
}

/* Translates expressions by column to a member's ids. False: none of its lines fits. */
static bool translate(const struct merged_table *t, size_t member, json_t *given, json_t **out)
{
    const char *key;
    json_t *value;
    bool fits = true;
    *out = NULL;
    if (!json_is_object(given))
        return true;
    *out = json_object();
    json_object_foreach (given, key, value) {
        char *end;
        int64_t id = strtoll(key, &end, 10);
        size_t at = 0;
        const char *pattern = json_string_value(value);
        while (at < t->columns->n && t->columns->v[at].id != id)
            at++;
        int64_t own = at < t->columns->n ? t->columns->of[member].own[at] : -1;
        if (own >= 0) {
            json_t *asked = expression_for(t, member, &t->columns->v[at], value);
            fits &= asked != NULL;
            if (!asked)
                continue;
            json_object_set_new(*out, arena_printf(t->call->arena, "%lld", (long long)own), asked);
        } else if (pattern) { /* lines without the column all show the same text */
            struct terms one = {0};
            terms_add(&one, 0, pattern);
            fits &= term_fits(
                &one.v[0], at == t->columns->trace ? coord_machine_name(t->call->request.members[member]) : "");
            terms_fini(&one);
        }
    }
    return fits;
}

/* Returns a hash that differs between tables with different lines. */
static uint64_t key_of(struct coord_call *c)
{
    static const char *const keys[] = {"table_filter_expressions", "filter_query_parameters"};
    struct arena *a = c->arena;
    const char *s = arena_printf(a, "%s\n%s", c->request.arg[0], c->request.arg[1]);
    for (int i = 0; i < 2; i++) {
        char *text = json_dumps(
            json_object_get(c->request.parameters, keys[i]), JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
        s = arena_printf(a, "%s\n%s", s, text ? text : "");
        free(text);
    }
    return map_hash(s, strlen(s));
}

/* Keeps a translated expression with the request's body, and frees it with the body. */
static void keep(struct coord_call *c, const char *name, size_t member, json_t *v)
{
    if (v)
        json_object_set_new(c->request.body, arena_printf(c->arena, "%s of %zu", name, member), v);
}

void coord_table_begin(struct merged_table *t, struct coord_call *c, const struct table_columns *columns,
    const struct group_numbers *numbering)
{
    struct arena *a = c->arena;
    *t = (struct merged_table){
        .call = c, .columns = columns, .numbering = numbering, .n = c->request.n_members, .key = key_of(c)};
    t->asked = arena_new(a, bool, t->n + 1);
    t->absent = arena_new(a, bool, t->n + 1);
    t->cached_lines = arena_new(a, const struct cached_lines *, t->n + 1);
    t->fits = arena_new(a, bool, t->n + 1);
    t->all_fit = arena_new(a, bool, t->n + 1);
    t->filter = arena_new(a, json_t *, t->n + 1);
    t->search = arena_new(a, json_t *, t->n + 1);
    t->size = arena_new(a, uint64_t, t->n + 1);
    for (size_t i = 0; i < t->n; i++) {
        bool passes = translate(
            t, i, json_object_get(c->request.parameters, "table_filter_expressions"), &t->filter[i]);
        t->fits[i] = translate(t, i, json_object_get(c->request.parameters, "table_search_expressions"), &t->search[i]);
        t->all_fit[i] = t->fits[i] && t->search[i] && !json_object_size(t->search[i]);
        t->asked[i] = columns->of[i].known && passes;
        if (!columns->of[i].known && coord_node_is_away(c->request.members[i]))
            coord_note_missing(&c->outcome, c->request.members[i], coord_node_why(c->request.members[i], a));
        if (t->asked[i] && json_object_size(t->filter[i]) && atomic_load(&c->request.members[i]->numbers_anew))
            coord_note_partial(&c->outcome, c->request.members[i],
                "it may show lines that do not fit: the protocol has no such filters");
        keep(c, "filter", i, t->filter[i]);
        keep(c, "search", i, t->search[i]);
    }
}

static const char *read_shown(struct coord_call *c, const struct table_columns *columns, struct lines_wanted *w)
{
    json_t *list = json_object_get(c->request.parameters, "requested_table_column_ids"), *item;
    size_t i;
    int64_t id;
    w->shown = arena_new(c->arena, size_t, columns->n + json_array_size(list) + 1);
    for (i = 0; !json_array_size(list) && i < columns->n; i++)
        w->shown[w->n_shown++] = i;
    json_array_foreach (list, i, item) {
        if (!coord_integer(item, &id))
            return "Invalid query parameters: requested_table_column_ids";
        for (size_t k = 0; k < columns->n; k++)
            if (columns->v[k].id == id)
                w->shown[w->n_shown++] = k;
    }
    return NULL;
}

const char *coord_lines_wanted(struct coord_call *c, const struct table_columns *columns, struct lines_wanted *w)
{
    json_t *index = json_object_get(c->request.parameters, "requested_table_index"),
           *times = json_object_get(c->request.parameters, "requested_times"),
           *value = json_object_get(c->request.parameters, "requested_value"),
           *count = json_object_get(c->request.parameters, "requested_table_count");
    const char *direction = coord_text(c->request.parameters, "table_search_direction");
    int64_t n;
    *w = (struct lines_wanted){0};
    if (!index && !times && !value)
        return "Missing query parameters: requested_table_index";
    if (!count)
        return "Missing query parameters: requested_table_count";
    if (!coord_integer(count, &n) || n < 0)
        return "Invalid query parameters: requested_table_count";
    w->count = n > MAX_LINES ? MAX_LINES : (uint64_t)n;
    w->by_time = !index;
    if (index && (!coord_integer(index, &n) || n < 0))
        return "Invalid query parameters: requested_table_index";
    w->index = index ? (uint64_t)n : 0;
    if (!index && (value ? !coord_integer(value, &w->time) : !coord_integer(json_array_get(times, 0), &w->time)))
        return value ? "Invalid query parameters: requested_value" : "Invalid query parameters: requested_times";
    if (columns->descending)
        w->time = value ? coord_table_negative(w->time) : INT64_MIN;
    if (direction && strcasecmp(direction, "NEXT") != 0 && strcasecmp(direction, "PREVIOUS") != 0)
        return "Invalid query parameters: table_search_direction";
    w->find = direction && json_object_size(json_object_get(c->request.parameters, "table_search_expressions"));
    w->backward = w->find && !strcasecmp(direction, "PREVIOUS");
    return read_shown(c, columns, w);
}

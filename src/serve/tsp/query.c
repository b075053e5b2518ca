/* SPDX-License-Identifier: MIT */
/* Parser of an operation's query, from the parameters of the body. */
#include <ctype.h>

#include "base/search.h"
#include "tsp/query.h"
#include "tsp/request.h"
#include "tsp/values.h"

enum { MAX_CELLS = 8 << 20, MAX_LINES = 20000, MAX_COLUMNS = 1000 };

#define MISSING(key) "Missing query parameters: " key
#define INVALID(key) "Invalid query parameters: " key

/* Returns the member `key`; null counts as absent. */
static json_t *get(const struct tsp_query *q, const char *key)
{
    json_t *v = json_object_get(q->parameters, key);
    return json_is_null(v) ? NULL : v;
}

static int compare_int(const void *a, const void *b)
{
    int64_t p = *(const int64_t *)a, q = *(const int64_t *)b;
    return p < q ? -1 : p > q;
}

/* Returns the integers of an array; sorted: ascending and distinct. NULL: not such an array. */
static const int64_t *integers(struct arena *a, json_t *list, bool sorted, size_t *n)
{
    json_t *item;
    size_t i, kept = 0;
    if (!json_is_array(list))
        return NULL;
    int64_t *v = arena_new(a, int64_t, json_array_size(list) + 1);
    json_array_foreach (list, i, item)
        if (!tsp_integer(item, &v[i]))
            return NULL;
    *n = json_array_size(list);
    if (!sorted)
        return v;
    qsort(v, *n, sizeof *v, compare_int);
    for (i = 0; i < *n; i++)
        if (!kept || v[kept - 1] != v[i])
            v[kept++] = v[i];
    *n = kept;
    return v;
}

static const char *parse_times(struct tsp_query *q, bool needed, bool generic)
{
    json_t *range = get(q, "requested_timerange"), *times = get(q, "requested_times");
    int64_t samples = 0;
    if (range) {
        json_t *count = json_object_get(range, "nbTimes");
        if (generic && !count)
            count = json_object_get(range, "nbSamples");
        if (!tsp_integer(json_object_get(range, "start"), &q->begin) ||
            !tsp_integer(json_object_get(range, "end"), &q->end) || q->begin > q->end ||
            (count && !tsp_integer(count, &samples)) || (generic && !count))
            return INVALID("requested_timerange");
        q->has_range = true;
        q->times = tsp_sample_times(q->http->arena, q->begin, q->end, samples, &q->n_times);
        return NULL;
    }
    if (!times)
        return needed ? MISSING("requested_timerange") : NULL;
    q->times = integers(q->http->arena, times, true, &q->n_times);
    if (!q->times || (needed && !q->n_times))
        return INVALID("requested_times");
    if (q->n_times) {
        q->begin = q->times[0];
        q->end = q->times[q->n_times - 1];
        q->has_range = true;
    }
    return NULL;
}

/* True: the id may belong to an entry: ids of entries are exact as numbers in every client. */
static bool is_id(int64_t id)
{
    return id >= 0 && id < INT64_C(1) << 53;
}

/* sampled: every row is evaluated at every time. */
static const char *parse_items(struct tsp_query *q, bool needed, bool sampled)
{
    json_t *items = get(q, "requested_items");
    if (!items)
        return needed ? MISSING("requested_items") : NULL;
    q->items = integers(q->http->arena, items, true, &q->n_items);
    q->has_items = true;
    if (!q->items)
        return INVALID("requested_items");
    while (q->n_items && q->items[0] < 0) { /* negative ids come first */
        q->items++;
        q->n_items--;
    }
    while (q->n_items && !is_id(q->items[q->n_items - 1]))
        q->n_items--;
    return sampled && q->n_items * q->n_times > MAX_CELLS
        ? INVALID("requested_items (too many rows for so many samples: at most 8388608 of both multiplied)")
        : NULL;
}

/* Reads an integer; an absent member leaves *out unchanged. False: not an integer. */
static bool element_integer(json_t *e, const char *key, int64_t *out)
{
    const json_t *v = json_object_get(e, key);
    return !v || json_is_null(v) || tsp_integer(v, out);
}

static bool element_known(const char *type)
{
    return !strcmp(type, "state") || !strcmp(type, "annotation") || !strcmp(type, "arrow");
}

static const char *parse_element(struct tsp_query *q)
{
    json_t *e = get(q, "requested_element");
    const char *type = tsp_string(e, "elementType");
    if (!e)
        return MISSING("requested_element");
    if (!json_is_object(e) || !type)
        return INVALID("requested_element");
    char *lower = arena_strdup(q->http->arena, type);
    for (char *p = lower; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    q->element = lower;
    int64_t end;
    if (!element_known(lower) || !element_integer(e, "time", &q->element_time) ||
        !element_integer(e, "duration", &q->element_duration) || !element_integer(e, "entryId", &q->element_entry) ||
        !element_integer(e, "destinationId", &q->element_destination))
        return INVALID("requested_element");
    if (__builtin_add_overflow(q->element_time, q->element_duration, &end))
        q->element_duration = 0;
    q->element_entry = is_id(q->element_entry) ? q->element_entry : -1;
    q->element_destination = is_id(q->element_destination) ? q->element_destination : -1;
    return NULL;
}

static const char *parse_lines(struct tsp_query *q)
{
    json_t *index = get(q, "requested_table_index"), *times = get(q, "requested_times"),
           *value = get(q, "requested_value"), *count = get(q, "requested_table_count");
    json_t *columns = get(q, "requested_table_column_ids"), *direction = get(q, "table_search_direction");
    size_t n = 0;
    if (!index && !times && !value)
        return MISSING("requested_table_index");
    if (!count)
        return MISSING("requested_table_count");
    if (!tsp_integer(count, &q->count) || q->count < 0)
        return INVALID("requested_table_count");
    q->count = q->count > MAX_LINES ? MAX_LINES : q->count;
    if (index) {
        if (!tsp_integer(index, &q->index) || q->index < 0)
            return INVALID("requested_table_index");
    } else if (value) {
        if (!tsp_integer(value, &q->table_value))
            return INVALID("requested_value");
        q->by_value = true;
    } else {
        const int64_t *v = integers(q->http->arena, times, false, &n);
        if (!v || !n)
            return INVALID("requested_times");
        q->table_time = v[0];
        q->by_time = true;
    }
    if (columns &&
        (!(q->columns = integers(q->http->arena, columns, false, &q->n_columns)) || q->n_columns > MAX_COLUMNS))
        return INVALID("requested_table_column_ids");
    q->has_columns = columns && q->n_columns;
    q->search = get(q, "table_search_expressions");
    if (q->search && !json_is_object(q->search))
        return INVALID("table_search_expressions");
    q->row_filter = get(q, "table_filter_expressions");
    if (q->row_filter && !json_is_object(q->row_filter))
        return INVALID("table_filter_expressions");
    if (direction &&
        (!json_is_string(direction) ||
            (strcasecmp(json_string_value(direction), "NEXT") && strcasecmp(json_string_value(direction), "PREVIOUS"))))
        return INVALID("table_search_direction");
    q->search_find = direction != NULL;
    q->search_backward = direction && !strcasecmp(json_string_value(direction), "PREVIOUS");
    return NULL;
}

static void parse_filter(struct tsp_query *q)
{
    json_t *f = get(q, "filter_query_parameters");
    const char *strategy = tsp_string(f, "strategy");
    q->filter = tsp_filter_compile(json_object_get(f, "filter_expressions_map"), q->http->arena);
    q->deep = q->filter && strategy && !strcasecmp(strategy, "DEEP");
}

static const char *parse_markers(struct tsp_query *q)
{
    json_t *categories = get(q, "requested_marker_categories");
    q->marker_set = tsp_string(q->parameters, "requested_marker_set");
    if (categories && !json_is_array(categories))
        return INVALID("requested_marker_categories");
    q->marker_categories = categories;
    return NULL;
}

const char *tsp_query_parse(struct tsp_query *q)
{
    enum tsp_operation op = q->operation;
    bool xy = op == TSP_XY || op == TSP_GENERIC_XY;
    const char *wrong = NULL;
    bool timed = op == TSP_STATES || op == TSP_ARROWS || xy || op == TSP_ANNOTATIONS;
    q->element_entry = q->element_destination = -1;
    if (op == TSP_COLUMNS || op == TSP_STYLE || op == TSP_ANNOTATION_CATEGORIES)
        return NULL;
    if (op == TSP_LINES)
        return parse_lines(q);
    if (op == TSP_TOOLTIP && !get(q, "requested_times") && !get(q, "requested_timerange"))
        wrong = MISSING("requested_times");
    if (!wrong)
        wrong = parse_times(q, timed || op == TSP_TOOLTIP, op == TSP_GENERIC_XY);
    if (!wrong)
        wrong = parse_items(q, op == TSP_STATES || xy || op == TSP_TOOLTIP, op == TSP_STATES || xy);
    if (!wrong && op == TSP_TOOLTIP)
        wrong = parse_element(q);
    if (!wrong && op == TSP_ANNOTATIONS)
        wrong = parse_markers(q);
    if (!wrong)
        parse_filter(q);
    return wrong;
}

bool tsp_wants(const struct tsp_query *q, int64_t id)
{
    size_t lo = search_first(i, 0, q->n_items, q->items[i] >= id);
    return !q->has_items || (lo < q->n_items && q->items[lo] == id);
}

bool tsp_wants_category(const struct tsp_query *q, const char *category)
{
    json_t *wanted;
    size_t i;
    json_array_foreach (q->marker_categories, i, wanted) {
        if (json_is_string(wanted) && !strcmp(json_string_value(wanted), category))
            return true;
    }
    return !q->marker_categories;
}

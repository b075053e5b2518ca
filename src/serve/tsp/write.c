/* SPDX-License-Identifier: MIT */
/* Writers of models: the protocol's key names and shapes, in one place. */
#include <math.h>

#include "tsp/entries.h"

enum { MAX_ANSWER_BYTES = 256 << 20 };

bool tsp_full(const struct tsp_answer *answer)
{
    return answer->json.out->n > MAX_ANSWER_BYTES || answer->json.out->error;
}

const char *tsp_code_name(enum tsp_code code)
{
#define NAME(name) [TSP_CODE_##name] = #name,
    static const char *const names[TSP_N_CODES] = {TSP_CODES(NAME)};
    return names[code];
}

const char *tsp_merge_name(enum tsp_merge merge)
{
#define MERGE(name) [TSP_##name] = #name,
    static const char *const names[TSP_N_MERGES] = {TSP_MERGES(MERGE)};
    return names[merge];
}

void tsp_fail(struct tsp_answer *answer, enum tsp_code code, const char *message)
{
    answer->status = TSP_FAILED;
    answer->code = code;
    answer->message = message;
    answer->detail = NULL;
}

int64_t tsp_id(const struct tsp_answer *answer, int64_t number)
{
    return answer->entries ? tsp_entries_id(answer->entries, number) : number;
}

static void kv_string_if(struct json *j, const char *key, const char *s)
{
    if (s)
        json_kv_string(j, key, s);
}

/* Writes {"parentKey": key} as a style; blended values are in the style map. */
static void write_style_key(struct json *j, const char *key)
{
    JSON_KEY(j, "style");
    json_begin_object(j);
    JSON_KEY(j, "parentKey");
    json_write_string(j, key);
    JSON_KEY(j, "values");
    json_raw(j, "{}", 2);
    json_end_object(j);
}

/* ---- trees ---- */

void tsp_begin_tree(struct tsp_answer *answer, const struct tsp_header *headers, size_t n, int auto_expand)
{
    struct json *j = &answer->json;
    json_begin_object(j);
    json_key(j, "headers");
    json_begin_array(j);
    for (size_t i = 0; i < n; i++) {
        json_begin_object(j);
        json_kv_string(j, "name", headers[i].name);
        json_kv_string(j, "tooltip", headers[i].tooltip ? headers[i].tooltip : "");
        kv_string_if(j, "dataType", headers[i].type);
        kv_string_if(j, "key", headers[i].key || i ? headers[i].key : "row");
        kv_string_if(j, "merge", tsp_merge_name(headers[i].merge));
        kv_string_if(j, "of", headers[i].of);
        kv_string_if(j, "by", headers[i].by);
        json_end_object(j);
    }
    json_end_array(j);
    json_kv_i64(j, "autoExpandLevel", auto_expand);
    json_key(j, "entries");
    json_begin_array(j);
}

void tsp_end_tree(struct tsp_answer *answer)
{
    struct json *j = &answer->json;
    json_end_array(j);
    json_end_object(j);
}

static void write_meta(struct json *j, const struct tsp_meta *m)
{
    json_key(j, m->key);
    json_begin_array(j);
    if (m->text)
        json_write_string(j, m->text);
    else if (m->is_real)
        json_double(j, m->real);
    else
        json_i64(j, m->number);
    json_end_array(j);
}

static void write_metadata(struct json *j, const struct tsp_entry *e)
{
    if (!e->host_id && !e->has_tid && !e->container && !e->n_meta)
        return;
    json_key(j, "metadata");
    json_begin_object(j);
    if (e->host_id)
        write_meta(j, &(struct tsp_meta){.key = "hostId", .text = e->host_id});
    if (e->has_tid)
        write_meta(j, &(struct tsp_meta){.key = "TID", .number = e->tid});
    if (e->container)
        write_meta(j, &(struct tsp_meta){.key = "Container", .text = e->container});
    for (size_t i = 0; i < e->n_meta; i++)
        write_meta(j, &e->meta[i]);
    json_end_object(j);
}

void tsp_write_entry(struct tsp_answer *answer, const struct tsp_entry *e)
{
    struct json *j = &answer->json;
    int64_t id = e->id, parent = e->parent;
    if (tsp_full(answer))
        return;
    if (answer->entries)
        tsp_entries_name(answer->entries, e, &id, &parent);
    if (answer->entries && answer->entries->listing)
        return;
    json_begin_object(j);
    json_kv_i64(j, "id", id);
    json_kv_i64(j, "parentId", parent);
    json_key(j, "labels");
    json_begin_array(j);
    for (size_t i = 0; i < e->n_labels; i++)
        json_write_string(j, e->labels[i] ? e->labels[i] : "");
    json_end_array(j);
    json_kv_bool(j, "hasData", e->has_data);
    if (e->time_graph) {
        json_kv_i64(j, "start", e->start);
        json_kv_i64(j, "end", e->end);
    }
    if (e->xy)
        json_kv_bool(j, "isDefault", e->is_default);
    write_metadata(j, e);
    if (e->style_key)
        write_style_key(j, e->style_key);
    kv_string_if(j, "key", e->row);
    kv_string_if(j, "merge", tsp_merge_name(e->merge));
    json_end_object(j);
}

/* ---- time graphs ---- */

void tsp_begin_rows(struct tsp_answer *answer)
{
    struct json *j = &answer->json;
    json_begin_object(j);
    json_key(j, "rows");
    json_begin_array(j);
}

void tsp_begin_row(struct tsp_answer *answer, int64_t entry)
{
    struct json *j = &answer->json;
    json_begin_object(j);
    json_kv_i64(j, "entryId", tsp_id(answer, entry));
    json_key(j, "states");
    json_begin_array(j);
}

/* Writes a state. Answers consist mostly of states, so keys and brackets are written as constants. */
void tsp_write_state(struct tsp_answer *answer, const struct tsp_state *s)
{
    struct json *j = &answer->json;
    struct text *t = j->out;
    if (tsp_full(answer))
        return;
    json_before_value(j);
    TEXT_PUT(t, "{\"start\":");
    text_i64_near(t, &j->near, s->start);
    TEXT_PUT(t, ",\"end\":");
    text_i64_near(t, &j->near, s->end);
    if (s->label) {
        TEXT_PUT(t, ",\"label\":");
        json_quote(t, s->label, strlen(s->label));
    }
    if (s->tags) {
        TEXT_PUT(t, ",\"tags\":");
        text_i64(t, s->tags);
    }
    if (s->style_key) {
        TEXT_PUT(t, ",\"style\":{\"parentKey\":");
        json_quote(t, s->style_key, strlen(s->style_key));
        TEXT_PUT(t, ",\"values\":{}}");
    }
    text_putc(t, '}');
}

void tsp_end_row(struct tsp_answer *answer)
{
    struct json *j = &answer->json;
    json_end_array(j);
    json_end_object(j);
}

void tsp_end_rows(struct tsp_answer *answer)
{
    struct json *j = &answer->json;
    json_end_array(j);
    json_end_object(j);
}

void tsp_write_arrow(
    struct tsp_answer *answer, int64_t start, int64_t end, int64_t source, int64_t target, const char *style_key)
{
    struct json *j = &answer->json;
    if (tsp_full(answer))
        return;
    json_begin_object(j);
    JSON_KEY(j, "start");
    json_i64(j, start);
    JSON_KEY(j, "end");
    json_i64(j, end);
    JSON_KEY(j, "sourceId");
    json_i64(j, tsp_id(answer, source));
    JSON_KEY(j, "targetId");
    json_i64(j, tsp_id(answer, target));
    if (style_key)
        write_style_key(j, style_key);
    json_end_object(j);
}

void tsp_begin_arrows(struct tsp_answer *answer)
{
    json_begin_array(&answer->json);
}

void tsp_end_arrows(struct tsp_answer *answer)
{
    json_end_array(&answer->json);
}

void tsp_begin_tooltip(struct tsp_answer *answer)
{
    json_begin_object(&answer->json);
}

void tsp_write_tip(struct tsp_answer *answer, const char *name, const char *value)
{
    json_kv_string(&answer->json, name, value);
}

void tsp_end_tooltip(struct tsp_answer *answer)
{
    json_end_object(&answer->json);
}

void tsp_write_annotation(struct tsp_answer *answer, int64_t time, int64_t duration, int64_t entry, const char *label,
    const char *color, double opacity)
{
    struct json *j = &answer->json;
    if (tsp_full(answer))
        return;
    json_begin_object(j);
    json_kv_i64(j, "time", time);
    json_kv_i64(j, "duration", duration);
    json_kv_i64(j, "entryId", entry < 0 ? -1 : tsp_id(answer, entry));
    json_kv_string(j, "type", "CHART");
    kv_string_if(j, "label", label);
    if (color) {
        json_key(j, "style");
        json_begin_object(j);
        json_key(j, "values");
        json_begin_object(j);
        json_kv_string(j, "color", color);
        if (opacity >= 0)
            json_kv_double(j, "opacity", opacity);
        json_end_object(j);
        json_end_object(j);
    }
    json_end_object(j);
}

/* ---- XY ---- */

void tsp_begin_xy(struct tsp_answer *answer, const char *title)
{
    struct json *j = &answer->json;
    json_begin_object(j);
    json_kv_string(j, "title", title);
    json_key(j, "series");
    json_begin_array(j);
}

void tsp_end_xy(struct tsp_answer *answer)
{
    struct json *j = &answer->json;
    json_end_array(j);
    json_end_object(j);
}

static void write_number(struct json *j, double v)
{
    if (fabs(v) < 9e15 && v == (double)(int64_t)v)
        json_i64(j, (int64_t)v);
    else
        json_double(j, v);
}

static void write_x(struct json *j, const struct tsp_series *s)
{
    json_key(j, s->categories ? "xCategories" : s->ranges ? "xRanges" : "xValues");
    json_begin_array(j);
    for (size_t i = 0; i < s->n; i++) {
        if (s->categories) {
            json_write_string(j, s->categories[i]);
        } else if (s->ranges) {
            json_begin_object(j);
            json_kv_i64(j, "start", s->ranges[i][0]);
            json_kv_i64(j, "end", s->ranges[i][1]);
            json_end_object(j);
        } else {
            json_i64(j, s->x[i]);
        }
    }
    json_end_array(j);
}

static void write_axis(struct json *j, const char *key, const char *label, const char *unit, const char *type)
{
    json_key(j, key);
    json_begin_object(j);
    json_kv_string(j, "label", label ? label : "");
    json_kv_string(j, "unit", unit ? unit : "");
    json_kv_string(j, "dataType", type);
    json_end_object(j);
}

void tsp_write_series(struct tsp_answer *answer, const struct tsp_series *s)
{
    struct json *j = &answer->json;
    if (tsp_full(answer))
        return;
    json_begin_object(j);
    json_kv_i64(j, "seriesId", tsp_id(answer, s->id));
    json_kv_string(j, "seriesName", s->name);
    write_x(j, s);
    json_key(j, "yValues");
    json_begin_array(j);
    for (size_t i = 0; i < s->n; i++)
        write_number(j, s->y[i]);
    json_end_array(j);
    write_axis(j, "xValuesDescription", s->x_label ? s->x_label : "Time",
        s->x_unit       ? s->x_unit
            : s->x_type ? ""
                        : "ns",
        s->x_type ? s->x_type : "TIMESTAMP");
    write_axis(j, "yValuesDescription", s->y_label, s->y_unit, s->y_type ? s->y_type : "NUMBER");
    json_key(j, "style");
    json_begin_object(j);
    json_key(j, "values");
    json_begin_object(j);
    json_kv_string(j, "series-type", s->type ? s->type : "line");
    json_end_object(j);
    json_end_object(j);
    kv_string_if(j, "merge", tsp_merge_name(s->merge));
    json_end_object(j);
}

/* ---- styles ---- */

void tsp_begin_styles(struct tsp_answer *answer)
{
    struct json *j = &answer->json;
    json_begin_object(j);
    json_key(j, "styles");
    json_begin_object(j);
}

void tsp_write_style(struct tsp_answer *answer, const char *key, const char *parent, const char *color, double height,
    double opacity, const char *name)
{
    struct json *j = &answer->json;
    json_key(j, key);
    json_begin_object(j);
    kv_string_if(j, "parentKey", parent);
    json_key(j, "values");
    json_begin_object(j);
    if (name) {
        json_kv_string(j, "style-name", name);
    }
    if (color) {
        json_kv_string(j, "background-color", color);
        json_kv_string(j, "color", color);
    }
    if (height >= 0)
        json_kv_double(j, "height", height);
    if (opacity >= 0)
        json_kv_double(j, "opacity", opacity);
    json_end_object(j);
    json_end_object(j);
}

void tsp_end_styles(struct tsp_answer *answer)
{
    struct json *j = &answer->json;
    json_end_object(j);
    json_end_object(j);
}

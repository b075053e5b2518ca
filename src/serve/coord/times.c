/* SPDX-License-Identifier: MIT */
/* Times of servers with a clock of their own: translation of questions and answers. */
#include "coord/times.h"

#include <string.h>

#include "base/search.h"
#include "base/time.h"
#include "clock/clock.h"

int64_t coord_time_shown(const struct node *n, int64_t own)
{
    return n->is->clock ? clock_to_reference(n->is->clock, own) : own;
}

int64_t coord_time_asked_from(const struct node *n, int64_t t)
{
    return n->is->clock ? clock_first_from(n->is->clock, t) : t;
}

int64_t coord_time_asked(const struct node *n, int64_t t)
{
    return clock_last_until(n->is->clock, t);
}

/* ---- answers ---- */

int64_t coord_sample_shown(const struct coord_call *c, const struct node *n, int64_t own)
{
    const struct coord_sent_times *t = c->question.own_times && n->number < SIZE_MAX ? &c->question.own_times[n->number]
                                                                                     : NULL;
    size_t at = t ? search_first(i, 0, t->n, t->own[i] >= own) : 0;
    return t && at < t->n && t->own[at] == own ? t->asked[at] : coord_time_shown(n, own);
}

static void put_samples(const struct coord_call *c, struct json *j, const struct node *n, struct slice list)
{
    struct slice_walk w = slice_items(list);
    int64_t t;
    json_begin_array(j);
    for (struct slice item; slice_next(&w, &item);)
        if (slice_integer(item, &t))
            json_i64(j, coord_sample_shown(c, n, t));
        else
            slice_put(j, item);
    json_end_array(j);
}

/* Writes a list of objects with times. */
static void put_timed_list(struct coord_call *c, struct json *j, const struct node *n, struct slice list)
{
    struct slice_walk w = slice_items(list);
    json_begin_array(j);
    for (struct slice item; slice_next(&w, &item);) {
        struct slice_walk in = slice_members(item);
        json_begin_object(j);
        for (struct slice key, value; slice_next_member(&in, &key, &value);) {
            slice_put_key(j, key);
            if (!coord_put_times(c, j, n, item, key, value))
                slice_put(j, value);
        }
        json_end_object(j);
    }
    json_end_array(j);
}

static bool axis_is_time(const struct coord_call *c, struct slice series)
{
    struct slice type = slice_get(slice_get(series, "xValuesDescription"), "dataType");
    return slice_is(type, '"') ? slice_equals(type, "TIMESTAMP") : !strstr(c->request.path, "/genericXY/");
}

bool coord_put_times(struct coord_call *c, struct json *j, const struct node *n, struct slice object, struct slice key,
    struct slice value)
{
    int64_t t, begin;
    if (!n->is->clock)
        return false;
    if (slice_equals(key, "states") && slice_is(value, '[')) {
        put_timed_list(c, j, n, value);
    } else if (slice_equals(key, "xValues") && slice_is(value, '[') && axis_is_time(c, object)) {
        put_samples(c, j, n, value);
    } else if (slice_equals(key, "xRanges") && slice_is(value, '[') && axis_is_time(c, object)) {
        put_timed_list(c, j, n, value);
    } else if (!slice_integer(value, &t)) {
        return false;
    } else if (slice_equals(key, "start") || slice_equals(key, "end") || slice_equals(key, "time")) {
        json_i64(j, coord_time_shown(n, t));
    } else if (slice_equals(key, "duration") && slice_integer(slice_get(object, "time"), &begin) &&
        !__builtin_add_overflow(begin, t, &t)) {
        json_i64(j, coord_time_shown(n, t) - coord_time_shown(n, begin));
    } else {
        return false;
    }
    return true;
}

void coord_put_time_numbers(struct json *j, const struct node *n, struct slice value)
{
    struct slice_walk w = slice_items(value);
    int64_t t;
    if (slice_integer(value, &t)) {
        json_i64(j, coord_time_shown(n, t));
    } else if (!slice_is(value, '[')) {
        slice_put(j, value);
    } else {
        json_begin_array(j);
        for (struct slice item; slice_next(&w, &item);)
            if (slice_integer(item, &t))
                json_i64(j, coord_time_shown(n, t));
            else
                slice_put(j, item);
        json_end_array(j);
    }
}

/* ---- texts ---- */

enum { LONGEST_TEXT = 64, WHOLE_DIGITS = 16 /* part of a time, in ns since the epoch, if fewer */ };

/* Translation of a time in a text. */
typedef int64_t turn(const struct node *, int64_t);

/* Translates "01:37:53.184 022 483", with or without a date, and with or without spaces between the digits. own: a time
 * of the same day, for texts without a date. */
static bool turn_clock(const char *s, const struct node *n, turn *turned, const int64_t *own, struct text *out)
{
    char packed[LONGEST_TEXT];
    const char *point = strchr(s, '.');
    bool date = strlen(s) > 10 && s[4] == '-', spaced = point && strchr(point, ' ');
    struct text again = {.fd = -1};
    size_t k = 0;
    int64_t t;
    for (const char *p = s; *p; p++)
        if (*p != ' ')
            packed[k++] = *p;
        else if (!point || p < point)
            packed[k++] = 'T';
    packed[k] = '\0';
    if ((!date && (!own || !strchr(s, ':'))) || !point || time_parse(packed, own ? *own : 0, &t, NULL))
        return false;
    /* Texts in any other form are unknown. */
    time_write_utc(&again, t, date);
    const char *whole = text_cstr(&again), *p = s;
    for (; *whole; whole++)
        if (*whole == *p)
            p++;
        else if (spaced || *whole != ' ')
            break;
    bool known = !*whole && !*p;
    text_fini(&again);
    if (!known)
        return false;
    t = date ? turned(n, t) : (int64_t)((uint64_t)t + (uint64_t)turned(n, *own) - (uint64_t)*own);
    time_write_utc(&again, t, date);
    point = strchr(text_cstr(&again), '.');
    for (p = text_cstr(&again); *p; p++)
        if (spaced || *p != ' ' || p < point)
            text_putc(out, *p);
    text_fini(&again);
    return true;
}

/* Translates "[a,b]", the range of a measured thing. Its length stays, by the machine's own clock. */
static bool turn_range(const char *s, const struct node *n, turn *turned, struct text *out)
{
    const char *comma = strchr(s, ',');
    size_t length = strlen(s);
    int64_t a, b;
    if (*s != '[' || !comma || s[length - 1] != ']')
        return false;
    const char *second = comma + 1 + strspn(comma + 1, " ");
    if (!slice_integer((struct slice){s + 1, (size_t)(comma - s - 1)}, &a) ||
        !slice_integer((struct slice){second, (size_t)(s + length - 1 - second)}, &b))
        return false;
    text_putc(out, '[');
    text_i64(out, turned(n, a));
    text_put(out, comma, (size_t)(second - comma));
    text_i64(out, (int64_t)((uint64_t)turned(n, a) + (uint64_t)b - (uint64_t)a));
    text_putc(out, ']');
    return true;
}

static bool turn_text(const char *s, const struct node *n, turn *turned, const int64_t *own, struct text *out)
{
    int64_t t;
    if (!*s || strlen(s) >= LONGEST_TEXT)
        return false;
    if (!slice_integer((struct slice){s, strlen(s)}, &t))
        return turn_range(s, n, turned, out) || turn_clock(s, n, turned, own, out);
    text_i64(out, turned(n, t));
    return true;
}

void coord_put_time_text(struct json *j, const struct node *n, struct slice text, const int64_t *own)
{
    char s[LONGEST_TEXT + 1] = "";
    struct text shown = {.fd = -1};
    int64_t t;
    if (!n->is->clock || (!slice_is(text, '"') && slice_integer(text, &t))) {
        coord_put_time_numbers(j, n, text);
        return;
    }
    if (slice_is(text, '"') && text.n - 2 <= LONGEST_TEXT)
        memcpy(s, text.at + 1, text.n - 2);
    if (turn_text(s, n, coord_time_shown, own, &shown))
        json_write_string(j, text_cstr(&shown));
    else
        slice_put(j, text);
    text_fini(&shown);
}

const char *coord_time_text_asked(struct arena *a, const struct node *n, const char *pattern)
{
    struct text asked = {.fd = -1};
    const char *out = pattern;
    size_t digits = strspn(pattern, "0123456789");
    bool whole = *pattern != '[' && (pattern[digits] || digits >= WHOLE_DIGITS);
    if (n->is->clock && whole && turn_text(pattern, n, coord_time_asked, NULL, &asked))
        out = arena_strdup(a, text_cstr(&asked));
    text_fini(&asked);
    return out;
}

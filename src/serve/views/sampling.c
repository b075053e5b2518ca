/* SPDX-License-Identifier: MIT */
#include "views/sampling.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- times ---- */

int64_t view_sample_time(const struct view_host *h, int64_t t)
{
    enum { NEAR = 16 };
    int64_t at = view_to_host(h, t);
    if (!h->map)
        return at;
    /* Limit of steps: near the ends of 64 bits conversions saturate, and no time is right. */
    for (int i = 0; i < NEAR && at > INT64_MIN && view_to_reference(h, at) > t; i++)
        at--;
    for (int i = 0; i < NEAR && at < INT64_MAX && view_to_reference(h, at + 1) <= t; i++)
        at++;
    return at;
}

bool view_range_on(const struct view_host *h, int64_t begin, int64_t end, int64_t *host_begin, int64_t *host_end)
{
    int64_t first, last;
    state_span(h->states, &first, &last);
    begin = view_to_host(h, begin);
    end = view_to_host(h, end);
    *host_begin = begin < first ? first : begin;
    *host_end = end > last ? last : end;
    return *host_begin <= *host_end;
}

struct view_times view_times_new(const struct views *x, const struct tsp_query *q)
{
    return (struct view_times){x, q, arena_new(q->http->arena, int64_t *, x->n_hosts + 1)};
}

const int64_t *view_times_on(const struct view_times *t, size_t host)
{
    const struct tsp_query *q = t->q;
    int64_t **times = &t->by_host[host];
    if (!*times) {
        *times = arena_new(q->http->arena, int64_t, q->n_times + 1);
        for (size_t i = 0; i < q->n_times; i++)
            (*times)[i] = view_sample_time(&t->x->hosts[host], q->times[i]);
    }
    return *times;
}

/* ---- style and properties of an interval ---- */

void view_add_property(struct view_shown *s, const char *key, const char *value)
{
    if (value && s->n < VIEW_SHOWN_PROPERTIES)
        s->properties[s->n++] = (struct tsp_property){key, value};
}

void view_add_number(struct view_shown *s, const char *key, int64_t value)
{
    if (s->n == VIEW_SHOWN_PROPERTIES)
        return;
    snprintf(s->numbers[s->n], sizeof s->numbers[0], "%" PRId64, value);
    view_add_property(s, key, s->numbers[s->n]);
}

bool view_write_shown(const struct tsp_query *q, struct tsp_answer *answer, int64_t begin, int64_t end,
    struct view_shown *shown, bool only_matches)
{
    enum { DIM = 1, EXCLUDE = 4 };
    struct tsp_state state = {begin, end, shown->label, shown->style_key, 0};
    if (begin >= end || (only_matches && !shown->style_key))
        return false;
    if (q->filter && shown->style_key) {
        const char *label = shown->filtered_label ? shown->filtered_label : shown->label;
        view_add_property(shown, "label", label ? label : "");
        view_add_number(shown, "start", begin);
        view_add_number(shown, "duration", end - begin);
        state.tags = tsp_filter_tags(q, shown->properties, shown->n);
    }
    if (only_matches && state.tags & (DIM | EXCLUDE))
        return false;
    if (state.tags & EXCLUDE)
        state.label = state.style_key = NULL;
    tsp_write_state(answer, &state);
    return true;
}

/* ---- rows of the state stores ---- */

struct view_sampler view_begin_sampling(
    struct views *x, const struct tsp_query *q, struct tsp_answer *answer, view_show_state *show)
{
    tsp_begin_rows(answer);
    return (struct view_sampler){.x = x,
        .q = q,
        .answer = answer,
        .show = show,
        .times = view_times_new(x, q),
        .found = arena_new(q->http->arena, struct state_interval, q->n_times + 1)};
}

void view_end_sampling(const struct view_sampler *s)
{
    tsp_end_rows(s->answer);
}

static bool write_interval(
    const struct view_sampler *s, const struct view_row *row, const struct state_interval *iv, bool only_matches)
{
    const struct view_host *h = &s->x->hosts[row->host];
    int64_t begin = view_to_reference(h, iv->begin), end = view_to_reference(h, iv->end);
    struct view_shown shown;
    shown.n = 0;
    shown.label = shown.style_key = shown.filtered_label = NULL;
    if (begin >= end)
        return false;
    s->show(s, row, iv, &shown);
    return view_write_shown(s->q, s->answer, begin, end, &shown, only_matches);
}

/* Writes the first match of the filter between two samples, which represents all intervals there. */
static void write_match_within(const struct view_sampler *s, const struct view_row *row, int64_t begin, int64_t end)
{
    enum { BATCH = 64 };
    struct state_interval batch[BATCH];
    const struct state_store *states = s->x->hosts[row->host].states;
    while (begin < end && !http_gone(s->q->http)) {
        size_t n = state_range(states, row->kind, row->row, begin, end, batch, BATCH);
        for (size_t i = 0; i < n; i++)
            if (batch[i].begin >= begin && batch[i].end <= end && write_interval(s, row, &batch[i], true))
                return;
        if (n < BATCH || batch[n - 1].end <= begin)
            return;
        begin = batch[n - 1].end;
    }
}

bool view_sample_row(const struct view_sampler *s, int64_t entry, const struct view_row *row)
{
    const struct state_store *states = s->x->hosts[row->host].states;
    if (!view_goes_on(s->q, s->answer))
        return false;
    if (!states || row->row >= state_rows(states, row->kind))
        return true;
    const int64_t *times = view_times_on(&s->times, row->host);
    size_t n = s->sample ? s->sample(states, row, times, s->q->n_times, s->found)
                         : state_sample(states, row->kind, row->row, times, s->q->n_times, s->found);
    tsp_begin_row(s->answer, entry);
    for (size_t i = 0; i < n; i++) {
        if (i && s->q->deep && s->q->filter && s->found[i - 1].end < s->found[i].begin)
            write_match_within(s, row, s->found[i - 1].end, s->found[i].begin);
        write_interval(s, row, &s->found[i], false);
    }
    tsp_end_row(s->answer);
    return true;
}

/* SPDX-License-Identifier: MIT */
/* Positioning a merge at an item by its number. */
#include <stdlib.h>

#include "ctf/merge.h"

enum { GUESS_SLACK = 32 };

static void rewind_all(struct ctf_merge *m)
{
    for (size_t i = 0; i < m->n_cursors; i++) {
        struct cursor *c = &m->cursors[i];
        c->head->at = c->head->end = NULL;
        c->packet = NULL;
        c->next_packet = 0;
        ctf_merge_place(m, c);
        file_map_close(&c->window);
        c->d.cycles = 0;
        c->d.last = INT64_MIN;
    }
    m->started = m->n_cursors == 0;
}

static int skip(struct ctf_merge *m, uint64_t n, struct err *e)
{
    struct ctf_event ev[256];
    for (uint64_t left = n; left > 0;) {
        size_t k = ctf_merge_next(m, ev, left < 256 ? (size_t)left : 256);
        if (k == 0) {
            int rc = ctf_merge_intact(m, e);
            return rc ? rc : err_set(e, ERR_NOTFOUND, "there are fewer events");
        }
        left -= k;
    }
    return 0;
}

/* Returns the number of items up to the first mark (or packet end) at or after the time: all before the time, and some
 * more. */
static uint64_t items_begun(const struct cursor *c, int64_t time)
{
    size_t n = ctf_merge_packets_begun(c, time);
    if (n == 0)
        return 0;
    const struct ctf_packet *p = &c->stream->packets.v[n - 1];
    uint32_t marks = ctf_merge_marks_begun(c, p, time);
    return p->before + (marks < p->marks ? c->stream->marks[p->mark + marks].before : p->items);
}

/* Estimates the number of items before the time, assuming an even distribution between marks. */
static uint64_t items_about(const struct cursor *c, int64_t time)
{
    size_t n = ctf_merge_packets_begun(c, time);
    if (n == 0)
        return 0;
    const struct ctf_packet *p = &c->stream->packets.v[n - 1];
    const struct ctf_mark *marks = p->marks ? c->stream->marks + p->mark : NULL;
    uint32_t k = ctf_merge_marks_begun(c, p, time);
    uint64_t from = k ? marks[k - 1].before : 0, to = k < p->marks ? marks[k].before : p->items;
    int64_t begin = ctf_merge_item_time(c, k ? marks[k - 1].first : p->first),
            end = ctf_merge_item_time(c, k < p->marks ? marks[k].first : p->last);
    double share = time < end && begin < time
        ? (double)((uint64_t)time - (uint64_t)begin) / (double)((uint64_t)end - (uint64_t)begin)
        : 1;
    return p->before + from + (uint64_t)(share * (double)(to - from));
}

typedef uint64_t count_items(const struct cursor *, int64_t time);

static uint64_t count_all(const struct ctf_merge *m, count_items *count, int64_t time)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < m->n_cursors; i++)
        sum += count(&m->cursors[i], time);
    return sum;
}

/* Computes bounds of all items' times, as corrected by the merge: [*lo, *hi). */
static void span(const struct ctf_merge *m, int64_t *lo, int64_t *hi)
{
    *lo = INT64_MAX;
    *hi = INT64_MIN;
    for (size_t i = 0; i < m->n_cursors; i++) {
        const struct cursor *c = &m->cursors[i];
        size_t n = c->stream->packets.n, step = c->stream->tracks > 1 || n < 2 ? 1 : n - 1;
        for (size_t k = 0; k < n; k += step) {
            int64_t first = ctf_merge_item_time(c, c->stream->packets.v[k].first),
                    last = ctf_merge_item_time(c, c->stream->packets.v[k].last);
            *lo = first < *lo ? first : *lo;
            *hi = last >= *hi ? last + 1 : *hi;
        }
    }
}

/* Returns the latest time before which at most n items lie, by that count. */
static int64_t time_before(const struct ctf_merge *m, count_items *count, uint64_t n)
{
    int64_t lo, hi;
    span(m, &lo, &hi);
    while (lo < hi && (uint64_t)hi - (uint64_t)lo > 1) {
        int64_t mid = (int64_t)((uint64_t)lo + ((uint64_t)hi - (uint64_t)lo) / 2);
        if (count_all(m, count, mid) <= n)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

/* Moves the cursor to its first item at or after `begin`; returns how many lie before. */
static uint64_t move(struct ctf_merge *m, struct cursor *c, int64_t begin)
{
    if (ctf_merge_packets_begun(c, begin) == 0)
        return 0;
    uint64_t before = ctf_merge_jump(m, c, begin);
    for (struct merge_head *h = c->head; ctf_merge_refill(m, c) != KEY_NONE;) {
        while (h->at < h->end && h->at->ts < begin)
            h->at++;
        before += (uint64_t)(h->at - c->batch);
        if (h->at < h->end) {
            h->next_ts = h->at[h->at + 1 < h->end].ts;
            break;
        }
    }
    return before;
}

/* Moves all cursors to their first items at or after `begin`; returns how many lie before. */
static uint64_t move_all(struct ctf_merge *m, int64_t begin)
{
    uint64_t before = 0;
    rewind_all(m);
    for (size_t i = 0; i < m->n_cursors; i++)
        before += move(m, &m->cursors[i], begin);
    return before;
}

int ctf_merge_seek(struct ctf_merge *m, uint64_t n, struct err *e)
{
    bool ordered = !ctf_merge_limited(m->window);
    if (m->growth)
        return err_set(e, ERR_UNSUPPORTED, "a trace that still grows is read from its begin to its end");
    rewind_all(m);
    for (size_t i = 0; i < m->n_cursors && ordered; i++) {
        ctf_trace_count(m->cursors[i].trace);
        ordered = !m->cursors[i].stream->disorder;
    }
    if (!ordered || n == 0)
        return skip(m, n, e);
    /* Merging skipped items costs more than decoding alone, so a guess is tried before the safe bound. */
    uint64_t slack = GUESS_SLACK * (1 + m->n_cursors),
             before = move_all(m, time_before(m, items_about, n > slack ? n - slack : 0));
    if (before > n)
        before = move_all(m, time_before(m, items_begun, n));
    if (before > n) { /* wrong guess: times are not in order */
        rewind_all(m);
        return skip(m, n, e);
    }
    return skip(m, n - before, e);
}

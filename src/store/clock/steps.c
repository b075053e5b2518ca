/* SPDX-License-Identifier: MIT */
/* Steps: messages after a clock's step contradict those before it. A sweep in order of time adds messages to a part
 * while a curve of bounded slope can pass them all; a contradiction begins a new part. Parts that agree except for a
 * few messages are one part with outliers (wrong matches). */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "clock/steps.h"

enum { MAX_PARTS = 64, STRONGEST = 8, MAX_OUTLIERS = 3 };

struct event {
    struct point p;
    i128 on_high, on_low; /* d at x = 0 of the lines with the greatest and the least slope through p, times 2^62 */
    bool sent, outlier;
};

/* Strongest few of a kind of messages of a part: sorted keys, strongest first. */
struct strongest {
    size_t at[STRONGEST], n;
    bool more;
};

struct stretch_state {
    size_t begin, end; /* events */
    /* Bounds for later messages (sent by on_high, received by on_low), and for earlier ones (sent by on_low, received
     * by on_high). */
    struct strongest sent_later, received_later, sent_earlier, received_earlier;
};

struct sweep {
    struct event *v;
    size_t n;
    struct stretch_state stack[MAX_PARTS];
    size_t depth;
    size_t budget;
};

static i128 key(const struct event *e, bool high)
{
    return high ? e->on_high : e->on_low;
}

/* Sent points bind from above (the least key is strongest), received points from below. */
static bool stronger(const struct event *a, const struct event *b, bool high)
{
    return a->sent ? key(a, high) < key(b, high) : key(a, high) > key(b, high);
}

static void strongest_add(struct strongest *s, const struct event *v, size_t at, bool high)
{
    size_t i = s->n;
    while (i && stronger(&v[at], &v[s->at[i - 1]], high))
        i--;
    if (i == STRONGEST) {
        s->more = true;
        return;
    }
    if (s->n == STRONGEST)
        s->more = true;
    else
        s->n++;
    memmove(&s->at[i + 1], &s->at[i], (s->n - i - 1) * sizeof *s->at);
    s->at[i] = at;
}

static void state_add(struct stretch_state *s, const struct event *v, size_t at)
{
    strongest_add(v[at].sent ? &s->sent_later : &s->received_later, v, at, v[at].sent);
    strongest_add(v[at].sent ? &s->sent_earlier : &s->received_earlier, v, at, !v[at].sent);
    s->end = at + 1;
}

/* Returns whether a curve that passed the messages of s can pass the later message e. */
static bool passes_later(const struct stretch_state *s, const struct event *v, const struct event *e)
{
    if (e->sent)
        return !s->received_later.n || e->on_low >= v[s->received_later.at[0]].on_low;
    return !s->sent_later.n || e->on_high <= v[s->sent_later.at[0]].on_high;
}

/* Returns whether a curve that will pass the messages of s can pass the earlier message e. */
static bool passes_earlier(const struct stretch_state *s, const struct event *v, const struct event *e)
{
    if (e->sent)
        return !s->received_earlier.n || e->on_high >= v[s->received_earlier.at[0]].on_high;
    return !s->sent_earlier.n || e->on_low <= v[s->sent_earlier.at[0]].on_low;
}

/* Least number of messages to drop, i of `above` (sent) and j of `below` (received), so that the rest agree. False:
 * more than `budget`. */
static bool fewest(const struct event *v, const struct strongest *above, const struct strongest *below, bool high,
    size_t budget, size_t *out_i, size_t *out_j)
{
    for (size_t all = 0; all <= budget; all++)
        for (size_t i = 0; i <= all; i++) {
            size_t j = all - i;
            if (i > above->n || j > below->n || (i == above->n && above->more) || (j == below->n && below->more))
                continue;
            if (i == above->n || j == below->n || key(&v[above->at[i]], high) >= key(&v[below->at[j]], high)) {
                *out_i = i;
                *out_j = j;
                return true;
            }
        }
    return false;
}

static void leave_out(struct event *v, const struct strongest *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        v[s->at[i]].outlier = true;
}

/* An incomplete list says nothing about messages weaker than its last one, even if outliers have left it. */
static void strongest_merge(struct strongest *a, const struct strongest *b, const struct event *v, bool high)
{
    struct strongest all = {.more = a->more || b->more};
    const struct strongest *both[2] = {a, b};
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < both[k]->n; i++)
            if (!v[both[k]->at[i]].outlier)
                strongest_add(&all, v, both[k]->at[i], high);
    for (int k = 0; k < 2; k++)
        while (both[k]->more && all.n && stronger(&v[both[k]->at[both[k]->n - 1]], &v[all.at[all.n - 1]], high))
            all.n--;
    *a = all;
}

/* Joins b, which follows a, into a if they agree except for a few messages. */
static bool state_merge(struct sweep *w, struct stretch_state *a, const struct stretch_state *b)
{
    size_t i, j, k, l;
    if (!fewest(w->v, &a->sent_later, &b->received_earlier, true, w->budget, &i, &j) ||
        !fewest(w->v, &b->sent_earlier, &a->received_later, false, w->budget, &k, &l) || i + j + k + l > w->budget)
        return false;
    leave_out(w->v, &a->sent_later, i);
    leave_out(w->v, &b->received_earlier, j);
    leave_out(w->v, &b->sent_earlier, k);
    leave_out(w->v, &a->received_later, l);
    strongest_merge(&a->sent_later, &b->sent_later, w->v, true);
    strongest_merge(&a->received_later, &b->received_later, w->v, false);
    strongest_merge(&a->sent_earlier, &b->sent_earlier, w->v, false);
    strongest_merge(&a->received_earlier, &b->received_earlier, w->v, true);
    a->end = b->end;
    return true;
}

static bool sweep_push(struct sweep *w, const struct stretch_state *s)
{
    struct stretch_state top = *s;
    while (w->depth) {
        struct stretch_state joined = w->stack[w->depth - 1];
        if (!state_merge(w, &joined, &top))
            break;
        top = joined;
        w->depth--;
    }
    if (w->depth == MAX_PARTS)
        return false;
    w->stack[w->depth++] = top;
    return true;
}

static bool sweep_run(struct sweep *w)
{
    struct stretch_state now = {0};
    for (size_t i = 0; i < w->n; i++) {
        if (i > now.begin && !passes_later(&now, w->v, &w->v[i])) {
            if (!sweep_push(w, &now))
                return false;
            now = (struct stretch_state){.begin = i};
        }
        state_add(&now, w->v, i);
    }
    return sweep_push(w, &now);
}

static struct event *merge_events(
    const struct point *sent, size_t ns, const struct point *received, size_t nr, int64_t low, int64_t high)
{
    struct event *v = mem_alloc((ns + nr) * sizeof *v);
    for (size_t i = 0, j = 0; i + j < ns + nr;) {
        bool is_sent = i < ns && (j == nr || sent[i].x <= received[j].x);
        struct event *e = &v[i + j];
        *e = (struct event){.p = is_sent ? sent[i++] : received[j++], .sent = is_sent};
        e->on_high = e->p.d * Q62 - (i128)high * e->p.x;
        e->on_low = e->p.d * Q62 - (i128)low * e->p.x;
    }
    return v;
}

/* Finds the step between two parts: after the last message that only the first explains and before the first that only
 * the second explains. */
static void hidden_step(
    const struct sweep *w, const struct stretch_state *a, const struct stretch_state *b, size_t *last, size_t *first)
{
    for (*last = a->end - 1; *last > a->begin; --*last)
        if (!w->v[*last].outlier && !passes_earlier(b, w->v, &w->v[*last]))
            break;
    for (*first = b->begin; *first + 1 < b->end; ++*first)
        if (!w->v[*first].outlier && !passes_later(a, w->v, &w->v[*first]))
            break;
}

/* Messages of events [from, to]. */
static struct steps_part part_of(const struct sweep *w, size_t from, size_t to)
{
    struct steps_part p = {
        mem_alloc((to - from + 1) * sizeof(struct point)), mem_alloc((to - from + 1) * sizeof(struct point)), 0, 0};
    for (size_t i = from; i <= to; i++) {
        if (w->v[i].outlier)
            continue;
        if (w->v[i].sent)
            p.sent[p.ns++] = w->v[i].p;
        else
            p.received[p.nr++] = w->v[i].p;
    }
    return p;
}

static void part_free(struct steps_part *p)
{
    free(p->sent);
    free(p->received);
}

/* A part counts if messages bound it from both sides. If such messages are only where a step may be, these count. */
static bool part_usable(const struct sweep *w, struct steps_part *p, const struct stretch_state *s)
{
    if (!p->ns || !p->nr) {
        part_free(p);
        *p = part_of(w, s->begin, s->end - 1);
    }
    if (p->ns && p->nr)
        return true;
    part_free(p);
    return false;
}

static void collect(const struct sweep *w, struct steps_parts *out)
{
    out->v = mem_alloc(w->depth * sizeof *out->v);
    out->steps = mem_alloc(w->depth * sizeof *out->steps);
    size_t from = 0;
    int64_t step_begin = 0;
    for (size_t k = 0; k < w->depth; k++) {
        const struct stretch_state *s = &w->stack[k];
        size_t last = s->end - 1, next = 0;
        if (k + 1 < w->depth)
            hidden_step(w, s, &w->stack[k + 1], &last, &next);
        if (from < s->begin || from >= s->end)
            from = s->begin;
        if (last < from)
            last = from;
        struct steps_part p = part_of(w, from, last);
        if (part_usable(w, &p, s)) {
            if (out->n)
                out->steps[out->n - 1] = (struct stretch){step_begin, w->v[from].p.x};
            out->v[out->n++] = p;
            step_begin = w->v[last].p.x;
        }
        from = next;
    }
    for (size_t i = 0; i < w->n; i++)
        out->outliers += w->v[i].outlier;
}

bool clock_steps_split(const struct point *sent, size_t ns, const struct point *received, size_t nr, int64_t low,
    int64_t high, double all, struct steps_parts *out)
{
    struct sweep *w = mem_zalloc(sizeof *w);
    *out = (struct steps_parts){0};
    w->n = ns + nr;
    w->budget = all < 10 * MAX_OUTLIERS ? (size_t)(all / 10) : MAX_OUTLIERS;
    w->v = merge_events(sent, ns, received, nr, low, high);
    if (sweep_run(w))
        collect(w, out);
    free(w->v);
    free(w);
    if (!out->n)
        clock_steps_free(out);
    return out->n > 0;
}

void clock_steps_free(struct steps_parts *p)
{
    for (size_t i = 0; i < p->n; i++)
        part_free(&p->v[i]);
    free(p->v);
    free(p->steps);
    *p = (struct steps_parts){0};
}

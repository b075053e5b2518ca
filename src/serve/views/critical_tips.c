/* SPDX-License-Identifier: MIT */
/* Tooltips of segments and arrows of a critical path: state, causes of begin and end, and the segments before and
 * after. */
#include "views/critical_tips.h"

#include <string.h>

#include "base/search.h"
#include "base/text.h"
#include "graph/graph.h"
#include "show/show.h"
#include "views/tips.h"

#define ASSUMED "ran until the message came, and is taken to have waited for it"

const char *critical_share(struct arena *a, const struct path *p, int64_t ns)
{
    return arena_printf(a, "%.2f %%", p->end > p->begin ? 100 * (double)ns / (double)(p->end - p->begin) : 0.0);
}

static void tip_if(struct tsp_answer *answer, const char *key, const char *value)
{
    if (value)
        tsp_write_tip(answer, key, value);
}

/* "web:196 tier": the name used for most of [begin, end]; NULL: not known. */
static const char *name_of(
    const struct critical_view *v, struct path_row row, int64_t begin, int64_t end, struct arena *a)
{
    int32_t tid;
    const char *name;
    if (row.host < 0)
        return NULL;
    v->source->row_name(v->source->arg, row, begin, end, &tid, &name);
    const char *host = v->source->host_name(v->source->arg, row.host);
    return tid < 0 ? arena_printf(a, "%s interrupt", host) : arena_printf(a, "%s:%d %s", host, tid, name);
}

static bool is_row(struct path_row a, struct path_row b)
{
    return a.host == b.host && a.row == b.row;
}

/* ---- causes of begin and end ---- */

struct tip {
    const struct views *views;
    const struct critical_view *view;
    const struct path_segment *segment;
    size_t number;
    struct arena *arena;
};

/* Signals of a segment: under way during all of it, arrived at its begin, arrived at its end, sent at its end. */
struct signals {
    const struct path_link *under_way, *came, *ended, *left;
};

static struct signals signals_of(const struct path *p, const struct path_segment *s)
{
    struct signals found = {0};
    for (size_t i = 0; i < p->n_links; i++) {
        const struct path_link *l = &p->links[i];
        bool to = is_row(l->to, s->row);
        if (to && l->from_ts == s->begin && l->to_ts == s->end)
            found.under_way = l;
        else if (to && l->to_ts == s->begin)
            found.came = l;
        else if (to && l->to_ts == s->end)
            found.ended = l;
        if (is_row(l->from, s->row) && l->from_ts == s->end)
            found.left = l;
    }
    return found;
}

/* Time since the begin of the query, as "+56.50 ms". */
static const char *since(const struct tip *t, int64_t ts)
{
    int64_t ns = ts - t->view->path->begin;
    return arena_printf(t->arena, "%s%s", ns < 0 ? "" : "+", arena_duration(t->arena, ns));
}

static const char *sender_of(const struct tip *t, const struct path_link *l)
{
    return name_of(t->view, l->from, l->from_ts, l->from_ts, t->arena) ?: "somebody not known";
}

/* Clock error between the machines of two rows, as "±0.38 ms"; NULL: none to report. */
static const char *apart(
    const struct critical_view *v, struct path_row a, struct path_row b, int64_t ts, struct arena *arena)
{
    const struct view_host *from = a.host < 0 ? NULL : v->hosts[a.host].here, *to = v->hosts[b.host].here;
    if (a.host == b.host || !from || !to)
        return NULL;
    int64_t ns = view_clock_error_ns(from, ts) + view_clock_error_ns(to, ts);
    return ns ? arena_printf(arena, "±%s", arena_duration(arena, ns)) : NULL;
}

static const char *message_words(const struct tip *t, const struct path_link *l)
{
    const char *error = apart(t->view, l->from, l->to, l->from_ts, t->arena);
    const char *words = arena_printf(
        t->arena, "a message from %s came, sent at %s", sender_of(t, l), since(t, l->from_ts));
    return error ? arena_printf(t->arena, "%s (%s)", words, error) : words;
}

static const char *signal_words(const struct tip *t, const struct path_link *l)
{
    const char *from = sender_of(t, l);
    switch (l->kind) {
    case PATH_LINK_NETWORK: return message_words(t, l);
    case PATH_LINK_FORK: return arena_printf(t->arena, "forked by %s", from);
    case PATH_LINK_WAKEUP: return arena_printf(t->arena, "woken by %s", from);
    default: return arena_printf(t->arena, "a signal from %s came", from);
    }
}

static const char *left_words(const struct tip *t, const struct path_link *l)
{
    const char *to = name_of(t->view, l->to, l->to_ts, l->to_ts, t->arena);
    switch (l->kind) {
    case PATH_LINK_NETWORK: return arena_printf(t->arena, "it sent a message to %s", to);
    case PATH_LINK_FORK: return arena_printf(t->arena, "it forked %s", to);
    default: return arena_printf(t->arena, "it woke %s", to);
    }
}

/* Words for the end of a state that no other thread ended. */
static const char *over(int state)
{
    switch (state) {
    case GRAPH_PREEMPTED: return "it got the CPU";
    case GRAPH_INTERRUPTED: return "the interrupt was over";
    case GRAPH_TIMER: return "its time was over";
    case GRAPH_NETWORK: return "the message came";
    case GRAPH_BLOCK_DEVICE: return "the disk was done";
    default: return NULL;
    }
}

/* Words for the next state of the same thread. */
static const char *turned(int state)
{
    switch (state) {
    case GRAPH_PREEMPTED: return "it lost the CPU";
    case GRAPH_INTERRUPTED: return "it was interrupted";
    case GRAPH_TIMER: return "it went to sleep";
    case GRAPH_BLOCK_DEVICE: return "it began to wait for the disk";
    case GRAPH_BLOCKED:
    case GRAPH_NETWORK: return "it began to wait";
    default: return NULL;
    }
}

static const char *began(const struct tip *t, const struct signals *by)
{
    const struct path_segment *s = t->segment, *last = t->number ? s - 1 : NULL;
    if (by->under_way && by->under_way->kind == PATH_LINK_NETWORK)
        return arena_printf(t->arena, "sent by %s", sender_of(t, by->under_way));
    if (by->under_way || by->came)
        return signal_words(t, by->under_way ?: by->came);
    if (!last)
        return "here the question begins";
    return is_row(last->row, s->row) ? over(last->state) ?: turned(s->state) : NULL;
}

static const char *ended(const struct tip *t, const struct signals *by)
{
    const struct path *p = t->view->path;
    const struct path_segment *s = t->segment, *next = t->number + 1 < p->n_segments ? s + 1 : NULL;
    const struct path_gap *gap = critical_gap(t->view, s->begin, s->end);
    if (gap)
        return gap->reason == PATH_PENDING ? "by what is still asked for" : "by what is not known";
    if (by->under_way)
        return by->under_way->kind == PATH_LINK_NETWORK ? "the message came" : "the signal took effect";
    if (by->left)
        return left_words(t, by->left);
    if (by->ended)
        return signal_words(t, by->ended);
    if (!next)
        return "here the question ends";
    return over(s->state) ?: (is_row(next->row, s->row) ? turned(next->state) : NULL);
}

static const char *at_with(const struct tip *t, int64_t ts, const char *words)
{
    return words ? arena_printf(t->arena, "%s, %s", since(t, ts), words) : since(t, ts);
}

/* "web:196 tier running 19.45 ms" */
static const char *summary(const struct tip *t, const struct path_segment *s)
{
    return arena_printf(t->arena, "%s %s %s", name_of(t->view, s->row, s->begin, s->end, t->arena),
        graph_state_name(s->state), arena_duration(t->arena, s->end - s->begin));
}

static void write_why(struct tsp_answer *answer, const struct tip *t)
{
    const struct path *p = t->view->path;
    const struct path_segment *s = t->segment;
    struct signals by = signals_of(p, s);
    tsp_write_tip(answer, "Segment", arena_printf(t->arena, "%zu of %zu", t->number + 1, p->n_segments));
    tsp_write_tip(answer, "Began", at_with(t, s->begin, began(t, &by)));
    tsp_write_tip(answer, "Ended", at_with(t, s->end, ended(t, &by)));
    tip_if(answer, "Before", t->number ? summary(t, s - 1) : NULL);
    tip_if(answer, "After", t->number + 1 < p->n_segments ? summary(t, s + 1) : NULL);
}

/* ---- the message of a segment on the network ---- */

enum { MOST_LOOKED_AT = 64 };

static bool is_of(const struct flow_store *flows, const struct flow_packet *p, const char *addresses)
{
    char source[64], destination[64];
    struct flow_key key;
    flow_key(flows, p->flow, &key);
    flow_format_endpoint(&key, true, source, sizeof source);
    flow_format_endpoint(&key, false, destination, sizeof destination);
    size_t n = strlen(source), arrow = strlen(" → ");
    return !strncmp(addresses, source, n) && !strncmp(addresses + n, " → ", arrow) &&
        !strncmp(addresses + n + arrow, destination, strlen(destination));
}

/* Finds the packet that ended the wait: the last one with these addresses that arrived for the thread meanwhile. */
static bool find_packet(const struct view_host *h, int32_t row, const struct path_segment *s, struct flow_packet *p)
{
    const struct flow_store *flows = h->index->flows;
    int64_t begin = view_to_host(h, s->begin - view_clock_error_ns(h, s->begin)), end = view_to_host(h, s->end);
    size_t receives, n = flows ? flow_messages(flows, row, &receives) : 0;
    bool is_send;
    size_t after = search_first(i, 0, n, (flow_message(flows, row, i, p, &is_send), p->ts > end));
    for (size_t i = after; i-- > 0 && after - i <= MOST_LOOKED_AT;) {
        flow_message(flows, row, i, p, &is_send);
        if (p->ts < begin)
            return false;
        if (!is_send && is_of(flows, p, s->detail))
            return true;
    }
    return false;
}

static void write_bytes(struct tsp_answer *answer, const struct tip *t)
{
    const struct path_segment *s = t->segment;
    size_t host;
    int32_t row;
    struct flow_packet p;
    if (s->state == GRAPH_NETWORK && s->detail &&
        view_thread_of(t->views, critical_entry(t->view, s->row), &host, &row) &&
        find_packet(&t->views->hosts[host], row, s, &p))
        tsp_write_tip(answer, "Bytes", arena_printf(t->arena, "%u in the packet that ended the wait", p.bytes));
}

/* ---- call stacks ---- */

enum { MOST_FRAMES = 8 };

static void write_stack(
    struct tsp_answer *answer, const char *key, bool has, const struct graph_stack *s, struct arena *a)
{
    struct text words = {.fd = -1};
    if (!has)
        return;
    show_stack(s, MOST_FRAMES, &words);
    tsp_write_tip(answer, key, arena_strdup(a, text_cstr(&words)));
    text_fini(&words);
}

/* ---- tooltips ---- */

static void write_segment(struct tsp_answer *answer, const struct tip *t)
{
    const struct critical_view *v = t->view;
    const struct path_segment *s = t->segment;
    tsp_write_tip(answer, "State", graph_state_name(s->state));
    tip_if(answer, "Detail", s->detail);
    tip_if(answer, "Sender", name_of(v, s->sender, s->begin, s->begin, t->arena));
    write_bytes(answer, t);
    struct graph_stack stack;
    bool has = path_segment_stack(v->source, s, &stack);
    write_stack(answer, "Call stack", has, &stack, t->arena);
    tip_if(answer, "Assumed", s->assumed ? ASSUMED : NULL);
    if (s->cpu >= 0 && s->cpu != PATH_CPU_UNKNOWN)
        view_write_number(answer, "CPU", s->cpu);
    const struct path_gap *gap = critical_gap(v, s->begin, s->end);
    if (gap) {
        tsp_write_tip(answer, CRITICAL_UNEXPLAINED, path_reason_name(gap->reason));
        tip_if(answer, "Peer", gap->peer);
    }
    write_why(answer, t);
    view_write_span(answer, s->begin, s->end);
    tsp_write_tip(answer, "Share of the path", critical_share(t->arena, v->path, s->end - s->begin));
}

static void write_row(struct tsp_answer *answer, const struct views *x, const struct critical_view *v,
    const struct critical_row *r, int64_t time, struct arena *a)
{
    size_t k = search_first(i, 0, r->n, critical_segment(v, r, i)->end > time);
    const struct path_segment *s = k < r->n ? critical_segment(v, r, k) : NULL;
    int32_t tid = r->tid;
    if (s && s->begin > time)
        s = NULL;
    const char *name = r->name;
    if (s)
        v->source->row_name(v->source->arg, s->row, s->begin, s->end, &tid, &name);
    if (tid >= 0) {
        tsp_write_tip(answer, "Process", name);
        view_write_number(answer, "TID", tid);
    }
    if (s)
        write_segment(answer, &(struct tip){x, v, s, (size_t)(s - v->path->segments), a});
}

/* Segment during which the link's message was under way, or NULL. */
static const struct path_segment *segment_of(const struct path *p, const struct path_link *l)
{
    size_t at = search_first(i, 0, p->n_segments, p->segments[i].end >= l->to_ts);
    const struct path_segment *s = at < p->n_segments ? &p->segments[at] : NULL;
    return s && l->kind == PATH_LINK_NETWORK && s->state == GRAPH_NETWORK && is_row(s->row, l->to) ? s : NULL;
}

static void write_link(struct tsp_answer *answer, const struct views *x, const struct critical_view *v,
    const struct path_link *l, struct arena *a)
{
    const struct path_segment *s = segment_of(v->path, l);
    tsp_write_tip(answer, "Kind", path_link_name(l->kind));
    tip_if(answer, "Assumed", l->assumed ? ASSUMED : NULL);
    struct graph_stack stack;
    bool has = path_waker_stack(v->source, l, &stack);
    write_stack(answer, "Call stack at its begin", has, &stack, a);
    has = path_sleeper_stack(v->source, l, &stack);
    write_stack(answer, "Call stack of the wait", has, &stack, a);
    if (s) {
        tip_if(answer, "Detail", s->detail);
        write_bytes(answer, &(struct tip){x, v, s, (size_t)(s - v->path->segments), a});
    }
}

static void write_arrow(struct tsp_answer *answer, const struct views *x, const struct tsp_query *q,
    const struct critical_view *v, const struct critical_row *from, const struct critical_row *to)
{
    const struct path *p = v->path;
    for (size_t i = 0; i < p->n_links; i++) {
        const struct path_link *l = &p->links[i];
        if (l->from_ts != q->element_time || l->to_ts != q->element_time + q->element_duration ||
            !is_row(l->from, from->row) || !is_row(l->to, to->row))
            continue;
        write_link(answer, x, v, l, q->http->arena);
        break;
    }
    tip_if(answer, "From", name_of(v, from->row, q->element_time, q->element_time, q->http->arena));
    int64_t end = q->element_time + q->element_duration;
    tip_if(answer, "To", name_of(v, to->row, end, end, q->http->arena));
    view_write_span(answer, q->element_time, end);
    tip_if(answer, "Clock error", apart(v, from->row, to->row, q->element_time, q->http->arena));
}

void critical_write_tooltip(
    struct views *x, const struct tsp_query *q, const struct critical_view *v, struct tsp_answer *answer)
{
    int64_t entry, t;
    const struct critical_row *r = view_tooltip_target(q, &entry, &t) ? critical_row_of(v, entry) : NULL;
    tsp_begin_tooltip(answer);
    if (r) {
        const struct critical_row *to = view_tooltip_of_arrow(q) ? critical_row_of(v, q->element_destination) : NULL;
        tsp_write_tip(answer, "Host", r->host->name);
        if (to)
            write_arrow(answer, x, q, v, r, to);
        else
            write_row(answer, x, v, r, t, q->http->arena);
        if (!to && r->host->here)
            view_write_clock_error(answer, r->host->here, t);
    }
    tsp_end_tooltip(answer);
}

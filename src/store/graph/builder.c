/* SPDX-License-Identifier: MIT */
/* Rules of events: kernel records to states of rows (reference/critical-path.md 1.3, 1.7, 8; for users:
 * docs/formats/graph.md). */
#include "graph/builder.h"

#include <stdlib.h>

enum { NOBODY = -1 };

struct graph_builder *graph_builder_new(const struct kernel_tracker *t)
{
    struct graph_builder *b = mem_zalloc(sizeof *b);
    b->tracker = t;
    b->now = INT64_MIN;
    strings_intern(&b->details, "", 0);
    return b;
}

void graph_builder_free(struct graph_builder *b)
{
    if (!b)
        return;
    vec_free(&b->rows);
    vec_free(&b->cpus);
    vec_free(&b->losses);
    vec_free(&b->marks);
    graph_stacks_fini(&b->stacks);
    vec_free(&b->windows.by_begin);
    vec_free(&b->early_wakes);
    vec_free(&b->early_wake_of);
    vec_free(&b->over);
    vec_free(&b->carried);
    vec_free(&b->detail_of);
    strings_fini(&b->details);
    arena_fini(&b->arena);
    free(b);
}

/* ---- rows ---- */

static void add_rows(struct graph_builder *b, int32_t row)
{
    while (b->rows.n <= (size_t)row)
        vec_push(&b->rows, (struct graph_building_row){.cpu = -1});
}

/* Row in a record; NULL for none and for idle threads, whose states are their CPU's occupants. */
static struct graph_building_row *row_at(struct graph_builder *b, int32_t row)
{
    if (row < 0)
        return NULL;
    if ((size_t)row >= b->rows.n)
        add_rows(b, row);
    struct graph_building_row *r = &b->rows.v[row];
    if (r->now == GRAPH_NOW_UNSEEN) {
        const struct kernel_thread *threads;
        size_t n = kernel_tracker_threads(b->tracker, &threads);
        if ((size_t)row >= n || threads[row].idle_cpu >= 0)
            return NULL;
        r->now = GRAPH_NOW_UNKNOWN;
        r->since = threads[row].begin;
    }
    return r;
}

static void push(
    struct graph_builder *b, struct graph_building_row *r, int64_t begin, int64_t end, const struct graph_ending *e)
{
    if (end <= begin)
        return;
    struct graph_entry x = {.begin = begin, .state = e->state, .cause = e->cause, .detail = e->detail, .arg = e->arg};
    graph_log_push(&b->arena, &r->log, &x);
    if (e->cause == GRAPH_CAUSE_WAKEUP && e->ts != end)
        vec_push(&b->early_wakes,
            ((struct graph_early_wake){.row = (int32_t)(r - b->rows.v), .n = r->log.n - 1, .ts = e->ts}));
}

static struct graph_ending running_on(int32_t cpu)
{
    return (struct graph_ending){.state = GRAPH_RUNNING, .arg = (uint32_t)cpu};
}
static const struct graph_ending unknown = {.state = GRAPH_UNKNOWN},
                                 unknown_lost = {.state = GRAPH_UNKNOWN, .cause = GRAPH_CAUSE_LOST},
                                 preempted = {.state = GRAPH_PREEMPTED};

/* Logs the stretch on the CPU that a row was not seen to leave before it came to another one. */
static void flush_held(struct graph_builder *b, struct graph_building_row *r, bool seen_to_leave)
{
    if (!r->held)
        return;
    r->held = false;
    struct graph_ending ran = running_on(r->held_cpu);
    int64_t sure = seen_to_leave ? r->held_ts : r->held_last > r->held_since ? r->held_last : r->held_since;
    push(b, r, r->held_since, sure, &ran);
    push(b, r, sure, r->held_ts, &unknown);
}

/* Logs the open part as [since, end) with that ending. */
static void until(struct graph_builder *b, struct graph_building_row *r, int64_t end, const struct graph_ending *e)
{
    flush_held(b, r, false);
    push(b, r, r->since, end, e);
    if (end > r->since)
        r->since = end;
}

static void become(struct graph_building_row *r, uint8_t now)
{
    r->now = now;
    r->lost = false;
    r->amendable = false;
}

/* Apparent state of a row, as an ending without cause. */
static struct graph_ending seeming(const struct graph_building_row *r)
{
    switch (r->now) {
    case GRAPH_NOW_WAITING: return (struct graph_ending){.state = GRAPH_BLOCKED, .detail = r->wait_detail};
    case GRAPH_NOW_READY: return preempted;
    case GRAPH_NOW_RUNNING: return running_on(r->cpu);
    default: return r->lost ? unknown_lost : unknown;
    }
}

/* Logs the apparent state up to `from`, then missing events up to `to`. */
static void until_loss(struct graph_builder *b, struct graph_building_row *r, int64_t from, int64_t to)
{
    struct graph_ending e = seeming(r);
    if (r->now == GRAPH_NOW_WAITING)
        e.cause = GRAPH_CAUSE_LOST;
    until(b, r, from, &e);
    until(b, r, to, &unknown_lost);
}

/* Returns whether a lost row may still run on a CPU: one that has not switched since its events are complete. */
static bool may_run_unseen(const struct graph_builder *b)
{
    for (size_t i = 0; i < b->cpus.n; i++)
        if (b->cpus.v[i].current < 0)
            return true;
    return false;
}

/* Ends a row's unobserved time at ts, when it becomes known that it was in the state `tail` since the last gap in the
 * events. stayed: it was on no CPU whose stream is missing. */
static void settle(
    struct graph_builder *b, struct graph_building_row *r, int64_t ts, const struct graph_ending *tail, bool stayed)
{
    int64_t from, to;
    bool gap = graph_builder_missing(b, r->since, ts, stayed, &from, &to);
    struct graph_ending seems = seeming(r);
    if (gap && tail->state != GRAPH_PREEMPTED && may_run_unseen(b))
        to = ts; /* running rows can be woken, too */
    if (gap && b->n_absent && !stayed)
        r->syscall = 0; /* may have returned from the call in the gap */
    if (r->now == GRAPH_NOW_UNKNOWN) {
        if ((r->lost || (b->n_absent && !stayed)) && gap)
            until(b, r, to, &unknown_lost);
        until(b, r, ts, tail);
    } else if (gap && (from < to || (r->now == GRAPH_NOW_WAITING && tail->state == GRAPH_PREEMPTED))) {
        until_loss(b, r, from, to);
        until(b, r, ts, tail);
    } else if (r->now == GRAPH_NOW_WAITING && tail->state == GRAPH_PREEMPTED) {
        until(b, r, ts, &seems); /* wake not seen */
    } else {
        until(b, r, ts, tail);
    }
}

/* ---- CPUs ---- */

struct graph_building_cpu *graph_builder_cpu(struct graph_builder *b, uint32_t cpu)
{
    while (b->cpus.n <= cpu)
        vec_push(&b->cpus, ((struct graph_building_cpu){.current = NOBODY, .last_ts = INT64_MIN, .heard = true}));
    return &b->cpus.v[cpu];
}

static void occupy(struct graph_builder *b, struct graph_building_cpu *c, int64_t ts, int32_t row)
{
    struct graph_entry x = {.begin = ts, .cause = GRAPH_CAUSE_WAKEUP, .arg = (uint32_t)(row + 1)};
    if (c->occupants.n && ts <= c->last_change) {
        graph_log_amend(&c->occupants, &x);
        return;
    }
    graph_log_push(&b->arena, &c->occupants, &x);
    c->last_change = ts;
}

void graph_builder_lose_current(struct graph_builder *b, uint32_t cpu, int64_t ts)
{
    struct graph_building_cpu *c = &b->cpus.v[cpu];
    struct graph_building_row *r = row_at(b, c->current);
    if (r && r->now == GRAPH_NOW_RUNNING && r->cpu == (int32_t)cpu) {
        struct graph_ending ran = running_on((int32_t)cpu);
        until(b, r, ts, &ran);
        become(r, GRAPH_NOW_UNKNOWN);
        r->lost = true;
        r->has_pending = false;
        r->syscall = 0;
    }
    if (c->current >= 0)
        occupy(b, c, ts > c->last_change ? ts : c->last_change, NOBODY);
    c->current = NOBODY;
}

static void on_loss(struct graph_builder *b, const struct kernel_record *rec)
{
    int64_t begin = rec->u.lost.begin, end = rec->u.lost.end;
    if (rec->u.lost.count)
        vec_push(
            &b->losses, ((struct graph_loss){.begin = begin, .end = end, .cpu = rec->cpu, .count = rec->u.lost.count}));
    graph_windows_add(&b->windows, rec->cpu, begin, end, rec->u.lost.count && rec->cpu != UINT32_MAX);
    for (uint32_t cpu = 0; cpu < b->cpus.n; cpu++) {
        if (rec->cpu != cpu && rec->cpu != UINT32_MAX)
            continue;
        graph_builder_lose_current(b, cpu, begin);
        b->cpus.v[cpu].lost = true;
        b->cpus.v[cpu].heard = !rec->u.lost.count || rec->cpu == UINT32_MAX;
    }
}

/* ---- switches ---- */

/* Handles a row that leaves its CPU without having been seen to come: it came at an unknown time before `sure`. */
static void came_unseen(struct graph_builder *b, struct graph_building_row *r, uint32_t cpu, int64_t sure)
{
    int64_t from, to;
    const struct kernel_thread *threads;
    kernel_tracker_threads(b->tracker, &threads);
    if (sure < r->since && !r->log.n && !r->held && threads[r - b->rows.v].begin == sure)
        r->since = sure; /* existed before it was first mentioned */
    if (sure < r->since)
        sure = r->since;
    if (r->now == GRAPH_NOW_RUNNING) { /* seen to come to another CPU, but not to leave that one */
        struct graph_building_cpu *other = &b->cpus.v[r->cpu];
        int64_t last = other->last_ts < sure ? other->last_ts : sure;
        if (other->current == (int32_t)(r - b->rows.v)) {
            graph_builder_lose_current(b, (uint32_t)r->cpu, last);
        } else {
            struct graph_ending ran = running_on(r->cpu);
            until(b, r, last, &ran);
        }
    } else if (r->now == GRAPH_NOW_WAITING || r->now == GRAPH_NOW_READY) {
        if (graph_builder_missing(b, r->since, sure, false, &from, &to))
            until_loss(b, r, from, sure);
    }
    until(b, r, sure, r->now == GRAPH_NOW_UNKNOWN && r->lost ? &unknown_lost : &unknown);
    become(r, GRAPH_NOW_RUNNING);
    r->cpu = (int32_t)cpu;
}

static void leave(struct graph_builder *b, struct graph_building_row *r, const struct kernel_record *rec)
{
    struct graph_ending ran = running_on((int32_t)rec->cpu);
    until(b, r, b->now, &ran);
    switch (rec->u.sw.leave) {
    case KERNEL_LEAVE_BLOCKED:
        become(r, GRAPH_NOW_WAITING);
        r->wait_detail = r->syscall;
        return;
    case KERNEL_LEAVE_STOPPED:
        become(r, GRAPH_NOW_WAITING);
        r->wait_detail = graph_detail(b, "stopped");
        break;
    case KERNEL_LEAVE_DEAD: become(r, GRAPH_NOW_GONE); break;
    default: become(r, GRAPH_NOW_READY);
    }
    r->has_pending = false;
}

/* Ends a pending wake: the row comes to its CPU after a waking before its switch-out; the sched_wakeup between was not
 * seen. */
static void end_pending(struct graph_builder *b, struct graph_building_row *r)
{
    int64_t from, to;
    if (graph_builder_missing(b, r->since, b->now, false, &from, &to)) {
        until(b, r, from, &r->pending);
        until(b, r, to, &unknown_lost);
        until(b, r, b->now, &preempted);
    } else {
        until(b, r, b->now, &r->pending);
    }
}

static void enter(struct graph_builder *b, struct graph_building_row *r, uint32_t cpu)
{
    bool unexplained = false;
    switch (r->now) {
    case GRAPH_NOW_RUNNING:
        if (r->cpu == (int32_t)cpu)
            return;
        flush_held(b, r, false);
        r->held = true;
        r->held_cpu = r->cpu;
        r->held_since = r->since;
        r->held_last = b->cpus.v[r->cpu].last_ts;
        r->held_ts = r->since = b->now;
        break;
    case GRAPH_NOW_WAITING:
        if (r->has_pending) {
            end_pending(b, r);
        } else {
            int64_t before = r->since, from, to;
            unexplained = b->now > before && !graph_builder_missing(b, before, b->now, false, &from, &to);
            settle(b, r, b->now, &preempted, false);
        }
        break;
    case GRAPH_NOW_READY: settle(b, r, b->now, &preempted, false); break;
    case GRAPH_NOW_UNKNOWN: /* no wake since the events are complete: it waited for the CPU */
        settle(b, r, b->now, kernel_tracker_has(b->tracker, KERNEL_WAKE) ? &preempted : &unknown, false);
        break;
    default: until(b, r, b->now, &unknown);
    }
    become(r, GRAPH_NOW_RUNNING);
    r->has_pending = false;
    r->amendable = unexplained;
    r->cpu = (int32_t)cpu;
}

static void on_switch(struct graph_builder *b, const struct kernel_record *rec)
{
    struct graph_building_cpu *c = &b->cpus.v[rec->cpu];
    int32_t prev = rec->u.sw.prev, next = rec->u.sw.next;
    if (c->current >= 0 && c->current != prev) { /* a switch is missing, without a reported loss */
        struct graph_building_row *gone = row_at(b, c->current);
        graph_builder_lose_current(b, rec->cpu, c->last_ts);
        if (gone && gone->lost)
            until(b, gone, b->now, &unknown_lost);
    }
    if (c->current < 0 && prev >= 0 && rec->u.sw.since < b->now)
        occupy(b, c, !c->occupants.n || rec->u.sw.since > c->last_change ? rec->u.sw.since : c->last_change, prev);
    struct graph_building_row *r = row_at(b, prev);
    if (r && r->held && r->held_cpu == (int32_t)rec->cpu && r->held_ts == b->now) {
        flush_held(b, r, true); /* left in the ns in which it came to the other CPU, whose record came first */
    } else if (r) {
        if (r->now != GRAPH_NOW_RUNNING || r->cpu != (int32_t)rec->cpu)
            came_unseen(b, r, rec->cpu, rec->u.sw.since);
        leave(b, r, rec);
    }
    if ((r = row_at(b, next)))
        enter(b, r, rec->cpu);
    occupy(b, c, b->now, next);
    c->current = next;
    c->lost = false;
}

/* ---- wakes ---- */

static void on_wake(struct graph_builder *b, const struct kernel_record *rec, uint64_t packet_wake)
{
    struct graph_building_row *r = row_at(b, rec->u.wake.row);
    if (!r || (rec->u.wake.row == rec->row && r->now == GRAPH_NOW_RUNNING))
        return; /* wake of the thread that runs here, which does not sleep */
    struct graph_ending e;
    int64_t from, to;
    /* sched_waking names the last CPU of the thread. */
    bool stayed = r->now == GRAPH_NOW_WAITING && !rec->u.wake.by_wakeup && r->cpu == rec->u.wake.target_cpu &&
        r->cpu >= 0 && (size_t)r->cpu < b->cpus.n && !b->cpus.v[r->cpu].absent;
    switch (r->now) {
    case GRAPH_NOW_RUNNING:
        e = graph_wake_ending(b, rec, packet_wake, r->amendable ? r->wait_detail : r->syscall);
        if (r->amendable && r->since == b->now && r->log.n && !r->held) {
            graph_log_amend(
                &r->log, &(struct graph_entry){.state = e.state, .cause = e.cause, .detail = e.detail, .arg = e.arg});
            r->amendable = false;
            return;
        }
        r->pending = e;
        r->has_pending = true;
        return;
    case GRAPH_NOW_READY: /* woken already, unless it ran and waited again unseen */
        if (!graph_builder_missing(b, r->since, b->now, false, &from, &to))
            return;
        e = graph_wake_ending(b, rec, packet_wake, 0);
        until_loss(b, r, from, may_run_unseen(b) ? b->now : to);
        until(b, r, b->now, &e);
        break;
    case GRAPH_NOW_WAITING:
        e = graph_wake_ending(b, rec, packet_wake, r->wait_detail);
        if (r->since == b->now && r->log.n &&
            kernel_tracker_has(
                b->tracker, KERNEL_WAKEUP)) { /* wake in the ns of its switch-out: it is still on its CPU */
            r->pending = e;
            r->has_pending = true;
            return;
        }
        settle(b, r, b->now, &e, stayed);
        break;
    case GRAPH_NOW_UNKNOWN:
        e = graph_wake_ending(b, rec, packet_wake, r->syscall);
        settle(b, r, b->now, &e, stayed);
        break;
    default: return;
    }
    become(r, GRAPH_NOW_READY);
    r->has_pending = false;
}

/* Handles sched_wakeup besides sched_waking: the row is on a run queue. Ends waits whose waking came before the
 * switch-out (rule 8.5). */
static void on_wakeup(struct graph_builder *b, const struct kernel_record *rec)
{
    struct graph_building_row *r = row_at(b, rec->u.wake.row);
    if (!r)
        return;
    if (r->now == GRAPH_NOW_WAITING || r->now == GRAPH_NOW_UNKNOWN) {
        struct graph_ending e = {.state = GRAPH_BLOCKED, .detail = r->now == GRAPH_NOW_WAITING ? r->wait_detail : 0};
        int64_t from, to;
        if (r->has_pending)
            e = r->pending;
        else if (graph_builder_missing(b, r->since, b->now, false, &from, &to))
            e.cause = GRAPH_CAUSE_LOST;
        settle(b, r, b->now, &e, false);
        become(r, GRAPH_NOW_READY);
    }
    r->has_pending = false;
}

static void on_fork(struct graph_builder *b, int32_t child)
{
    struct graph_building_row *r = row_at(b, child);
    if (r && r->now == GRAPH_NOW_UNKNOWN && !r->log.n)
        become(r, GRAPH_NOW_READY);
}

static void on_dumped(struct graph_builder *b, const struct kernel_record *rec)
{
    struct graph_building_row *r = row_at(b, rec->u.thread.row);
    if (!r || r->now != GRAPH_NOW_UNKNOWN || rec->u.thread.status != KERNEL_DUMPED_WAITING)
        return;
    int64_t from, to;
    if ((r->lost || b->n_absent) && graph_builder_missing(b, r->since, b->now, false, &from, &to))
        until(b, r, to, &unknown_lost);
    become(r, GRAPH_NOW_WAITING);
    r->wait_detail = 0;
}

static void on_mark(struct graph_builder *b, const struct kernel_record *rec)
{
    const struct kernel_mark *from = &rec->u.mark;
    struct graph_mark m = {.ts = b->now, .row = rec->row, .process = from->process, .is_end = from->is_end};
    memcpy(m.trace, from->trace, sizeof m.trace);
    memcpy(m.span, from->span, sizeof m.span);
    vec_push(&b->marks, m);
}

/* ---- records ---- */

void graph_builder_add(struct graph_builder *b, const struct kernel_record *rec, uint64_t packet_wake)
{
    if (rec->ts > b->now)
        b->now = rec->ts;
    if (rec->kind == KERNEL_LOST) {
        if (rec->cpu != UINT32_MAX)
            graph_builder_cpu(b, rec->cpu);
        on_loss(b, rec);
        return;
    }
    struct graph_building_cpu *c = rec->cpu < b->cpus.n ? &b->cpus.v[rec->cpu] : graph_builder_cpu(b, rec->cpu);
    if (rec->kind == KERNEL_ABSENT) {
        graph_builder_absent(b, rec);
        return;
    }
    if (__builtin_expect(!c->heard, 0)) {
        c->heard = true;
        if (c->absent)
            graph_builder_present(b, rec->cpu);
        graph_windows_close(&b->windows, rec->cpu, b->now);
    }
    struct graph_building_row *r;
    switch (rec->kind) {
    case KERNEL_SWITCH: on_switch(b, rec); break;
    case KERNEL_WAKE: on_wake(b, rec, packet_wake); break;
    case KERNEL_WAKEUP: on_wakeup(b, rec); break;
    case KERNEL_WAKE_NEW: on_fork(b, rec->u.wake.row); break;
    case KERNEL_FORK:
        row_at(b, rec->u.fork.parent);
        on_fork(b, rec->u.fork.child);
        break;
    case KERNEL_SYSCALL_ENTRY:
        if ((r = row_at(b, rec->row)))
            r->syscall = graph_detail_of_string(b, rec->u.syscall.name);
        break;
    case KERNEL_SYSCALL_EXIT:
        if ((r = row_at(b, rec->row)))
            r->syscall = 0;
        break;
    case KERNEL_BLOCK_COMPLETE:
        c->block_frame = rec->ctx_frame;
        c->block_dev = rec->u.block.dev;
        break;
    case KERNEL_STATEDUMP_THREAD: on_dumped(b, rec); break;
    case KERNEL_SPAN_MARK: on_mark(b, rec); break;
    default: break;
    }
    if (__builtin_expect(rec->stacks || b->stacks.calls.n, 0))
        graph_builder_stacks(b, rec);
    b->cpus.v[rec->cpu].last_ts = b->now;
}

void graph_builder_close_row(struct graph_builder *b, int32_t row, int64_t end)
{
    const struct kernel_thread *threads;
    kernel_tracker_threads(b->tracker, &threads);
    const struct kernel_thread *k = &threads[row];
    struct graph_building_row *r = row_at(b, row);
    int64_t from, to;
    if (!r || r->now == GRAPH_NOW_GONE)
        return;
    struct graph_ending e = seeming(r);
    if (k->died && k->end < end)
        end = k->end;
    if (r->now != GRAPH_NOW_RUNNING && graph_builder_missing(b, r->since, end, false, &from, &to))
        until_loss(b, r, from, end);
    else if (k->died && r->now != GRAPH_NOW_RUNNING)
        e = unknown; /* died without being seen to run again */
    until(b, r, end, &e);
    become(r, GRAPH_NOW_GONE);
}

void graph_builder_gap(struct graph_builder *b, int64_t from, int64_t to)
{
    if (to > b->now)
        b->now = to;
    on_loss(b,
        &(struct kernel_record){
            .ts = to, .cpu = UINT32_MAX, .kind = KERNEL_LOST, .u.lost = {.begin = from, .end = to}});
}

/* SPDX-License-Identifier: MIT */
/* Builder at a cut. The last interval in a row's log is not written, since it may continue or be amended; it goes to
 * the next chunk with everything undecided. So each interval is whole in one chunk, wherever cuts are. */
#include <stdlib.h>
#include <string.h>

#include "base/carry.h"
#include "base/search.h"
#include "graph/builder.h"
#include "graph/layout.h"

enum { MOST_CPUS = 1 << 16, LEAST_CPU_BYTES = 16, LEAST_WINDOW_BYTES = 20 };
/* Delay with which a loss may be reported after the death of rows that it touched. */
static const int64_t LATE_LOSS_NS = INT64_C(10000000000);

/* LOAD: marks the bytes as invalid. */
static void refuse(struct carry *c)
{
    c->damaged = true;
    c->at = c->end;
}

static void carry_time(struct carry *c, int64_t *t)
{
    carry_number(c, t);
    if (c->way == CARRY_LOAD && *t != INT64_MIN && (*t < -GRAPH_MOST_TIME || *t > GRAPH_MOST_TIME)) {
        refuse(c);
        *t = 0;
    }
}

static void carry_detail(struct carry *c, struct graph_builder *b, uint16_t *detail)
{
    uint32_t number = *detail;
    carry_string(c, &b->details, &number);
    *detail = number > UINT16_MAX ? 0 : (uint16_t)number;
}

static void carry_cpu(struct carry *c, const struct graph_builder *b, int32_t *cpu)
{
    carry_number(c, cpu);
    if (c->way == CARRY_LOAD && (*cpu < 0 || (size_t)*cpu >= b->cpus.n)) {
        refuse(c);
        *cpu = -1;
    }
}

/* Visits the fields of an interval besides its begin. */
static void carry_what(struct carry *c, struct graph_builder *b, struct graph_entry *x)
{
    carry_below(c, &x->state, GRAPH_STATE_COUNT);
    carry_below(c, &x->cause, GRAPH_CAUSE_LOST + 1);
    carry_detail(c, b, &x->detail);
    if (x->cause == GRAPH_CAUSE_WAKEUP) {
        int32_t row = (int32_t)x->arg;
        carry_row(c, &row);
        x->arg = (uint32_t)row;
        if (c->way == CARRY_LOAD && row < 0)
            x->cause = GRAPH_CAUSE_NONE;
    } else if (x->cause == GRAPH_CAUSE_PACKET) {
        uint64_t wake = b->wake0 + (uint64_t)(int32_t)x->arg;
        carry_number(c, &wake);
        x->arg = (uint32_t)(wake - b->wake0);
        if (c->way == CARRY_LOAD && wake - b->wake0 != (uint64_t)(int32_t)x->arg)
            x->cause = GRAPH_CAUSE_NONE; /* older than 2^31 messages */
    } else if (x->state == GRAPH_RUNNING) {
        int32_t cpu = (int32_t)x->arg;
        carry_cpu(c, b, &cpu);
        x->arg = (uint32_t)cpu;
    }
}

static void carry_pending(struct carry *c, struct graph_builder *b, struct graph_ending *e)
{
    struct graph_entry x = {.state = e->state, .cause = e->cause, .detail = e->detail, .arg = e->arg};
    carry_what(c, b, &x);
    *e = (struct graph_ending){.state = x.state, .cause = x.cause, .detail = x.detail, .arg = x.arg, .ts = e->ts};
    carry_time(c, &e->ts);
}

/* ---- rows ---- */

static void carry_early_wake(struct carry *c, struct graph_builder *b, int32_t row)
{
    const struct graph_log *log = &b->rows.v[row].log;
    struct graph_early_wake w = {.row = row};
    size_t i = b->early_wake_of.n > (size_t)row ? b->early_wake_of.v[row] : 0;
    bool has = i && b->early_wakes.v[i - 1].n + 1 == log->n;
    carry_bool(c, &has);
    if (!has)
        return;
    if (i)
        w.ts = b->early_wakes.v[i - 1].ts;
    carry_time(c, &w.ts);
    if (c->way == CARRY_LOAD)
        vec_push(&b->early_wakes, w);
}

/* Visits the last interval of the log. */
static void carry_last(struct carry *c, struct graph_builder *b, int32_t row)
{
    struct graph_building_row *r = &b->rows.v[row];
    bool has = r->log.n;
    carry_bool(c, &has);
    if (!has)
        return;
    struct graph_entry x = {0};
    if (c->way != CARRY_LOAD)
        x = graph_log_last(&r->log);
    carry_time(c, &x.begin);
    carry_what(c, b, &x);
    if (c->way == CARRY_LOAD && x.begin >= r->since)
        refuse(c);
    if (c->way == CARRY_LOAD && !c->damaged)
        graph_log_push(&b->arena, &r->log, &x);
    carry_early_wake(c, b, row);
}

static bool is_over(const struct graph_builder *b, size_t row)
{
    return row < b->over.n && b->over.v[row];
}

static void carry_building_row(struct carry *c, struct graph_builder *b, int32_t row)
{
    struct graph_building_row unseen = {.cpu = -1};
    struct graph_building_row *r = (size_t)row < b->rows.n ? &b->rows.v[row] : &unseen;
    carry_below(c, &r->now, GRAPH_NOW_GONE + 1);
    if (r->now == GRAPH_NOW_UNSEEN)
        return;
    carry_time(c, &r->since);
    bool over = is_over(b, (size_t)row);
    carry_bool(c, &over); /* rows carried only because something refers to them */
    if (over)
        return;
    carry_bool(c, &r->lost);
    carry_bool(c, &r->has_pending);
    carry_bool(c, &r->amendable);
    carry_bool(c, &r->held);
    carry_detail(c, b, &r->syscall);
    if (r->now == GRAPH_NOW_WAITING || r->amendable)
        carry_detail(c, b, &r->wait_detail);
    if (r->now == GRAPH_NOW_RUNNING)
        carry_cpu(c, b, &r->cpu);
    else if (r->now == GRAPH_NOW_WAITING)
        carry_number(c, &r->cpu); /* CPU before, only compared */
    if (r->held) {
        carry_cpu(c, b, &r->held_cpu);
        carry_time(c, &r->held_since);
        carry_time(c, &r->held_last);
        carry_time(c, &r->held_ts);
    }
    if (r->has_pending)
        carry_pending(c, b, &r->pending);
    carry_last(c, b, row);
}

/* Finds threads seen to die that are not on a CPU according to the rows asked before, the tracker first: they are
 * closed even if they were not seen to leave their CPU for the last time. Closed rows are decided. */
static void find_over(struct carry *c, struct graph_builder *b)
{
    const struct kernel_thread *threads;
    size_t n = kernel_tracker_threads(b->tracker, &threads);
    b->over.n = 0;
    for (size_t i = 0; i < n; i++) {
        bool dead = threads[i].died && !carry_is_marked(c, (int32_t)i);
        if (dead && b->now - LATE_LOSS_NS > threads[i].end)
            graph_builder_close_row(b, (int32_t)i, b->now);
        vec_push(&b->over, dead && i < b->rows.n && b->rows.v[i].now == GRAPH_NOW_GONE);
    }
}

static void mark_rows(struct carry *c, struct graph_builder *b)
{
    find_over(c, b);
    for (size_t i = 0; i < b->over.n; i++) {
        int32_t row = (int32_t)i;
        if (b->over.v[i])
            continue;
        carry_row(c, &row);
        carry_building_row(c, b, row);
    }
}

/* Visits carried rows, by number in the next chunk. */
static void save_rows(struct carry *c, struct graph_builder *b)
{
    int32_t *rows = mem_alloc((c->n_rows + 1) * sizeof *rows);
    b->carried.n = 0;
    b->is_cut = true;
    for (size_t i = 0; i < c->numbers.n; i++) {
        vec_push(&b->carried, c->numbers.v[i] >= 0 && !is_over(b, i));
        if (c->numbers.v[i] >= 0)
            rows[c->numbers.v[i]] = (int32_t)i;
    }
    b->early_wake_of.n = 0;
    vec_reserve(&b->early_wake_of, b->rows.n);
    b->early_wake_of.n = b->rows.n;
    if (b->rows.n)
        memset(b->early_wake_of.v, 0, b->rows.n * sizeof *b->early_wake_of.v);
    for (size_t i = 0; i < b->early_wakes.n; i++)
        b->early_wake_of.v[b->early_wakes.v[i].row] = i + 1;
    for (size_t i = 0; i < c->n_rows; i++)
        carry_building_row(c, b, rows[i]);
    free(rows);
}

static void load_rows(struct carry *c, struct graph_builder *b)
{
    for (size_t i = 0; i < c->n_rows && !c->damaged; i++) {
        vec_push(&b->rows, (struct graph_building_row){.cpu = -1});
        carry_building_row(c, b, (int32_t)i);
    }
}

/* ---- CPUs ---- */

static void carry_occupant(struct carry *c, struct graph_builder *b, struct graph_building_cpu *cpu)
{
    bool has = cpu->occupants.n;
    carry_bool(c, &has);
    if (!has)
        return;
    struct graph_entry x = {0};
    if (c->way != CARRY_LOAD)
        x = graph_log_last(&cpu->occupants);
    int32_t row = (int32_t)x.arg - 1;
    carry_time(c, &x.begin);
    carry_row(c, &row);
    x.cause = GRAPH_CAUSE_WAKEUP;
    x.arg = (uint32_t)(row + 1);
    if (c->way != CARRY_LOAD)
        return;
    cpu->last_change = x.begin;
    graph_log_push(&b->arena, &cpu->occupants, &x);
}

static void carry_cpus(struct carry *c, struct graph_builder *b)
{
    carry_vec(c, &b->cpus, LEAST_CPU_BYTES);
    if (b->cpus.n > MOST_CPUS) {
        refuse(c);
        b->cpus.n = 0;
    }
    for (size_t i = 0; i < b->cpus.n; i++) {
        struct graph_building_cpu *cpu = &b->cpus.v[i];
        carry_time(c, &cpu->last_ts);
        carry_row(c, &cpu->current);
        carry_bool(c, &cpu->heard);
        carry_bool(c, &cpu->lost);
        carry_below(c, &cpu->absent, GRAPH_ABSENT_BY_TARGET + 1);
        if (cpu->absent) {
            carry_number(c, &cpu->absent_from);
            carry_number(c, &cpu->absent_to);
        }
        kernel_carry_frame(b->tracker, c, &cpu->block_frame);
        carry_number(c, &cpu->block_dev);
        carry_occupant(c, b, cpu);
    }
}

/* ---- losses ---- */

/* Rows ask for the first window after the begin of their present state, and for the end of the last. */
static void forget_windows(struct graph_builder *b)
{
    const struct kernel_thread *threads;
    size_t n = kernel_tracker_threads(b->tracker, &threads);
    struct graph_windows_kept kept;
    graph_windows_keep_begin(&b->windows, &kept);
    for (size_t i = 0; i < n; i++) {
        const struct graph_building_row *r = i < b->rows.n ? &b->rows.v[i] : NULL;
        if (!is_over(b, i))
            graph_windows_keep(&kept, r && r->now != GRAPH_NOW_UNSEEN ? r->since : threads[i].begin);
    }
    graph_windows_keep_end(&b->windows, &kept);
}

static void carry_windows(struct carry *c, struct graph_builder *b)
{
    struct graph_windows loaded = {0}, *w = c->way == CARRY_LOAD ? &loaded : &b->windows;
    carry_vec(c, &w->by_begin, LEAST_WINDOW_BYTES);
    for (size_t i = 0; i < w->by_begin.n && !c->damaged; i++) {
        struct graph_window *x = &w->by_begin.v[i];
        carry_number(c, &x->cpu);
        carry_time(c, &x->begin);
        carry_time(c, &x->end);
        carry_bool(c, &x->open);
        if (c->way == CARRY_LOAD && (x->end < x->begin || (i && x->begin < x[-1].begin)))
            refuse(c);
        if (c->way == CARRY_LOAD && !c->damaged)
            graph_windows_add(&b->windows, x->cpu, x->begin, x->end, x->open);
    }
    vec_free(&loaded.by_begin);
}

void graph_builder_carry(struct graph_builder *b, struct carry *c)
{
    carry_time(c, &b->now);
    uint64_t next = b->next_wake;
    carry_number(c, &next);
    if (c->way == CARRY_LOAD)
        b->wake0 = b->next_wake = next;
    carry_cpus(c, b);
    if (c->way == CARRY_SAVE)
        forget_windows(b);
    carry_windows(c, b);
    if (c->way == CARRY_MARK)
        mark_rows(c, b);
    else if (c->way == CARRY_SAVE)
        save_rows(c, b);
    else
        load_rows(c, b);
    if (c->way == CARRY_LOAD)
        graph_builder_absent_again(b);
}

/* SPDX-License-Identifier: MIT */
/* States of CPUs: current thread and current interrupt; rows of interrupts, and durations of their handlers. */
#include "state/builder.h"
#include "state/files.h"

struct state_builder_cpu *state_builder_cpu(struct state_builder *b, uint32_t cpu)
{
    while (b->cpus.n <= cpu)
        vec_push(&b->cpus,
            ((struct state_builder_cpu){
                .row = NOBODY, .thread = {.sum = SERIES_BUSY}, .state = {.lead = 2 * STATE_UNKNOWN}}));
    return &b->cpus.v[cpu];
}

/* ---- state of the CPU's row ---- */

static void show_overlay(struct state_builder *b, struct state_builder_cpu *c, int64_t ts, uint32_t code)
{
    int64_t number = code ? 2 * (int64_t)code : c->row >= 0 ? 2 * (int64_t)c->row + 1 : 2 * STATE_UNKNOWN;
    series_push(&b->pool, &c->state, ts, number);
    state_builder_thread_interrupt(b, c->row, builder_cpu_number(b, c), ts, code != 0);
}

static void show_row(struct state_builder *b, struct state_builder_cpu *c, int64_t ts, int32_t row)
{
    c->row = row;
    if (row >= 0)
        builder_thread(b, row); /* creates its flags, which the summing of the entry needs */
    series_push(&b->pool, &c->thread, ts, (int64_t)row + 1);
}

/* ---- records before the current thread was known ---- */

static void defer(struct state_builder_cpu *c, struct builder_pending p)
{
    if (c->pending.n == BUILDER_PENDING) /* the oldest half stays unknown */
        c->pending.n = BUILDER_PENDING / 2,
        memmove(c->pending.v, c->pending.v + BUILDER_PENDING / 2, BUILDER_PENDING / 2 * sizeof *c->pending.v);
    vec_push(&c->pending, p);
}

/* Row NOBODY: it will stay unknown. */
static void replay(struct state_builder *b, struct state_builder_cpu *c, int32_t row)
{
    int32_t cpu = builder_cpu_number(b, c);
    for (size_t i = 0; i < c->pending.n; i++) {
        const struct builder_pending *p = &c->pending.v[i];
        if (p->kind == PENDING_OVERLAY) {
            show_overlay(b, c, p->ts, p->code);
        } else if (p->kind == PENDING_CALL) {
            state_builder_thread_call(b, row, cpu, p->ts, p->code, (uint64_t)p->ret, p->operation);
        } else if (p->kind == PENDING_PAGES) {
            state_builder_thread_pages(b, row, p->ts, p->ret);
        } else {
            state_builder_thread_return(b, row, cpu, p->ts, p->code, p->ret);
            state_builder_io(b, row, p->ts, files_ways(p->io), p->ret);
        }
    }
    c->pending.n = 0;
}

/* Handles a thread that had the CPU just in that ns: too short for states, but pages and bytes count. */
static void replay_moment(struct state_builder *b, struct state_builder_cpu *c, int32_t row, int64_t ts)
{
    for (size_t i = 0; i < c->pending.n; i++) {
        const struct builder_pending *p = &c->pending.v[i];
        if (p->kind == PENDING_PAGES && p->ts >= ts)
            state_builder_thread_pages(b, row, p->ts, p->ret);
        else if (p->kind == PENDING_RETURN && p->ts >= ts)
            state_builder_io(b, row, p->ts, files_ways(p->io), p->ret);
    }
    replay(b, c, NOBODY);
}

/* Handles the discovery that `row` had the CPU since then. */
static void reveal(struct state_builder *b, struct state_builder_cpu *c, int32_t row, int64_t since)
{
    size_t skip = 0;
    uint32_t overlay = 0, call = 0;
    while (skip < c->pending.n && c->pending.v[skip].ts < since) {
        const struct builder_pending *p = &c->pending.v[skip++];
        if (p->kind == PENDING_OVERLAY) {
            overlay = p->code;
            show_overlay(b, c, p->ts, overlay);
        }
    }
    c->pending.n -= skip;
    if (skip && c->pending.n)
        memmove(c->pending.v, c->pending.v + skip, c->pending.n * sizeof *c->pending.v);
    for (size_t i = 0; i < c->pending.n; i++)
        if (c->pending.v[i].kind == PENDING_CALL || c->pending.v[i].kind == PENDING_RETURN) {
            call = c->pending.v[i].kind == PENDING_RETURN ? c->pending.v[i].code : 0;
            break;
        }
    show_row(b, c, since, row);
    state_builder_thread_was_there(b, row, builder_cpu_number(b, c), since, call);
    show_overlay(b, c, since, overlay);
    replay(b, c, row);
}

/* ---- interrupts ---- */

static void show_top(struct state_builder *b, struct state_builder_cpu *c, int64_t ts)
{
    uint32_t code = c->depth ? c->frames[c->depth - 1].code : 0;
    if (c->row < 0)
        defer(c, (struct builder_pending){.ts = ts, .code = code, .kind = PENDING_OVERLAY});
    else
        show_overlay(b, c, ts, code);
}

/* Code of the interrupt's name and CPU. */
static uint32_t handler_code(struct state_builder *b, const struct builder_frame *f, int32_t cpu)
{
    struct builder_irq *q = &b->irqs.v[f->irq];
    if (!q->handler_code)
        q->handler_code = state_builder_handler_code(b, f->code, cpu);
    return q->handler_code;
}

static void end_frame(struct state_builder *b, struct state_builder_cpu *c, int64_t ts, bool complete)
{
    const struct builder_frame *f = &c->frames[--c->depth];
    int32_t cpu = builder_cpu_number(b, c);
    series_push(&b->pool, &b->irqs.v[f->irq].series, ts, STATE_NONE);
    if (f->kind == STATE_LATENCY_IRQ)
        state_builder_track_leave(b, &b->irq_handlers, f->track, f->since, ts > f->since ? ts : f->since,
            2 * (int64_t)handler_code(b, f, cpu) + !complete);
    if (complete)
        state_latency_close(&b->latencies[f->kind], f->latency, ts, 0, cpu);
    else
        state_latency_drop(&b->latencies[f->kind], f->latency);
}

/* Ends handlers whose ends are missing. */
void state_builder_cpu_clear(struct state_builder *b, struct state_builder_cpu *c, int64_t ts)
{
    while (c->depth)
        end_frame(b, c, ts, false);
    show_top(b, c, ts);
}

static uint32_t irq_row(struct state_builder *b, uint8_t kind, int32_t cpu, int32_t irq, uint32_t code)
{
    int32_t number = (int32_t)((uint32_t)cpu << 16 | (uint32_t)irq);
    uint64_t *index = map_put(&b->irq_by_number, (uint64_t)kind << 32 | (uint32_t)number, NULL);
    if (!*index) {
        vec_push(&b->irqs,
            ((struct builder_irq){.kind = kind, .number = number, .cpu = cpu, .code = code, .series.pairs = true}));
        *index = b->irqs.n;
    }
    return (uint32_t)*index - 1;
}

/* Numbers of interrupts that have none: by name, from STATE_IPI on. */
static int32_t made_up_number(struct state_builder *b, uint32_t text)
{
    uint64_t *number = map_put(&b->ipi_numbers, text, NULL);
    if (!*number)
        *number = STATE_IPI + b->ipi_numbers.n - 1;
    return (int32_t)*number;
}

void state_builder_irq_enter(struct state_builder *b, struct state_builder_cpu *c, const struct kernel_record *r)
{
    bool soft = r->kind == KERNEL_SOFTIRQ_ENTRY;
    if (soft && c->depth) /* softirqs begin above threads only */
        state_builder_cpu_clear(b, c, r->ts);
    if (c->depth == BUILDER_FRAMES)
        return;
    bool numbered = r->kind != KERNEL_IPI_ENTRY;
    uint32_t known_as = numbered ? r->ctx_number : builder_text(b, r->ctx_number);
    int32_t cpu = builder_cpu_number(b, c), number = numbered ? (int32_t)known_as : made_up_number(b, known_as);
    struct builder_frame f = {.serial = r->ctx_frame, .kind = soft ? STATE_LATENCY_SOFTIRQ : STATE_LATENCY_IRQ};
    f.code = soft ? state_builder_vector_code(b, r->ctx_number) : state_builder_irq_code(b, numbered, known_as);
    f.irq = irq_row(b, soft ? STATE_CPU_SOFTIRQ : STATE_CPU_IRQ, cpu, number, f.code);
    f.latency = state_latency_open(&b->latencies[f.kind], r->ts, c->row, f.code);
    f.since = r->ts;
    f.track = soft ? 0 : state_builder_track_take(&b->irq_handlers, r->ts);
    c->frames[c->depth++] = f;
    series_push(&b->pool, &b->irqs.v[f.irq].series, r->ts, STATE_ACTIVE);
    show_top(b, c, r->ts);
}

/* Frames above the one that ends have lost their exits. */
void state_builder_irq_exit(struct state_builder *b, struct state_builder_cpu *c, const struct kernel_record *r)
{
    int i = c->depth - 1;
    while (i >= 0 && c->frames[i].serial != r->ctx_frame)
        i--;
    if (i < 0)
        return;
    while (c->depth > i + 1)
        end_frame(b, c, r->ts, false);
    end_frame(b, c, r->ts, true);
    show_top(b, c, r->ts);
}

/* ---- switches, calls, pages ---- */

void state_builder_cpu_switch(struct state_builder *b, struct state_builder_cpu *c, const struct kernel_record *r)
{
    int32_t cpu = builder_cpu_number(b, c), prev = r->u.sw.prev, next = r->u.sw.next;
    if (c->row >= 0 && c->row != prev) { /* a switch is missing though no loss is known */
        state_builder_thread_lose(b, c->row, cpu, r->ts);
        c->row = NOBODY;
    }
    if (c->row < 0 && prev >= 0 && r->u.sw.since < r->ts)
        reveal(b, c, prev, r->u.sw.since);
    else if (c->row < 0)
        replay_moment(b, c, prev, r->u.sw.since);
    state_builder_thread_leave(b, prev, cpu, r->ts, r->u.sw.leave);
    show_row(b, c, r->ts, next);
    state_builder_thread_arrive(b, next, cpu, r->ts, r->u.sw.priority);
    show_overlay(b, c, r->ts, 0);
}

void state_builder_cpu_call(struct state_builder *b, struct state_builder_cpu *c, const struct kernel_record *r)
{
    uint32_t code = builder_call_code(b, r->u.syscall.name);
    bool call = r->kind == KERNEL_SYSCALL_ENTRY;
    if (c->row < 0)
        defer(c,
            (struct builder_pending){.ts = r->ts,
                .ret = call ? (int64_t)r->u.syscall.futex : r->u.syscall.ret,
                .code = code,
                .kind = call ? PENDING_CALL : PENDING_RETURN,
                .io = r->u.syscall.io,
                .operation = r->u.syscall.operation});
    else if (call)
        state_builder_thread_call(
            b, c->row, builder_cpu_number(b, c), r->ts, code, r->u.syscall.futex, r->u.syscall.operation);
    else
        state_builder_thread_return(b, c->row, builder_cpu_number(b, c), r->ts, code, r->u.syscall.ret);
}

/* Counts pages that the allocator gave out or got back. */
void state_builder_cpu_pages(struct state_builder *b, struct state_builder_cpu *c, const struct kernel_record *r)
{
    enum { MOST_ORDER = 31 }; /* far beyond any kernel's */
    if (r->u.page.order > MOST_ORDER)
        return;
    int64_t pages = (r->kind == KERNEL_PAGE_ALLOC ? INT64_C(1) : INT64_C(-1)) * (INT64_C(1) << r->u.page.order);
    state_builder_all_pages(b, r->ts, pages);
    if (c->row < 0)
        defer(c, (struct builder_pending){.ts = r->ts, .ret = pages, .kind = PENDING_PAGES});
    else
        state_builder_thread_pages(b, c->row, r->ts, pages);
}

/* ---- losses ---- */

/* Sets the rows of that CPU's interrupts to unknown from ts on, or idle again. */
static void lose_irqs(struct state_builder *b, int32_t cpu, int64_t ts)
{
    for (size_t i = 0; i < b->irqs.n; i++)
        if (b->irqs.v[i].cpu == cpu)
            series_push(&b->pool, &b->irqs.v[i].series, ts, STATE_UNKNOWN);
}

static void regain_irqs(struct state_builder *b, int32_t cpu, int64_t ts)
{
    for (size_t i = 0; i < b->irqs.n; i++) {
        struct builder_irq *q = &b->irqs.v[i];
        bool unknown = q->series.n && q->series.last.number == STATE_UNKNOWN;
        if (unknown && q->cpu == cpu)
            series_push(&b->pool, &q->series, ts, STATE_NONE);
    }
}

/* Ends a loss at the CPU's next event, at the latest at the known end of the loss. */
void state_builder_cpu_heard(struct state_builder *b, struct state_builder_cpu *c, int64_t ts)
{
    int64_t end = ts < c->deaf_end ? ts : c->deaf_end;
    c->deaf = c->absent = false;
    state_builder_gap_add(b, builder_cpu_number(b, c), c->deaf_begin, end);
    regain_irqs(b, builder_cpu_number(b, c), end);
}

static void lose_cpu(struct state_builder *b, struct state_builder_cpu *c, int64_t begin)
{
    if (c->deaf)
        state_builder_cpu_heard(b, c, begin);
    while (c->depth)
        end_frame(b, c, begin, false);
    if (c->row < 0)
        replay(b, c, NOBODY);
    state_builder_thread_lose(b, c->row, builder_cpu_number(b, c), begin);
    state_files_lose(b, c->row, begin);
    show_row(b, c, begin, NOBODY);
    show_overlay(b, c, begin, 0);
    lose_irqs(b, builder_cpu_number(b, c), begin);
}

static void deafen(struct state_builder_cpu *c, int64_t begin, int64_t end)
{
    c->deaf = true;
    c->deaf_begin = begin;
    c->deaf_end = end;
}

void state_builder_lost(struct state_builder *b, const struct kernel_record *r)
{
    bool all = r->cpu == UINT32_MAX;
    if (r->u.lost.count)
        vec_push(&b->losses,
            ((struct state_disk_loss){r->u.lost.begin, r->u.lost.end, r->u.lost.count, all ? -1 : (int32_t)r->cpu, 0}));
    state_builder_requests_lose(b, r->u.lost.begin);
    if (!all)
        state_builder_cpu(b, r->cpu);
    for (uint32_t i = 0; i < b->cpus.n; i++)
        if (all || i == r->cpu) {
            lose_cpu(b, &b->cpus.v[i], r->u.lost.begin);
            if (r->u.lost.count && !all)
                deafen(&b->cpus.v[i], r->u.lost.begin, r->u.lost.end);
            else
                regain_irqs(b, (int32_t)i, r->u.lost.end);
        }
    if (all)
        state_builder_gap_add(b, -1, r->u.lost.begin, r->u.lost.end);
    b->n_losses++;
    if (r->u.lost.end > b->suspect_until)
        b->suspect_until = r->u.lost.end;
}

void state_builder_absent(struct state_builder *b, const struct kernel_record *r)
{
    struct state_builder_cpu *c = state_builder_cpu(b, r->cpu);
    int64_t begin = r->u.absent.begin, at = begin == INT64_MIN ? r->ts : begin > c->last_ts ? begin : c->last_ts;
    state_builder_requests_lose(b, at);
    lose_cpu(b, c, at);
    deafen(c, begin, r->u.absent.end);
    c->absent = true;
    b->n_losses++;
    if (r->u.absent.end > b->suspect_until)
        b->suspect_until = r->u.absent.end;
}

void state_builder_cpu_finish(struct state_builder *b, struct state_builder_cpu *c, int64_t ts)
{
    if (c->deaf)
        state_builder_cpu_heard(b, c, ts);
    if (c->row < 0)
        replay(b, c, NOBODY);
}

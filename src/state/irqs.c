/* Rows of interrupts of each CPU, and how long their handlers take. */
#include "state/builder.h"

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

/* ---- handlers ---- */

/* Numbers for interrupts that have none: by name, from STATE_IPI on. */
static int32_t made_up_number(struct state_builder *b, uint16_t name)
{
    uint64_t *number = map_put(&b->ipi_numbers, name, NULL);
    if (!*number)
        *number = STATE_IPI + b->ipi_numbers.n - 1;
    return (int32_t)*number;
}

void builder_irq_enter(struct state_builder *b, struct builder_cpu *c, const struct kernel_record *r)
{
    bool soft = r->kind == KERNEL_SOFTIRQ_ENTRY;
    if (soft && c->depth) /* softirqs begin above threads only */
        builder_cpu_clear(b, c, r->ts);
    if (c->depth == BUILDER_FRAMES)
        return;
    int32_t cpu = builder_cpu_number(b, c),
            number = r->kind == KERNEL_IPI_ENTRY ? made_up_number(b, r->ctx_number) : r->ctx_number;
    struct builder_frame f = {.serial = r->ctx_frame, .kind = soft ? STATE_LATENCY_SOFTIRQ : STATE_LATENCY_IRQ};
    f.code = soft ? builder_vector_code(b, r->ctx_number) : builder_irq_code(b, r);
    f.irq = irq_row(b, soft ? STATE_CPU_SOFTIRQ : STATE_CPU_IRQ, cpu, number, f.code);
    f.latency = latency_open(&b->latencies[f.kind], r->ts, c->row, f.code);
    f.since = r->ts;
    f.track = soft ? 0 : builder_track_take(&b->irq_handlers, r->ts);
    c->frames[c->depth++] = f;
    series_push(&b->pool, &b->irqs.v[f.irq].series, r->ts, STATE_ACTIVE);
    builder_cpu_overlay(b, c, r->ts);
}

/* The name of the interrupt and where it is handled. */
static uint32_t handler_code(struct state_builder *b, const struct builder_frame *f, int32_t cpu)
{
    struct builder_irq *q = &b->irqs.v[f->irq];
    if (!q->handler_code) {
        struct builder_code code = b->codes.v[f->code];
        code.cpu = cpu;
        q->handler_code = builder_code(b, code);
    }
    return q->handler_code;
}

void builder_irq_end_frame(struct state_builder *b, struct builder_cpu *c, int64_t ts, bool complete)
{
    const struct builder_frame *f = &c->frames[--c->depth];
    int32_t cpu = builder_cpu_number(b, c);
    series_push(&b->pool, &b->irqs.v[f->irq].series, ts, STATE_NONE);
    if (f->kind == STATE_LATENCY_IRQ)
        builder_track_leave(b, &b->irq_handlers, f->track, f->since, ts > f->since ? ts : f->since,
            2 * (int64_t)handler_code(b, f, cpu) + !complete);
    if (complete)
        latency_close(&b->latencies[f->kind], f->latency, ts, 0, cpu);
    else
        latency_drop(&b->latencies[f->kind], f->latency);
}

/* Frames above the one that ends lost their exits. */
void builder_irq_exit(struct state_builder *b, struct builder_cpu *c, const struct kernel_record *r)
{
    int i = c->depth - 1;
    while (i >= 0 && c->frames[i].serial != r->ctx_frame)
        i--;
    if (i < 0)
        return;
    while (c->depth > i + 1)
        builder_irq_end_frame(b, c, r->ts, false);
    builder_irq_end_frame(b, c, r->ts, true);
    builder_cpu_overlay(b, c, r->ts);
}

/* ---- losses ---- */

void builder_irqs_lose(struct state_builder *b, int32_t cpu, int64_t ts)
{
    for (size_t i = 0; i < b->irqs.n; i++)
        if (b->irqs.v[i].cpu == cpu)
            series_push(&b->pool, &b->irqs.v[i].series, ts, STATE_UNKNOWN);
}

void builder_irqs_regain(struct state_builder *b, int32_t cpu, int64_t ts)
{
    for (size_t i = 0; i < b->irqs.n; i++) {
        struct builder_irq *q = &b->irqs.v[i];
        bool unknown = q->series.n && q->series.last.number == STATE_UNKNOWN;
        if (unknown && q->cpu == cpu)
            series_push(&b->pool, &q->series, ts, STATE_NONE);
    }
}

/* SPDX-License-Identifier: MIT */
/* Kernel records to rows, counters and latencies. Rules for users: docs/formats/states.md. */
#include "state/builder.h"
#include "state/files.h"

#include <stdlib.h>

struct state_builder *state_builder_new(const struct kernel_tracker *t, struct store_place place, uint64_t key)
{
    struct state_builder *b = mem_zalloc(sizeof *b);
    b->tracker = t;
    strings_intern(&b->texts, "", 0);
    state_series_pool_init(&b->pool, place, key);
    b->files = state_files_new();
    b->now = b->suspect_until = b->last_event = b->last_checkpoint = INT64_MIN;
    vec_push(&b->pool.flags[SERIES_BUSY], 0); /* NOBODY's flags */
    for (uint8_t v = 0; v < STATE_VALUES; v++)
        state_builder_code(b, (struct state_builder_code){.value = v, .cpu = -1});
    for (int i = 0; i < STATE_LATENCY_KINDS; i++)
        state_latency_series_init(&b->latencies[i], &b->pool.bytes, &b->far);
    return b;
}

int state_builder_writing(const struct state_builder *b, struct err *e)
{
    return store_writing(b->pool.cells.to, e);
}

static void free_devices(builder_devices *d)
{
    for (size_t i = 0; i < d->n; i++) {
        state_series_fini(&d->v[i].series[0]);
        state_series_fini(&d->v[i].series[1]);
    }
    vec_free(d);
}

void state_builder_free(struct state_builder *b)
{
    if (!b)
        return;
    for (size_t i = 0; i < b->threads.n; i++)
        state_series_fini(&b->threads.v[i].series);
    for (size_t i = 0; i < b->cpus.n; i++) {
        state_series_fini(&b->cpus.v[i].state);
        state_series_fini(&b->cpus.v[i].thread);
        vec_free(&b->cpus.v[i].pending);
        vec_free(&b->cpus.v[i].gaps);
    }
    for (size_t i = 0; i < b->irqs.n; i++)
        state_series_fini(&b->irqs.v[i].series);
    for (size_t i = 0; i < b->futex_users.n; i++)
        state_series_fini(&b->futex_users.v[i].series);
    vec_free(&b->futex_users);
    state_builder_tracks_fini(&b->futex_waits);
    state_builder_tracks_fini(&b->futex_wakes);
    state_builder_tracks_fini(&b->irq_handlers);
    free_devices(&b->disks);
    free_devices(&b->nets);
    state_files_free(b->files);
    state_builder_requests_fini(b);
    for (int i = 0; i < BUILDER_AMOUNTS; i++)
        state_builder_amounts_fini(&b->amounts[i]);
    for (int i = 0; i < STATE_LATENCY_KINDS; i++)
        state_latency_series_fini(&b->latencies[i]);
    vec_free(&b->threads);
    vec_free(&b->cpus);
    vec_free(&b->irqs);
    vec_free(&b->codes);
    vec_free(&b->call_codes);
    vec_free(&b->saved);
    vec_free(&b->text_of);
    strings_fini(&b->texts);
    map_fini(&b->call_code_of);
    map_fini(&b->handler_codes);
    vec_free(&b->locks);
    vec_free(&b->far);
    vec_free(&b->losses);
    vec_free(&b->gaps);
    state_builder_held_fini(&b->held);
    vec_free(&b->event_times.heads);
    map_fini(&b->irq_by_number);
    map_fini(&b->irq_codes);
    map_fini(&b->futex_user_of);
    map_fini(&b->lock_codes);
    map_fini(&b->ipi_numbers);
    state_series_pool_fini(&b->pool);
    free(b);
}

void state_builder_record(struct state_builder *b, const struct kernel_record *r)
{
    if (r->ts > b->now)
        b->now = r->ts;
    if (__builtin_expect(r->kind == KERNEL_LOST, 0)) {
        state_builder_lost(b, r);
        return;
    }
    if (__builtin_expect(r->kind == KERNEL_ABSENT, 0)) {
        state_builder_absent(b, r);
        return;
    }
    struct state_builder_cpu *c = r->cpu < b->cpus.n ? &b->cpus.v[r->cpu] : state_builder_cpu(b, r->cpu);
    if (__builtin_expect(c->deaf, 0))
        state_builder_cpu_heard(b, c, b->now);
    if (__builtin_expect(c->depth && (r->ctx == KERNEL_CTX_THREAD || r->ctx == KERNEL_CTX_UNKNOWN), 0))
        state_builder_cpu_clear(b, c, b->now);
    c->last_ts = b->now;
    switch (r->kind) {
    case KERNEL_SYSCALL_ENTRY:
    case KERNEL_SYSCALL_EXIT:
        if (r->u.syscall.io && c->row >= 0) {
            unsigned ways = state_files_call(b, c->row, r);
            if (r->kind == KERNEL_SYSCALL_ENTRY)
                state_builder_io_expect(b, c->row, ways);
            else
                state_builder_io(b, c->row, r->ts, ways, r->u.syscall.ret);
        }
        state_builder_cpu_call(b, c, r);
        break;
    case KERNEL_SWITCH: state_builder_cpu_switch(b, c, r); break;
    case KERNEL_WAKE:
    case KERNEL_WAKE_NEW:
    case KERNEL_WAKEUP: state_builder_thread_wake(b, r); break;
    case KERNEL_IRQ_ENTRY:
    case KERNEL_SOFTIRQ_ENTRY:
    case KERNEL_IPI_ENTRY: state_builder_irq_enter(b, c, r); break;
    case KERNEL_IRQ_EXIT:
    case KERNEL_SOFTIRQ_EXIT:
    case KERNEL_IPI_EXIT: state_builder_irq_exit(b, c, r); break;
    case KERNEL_FORK:
        state_builder_thread_fork(b, r->u.fork.parent, r->u.fork.child, r->ts);
        state_files_fork(b, r->u.fork.parent, r->u.fork.child);
        break;
    case KERNEL_EXEC: state_files_exec(b, r->row, r->ts); break;
    case KERNEL_EXIT:
        state_builder_thread_exit(b, r->u.thread.row, r->ts);
        state_files_exit(b, r->u.thread.row, r->ts);
        break;
    case KERNEL_FREE: state_builder_thread_free(b, r->u.thread.row, r->ts); break;
    case KERNEL_STATEDUMP_THREAD:
        state_builder_thread_dumped(b, r->u.thread.row, r->ts, r->u.thread.status);
        state_files_dumped_process(b, r->u.thread.row, r->u.thread.files);
        break;
    case KERNEL_STATEDUMP_FD: state_files_dumped_descriptor(b, r); break;
    case KERNEL_BLOCK_INSERT:
    case KERNEL_BLOCK_ISSUE:
    case KERNEL_BLOCK_REQUEUE: state_builder_request(b, r); break;
    case KERNEL_BLOCK_COMPLETE:
        state_builder_block(b, r);
        state_builder_request(b, r);
        break;
    case KERNEL_PACKET_SEND:
    case KERNEL_PACKET_RECEIVE: state_builder_packet(b, r); break;
    case KERNEL_PAGE_ALLOC:
    case KERNEL_PAGE_FREE: state_builder_cpu_pages(b, c, r); break;
    case KERNEL_COUNTERS: state_builder_cpu_counters(b, r); break;
    case KERNEL_FREQUENCY: state_builder_frequency(b, r); break;
    case KERNEL_KVM_EXIT: state_builder_kvm_exit(b, r); break;
    default: break;
    }
}

void state_builder_add(struct state_builder *b, const struct kernel_record *r)
{
    if (__builtin_expect(b->held.open || b->held.v.n || r->kind == KERNEL_LOST, 0))
        state_builder_hold(b, r);
    else
        state_builder_record(b, r);
}

void state_builder_events(struct state_builder *b, const int64_t *ts, size_t n)
{
    if (!n)
        return;
    size_t i = (size_t)(-b->events % STATE_EVENTS_SHARE);
    for (; i < n; i += STATE_EVENTS_SHARE) {
        b->last_checkpoint = ts[i] > b->last_checkpoint ? ts[i] : b->last_checkpoint; /* bad streams may step back */
        b->event_buffer[b->event_buffered++] = b->last_checkpoint;
        if (b->event_buffered == STATE_BLOCK) {
            state_series_table_add(&b->pool.bytes, &b->event_times, &b->event_buffer, 1, STATE_BLOCK);
            b->event_buffered = 0;
        }
    }
    b->events += n;
    b->last_event = ts[n - 1] > b->last_checkpoint ? ts[n - 1] : b->last_checkpoint;
}

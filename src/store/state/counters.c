/* SPDX-License-Identifier: MIT */
/* Counters of disks, network interfaces, memory and performance: cumulative, at each change. */
#include "state/builder.h"

#include <stdlib.h>

/* Flags of a block request as LTTng writes them (lttng-modules, instrumentation of block). Writes may have other
 * flags. */
enum { RWBS_WRITE = 1, RWBS_DISCARD = 2, RWBS_READ = 4, SECTOR_BYTES = 512 };

static void count(struct state_builder *b, builder_devices *all, uint32_t id, int64_t ts, int which, int64_t bytes)
{
    size_t i = 0;
    while (i < all->n && all->v[i].id != id)
        i++;
    if (i == all->n)
        vec_push(all, ((struct builder_device){.id = id}));
    struct builder_device *d = &all->v[i];
    if (__builtin_add_overflow(d->total[which], bytes, &d->total[which]))
        d->total[which] = INT64_MAX;
    series_push(&b->pool, &d->series[which], ts, d->total[which]);
}

void state_builder_block(struct state_builder *b, const struct kernel_record *r)
{
    bool write = r->u.block.rwbs & RWBS_WRITE, read = r->u.block.rwbs & RWBS_READ;
    if (r->u.block.rwbs & RWBS_DISCARD || !(read || write) || r->u.block.error)
        return;
    count(b, &b->disks, r->u.block.dev, r->ts, write, (int64_t)r->u.block.nr_sector * SECTOR_BYTES);
}

void state_builder_packet(struct state_builder *b, const struct kernel_record *r)
{
    if (r->u.packet.device)
        count(b, &b->nets, builder_text(b, r->u.packet.device), r->ts, r->kind == KERNEL_PACKET_RECEIVE,
            r->u.packet.payload_bytes);
}

/* ---- counters by slot ---- */

static void add_amount(struct builder_amounts *all, uint32_t slot)
{
    while (all->index.n <= slot)
        vec_push(&all->index, 0);
    vec_push(&all->v, ((struct builder_amount){.slot = slot}));
    all->index.v[slot] = (uint32_t)all->v.n;
}

static inline struct builder_amount *amount(struct builder_amounts *all, uint32_t slot)
{
    if (__builtin_expect(all->index.n <= slot || !all->index.v[slot], 0))
        add_amount(all, slot);
    return &all->v.v[all->index.v[slot] - 1];
}

struct builder_amount *state_builder_amount_at(struct builder_amounts *all, uint32_t slot)
{
    return amount(all, slot);
}

/* Adds, limited so that the total with the rows of files fits in a number. */
static void count_up(struct state_builder *b, struct builder_amounts *all, int32_t row, int64_t ts, int64_t n)
{
    const int64_t most = INT64_C(1) << 62;
    struct builder_amount *a = amount(all, (uint32_t)row);
    int64_t total;
    if (__builtin_add_overflow(a->total, n, &total) || total > most)
        return;
    a->total = total;
    series_push(&b->pool, &a->series, ts, total);
}

void state_builder_io(struct state_builder *b, int32_t row, int64_t ts, unsigned ways, int64_t bytes)
{
    if (row < 0 || bytes <= 0)
        return;
    for (int way = 0; way < STATE_WAYS; way++)
        if (ways >> way & 1)
            count_up(b, &b->amounts[BUILDER_IO_READ + way], row, ts, bytes);
}

static void expect(struct builder_amounts *all, uint32_t slot)
{
    uint32_t index = slot < all->index.n ? all->index.v[slot] : 0;
    if (all->expected)
        series_fetch_tail(&all->v.v[all->expected - 1].series);
    if (index)
        series_fetch(&all->v.v[index - 1].series);
    all->expected = index;
}

void state_builder_io_expect(struct state_builder *b, int32_t row, unsigned ways)
{
    for (int way = 0; way < STATE_WAYS; way++)
        if (ways >> way & 1)
            expect(&b->amounts[BUILDER_IO_READ + way], (uint32_t)row);
}

void state_builder_kvm_exit(struct state_builder *b, const struct kernel_record *r)
{
    if (r->row >= 0)
        count_up(b, &b->amounts[BUILDER_KVM_EXITS], r->row, r->ts, 1);
}

static void count_pages(struct state_builder *b, uint32_t slot, int64_t ts, int64_t pages)
{
    struct builder_amount *a = amount(&b->amounts[BUILDER_PAGES], slot);
    if (!__builtin_add_overflow(a->total, pages, &a->total))
        series_push(&b->pool, &a->series, ts, a->total);
}

void state_builder_all_pages(struct state_builder *b, int64_t ts, int64_t pages)
{
    count_pages(b, 0, ts, pages);
}

void state_builder_thread_pages(struct state_builder *b, int32_t row, int64_t ts, int64_t pages)
{
    if (row >= 0)
        count_pages(b, (uint32_t)row + 1, ts, pages);
}

_Static_assert((int)STATE_CPU_COUNTERS == (int)KERNEL_MOST_COUNTERS, "rows of counters are numbered so");

void state_builder_cpu_counters(struct state_builder *b, const struct kernel_record *r)
{
    for (uint64_t left = r->u.counters.present; left; left &= left - 1) {
        uint32_t i = (uint32_t)__builtin_ctzll(left), slot = r->cpu * STATE_CPU_COUNTERS + i;
        series_tell(&b->pool, &amount(&b->amounts[BUILDER_CPU_COUNTERS], slot)->series, r->ts, r->u.counters.values[i]);
    }
}

void state_builder_frequency(struct state_builder *b, const struct kernel_record *r)
{
    if (r->u.frequency.of_cpu < UINT16_MAX) /* ignores CPUs that cannot exist */
        series_tell(&b->pool, &amount(&b->amounts[BUILDER_FREQUENCIES], r->u.frequency.of_cpu)->series, r->ts,
            r->u.frequency.khz);
}

void state_builder_amounts_fini(struct builder_amounts *all)
{
    for (size_t i = 0; i < all->v.n; i++)
        state_series_fini(&all->v.v[i].series);
    vec_free(&all->v);
    vec_free(&all->index);
}

/* Counters of disks and network interfaces: cumulative, at each change. */
#include "state/builder.h"

/* Flags of a block request as LTTng writes them (lttng-modules, instrumentation of block). Writes may carry others beside. */
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

void builder_block(struct state_builder *b, const struct kernel_record *r)
{
    bool write = r->u.block.rwbs & RWBS_WRITE, read = r->u.block.rwbs & RWBS_READ;
    if (r->u.block.rwbs & RWBS_DISCARD || !(read || write) || r->u.block.error)
        return;
    count(b, &b->disks, r->u.block.dev, r->ts, write, (int64_t)r->u.block.nr_sector * SECTOR_BYTES);
}

void builder_packet(struct state_builder *b, const struct kernel_record *r)
{
    if (r->u.packet.device)
        count(b, &b->nets, r->u.packet.device, r->ts, r->kind == KERNEL_PACKET_RECEIVE, r->u.packet.payload_bytes);
}

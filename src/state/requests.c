/* Requests of disks: those that wait in the queue, and those that the driver has. Each takes the first free place of its queue; a row per place. */
#include "state/builder.h"

#include <stdlib.h>

enum { WAITING, DRIVER, MOST_DISKS = 1 << 12, MOST_PLACES = 1 << 10 };
/* Flags of a block request as LTTng writes them (lttng-modules, instrumentation of block). */
enum { RWBS_WRITE = 1, RWBS_READ = 4, RWBS_FLUSH = 256 };

static int type_of(uint32_t rwbs)
{
    return rwbs & RWBS_READ ? STATE_REQUEST_READ
        : rwbs & RWBS_WRITE ? STATE_REQUEST_WRITE
        : rwbs & RWBS_FLUSH ? STATE_REQUEST_FLUSH
                            : STATE_REQUEST_OTHER;
}

static struct builder_requests *requests_of(struct state_builder *b, uint32_t dev)
{
    for (size_t i = 0; i < b->requests.n; i++)
        if (b->requests.v[i].dev == dev)
            return &b->requests.v[i];
    if (b->requests.n == MOST_DISKS)
        return NULL;
    vec_push(&b->requests, ((struct builder_requests){.dev = dev}));
    return &b->requests.v[b->requests.n - 1];
}

static void enter(struct state_builder *b, struct builder_queue *q, const struct kernel_record *r)
{
    size_t i = 0;
    while (i < q->n && q->v[i].busy)
        i++;
    if (i == MOST_PLACES)
        return;
    if (i == q->n)
        vec_push(q, ((struct builder_request){.series.pairs = true}));
    struct builder_request *p = &q->v[i];
    p->sector = r->u.block.sector;
    p->sectors = r->u.block.nr_sector;
    p->type = (uint8_t)type_of(r->u.block.rwbs);
    p->busy = true;
    uint64_t size = p->sectors < STATE_REQUEST_MOST_SECTORS ? p->sectors : STATE_REQUEST_MOST_SECTORS;
    series_push(&b->pool, &p->series, r->ts,
        (int64_t)((p->sector & STATE_REQUEST_MOST_SECTOR) << STATE_REQUEST_SECTOR_SHIFT | size << STATE_REQUEST_TYPE_BITS | p->type));
}

static void leave(struct state_builder *b, struct builder_request *p, int64_t ts)
{
    p->busy = false;
    series_push(&b->pool, &p->series, ts, 0);
}

/* Flushes and the like have no sectors, and are told with other places when they complete. */
static bool is_bare(const struct builder_request *p, const struct kernel_record *r)
{
    return p->busy && !p->sectors && p->type == type_of(r->u.block.rwbs);
}

/* What is issued may have been several requests that were merged. */
static void leave_within(struct state_builder *b, struct builder_queue *q, const struct kernel_record *r)
{
    bool left = false;
    for (size_t i = 0; i < q->n && !left; i++) {
        bool bare = !r->u.block.nr_sector && is_bare(&q->v[i], r);
        if (bare || (q->v[i].busy && q->v[i].sectors && q->v[i].sector - r->u.block.sector < r->u.block.nr_sector))
            leave(b, &q->v[i], r->ts);
        left = bare;
    }
}

/* A request may complete part by part, from its begin on. */
static void complete(struct state_builder *b, struct builder_queue *q, const struct kernel_record *r)
{
    for (size_t i = 0; i < q->n; i++) {
        struct builder_request *p = &q->v[i];
        bool bare = !r->u.block.nr_sector && is_bare(p, r);
        if (!bare && !(p->busy && p->sectors && p->sector == r->u.block.sector))
            continue;
        if (bare || r->u.block.nr_sector >= p->sectors || r->u.block.error) {
            leave(b, p, r->ts);
        } else {
            p->sector += r->u.block.nr_sector;
            p->sectors -= r->u.block.nr_sector;
        }
        return;
    }
}

void builder_request(struct state_builder *b, const struct kernel_record *r)
{
    struct builder_requests *d = requests_of(b, r->u.block.dev);
    if (!d)
        return;
    if (r->kind == KERNEL_BLOCK_INSERT) {
        enter(b, &d->queues[WAITING], r);
    } else if (r->kind == KERNEL_BLOCK_ISSUE) {
        leave_within(b, &d->queues[WAITING], r);
        enter(b, &d->queues[DRIVER], r);
    } else {
        complete(b, &d->queues[DRIVER], r);
    }
}

/* Nobody knows which are still there. */
void builder_requests_lose(struct state_builder *b, int64_t ts)
{
    for (size_t i = 0; i < b->requests.n; i++)
        for (int k = 0; k < 2; k++)
            for (size_t n = 0; n < b->requests.v[i].queues[k].n; n++)
                if (b->requests.v[i].queues[k].v[n].busy)
                    leave(b, &b->requests.v[i].queues[k].v[n], ts);
}

void builder_each_request(struct state_builder *b, void (*f)(void *arg, int32_t number, uint32_t dev, struct series *), void *arg)
{
    for (size_t i = 0; i < b->requests.n; i++)
        for (int k = 0; k < 2; k++)
            for (size_t n = 0; n < b->requests.v[i].queues[k].n; n++)
                f(arg, (int32_t)(i << STATE_REQUEST_DISK_SHIFT | (size_t)k << STATE_REQUEST_QUEUE_SHIFT | n), b->requests.v[i].dev,
                    &b->requests.v[i].queues[k].v[n].series);
}

static void fini_one(void *arg, int32_t number, uint32_t dev, struct series *s)
{
    series_fini(s);
}

void builder_requests_fini(struct state_builder *b)
{
    builder_each_request(b, fini_one, NULL);
    for (size_t i = 0; i < b->requests.n; i++)
        for (int k = 0; k < 2; k++)
            vec_free(&b->requests.v[i].queues[k]);
    vec_free(&b->requests);
}

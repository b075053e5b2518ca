/* SPDX-License-Identifier: MIT */
/* Requests of disks: waiting in the queue, or in the driver. Each takes the first free slot of its queue; there is a
 * row per slot, and a latency per request. */
#include "state/builder.h"

#include <stdlib.h>

enum { WAITING, DRIVER, SECTOR_BYTES = 512 };
/* Flags of a block request as LTTng writes them (lttng-modules, instrumentation of block). */
enum { RWBS_WRITE = 1, RWBS_READ = 4, RWBS_FLUSH = 256 };

const char *state_request_name(unsigned type)
{
    static const char *const names[STATE_REQUESTS] = {NULL, "read", "write", "flush", "other"};
    return type < STATE_REQUESTS ? names[type] : NULL;
}

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
    if (b->requests.n == BUILDER_MOST_DISKS)
        return NULL;
    vec_push(&b->requests, ((struct builder_requests){.dev = dev}));
    return &b->requests.v[b->requests.n - 1];
}

static uint32_t code_of(struct state_builder *b, struct builder_requests *d, uint8_t type)
{
    uint32_t disk = (uint32_t)(d - b->requests.v);
    if (!d->codes[type])
        d->codes[type] = state_builder_code(b,
            (struct state_builder_code){
                .kind = CODE_REQUEST, .cpu = -1, .ref = disk << STATE_REQUEST_TYPE_BITS | type});
    return d->codes[type];
}

uint32_t state_builder_request_code(struct state_builder *b, uint32_t ref)
{
    return code_of(
        b, &b->requests.v[ref >> STATE_REQUEST_TYPE_BITS], (uint8_t)(ref & ((1 << STATE_REQUEST_TYPE_BITS) - 1)));
}

static struct latency_series *queue_latencies(struct state_builder *b, int queue)
{
    return &b->latencies[STATE_LATENCY_DISK_WAIT + queue];
}

static void enter(struct state_builder *b, struct builder_requests *d, int queue, const struct kernel_record *r)
{
    struct builder_queue *q = &d->queues[queue];
    size_t i = 0;
    while (i < q->n && q->v[i].busy)
        i++;
    if (i == BUILDER_MOST_SLOTS)
        return;
    if (i == q->n)
        vec_push(q, ((struct state_builder_request){.series.pairs = true}));
    struct state_builder_request *p = &q->v[i];
    p->sector = r->u.block.sector;
    p->sectors = r->u.block.nr_sector;
    p->bytes = (int64_t)p->sectors * SECTOR_BYTES;
    p->type = (uint8_t)type_of(r->u.block.rwbs);
    p->busy = true;
    p->latency = state_latency_open(queue_latencies(b, queue), r->ts, r->row, code_of(b, d, p->type));
    uint64_t size = p->sectors < STATE_REQUEST_MOST_SECTORS ? p->sectors : STATE_REQUEST_MOST_SECTORS;
    series_push(&b->pool, &p->series, r->ts,
        (int64_t)((p->sector & STATE_REQUEST_MOST_SECTOR) << STATE_REQUEST_SECTOR_SHIFT |
            size << STATE_REQUEST_TYPE_BITS | p->type));
}

static void clear(struct state_builder *b, struct state_builder_request *p, int64_t ts)
{
    p->busy = false;
    series_push(&b->pool, &p->series, ts, 0);
}

/* Drops a request that was not done. */
static void drop(struct state_builder *b, struct state_builder_request *p, int queue, int64_t ts)
{
    state_latency_drop(queue_latencies(b, queue), p->latency);
    clear(b, p, ts);
}

static void leave(struct state_builder *b, struct state_builder_request *p, int queue, const struct kernel_record *r)
{
    state_latency_close(queue_latencies(b, queue), p->latency, r->ts, p->bytes, (int32_t)r->cpu);
    clear(b, p, r->ts);
}

/* Flushes and similar ones have no sectors, and complete at another sector. */
static bool is_bare(const struct state_builder_request *p, const struct kernel_record *r)
{
    return p->busy && !p->sectors && p->type == type_of(r->u.block.rwbs);
}

/* Several merged requests may be issued as one. */
static void leave_within(struct state_builder *b, struct builder_queue *q, const struct kernel_record *r)
{
    bool left = false;
    for (size_t i = 0; i < q->n && !left; i++) {
        bool bare = !r->u.block.nr_sector && is_bare(&q->v[i], r);
        if (bare || (q->v[i].busy && q->v[i].sectors && q->v[i].sector - r->u.block.sector < r->u.block.nr_sector))
            leave(b, &q->v[i], WAITING, r);
        left = bare;
    }
}

/* Finds the request that the driver refers to, or NULL. */
static struct state_builder_request *find_request(const struct builder_queue *q, const struct kernel_record *r)
{
    for (size_t i = 0; i < q->n; i++) {
        struct state_builder_request *p = &q->v[i];
        if ((!r->u.block.nr_sector && is_bare(p, r)) || (p->busy && p->sectors && p->sector == r->u.block.sector))
            return p;
    }
    return NULL;
}

/* Completes a request; it may complete part by part, from its begin on. */
static void complete(struct state_builder *b, const struct builder_queue *q, const struct kernel_record *r)
{
    struct state_builder_request *p = find_request(q, r);
    if (!p)
        return;
    if (r->u.block.nr_sector >= p->sectors || r->u.block.error) {
        leave(b, p, DRIVER, r);
    } else {
        p->sector += r->u.block.nr_sector;
        p->sectors -= r->u.block.nr_sector;
    }
}

void state_builder_request(struct state_builder *b, const struct kernel_record *r)
{
    struct builder_requests *d = requests_of(b, r->u.block.dev);
    if (!d)
        return;
    if (r->kind == KERNEL_BLOCK_INSERT) {
        enter(b, d, WAITING, r);
    } else if (r->kind == KERNEL_BLOCK_ISSUE) {
        leave_within(b, &d->queues[WAITING], r);
        enter(b, d, DRIVER, r);
    } else if (r->kind == KERNEL_BLOCK_REQUEUE) {
        struct state_builder_request *p = find_request(&d->queues[DRIVER], r);
        if (p)
            drop(b, p, DRIVER, r->ts);
    } else {
        complete(b, &d->queues[DRIVER], r);
    }
}

/* Drops all requests, since it is unknown which still exist. */
void state_builder_requests_lose(struct state_builder *b, int64_t ts)
{
    for (size_t i = 0; i < b->requests.n; i++)
        for (int k = 0; k < 2; k++)
            for (size_t n = 0; n < b->requests.v[i].queues[k].n; n++) {
                struct state_builder_request *p = &b->requests.v[i].queues[k].v[n];
                if (p->busy)
                    drop(b, p, k, ts);
            }
}

void state_builder_each_request(
    struct state_builder *b, void (*f)(void *arg, int32_t number, uint32_t dev, struct series *), void *arg)
{
    for (size_t i = 0; i < b->requests.n; i++)
        for (int k = 0; k < 2; k++)
            for (size_t n = 0; n < b->requests.v[i].queues[k].n; n++)
                f(arg, (int32_t)(i << STATE_REQUEST_DISK_SHIFT | (size_t)k << STATE_REQUEST_QUEUE_SHIFT | n),
                    b->requests.v[i].dev, &b->requests.v[i].queues[k].v[n].series);
}

static void fini_one(void *arg, int32_t number, uint32_t dev, struct series *s)
{
    state_series_fini(s);
}

void state_builder_requests_fini(struct state_builder *b)
{
    state_builder_each_request(b, fini_one, NULL);
    for (size_t i = 0; i < b->requests.n; i++)
        for (int k = 0; k < 2; k++)
            vec_free(&b->requests.v[i].queues[k]);
    vec_free(&b->requests);
}

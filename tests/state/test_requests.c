/* SPDX-License-Identifier: MIT */
/* Times of requests in the queue of a disk, and in its driver (docs/formats/states.md). */
#include "world.h"

enum { A = 4, B };                                      /* threads */
enum { VDA = 1, OTHER = 8 << 20 | 16 };                 /* disks: only the first has a name */
enum { WRITE = 1, DISCARD = 2, READ = 4, FLUSH = 256 }; /* flags as recorded by LTTng */
enum { IO_ERROR = -5 };

static void tell(struct kernel_tracker *w, int64_t ts, int cpu, int kind, uint32_t dev, uint64_t sector,
    uint32_t sectors, uint32_t rwbs, int error)
{
    struct kernel_record r = {
        .ts = ts, .cpu = (uint32_t)cpu, .kind = (uint8_t)kind, .ctx = KERNEL_CTX_THREAD, .row = w->on[cpu]};
    r.u.block.dev = dev;
    r.u.block.sector = sector;
    r.u.block.nr_sector = sectors;
    r.u.block.rwbs = rwbs;
    r.u.block.error = error;
    world_add(w, r);
}

static void insert(struct kernel_tracker *w, int64_t ts, uint32_t dev, uint64_t sector, uint32_t sectors, uint32_t rwbs)
{
    tell(w, ts, 0, KERNEL_BLOCK_INSERT, dev, sector, sectors, rwbs, 0);
}
static void issue(struct kernel_tracker *w, int64_t ts, uint32_t dev, uint64_t sector, uint32_t sectors, uint32_t rwbs)
{
    tell(w, ts, 0, KERNEL_BLOCK_ISSUE, dev, sector, sectors, rwbs, 0);
}
static void complete(
    struct kernel_tracker *w, int64_t ts, uint32_t dev, uint64_t sector, uint32_t sectors, uint32_t rwbs, int error)
{
    tell(w, ts, 1, KERNEL_BLOCK_COMPLETE, dev, sector, sectors, rwbs, error);
}

static void begin(struct kernel_tracker *w)
{
    world_begin(w);
    world_switch(w, 100, 0, 0, A, KERNEL_LEAVE_RUNNABLE);
    world_switch(w, 100, 1, 1, B, KERNEL_LEAVE_RUNNABLE);
}

static void end(struct kernel_tracker *w)
{
    world_switch(w, 1000, 0, A, 0, KERNEL_LEAVE_RUNNABLE);
    world_end(w);
}

/* Returns all latencies of a kind as "name:begin-end bytes @thread CPU " texts. */
static const char *latencies(struct kernel_tracker *w, int kind)
{
    static char text[4096];
    size_t n = 0;
    text[0] = 0;
    for (size_t i = 0; i < state_latencies(w->store, kind); i++) {
        struct state_latency l;
        state_latency(w->store, kind, i, &l);
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s:%lld-%lld %lld @%d %d", i ? ", " : "", l.name,
            (long long)l.begin, (long long)l.end, (long long)l.ret, l.thread, l.cpu);
    }
    return text;
}

#define expect(kind, text) assert_string_equal(latencies(&w, STATE_LATENCY_DISK_##kind), text)

static void waits_and_is_done(void **state)
{
    struct kernel_tracker w;
    begin(&w);
    insert(&w, 110, VDA, 64, 8, READ);
    issue(&w, 150, VDA, 64, 8, READ);
    issue(&w, 160, OTHER, 64, 16, WRITE); /* request without queueing */
    complete(&w, 190, VDA, 64, 8, READ, 0);
    complete(&w, 200, OTHER, 64, 16, WRITE, IO_ERROR);
    issue(&w, 210, OTHER, 0, 32, DISCARD);
    complete(&w, 230, OTHER, 0, 32, DISCARD, 0);
    end(&w);
    expect(WAIT, "vda: read:110-150 4096 @4 0");
    expect(DRIVER, "vda: read:150-190 4096 @4 1, 8,16: write:160-200 8192 @4 1, 8,16: other:210-230 16384 @4 1");
    world_close(&w);
}

/* Checks merged requests: each that waited ends with the one it was merged into; that one is as large as all. */
static void merged(void **state)
{
    struct kernel_tracker w;
    begin(&w);
    insert(&w, 110, VDA, 64, 8, WRITE);
    insert(&w, 120, VDA, 72, 8, WRITE);
    insert(&w, 130, VDA, 80, 8, WRITE); /* separate request */
    issue(&w, 150, VDA, 64, 16, WRITE);
    complete(&w, 190, VDA, 64, 16, WRITE, 0);
    end(&w);
    expect(WAIT, "vda: write:110-150 4096 @4 0, vda: write:120-150 4096 @4 0");
    expect(DRIVER, "vda: write:150-190 8192 @4 1");
    world_close(&w);
}

static void in_parts(void **state)
{
    struct kernel_tracker w;
    begin(&w);
    issue(&w, 150, VDA, 64, 24, READ);
    complete(&w, 160, VDA, 64, 8, READ, 0);
    complete(&w, 170, VDA, 72, 8, READ, 0);
    complete(&w, 180, VDA, 64, 8, READ, 0); /* unknown request */
    complete(&w, 190, VDA, 80, 8, READ, 0);
    end(&w);
    expect(DRIVER, "vda: read:150-190 12288 @4 1");
    world_close(&w);
}

/* A driver that is busy gives requests back: how long it had them counts from when it takes them again. */
static void given_back(void **state)
{
    struct kernel_tracker w;
    begin(&w);
    issue(&w, 110, VDA, 64, 24, READ);
    issue(&w, 115, VDA, 128, 8, READ);
    complete(&w, 120, VDA, 64, 8, READ, 0);
    tell(&w, 130, 0, KERNEL_BLOCK_REQUEUE, VDA, 72, 16, READ, 0);
    tell(&w, 131, 0, KERNEL_BLOCK_REQUEUE, VDA, 72, 16, READ, 0); /* unknown request */
    insert(&w, 140, VDA, 72, 16, READ);
    issue(&w, 150, VDA, 72, 16, READ);
    complete(&w, 170, VDA, 72, 16, READ, 0);
    complete(&w, 180, VDA, 128, 8, READ, 0);
    end(&w);
    expect(WAIT, "vda: read:140-150 8192 @4 0");
    expect(DRIVER, "vda: read:115-180 4096 @4 1, vda: read:150-170 8192 @4 1");
    world_close(&w);
}

static void without_sectors(void **state)
{
    struct kernel_tracker w;
    begin(&w);
    issue(&w, 150, VDA, 0, 0, FLUSH);
    issue(&w, 160, VDA, 0, 0, FLUSH);
    complete(&w, 190, VDA, UINT64_MAX, 0, FLUSH, 0);
    end(&w); /* the second one is still there */
    expect(DRIVER, "vda: flush:150-190 0 @4 1");
    world_close(&w);
}

/* Checks that requests not seen from begin to end have no length. */
static void not_seen_to_end(void **state)
{
    struct kernel_tracker w;
    begin(&w);
    complete(&w, 105, VDA, 64, 8, READ, 0);
    insert(&w, 110, VDA, 64, 8, READ);
    insert(&w, 120, VDA, 128, 8, READ);
    issue(&w, 130, VDA, 128, 8, READ);
    world_lost(&w, 150, 0, 140, 150, 3);
    issue(&w, 160, VDA, 64, 8, READ);
    complete(&w, 170, VDA, 128, 8, READ, 0);
    complete(&w, 180, VDA, 64, 8, READ, 0);
    insert(&w, 190, VDA, 256, 8, READ);
    issue(&w, 200, VDA, 512, 8, READ);
    end(&w);
    expect(WAIT, "vda: read:120-130 4096 @4 0");
    expect(DRIVER, "vda: read:160-180 4096 @-1 1"); /* thread at that time unknown, too */
    world_close(&w);
}

/* Sizes of all magnitudes, and figures over many. */
static void many(void **state)
{
    enum { N = 5000 };
    struct kernel_tracker w;
    struct state_latency l;
    struct figures f[4];
    begin(&w);
    for (int i = 0; i < N; i++) {
        issue(&w, 110 + 100 * i, VDA, 64, i == 7 ? UINT32_MAX : (uint32_t)i + 1, i % 2 ? READ : WRITE);
        complete(
            &w, 110 + 100 * i + 1 + i % 50, VDA, 64, i == 7 ? UINT32_MAX : (uint32_t)i + 1, i % 2 ? READ : WRITE, 0);
    }
    world_end(&w);
    assert_int_equal(state_latencies(w.store, STATE_LATENCY_DISK_DRIVER), N);
    assert_int_equal(state_latencies(w.store, STATE_LATENCY_DISK_WAIT), 0);
    for (int i = 0; i < N; i++) {
        state_latency(w.store, STATE_LATENCY_DISK_DRIVER, (size_t)i, &l);
        assert_int_equal(l.ret, i == 7 ? 512 * (int64_t)UINT32_MAX : 512 * (i + 1));
        assert_int_equal(l.end - l.begin, 1 + i % 50);
    }
    assert_int_equal(state_latency_names(w.store, STATE_LATENCY_DISK_DRIVER), 2);
    assert_string_equal(state_latency_name(w.store, STATE_LATENCY_DISK_DRIVER, 0), "vda: write");
    state_latency_figures(w.store, STATE_LATENCY_DISK_DRIVER, 0, N, f);
    assert_int_equal(f[0].n, N / 2);
    assert_int_equal(f[1].n, N / 2);
    assert_int_equal(f[0].least, 1);
    assert_int_equal(f[1].most, 50);
    assert_int_equal(f[0].sum + f[1].sum, N / 50 * (50 * 51 / 2));
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waits_and_is_done),
        cmocka_unit_test(merged),
        cmocka_unit_test(in_parts),
        cmocka_unit_test(given_back),
        cmocka_unit_test(without_sectors),
        cmocka_unit_test(not_seen_to_end),
        cmocka_unit_test(many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

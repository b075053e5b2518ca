/* SPDX-License-Identifier: MIT */
/* A trace whose metadata come piece by piece: a binding that was extended reads what one that was made at once reads.
 */
#include "../base/test.h"

#include "base/file.h"
#include "base/map.h"
#include "ctf/feed.h"
#include "kernel/kernel.h"

struct records {
    uint64_t sum, n, kinds[KERNEL_KINDS];
};

static void on_record(void *arg, const struct kernel_record *r)
{
    struct records *all = arg;
    uint64_t parts[] = {all->sum, (uint64_t)r->ts, (uint64_t)r->kind, (uint64_t)r->cpu, (uint64_t)r->row, r->ctx};
    all->sum = map_hash(parts, sizeof parts);
    all->kinds[r->kind]++;
    all->n++;
}

static void read_all(struct ctf_trace *t, struct kernel_tracker *tracker)
{
    struct ctf_source source = {.trace = t};
    struct ctf_merge *m;
    struct ctf_event ev[64];
    assert_int_equal(ctf_merge_new(&source, 1, (struct ctf_window){INT64_MIN, INT64_MAX}, -1, &m, NULL), 0);
    for (size_t n; (n = ctf_merge_next(m, ev, 64)) > 0;)
        kernel_tracker_feed(tracker, ev, n);
    assert_true(ctf_merge_ended(m));
    kernel_tracker_finish(tracker);
    ctf_merge_free(m);
}

/* The text of packetised metadata, as the specification has it: heads of 37 bytes, sizes at 24 and 28. */
static size_t text_of(char *data, size_t n)
{
    size_t out = 0;
    for (size_t at = 0; at + 37 <= n;) {
        uint32_t content, packet;
        memcpy(&content, data + at + 24, 4);
        memcpy(&packet, data + at + 28, 4);
        memmove(data + out, data + at + 37, content / 8 - 37);
        out += content / 8 - 37;
        at += packet / 8;
    }
    data[out] = '\0';
    return out;
}

static void test_binding_follows(void **state)
{
    const char *root = getenv("WEFT_DATA");
    char dir[1000], path[1100];
    struct ctf_group *groups;
    struct err e = {0};
    size_t n, size;
    snprintf(dir, sizeof dir, "%s/traces/three-tier/db", root ? root : WEFT_SOURCE_ROOT "/../shared/data");
    if (access(dir, R_OK))
        skip_without("no %s", dir);
    assert_int_equal(ctf_discover(dir, &groups, &n, &e), 0);
    struct ctf_trace *whole;
    struct kernel_binding *b;
    struct records want = {0}, got = {0};
    assert_int_equal(ctf_trace_open(&groups[0], NULL, &whole, &e), 0);
    assert_int_equal(kernel_bind(whole, &b, &e), 0);
    struct kernel_tracker *tracker = kernel_tracker_new(b, on_record, &want);
    read_all(whole, tracker);
    kernel_tracker_free(tracker);

    char *text;
    snprintf(path, sizeof path, "%s/metadata", groups[0].dirs[0]);
    assert_int_equal(file_read(path, 1 << 28, &text, &size, &e), 0);
    size = text_of(text, size);
    struct ctf_feed *feed = ctf_feed_new("db", NULL);
    struct kernel_binding *grown = NULL;
    struct kernel_tracker *follower = NULL;
    size_t extended = 0;
    for (size_t at = 0, step = size / 23; at < size; at += step) {
        size_t k = at + step < size ? step : size - at;
        int rc = ctf_feed_metadata(feed, text + at, k, &e);
        struct ctf_trace *t = ctf_feed_trace(feed);
        if (rc || !t)
            continue;
        if (!grown && !kernel_bind(t, &grown, &e))
            follower = kernel_tracker_new(grown, on_record, &got);
        else if (grown && kernel_binding_extend(grown)) {
            kernel_tracker_extend(follower);
            extended++;
        }
    }
    assert_true(extended > 5);
    for (int kind = 0; kind < KERNEL_KINDS; kind++)
        assert_int_equal(kernel_has(grown, kind), kernel_has(b, kind));
    size_t streams = ctf_trace_streams(whole);
    for (size_t i = 0; i < streams; i++) {
        struct ctf_stream_info info;
        char *data;
        ctf_trace_stream(whole, i, &info);
        snprintf(path, sizeof path, "%s/%s", groups[0].dirs[0], info.name);
        assert_int_equal(file_read(path, 1 << 28, &data, &size, &e), 0);
        assert_int_equal(ctf_feed_packet(feed, ctf_feed_line(feed, info.name), data, size, &e), 0);
        free(data);
    }
    ctf_feed_end(feed);
    read_all(ctf_feed_trace(feed), follower);
    assert_true(want.n > 1000 && got.n == want.n && got.sum == want.sum);
    assert_memory_equal(got.kinds, want.kinds, sizeof want.kinds);
    kernel_tracker_free(follower);
    kernel_binding_free(grown);
    kernel_binding_free(b);
    ctf_feed_free(feed);
    free(text);
    ctf_trace_close(whole);
    ctf_groups_free(groups, n);
}

/* Packets of a stream that all lie in the same place while they are read, as memory that is used again may have it:
 * what is lost in one of them is not taken for lost in those behind it. */
static void test_packets_take_places(void **state)
{
    enum { STREAMS = 8, MOST = 1 << 22 };
    static uint8_t *places[STREAMS];
    const char *root = getenv("WEFT_DATA");
    char dir[1000];
    struct ctf_group *groups;
    struct ctf_trace *t;
    struct kernel_binding *b;
    struct ctf_merge *m;
    struct ctf_event ev;
    struct err e = {0};
    struct records want = {0}, got = {0};
    size_t n;
    snprintf(dir, sizeof dir, "%s/traces/lost-events", root ? root : WEFT_SOURCE_ROOT "/../shared/data");
    if (access(dir, R_OK))
        skip_without("no %s", dir);
    assert_int_equal(ctf_discover(dir, &groups, &n, &e), 0);
    assert_int_equal(ctf_trace_open(&groups[0], NULL, &t, &e), 0);
    assert_int_equal(kernel_bind(t, &b, &e), 0);
    struct kernel_tracker *tracker = kernel_tracker_new(b, on_record, &want);
    read_all(t, tracker);
    kernel_tracker_free(tracker);
    tracker = kernel_tracker_new(b, on_record, &got);
    assert_int_equal(
        ctf_merge_new(&(struct ctf_source){.trace = t}, 1, (struct ctf_window){INT64_MIN, INT64_MAX}, -1, &m, NULL), 0);
    while (ctf_merge_next(m, &ev, 1)) {
        uint64_t bits = 0;
        assert_true(ev.stream < STREAMS);
        if (!places[ev.stream])
            places[ev.stream] = calloc(1, MOST + 8);
        if (ev.cls->item == CTF_EVENT) {
            memcpy(&bits, ev.data + 32 + 24, 8); /* the size of its content, behind LTTng's packet header */
            assert_true(bits / 8 <= MOST);
            memcpy(places[ev.stream], ev.data, bits / 8);
            ev.data = places[ev.stream];
        }
        kernel_tracker_feed(tracker, &ev, 1);
    }
    kernel_tracker_finish(tracker);
    assert_true(want.kinds[KERNEL_LOST] > 10);
    assert_memory_equal(got.kinds, want.kinds, sizeof want.kinds);
    assert_true(got.sum == want.sum);
    for (int i = 0; i < STREAMS; i++)
        free(places[i]);
    ctf_merge_free(m);
    kernel_tracker_free(tracker);
    kernel_binding_free(b);
    ctf_trace_close(t);
    ctf_groups_free(groups, n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_binding_follows), cmocka_unit_test(test_packets_take_places)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* Counts of events by class, in all and within ranges, against counting one by one: on a made trace that is longer than
 * what lies between two counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../base/test.h"
#include "base/err.h"
#include "ctf_writer.h"
#include "index/index.h"

enum { EVENTS = 300000, CPUS = 3, NAMES = 5, RANGES = 100 };

#define EVENT(name, id) \
    "event { name = \"" name "\"; id = " id \
    "; stream_id = 0; fields := struct { integer { size = 8; align = 8; } _x; }; };\n"
static const char declarations[] = EVENT("a", "0") EVENT("b", "1") EVENT("never", "2") EVENT("a", "3") EVENT("c", "4");

static struct {
    int64_t ts;
    int id;
} events[EVENTS];

static uint64_t dice = 88172645463325252u;
static uint64_t roll(uint64_t below)
{
    dice ^= dice << 13;
    dice ^= dice >> 7;
    dice ^= dice << 17;
    return dice % below;
}

/* Times stand still often, for long around each place where counts may be kept. */
static void make_events(void)
{
    static const int ids[] = {0, 0, 1, 3, 4};
    int64_t now = 1000;
    for (int i = 0; i < EVENTS; i++) {
        bool still = i % 65536 > 65000 || i % 65536 < 700;
        now += still ? roll(400) == 0 : roll(3) == 0 ? 0 : (int64_t)roll(1000);
        events[i].ts = now;
        events[i].id = i % 100000 == 7 ? 4 : ids[roll(4)];
    }
}

static void write_trace(const char *dir, bool lossy)
{
    struct err e = {0};
    struct ctf_writer *w;
    struct ctf_writer_options o = {
        .hostname = "made", .tsdl = declarations, .freq = 1000000000, .packet_bytes = 1 << 16, .cpus = CPUS};
    make_events();
    assert_int_equal(ctf_writer_open(dir, &o, &w, &e), 0);
    for (int i = 0; i < EVENTS; i++) {
        if (lossy && i % 5000 == 4999)
            assert_int_equal(ctf_writer_lose(w, (uint32_t)roll(CPUS), 17, 0, &e), 0);
        assert_int_equal(ctf_writer_event(w, (uint32_t)roll(CPUS), (uint64_t)events[i].id, events[i].ts, "", 1, &e), 0);
    }
    assert_int_equal(ctf_writer_close(w, &e), 0);
}

static void count(int64_t begin, int64_t end, uint64_t of[NAMES])
{
    memset(of, 0, sizeof(uint64_t) * NAMES);
    for (int i = 0; i < EVENTS; i++)
        of[events[i].id] += events[i].ts >= begin && events[i].ts <= end;
}

static void check(const struct index_types *types, int64_t begin, int64_t end)
{
    uint64_t counts[NAMES], truth[NAMES], all;
    struct err e = {0};
    count(begin, end, truth);
    assert_int_equal(index_types_count(types, begin, end, counts, &e), 0);
    for (size_t i = 0; i < index_types(types); i++)
        assert_int_equal(counts[i], truth[index_type(types, i, &all)->id]);
}

static void counted_as_one_by_one(void **state)
{
    bool lossy = *(bool *)*state;
    char dir[] = "/tmp/weft-types-XXXXXX", trace[64], store[64], clean[128];
    uint64_t truth[NAMES];
    assert_non_null(mkdtemp(dir));
    snprintf(trace, sizeof trace, "%s/trace", dir);
    snprintf(store, sizeof store, "%s/store", dir);
    write_trace(trace, lossy);
    count(INT64_MIN, INT64_MAX, truth);
    for (int again = 0; again < 2; again++) { /* built stores, then existing ones */
        const char *args[] = {trace};
        struct index_options o = {.stores = true, .user_space = true, .store = store};
        struct experiment *x;
        const struct index_trace *traces;
        struct err e = {0};
        assert_int_equal(index_experiment_open(args, 1, &o, &x, &e), 0);
        assert_int_equal(index_experiment_traces(x, &traces), 1);
        const struct index_types *types = traces->types;
        assert_int_equal(traces->built, !again);
        assert_int_equal(index_types(types), 4); /* four of five classes have events */
        for (size_t i = 0; i < 4; i++) {
            uint64_t all;
            const struct ctf_event_class *c = index_type(types, i, &all);
            assert_int_equal(all, truth[c->id]);
        }
        int64_t last = events[EVENTS - 1].ts;
        check(types, INT64_MIN, INT64_MAX);
        check(types, INT64_MIN, last - 1);
        check(types, events[1].ts, INT64_MAX);
        check(types, last, last);
        check(types, last + 1, INT64_MAX);
        check(types, 5, 4);
        for (int i = 0; i < RANGES; i++) {
            int64_t a = events[roll(EVENTS)].ts, b = events[roll(EVENTS)].ts + (int64_t)roll(3) - 1;
            if (i % 3 == 0) /* near the places where counts are kept */
                b = events[(1 + roll(4)) * 65536 + roll(600)].ts + (int64_t)roll(3) - 1;
            check(types, a < b ? a : b, a < b ? b : a);
        }
        index_experiment_close(x);
    }
    snprintf(clean, sizeof clean, "rm -r %s", dir);
    assert_int_equal(system(clean), 0);
}

int main(void)
{
    dice = test_seed(dice);
    static bool whole = false, lossy = true;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(counted_as_one_by_one, &whole),
        cmocka_unit_test_prestate(counted_as_one_by_one, &lossy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* Reading recorded traces: how many events of which name, in which order, how many were lost. Truth: verify.json beside
 * the recordings (made by babeltrace2), figures in the data's README, babeltrace2 itself where it is installed. */
#include "stream_helpers.h"

#include <dirent.h>
#include <jansson.h>
#include <unistd.h>

#include "base/text.h"

/* ---- counts by name ---- */

static void check_names(const char *where, json_t *by_name, const event_vec *all)
{
    json_t *seen = json_object();
    for (size_t i = 0; i < all->n; i++) {
        const char *name = all->v[i].cls->name;
        if (all->v[i].cls->item == CTF_EVENT)
            json_object_set_new(seen, name, json_integer(json_integer_value(json_object_get(seen, name)) + 1));
    }
    const char *name;
    json_t *count;
    json_object_foreach (by_name, name, count)
        if (json_integer_value(count) != json_integer_value(json_object_get(seen, name)))
            fail_msg("%s: %s: %lld events, expected %lld", where, name, json_integer_value(json_object_get(seen, name)),
                json_integer_value(count));
    json_decref(seen);
}

/* A recording whose traces lie in an archive beside the truth is none that can be read where it lies. */
static bool is_packed(const char *scenario)
{
    char path[1400];
    snprintf(path, sizeof path, "%s/%s/traces.tar.zst", data_path("traces"), scenario);
    return !access(path, F_OK);
}

static size_t check_scenario(const char *scenario)
{
    char path[1400];
    json_error_t error;
    snprintf(path, sizeof path, "%s/%s/verify.json", data_path("traces"), scenario);
    json_t *verify = json_load_file(path, 0, &error), *expected;
    const char *name;
    size_t checked = 0;
    if (!verify || is_packed(scenario)) {
        json_decref(verify);
        return 0;
    }
    json_object_foreach (json_object_get(verify, "traces"), name, expected) {
        struct opened o;
        snprintf(path, sizeof path, "%s/%s/%s", data_path("traces"), scenario, name);
        open_all(&o, path);
        event_vec all = read_all(o.merge);
        struct totals t = totals_of(&all);
        assert_int_equal(t.events, json_integer_value(json_object_get(expected, "events")));
        assert_int_equal(t.lost_events, json_integer_value(json_object_get(expected, "discarded_reported")));
        assert_int_equal(t.backwards, 0);
        if (json_object_get(expected, "first_ns")) {
            assert_true(all.v[0].ts == json_integer_value(json_object_get(expected, "first_ns")));
            assert_true(all.v[all.n - 1].ts == json_integer_value(json_object_get(expected, "last_ns")));
        }
        check_names(path, json_object_get(expected, "by_name"), &all);
        vec_free(&all);
        close_all(&o);
        checked++;
    }
    json_decref(verify);
    return checked;
}

static void test_counts_by_name(void **state)
{
    DIR *dir = opendir(data_or_skip("traces"));
    struct dirent *de;
    size_t checked = 0;
    while ((de = readdir(dir)))
        if (de->d_name[0] != '.')
            checked += check_scenario(de->d_name);
    closedir(dir);
    assert_true(checked >= 25);
}

/* ---- totals ---- */

struct expected {
    const char *path;
    uint64_t events, lost_events, lost_packets;
};

static void check_totals(const struct expected *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct totals t = totals_below(data_path(list[i].path));
        if (t.events != list[i].events || t.lost_events != list[i].lost_events ||
            t.lost_packets != list[i].lost_packets || t.backwards)
            fail_msg("%s: %lu events, %lu + %lu lost, %lu steps back; expected %lu, %lu + %lu", list[i].path, t.events,
                t.lost_events, t.lost_packets, t.backwards, list[i].events, list[i].lost_events, list[i].lost_packets);
    }
}

/* synctraces: times step back where packets overlap, babeltrace 1 reads all. hello-lost: as many as were generated. */
static void test_public_traces(void **state)
{
    static const struct expected list[] = {
        {"synctraces/scp_src", 110771, 0, 0},
        {"synctraces/scp_dest", 85729, 0, 0},
        {"single-host/hello-lost", 32300, 967700, 0},
        {"single-host/many-threads", 240644, 0, 0},
        {"single-host/flipping-endianness", 14310, 0, 0},
        {"single-host/bug446190", 31556, 0, 0},
        {"single-host/perf-taskset2", 1500, 0, 0},
        {"context-switches-ust", 3934, 0, 0},
    };
    struct expected below[8];
    static char paths[8][100];
    data_or_skip("traces-public/synctraces");
    for (size_t i = 0; i < 8; i++) {
        snprintf(paths[i], sizeof paths[i], "traces-public/%s", list[i].path);
        below[i] = list[i];
        below[i].path = paths[i];
    }
    check_totals(below, 8);
}

/* babeltrace2's own test traces, with the counts it prints for them. */
static void test_babeltrace_traces(void **state)
{
#define B "traces-public/babeltrace2-tests/"
    static const struct expected list[] = {
        {B "packet-seq-num/no-lost", 3, 0, 0},
        {B "packet-seq-num/no-lost-not-starting-at-0", 3, 0, 0},
        {B "packet-seq-num/2-lost-before-last", 3, 0, 2},
        {B "packet-seq-num/2-streams-lost-in-1", 8, 0, 2},
        {B "packet-seq-num/2-streams-lost-in-2", 8, 0, 6},
        {B "packet-seq-num/7-lost-between-2-with-index", 2, 0, 7},
        {B "succeed/2packets", 2, 0, 0},
        {B "succeed/array-align-elem", 1, 0, 0},
        {B "succeed/barectf-event-before-packet", 2, 0, 0},
        {B "succeed/ev-disc-no-ts-begin-end", 3, 17, 0},
        {B "succeed/lttng-crash", 400, 0, 0},
        {B "succeed/lttng-event-after-packet", 2, 0, 0},
        {B "succeed/lttng-tracefile-rotation", 12305, 0, 0},
        {B "succeed/multi-domains", 4272, 728, 0},
        {B "succeed/no-packet-context", 3, 0, 0},
        {B "succeed/session-rotation", 266, 0, 0},
        {B "succeed/sequence", 10, 0, 0},
        {B "succeed/succeed1", 7809, 0, 0},
        {B "succeed/trace-with-index", 4000, 0, 0},
        {B "succeed/wk-heartbeat-u", 20, 0, 0},
        {B "succeed/struct-array-align-elem", 1, 0, 0},
        {B "succeed/meta-variant-reserved-keywords", 1, 0, 0},
        {B "intersection/3eventsintersect", 8, 0, 0},
        {B "fail/valid-events-then-invalid-events", 2, 0, 0},
    };
    data_or_skip(B "succeed");
    check_totals(list, sizeof list / sizeof list[0]);
#undef B
}

static void test_rotations_and_snapshots(void **state)
{
    static const struct expected list[] = {{"traces/rotated", 20827, 0, 0}, {"traces/snapshot", 34646, 0, 0}};
    struct opened o;
    open_all(&o, data_or_skip("traces/rotated"));
    assert_int_equal(o.n, 1); /* five archives are one trace */
    assert_int_equal(o.groups[0].n, 5);
    assert_int_equal(ctf_trace_streams(o.sources[0].trace), 2);
    close_all(&o);
    check_totals(list, 2);
    open_all(&o, data_path("traces/scp-net"));
    assert_int_equal(o.n, 4);
    close_all(&o);
}

/* ---- order ---- */

/* Time and name of a line of babeltrace2's text: "[S.NNNNNNNNN] HOST NAME: { …". */
static bool parse_line(const char *line, int64_t *ts, const char **name, size_t *n)
{
    char *rest;
    const char *colon = strstr(line, ": {");
    if (line[0] != '[' || !colon)
        return false;
    int64_t s = strtoll(line + 1, &rest, 10);
    *ts = s * 1000000000 + strtoll(rest + 1, NULL, 10);
    const char *begin = colon;
    while (begin > line && begin[-1] != ' ')
        begin--;
    *name = begin;
    *n = (size_t)(colon - begin);
    return true;
}

static void check_order(const char *below)
{
    char command[1400], line[1 << 16];
    struct opened o;
    snprintf(command, sizeof command, "babeltrace2 --clock-seconds --no-delta '%s' 2>/dev/null", data_or_skip(below));
    FILE *f = popen(command, "r");
    assert_non_null(f);
    open_all(&o, data_path(below));
    event_vec all = read_all(o.merge);
    size_t i = 0, lines = 0;
    while (fgets(line, sizeof line, f)) {
        const char *name = "";
        size_t n = 0;
        int64_t ts = 0;
        assert_true(parse_line(line, &ts, &name, &n));
        while (i < all.n && all.v[i].cls->item != CTF_EVENT)
            i++;
        if (i == all.n || all.v[i].ts != ts || strlen(all.v[i].cls->name) != n || memcmp(all.v[i].cls->name, name, n))
            fail_msg("%s: line %zu: %.100s differs from event %zu, %s at %ld", below, lines + 1, line, i,
                i < all.n ? all.v[i].cls->name : "none", i < all.n ? all.v[i].ts : 0);
        i++;
        lines++;
    }
    pclose(f);
    assert_true(lines > 0);
    assert_int_equal(lines, totals_of(&all).events);
    vec_free(&all);
    close_all(&o);
}

static void test_order_of_babeltrace2(void **state)
{
    static const char *const paths[] = {
        "traces/rotated",
        "traces/snapshot",
        "traces/three-tier",
        "traces/perf-ctf",
        "traces/ust-live",
        "traces/live-relayd",
        "traces-public/babeltrace2-tests/succeed/session-rotation",
        "traces-public/babeltrace2-tests/succeed/lttng-tracefile-rotation",
        "traces-public/babeltrace2-tests/succeed/multi-domains",
        "traces-public/babeltrace2-tests/succeed/lttng-crash",
        "traces-public/babeltrace2-tests/succeed/wk-heartbeat-u",
        "traces-public/single-host/bug446190",
        "traces-public/single-host/flipping-endianness",
    };
    if (system("command -v babeltrace2 >/dev/null 2>&1"))
        skip_without("babeltrace2 is not installed");
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        check_order(paths[i]);
}

/* ---- streams, windows, seeking ---- */

static void test_streams_add_up(void **state)
{
    struct opened o;
    struct ctf_stream_info info;
    uint64_t sum = 0;
    open_all(&o, data_or_skip("traces/lost-events"));
    size_t n = ctf_trace_streams(o.sources[0].trace);
    assert_int_equal(n, 2);
    close_all(&o);
    for (int i = 0; i < (int)n; i++) {
        open_all_in(&o, data_path("traces/lost-events"), everything, i);
        event_vec all = read_all(o.merge);
        ctf_trace_stream(o.sources[0].trace, (size_t)i, &info);
        assert_int_equal(info.cpu, i);
        assert_int_equal(info.lost_events, totals_of(&all).lost_events);
        for (size_t k = 0; k < all.n; k++) {
            assert_int_equal(all.v[k].stream, i);
            assert_int_equal(all.v[k].cpu, i);
            assert_true(all.v[k].ts >= info.begin && all.v[k].ts <= info.end);
        }
        sum += totals_of(&all).events;
        vec_free(&all);
        close_all(&o);
    }
    assert_int_equal(sum, 10065);
}

static void test_windows_are_cut_from_the_whole(void **state)
{
    struct opened o, w;
    open_all(&o, data_or_skip("traces/three-tier"));
    event_vec all = read_all(o.merge);
    for (size_t i = 0; i < 12; i++) {
        size_t a = all.n * i / 13, b = a + all.n / 40 * (i + 1);
        b = b < all.n ? b : all.n - 1;
        struct ctf_window window = {all.v[a].ts, all.v[b].ts};
        open_all_in(&w, data_path("traces/three-tier"), window, -1);
        event_vec part = read_all(w.merge);
        while (a > 0 && all.v[a - 1].ts == window.begin)
            a--;
        while (b + 1 < all.n && all.v[b + 1].ts == window.end)
            b++;
        assert_int_equal(part.n, b - a + 1);
        for (size_t k = 0; k < part.n; k++) {
            assert_true(part.v[k].ts == all.v[a + k].ts);
            assert_string_equal(part.v[k].cls->name, all.v[a + k].cls->name);
        }
        vec_free(&part);
        close_all(&w);
    }
    vec_free(&all);
    close_all(&o);
}

static void check_seek(const char *below)
{
    struct opened o;
    struct err e = {0};
    open_all(&o, data_or_skip(below));
    event_vec all = read_all(o.merge);
    uint64_t n = 12345;
    for (int i = 0; i < 60; i++) {
        uint64_t at = i == 0 ? 0 : i == 1 ? all.n - 1 : (n = n * 6364136223846793005u + 1442695040888963407u) % all.n;
        struct ctf_event ev[20];
        assert_int_equal(ctf_merge_seek(o.merge, at, &e), 0);
        size_t got = ctf_merge_next(o.merge, ev, 20);
        assert_int_equal(got, all.n - at < 20 ? all.n - at : 20);
        for (size_t k = 0; k < got; k++) {
            const struct ctf_event *x = &all.v[at + k];
            if (x->ts != ev[k].ts || x->data != ev[k].data || x->payload_bits != ev[k].payload_bits ||
                x->cls != ev[k].cls)
                fail_msg("%s: event %lu + %zu differs after seeking", below, at, k);
        }
    }
    assert_int_equal(ctf_merge_seek(o.merge, all.n, &e), 0);
    struct ctf_event none;
    assert_int_equal(ctf_merge_next(o.merge, &none, 1), 0);
    assert_int_equal(ctf_merge_seek(o.merge, all.n + 1, &e), ERR_NOTFOUND);
    vec_free(&all);
    close_all(&o);
}

static void test_seeking(void **state)
{
    check_seek("traces/three-tier");
    check_seek("traces/lost-events");
    check_seek("traces/snapshot");
    if (test_have(data_path("traces-public/synctraces"))) {
        check_seek("traces-public/synctraces");
        check_seek("traces-public/single-host/many-threads");
        check_seek("traces-public/babeltrace2-tests/succeed/succeed1"); /* without clock: all times equal */
    }
}

/* ---- clock maps ---- */

static void slower(void *arg, int64_t *ts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ts[i] = ts[i] / 2 + *(int64_t *)arg;
}

static void test_maps_change_times_and_order(void **state)
{
    struct opened o;
    struct ctf_merge *m;
    int64_t shift = 900000000000000000;
    open_all(&o, data_or_skip("traces/scp-net"));
    event_vec all = read_all(o.merge);
    o.sources[1].map = slower;
    o.sources[1].map_arg = &shift;
    assert_int_equal(ctf_merge_new(o.sources, o.n, everything, -1, &m, NULL), 0);
    event_vec mapped = read_all(m);
    assert_int_equal(mapped.n, all.n);
    assert_int_equal(totals_of(&mapped).backwards, 0);
    size_t k = 0; /* events of source 1: the same ones in the same order, with mapped times */
    for (size_t i = 0; i < all.n; i++) {
        if (ctf_merge_source(o.merge, all.v[i].stream) != 1)
            continue;
        while (ctf_merge_source(m, mapped.v[k].stream) != 1)
            k++;
        int64_t ts = all.v[i].ts;
        slower(&shift, &ts, 1);
        assert_true(mapped.v[k].ts == ts && mapped.v[k].payload_bits == all.v[i].payload_bits);
        k++;
    }
    ctf_merge_free(m);
    vec_free(&all);
    vec_free(&mapped);
    close_all(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts_by_name),
        cmocka_unit_test(test_public_traces),
        cmocka_unit_test(test_babeltrace_traces),
        cmocka_unit_test(test_rotations_and_snapshots),
        cmocka_unit_test(test_order_of_babeltrace2),
        cmocka_unit_test(test_streams_add_up),
        cmocka_unit_test(test_windows_are_cut_from_the_whole),
        cmocka_unit_test(test_seeking),
        cmocka_unit_test(test_maps_change_times_and_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

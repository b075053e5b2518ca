/* SPDX-License-Identifier: MIT */
/* Failures of recordings that are fed: late packets, a full disk, another recording. */
#include <signal.h>
#include <sys/resource.h>

#include "live_world.h"

static bool is_noted(const struct experiment *x, int kind, const char *part)
{
    const struct index_note *v;
    bool any = false;
    for (size_t i = 0, n = index_experiment_notes(x, &v); i < n; i++)
        any |= v[i].kind == kind && strstr(v[i].text, part);
    return any;
}

/* Checks a line that violates its quiet time: earlier answers stay, and late data are reported. */
static void late(void **state)
{
    struct live_world w;
    struct err e = {0};
    bool more;
    fed_dice = test_seed(3);
    live_open(&w, data_or_skip("traces/live-relayd"), 32, &(struct index_options){.threads = 1});
    struct live_recording *r = &w.of[0];
    live_open_lines(r);
    struct fed_file *f = &r->files.files.v[0];
    live_feed_all(r, 0, f->parts.n / 2);
    int64_t begin, end;
    assert_true(ctf_trace_span(r->whole, &begin, &end));
    for (size_t i = 0; i < r->files.files.n; i++)
        ctf_feed_quiet(r->feed, r->files.files.v[i].line, end);
    struct experiment *early = live_ask(&w);
    const struct index_host *h;
    index_experiment_hosts(early, &h);
    uint64_t events = h->events;
    assert_true(events > 0 && index_live_until(r->live) == end && index_live_left_out(r->live) == 0);
    assert_false(index_experiment_partial(early));
    live_feed_all(r, 0, SIZE_MAX);
    ctf_feed_end(r->feed);
    for (more = true; more;)
        assert_int_equal(index_live_read(r->live, 1000, &more, &e), 0);
    assert_true(index_live_left_out(r->live) > 0);
    assert_int_equal(index_live_end(r->live, &e), 0);
    struct experiment *x = live_ask(&w);
    assert_true(index_experiment_partial(x) && is_noted(x, INDEX_NOTE_INPUT, "they are left out"));
    index_experiment_hosts(early, &h);
    assert_int_equal(h->events, events);
    index_experiment_close(early);
    index_experiment_close(x);
    live_close(&w);
}

static void limit_files(rlim_t bytes)
{
    struct rlimit l;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &l), 0);
    l.rlim_cur = bytes < l.rlim_max ? bytes : l.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &l), 0);
}

/* Checks stores that cannot be written: reported, each time. Once there is room again, all is made from data fed again,
 * and from the sealed chunks. */
static void full_disk(void **state)
{
    struct live_world w;
    struct err e = {0};
    struct experiment *x;
    const char *path = data_or_skip("traces/live-relayd");
    signal(SIGXFSZ, SIG_IGN);
    fed_dice = test_seed(4);
    live_open(&w, path, 32, &(struct index_options){.memory = 1, .threads = 1});
    struct live_recording *r = &w.of[0];
    live_open_lines(r);
    live_feed_all(r, 0, r->files.files.v[0].parts.n / 2);
    index_experiment_close(live_ask(&w));
    limit_files(512);
    live_feed_all(r, 0, SIZE_MAX);
    assert_int_equal(index_live_ask(&r->live, NULL, 1, &x, &e), ERR_IO);
    assert_non_null(strstr(e.text, r->store));
    limit_files(RLIM_INFINITY);
    struct err again = {0};
    assert_int_equal(index_live_ask(&r->live, NULL, 1, &x, &again), ERR_IO);
    assert_string_equal(again.text, e.text);
    live_restart(&w, r);
    live_run(&w, path, 2, 0);
    live_close(&w);
}

/* Checks that stores of another recording are not continued: it is reported as soon as it is known. */
static void other_recording(void **state)
{
    struct live_world w;
    struct err e = {0};
    const char *path = data_or_skip("traces/live-relayd");
    fed_dice = test_seed(6);
    live_open(&w, path, 32, &(struct index_options){.memory = 1, .threads = 1});
    struct live_recording *r = &w.of[0];
    live_open_lines(r);
    live_feed_all(r, 0, SIZE_MAX);
    index_experiment_close(live_ask(&w));
    live_end(r);
    live_begin(r, &w.options);
    int64_t sealed = index_live_until(r->live);
    assert_true(sealed > INT64_MIN);
    live_open_lines(r);
    for (size_t i = 0; i < r->files.files.n; i++)
        r->files.files.v[i].fed = r->files.files.v[i].parts.n / 2; /* simulates a late attachment */
    live_feed_all(r, 0, SIZE_MAX);
    ctf_feed_end(r->feed);
    assert_int_equal(index_live_end(r->live, &e), ERR_STALE);
    live_end(r);
    w.options.force = true;
    live_begin(r, &w.options);
    assert_true(index_live_until(r->live) == INT64_MIN);
    live_run(&w, path, 2, 0);
    live_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(late), cmocka_unit_test(full_disk), cmocka_unit_test(other_recording)};
    return cmocka_run_group_tests(tests, live_make_places, live_remove_places);
}

/* SPDX-License-Identifier: MIT */
/* Recordings fed in small portions, with queries in between: each answer equals one pass over all before its time
 * limit, and stays so; the last one equals the whole. */
#include "live_world.h"

static void feed_held(struct live_recording *r, int64_t until)
{
    live_open_lines(r);
    ctf_feed_hold(r->feed, until);
    live_feed_all(r, 0, SIZE_MAX);
    for (size_t i = 0; i < r->files.files.n; i++)
        ctf_feed_line_end(r->feed, r->files.files.v[i].line);
}

/* Advances the certain time by small steps over a complete input, into waits, calls and packets. */
static void run_slowly(struct live_world *w, const char *path, int asks, int restarts)
{
    enum { STEPS = 60 };
    int64_t begin[MOST_TRACES], end[MOST_TRACES], until[MOST_TRACES];
    size_t open = w->n, steps = 0, every = STEPS * w->n / (size_t)(asks + 1);
    for (size_t i = 0; i < w->n; i++) {
        assert_true(ctf_trace_span(w->of[i].whole, &begin[i], &end[i]));
        until[i] = begin[i];
        feed_held(&w->of[i], until[i]);
    }
    while (open) {
        size_t i = fed_roll(w->n);
        struct live_recording *r = &w->of[i];
        if (!r->done && until[i] > end[i]) {
            ctf_feed_end(r->feed);
            r->done = true;
            open--;
        } else if (!r->done) {
            until[i] += 1 + (int64_t)fed_roll((uint64_t)(end[i] - begin[i]) / STEPS * 2);
            ctf_feed_hold(r->feed, until[i]);
        }
        if (fed_roll(2) == 0)
            live_read_some(r);
        if (++steps % every == 0)
            live_ask_and_compare(w);
        else if (fed_roll(4) == 0) /* makes many small chunks */
            index_experiment_close(live_ask(w));
        if (restarts && !r->done && fed_roll(STEPS / 2) == 0) {
            live_restart(w, r);
            feed_held(r, until[i]);
            restarts--;
        }
    }
    live_finish(w, path);
    assert_true(w->answered > w->n);
}

typedef void run(struct live_world *, const char *path, int asks, int restarts);
static void recorded_with(const char *below, run *how, uint64_t memory, int restarts)
{
    const char *path = data_or_skip(below);
    uint64_t seed = test_seed(5);
    struct live_world w;
    fed_dice = seed * 7919 + memory + (uint64_t)restarts;
    live_open(&w, path, 32, &(struct index_options){.memory = memory, .threads = 1});
    how(&w, path, 4, restarts);
    live_close(&w);
}

/* Runs with little memory: chunks of a thousand events. */
static void recorded(const char *below)
{
    recorded_with(below, live_run, 1, 2);
    recorded_with(below, run_slowly, 0, 0);
    recorded_with(below, run_slowly, 1, 2);
}

#define RECORDED(name, below) \
    static void name(void **state) \
    { \
        recorded("traces/" below); \
    }
RECORDED(one_host, "live-relayd")
RECORDED(three_hosts, "three-tier")
RECORDED(disks, "three-tier-disk")
RECORDED(losses, "lost-events")
RECORDED(archives, "rotated")
RECORDED(user_space, "ust-live")
RECORDED(virtual_machine, "vm")
RECORDED(processes, "mpi")

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_host), cmocka_unit_test(three_hosts),
        cmocka_unit_test(disks), cmocka_unit_test(losses), cmocka_unit_test(archives), cmocka_unit_test(user_space),
        cmocka_unit_test(virtual_machine), cmocka_unit_test(processes)};
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, live_make_places, live_remove_places);
}

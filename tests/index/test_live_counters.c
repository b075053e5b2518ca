/* SPDX-License-Identifier: MIT */
/* Performance counters declared after a recording began: their events come later, and answers have them from then
 * on. */
#include "live_world.h"

#include "../ctf/stream_made.h"

enum { PACKETS = 12, PERIOD = 1000000, FIRST_COUNTED = 5, SECOND_COUNTED = 9 };

#define COMM(name) "letter " name "[16]; "
#define WAKEUP_FIELDS COMM("_comm") "int32_t _tid; int32_t _prio; int32_t _target_cpu;"
#define COUNTED(id, context) \
    "event { name = \"sched_wakeup\"; id = " #id "; stream_id = 0; context := struct { " context " }; " \
    "fields := struct { " WAKEUP_FIELDS " }; };\n"

static const char begun[] = TYPES
    "typealias integer { size = 8; align = 8; signed = true; encoding = UTF8; } := letter;\n"
    "typealias integer { size = 64; align = 8; signed = true; } := int64_t;\n" CLOCK(1000000000, 0) TRACE(
        "le") "env { hostname = \"counted\"; domain = \"kernel\"; };\n" CONTEXT LARGE STREAM EVENT(0, "sched_switch",
        COMM("_prev_comm") "int32_t _prev_tid; int32_t _prev_prio; int64_t _prev_state; " COMM(
            "_next_comm") "int32_t _next_tid; int32_t _next_prio;");
static const char first[] = COUNTED(1, "uint64_t perf_cpu_cycles;");
static const char second[] = COUNTED(2, "uint64_t perf_cpu_misses; uint64_t perf_cpu_cycles;");

/* ---- events ---- */

static void put_comm(const char *name)
{
    char text[16] = "";
    memcpy(text, name, strlen(name));
    memcpy(b.v + b.n, text, sizeof text);
    b.n += sizeof text;
}

static void put_head(uint32_t id, uint64_t ts)
{
    put(&b, id, 2);
    put(&b, (uint32_t)ts, 4);
}

static void put_switch(uint64_t ts, bool to_alpha)
{
    put_head(0, ts);
    put_comm(to_alpha ? "swapper/0" : "alpha");
    put(&b, to_alpha ? 0 : 10, 4);
    put(&b, 20, 4);
    put(&b, !to_alpha, 8);
    put_comm(to_alpha ? "alpha" : "swapper/0");
    put(&b, to_alpha ? 10 : 0, 4);
    put(&b, 20, 4);
}

/* counters: how many the event has. */
static void put_wakeup(uint64_t ts, uint32_t counters)
{
    put_head(counters, ts);
    for (uint32_t i = 0; i < counters; i++)
        put(&b, ts / 100 + i, 8);
    put_comm("alpha");
    put(&b, 10, 4);
    put(&b, 20, 4);
    put(&b, 0, 4);
}

/* Packet number i, of a CPU; returns where it begins. */
static size_t put_packet(size_t i, uint32_t cpu)
{
    uint64_t begin = (1 + i) * PERIOD, ts = begin;
    size_t at = begin_packet(begin, begin + PERIOD - 1, 0, cpu);
    for (int k = 0; k < 40; k++) {
        put_switch(ts += 1000, k % 2 == 0);
        if (k % 2 && i >= SECOND_COUNTED)
            put_wakeup(ts += 500, 2);
        else if (k % 2 && i >= FIRST_COUNTED)
            put_wakeup(ts += 500, 1);
    }
    end_packet(at, 0);
    return at;
}

/* ---- a recording ---- */

struct counted {
    struct ctf_trace *whole;
    struct ctf_feed *feed;
    struct index_live *live;
    uint32_t lines[2];
};

static struct ctf_trace *open_whole(void)
{
    char *path = mem_printf("%s/whole", scratch), *metadata = mem_printf("%s%s%s", begun, first, second);
    struct ctf_group *groups;
    struct ctf_trace *t = NULL;
    struct err e = {0};
    size_t n;
    write_text("whole", "metadata", metadata);
    for (uint32_t cpu = 0; cpu < 2; cpu++) {
        start_bytes(false);
        for (size_t i = 0; i < PACKETS; i++)
            put_packet(i, cpu);
        write_file("whole", cpu ? "c1" : "c0", b.v, b.n);
    }
    if (ctf_discover(path, &groups, &n, &e) || ctf_trace_open(&groups[0], NULL, &t, &e))
        fail_msg("%s", e.text);
    ctf_groups_free(groups, n);
    free(metadata);
    free(path);
    return t;
}

static void feed_metadata(struct counted *c, const char *text)
{
    struct err e = {0};
    if (ctf_feed_metadata(c->feed, text, strlen(text), &e))
        fail_msg("%s", e.text);
}

static void begin(struct counted *c, const struct index_options *how)
{
    char *store = mem_printf("%s/counted", live_stores);
    struct err e = {0};
    c->feed = ctf_feed_new("counted", NULL);
    feed_metadata(c, begun);
    if (index_live_new(ctf_feed_trace(c->feed), store, how, &c->live, &e))
        fail_msg("%s", e.text);
    for (uint32_t cpu = 0; cpu < 2; cpu++)
        c->lines[cpu] = ctf_feed_line(c->feed, cpu ? "c1" : "c0");
    free(store);
}

static void end(struct counted *c)
{
    index_live_free(c->live);
    ctf_feed_free(c->feed);
}

static void feed_packet(struct counted *c, size_t i)
{
    if (i == FIRST_COUNTED)
        feed_metadata(c, first);
    if (i == SECOND_COUNTED)
        feed_metadata(c, second);
    for (uint32_t cpu = 0; cpu < 2; cpu++) {
        start_bytes(false);
        put_packet(i, cpu);
        assert_int_equal(ctf_feed_packet(c->feed, c->lines[cpu], b.v, b.n, NULL), 0);
    }
}

/* Checks the number of CPUs' counters, and that everything is as in one pass. */
static void ask_and_compare(const struct counted *c, size_t counters)
{
    struct experiment *x;
    struct err e = {0};
    struct one_pass p;
    const struct index_host *h;
    if (index_live_ask(&c->live, NULL, 1, &x, &e))
        fail_msg("%s", e.text);
    assert_int_equal(index_experiment_hosts(x, &h), 1);
    assert_true(one_pass_build(&p, c->whole, index_live_until(c->live)));
    assert_int_equal(h->events, p.events);
    assert_int_equal(state_counters(p.states, STATE_CPU_COUNTER), counters);
    assert_int_equal(state_counters(h->states, STATE_CPU_COUNTER), counters);
    live_same_states(p.states, h->states, "counted");
    one_pass_free(&p);
    index_experiment_close(x);
}

/* Returns the number with the packets up to that one. */
static size_t counters_at(size_t packet)
{
    return packet >= SECOND_COUNTED ? 4 : packet >= FIRST_COUNTED ? 2 : 0;
}

/* Checks on the way. every: number of packets between queries. restart: number of packets before a restart, as of a
 * killed process. */
static void on_the_way(size_t every, size_t restart)
{
    const struct index_options how = {.memory = 1, .threads = 1};
    struct counted c = {.whole = open_whole()};
    struct err e = {0};
    begin(&c, &how);
    for (size_t i = 0; i < PACKETS; i++) {
        feed_packet(&c, i);
        if ((i + 1) % every == 0)
            ask_and_compare(&c, counters_at(i));
        if (i + 1 != restart)
            continue;
        end(&c);
        begin(&c, &how);
        for (size_t k = 0; k <= i; k++)
            feed_packet(&c, k);
    }
    ctf_feed_end(c.feed);
    if (index_live_end(c.live, &e))
        fail_msg("%s", e.text);
    ask_and_compare(&c, 4);
    end(&c);
    ctf_trace_close(c.whole);
    char *store = mem_printf("%s/counted", live_stores);
    live_remove_tree(store);
    free(store);
}

static void counters_come(void **state)
{
    for (size_t every = 1; every <= PACKETS; every++)
        on_the_way(every, 0);
}

static void counters_come_again(void **state)
{
    for (size_t restart = 1; restart < PACKETS; restart++)
        on_the_way(3, restart);
}

static int make_all(void **state)
{
    return make_scratch(state) || live_make_places(state);
}

static int remove_all(void **state)
{
    return remove_scratch(state) || live_remove_places(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(counters_come), cmocka_unit_test(counters_come_again)};
    return cmocka_run_group_tests(tests, make_all, remove_all);
}

/* SPDX-License-Identifier: MIT */
/* Automatic moves: nodes and times are made up, and the expected decisions stated. */
#include <string.h>

#include "../base/test.h"
#include "base/time.h"
#include "place/policy.h"

enum { A, B, C, D, NODES };

struct scene {
    struct policy *policy;
    struct place_node nodes[NODES];
    struct place_move_advice moves[2];
    struct place_plan is;
    int64_t now_ns;
};
static const struct cluster_host hosts[] = {
    {.name = "web", .clock_name = "web", .key = 1}, {.name = "db", .clock_name = "db", .key = 2}};

/* Makes four nodes of two CPUs; web shall move from a to b, and db as the test requests. */
static struct scene begin(int32_t from, int32_t to)
{
    static const char *const names[] = {"a", "b", "c", "d"};
    struct scene s = {.policy = place_policy_new(&(struct policy_limits){50, 2, 60 * NS_PER_S})};
    for (int i = 0; i < NODES; i++)
        s.nodes[i] = (struct place_node){.name = names[i], .version = 1, .load = {.answered = true, .cpus = 2}};
    s.moves[0] = (struct place_move_advice){.host = 0, .from = A, .to = B, .saves = 100};
    s.moves[1] = (struct place_move_advice){.host = 1, .from = from, .to = to, .saves = 50};
    s.is = (struct place_plan){.n_nodes = NODES, .n_moves = 2};
    return s;
}

/* Returns the decision `seconds` later; -1: none. */
static int look(struct scene *s, int seconds)
{
    struct policy_choice choice;
    s->now_ns += seconds * NS_PER_S;
    s->is.nodes = s->nodes;
    s->is.moves = s->moves;
    place_policy_observe(s->policy, &s->is, s->now_ns);
    place_policy_choose(s->policy, &s->is, hosts, s->now_ns, &choice);
    assert_true(*choice.why);
    return choice.move == SIZE_MAX ? -1 : (int)choice.move;
}

static void both_nodes_have_been_idle_for_as_long_as_was_asked(void **state)
{
    struct scene s = begin(A, B);
    (void)state;
    assert_int_equal(look(&s, 0), -1);
    assert_int_equal(look(&s, 59), -1);
    assert_int_equal(look(&s, 1), 0);
    s.nodes[B].load.load_percent = 101; /* load of two CPUs: 50 % is 100 */
    assert_int_equal(look(&s, 10), -1);
    s.nodes[B].load.load_percent = 100;
    assert_int_equal(look(&s, 50), -1);
    assert_int_equal(look(&s, 9), -1);
    assert_int_equal(look(&s, 1), 0);
    place_policy_free(s.policy);
}

static void questions_are_counted_by_time(void **state)
{
    struct scene s = begin(A, B);
    (void)state;
    s.nodes[A].load.questions = 1000000; /* total since the start: irrelevant */
    assert_int_equal(look(&s, 0), -1);
    s.nodes[A].load.questions += 120; /* two a second */
    assert_int_equal(look(&s, 60), 0);
    s.nodes[A].load.questions += 21;
    assert_int_equal(look(&s, 10), -1);
    assert_int_equal(look(&s, 59), -1);
    assert_int_equal(look(&s, 1), 0);
    place_policy_free(s.policy);
}

static void nothing_goes_while_a_recording_grows_or_a_node_is_away(void **state)
{
    struct scene s = begin(A, B);
    (void)state;
    look(&s, 0);
    for (int i = 0; i < 20; i++) {
        s.nodes[A].version++;
        assert_int_equal(look(&s, 10), -1);
    }
    assert_int_equal(look(&s, 59), -1);
    assert_int_equal(look(&s, 1), 0);
    s.nodes[B].load.answered = false;
    assert_int_equal(look(&s, 1), -1);
    s.nodes[B].load.answered = true;
    assert_int_equal(look(&s, 59), -1);
    assert_int_equal(look(&s, 1), 0);
    place_policy_free(s.policy);
}

static void one_at_a_time_in_the_whole_cluster(void **state)
{
    struct scene s = begin(A, B);
    (void)state;
    look(&s, 0);
    s.nodes[D].load.taking = true;
    assert_int_equal(look(&s, 60), -1);
    s.nodes[D].load.taking = false;
    assert_int_equal(look(&s, 0), 0);
    s.nodes[D].load.taking = true;
    s.is.n_nodes = D; /* permanent loss */
    assert_int_equal(look(&s, 1), 0);
    place_policy_free(s.policy);
}

static void others_overtake_what_waits_only_where_they_have_nothing_to_do_with_it(void **state)
{
    static const struct {
        int32_t from, to;
        int chosen;
    } cases[] = {{C, D, 1}, {C, B, -1}, {A, D, -1}, {B, C, -1}, {C, A, -1}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct scene s = begin(cases[i].from, cases[i].to);
        look(&s, 0);
        assert_int_equal(look(&s, 60), 0);
        place_policy_failed(s.policy, 1, s.now_ns); /* web rests */
        assert_int_equal(look(&s, 1), cases[i].chosen);
        place_policy_free(s.policy);
    }
}

static void what_failed_rests_longer_each_time(void **state)
{
    struct scene s = begin(A, B);
    int64_t rest_ns = 60 * NS_PER_S;
    (void)state;
    look(&s, 0);
    assert_int_equal(look(&s, 60), 0);
    for (int i = 0; i < 12; i++) {
        assert_int_equal(place_policy_failed(s.policy, 1, s.now_ns), rest_ns);
        assert_true(place_policy_is_resting(s.policy, 1, s.now_ns));
        assert_false(place_policy_is_resting(s.policy, 2, s.now_ns));
        assert_int_equal(look(&s, (int)(rest_ns / NS_PER_S) - 1), -1);
        assert_int_equal(look(&s, 1), 0);
        rest_ns = 2 * rest_ns < 3600 * NS_PER_S ? 2 * rest_ns : 3600 * NS_PER_S;
    }
    place_policy_succeeded(s.policy, 1);
    assert_int_equal(place_policy_failed(s.policy, 1, s.now_ns), 60 * NS_PER_S);
    place_policy_free(s.policy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_nodes_have_been_idle_for_as_long_as_was_asked),
        cmocka_unit_test(questions_are_counted_by_time),
        cmocka_unit_test(nothing_goes_while_a_recording_grows_or_a_node_is_away),
        cmocka_unit_test(one_at_a_time_in_the_whole_cluster),
        cmocka_unit_test(others_overtake_what_waits_only_where_they_have_nothing_to_do_with_it),
        cmocka_unit_test(what_failed_rests_longer_each_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* Notes about damaged packets, some of which span the cuts between chunks: the same, once each, however the recording
 * was indexed. */
#include "../ctf/archives.h"
#include "index/index.h"

enum { ARCHIVES = 6, WORLDS = 4 };

/* Streams of an archive end at different times. Of some packets the rest cannot be read. */
static int64_t write_stream(uint64_t *dice, const char *dir, uint32_t cpu, size_t number, int64_t from)
{
    char name[20];
    int64_t end = (int64_t)(2 + number) * SPAN + test_random(dice, SPAN / 2);
    start_bytes(false);
    for (int64_t at = from; at < end;) {
        int64_t until = at + 50 + test_random(dice, SPAN / 2);
        until = until < end ? until : end;
        size_t head = begin_packet((uint64_t)at, (uint64_t)until, 0, cpu);
        for (int64_t ts = at; ts <= until; ts += 1 + test_random(dice, 60)) {
            compact(test_random(dice, 40) ? 0 : 7, (uint32_t)ts); /* id 7 is not declared */
            put(&b, test_random(dice, 1 << 30), 8);
        }
        end_packet(head, 0);
        at = until + 1;
    }
    snprintf(name, sizeof name, "c%u", cpu);
    write_file(dir, name, b.v, b.n);
    return end + 1;
}

static struct experiment *open_in(const char *store, uint64_t memory)
{
    char *traces = mem_printf("%s/world", scratch), *dir = mem_printf("%s/%s", scratch, store);
    const char *args[] = {traces};
    struct index_options how = {.stores = true, .user_space = true, .store = dir, .memory = memory};
    struct experiment *x;
    struct err e = {0};
    if (index_experiment_open(args, 1, &how, &x, &e))
        fail_msg("%s", e.text);
    free(traces);
    free(dir);
    return x;
}

static void remove_tree(const char *below)
{
    char *command = mem_printf("rm -rf '%s/%s'", scratch, below);
    assert_int_equal(system(command), 0);
    free(command);
}

static size_t same_notes(struct experiment *x)
{
    struct experiment *one = open_in("whole", 0);
    const struct index_note *as_one, *as_grown;
    size_t n = index_experiment_notes(one, &as_one);
    assert_int_equal(index_experiment_notes(x, &as_grown), n);
    for (size_t i = 0; i < n; i++) {
        assert_string_equal(as_one[i].text, as_grown[i].text);
        assert_int_equal(as_one[i].count, as_grown[i].count);
    }
    index_experiment_close(one);
    remove_tree("whole");
    return n;
}

static void told_once(void **state)
{
    uint64_t dice = test_seed(92);
    size_t most = 0;
    for (int world = 0; world < WORLDS; world++) {
        int64_t from[STREAMS] = {SPAN, SPAN};
        clear_world();
        remove_tree("store");
        for (size_t i = 0; i < ARCHIVES; i++) {
            char dir[40];
            snprintf(dir, sizeof dir, "world/a%zu", i);
            write_text(dir, "metadata", declared[0]);
            for (uint32_t cpu = 0; cpu < STREAMS; cpu++)
                from[cpu] = write_stream(&dice, dir, cpu, i, from[cpu]);
            struct experiment *x = open_in("store", 0);
            size_t n = same_notes(x);
            most = n > most ? n : most;
            index_experiment_close(x);
        }
    }
    assert_true(most > 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(told_once)};
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}

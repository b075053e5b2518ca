/* SPDX-License-Identifier: MIT */
/* Counts of a recording that grows: counted data are not read again. Indexed archives are overwritten so that only
 * reading would reveal it: the numbers stay right only if nothing is read. */
#include "../ctf/archives.h"
#include "index/index.h"

enum { ARCHIVES = 7 };

static void archive_name(char name[40], size_t i)
{
    snprintf(name, 40, "world/a%zu", i);
}

static char *path_in(const char *below)
{
    return mem_printf("%s/%s", scratch, below);
}

static uint64_t count_alone(const char *below)
{
    struct opened one;
    char *path = path_in(below);
    open_all(&one, path);
    uint64_t items = ctf_trace_items(one.sources[0].trace);
    close_all(&one);
    free(path);
    return items;
}

/* Overwrites all bytes of events; heads of packets, size and time are unchanged. */
static void spoil(size_t i)
{
    char name[40], file[8];
    archive_name(name, i);
    start_bytes(false);
    begin_packet(0, 0, 0, 0);
    const size_t head = b.n;
    for (uint32_t cpu = 0; cpu < STREAMS; cpu++) {
        snprintf(file, sizeof file, "c%u", cpu);
        char *path = mem_printf("%s/%s/%s", scratch, name, file);
        FILE *f = fopen(path, "r+b");
        static uint8_t v[1 << 16];
        size_t n = f ? fread(v, 1, sizeof v, f) : 0, at = 0;
        assert_true(n > head && n < sizeof v);
        while (at < n) {
            uint64_t content, packet;
            memcpy(&content, v + at + 40, 8);
            memcpy(&packet, v + at + 48, 8);
            memset(v + at + head, 0xff, content / 8 - head);
            at += packet / 8;
        }
        rewind(f);
        assert_int_equal(fwrite(v, 1, n, f), n);
        fclose(f);
        free(path);
        stamp(name, file, 1700000000);
    }
}

static void remove_tree(const char *below)
{
    char *command = mem_printf("rm -rf '%s/%s'", scratch, below);
    assert_int_equal(system(command), 0);
    free(command);
}

static struct experiment *open_world(void)
{
    char *traces = path_in("world"), *store = path_in("store");
    const char *args[] = {traces};
    struct index_options how = {.stores = true, .user_space = true, .store = store};
    struct experiment *x;
    struct err e = {0};
    if (index_experiment_open(args, 1, &how, &x, &e))
        fail_msg("%s", e.text);
    free(traces);
    free(store);
    return x;
}

static uint64_t items_of(struct experiment *x)
{
    const struct index_trace *traces;
    assert_int_equal(index_experiment_traces(x, &traces), 1);
    return ctf_trace_items(traces->trace);
}

/* The last chunk is built again with each archive; what lies before its cut is in the archive before. */
static void only_what_is_new_is_read(void **state)
{
    uint64_t dice = test_seed(91), sum = 0;
    char name[40];
    clear_world();
    remove_tree("store");
    for (size_t i = 0; i < ARCHIVES; i++) {
        struct archive a = {true, 1 + test_random(&dice, 1 << 30), 0, 1700000000};
        archive_name(name, i);
        write_archive(&a, name, i, false);
        sum += count_alone(name);
        if (i > 1)
            spoil(i - 2);
        struct experiment *x = open_world();
        assert_int_equal(items_of(x), sum);
        index_experiment_close(x);
    }
    assert_true(count_alone("world") < sum); /* the sum would reveal reading */
    struct experiment *x = open_world();     /* existing stores */
    assert_int_equal(items_of(x), sum);
    index_experiment_close(x);
}

/* Checks that files of chunks replaced while they are open, by any process, are still used, also by new clients: the
 * recording is overwritten, so that reading it would show. */
static void what_is_replaced_serves_on(void **state)
{
    char name[40];
    clear_world();
    remove_tree("store");
    for (size_t i = 0; i < ARCHIVES; i++) {
        struct archive a = {true, i + 1, 0, 1700000000};
        archive_name(name, i);
        write_archive(&a, name, i, false);
        index_experiment_close(open_world());
    }
    uint64_t sum = count_alone("world");
    struct experiment *x = open_world(), *other = open_world();
    struct err e = {0};
    bool joined;
    for (size_t joins = 0; !index_experiment_join(other, &(struct index_options){0}, &joined, &e) && joined; joins++)
        assert_in_range(joins, 0, ARCHIVES);
    assert_int_equal(e.code, 0);
    index_experiment_close(other);
    for (size_t i = 0; i + 1 < ARCHIVES; i++)
        spoil(i);
    assert_true(count_alone("world") < sum);
    assert_int_equal(items_of(x), sum);
    index_experiment_close(x);
}

/* A store that is gone: what it had is read. An archive that is gone: nothing of it is counted. */
static void what_is_missing_is_read(void **state)
{
    char name[40];
    uint64_t sum = 0;
    clear_world();
    remove_tree("store");
    for (size_t i = 0; i < 4; i++) {
        struct archive a = {true, i + 1, 0, 1700000000};
        archive_name(name, i);
        write_archive(&a, name, i, true);
        index_experiment_close(open_world());
    }
    sum = count_alone("world");
    struct experiment *x = open_world();
    char *command = mem_printf("rm %s/store/*/chunk.*", scratch);
    assert_int_equal(system(command), 0);
    free(command);
    assert_int_equal(items_of(x), sum);
    index_experiment_close(x);
    x = open_world(); /* rebuilds */
    assert_int_equal(items_of(x), sum);
    index_experiment_close(x);
    remove_tree("world/a0");
    assert_true(count_alone("world") < sum);
    x = open_world();
    assert_int_equal(items_of(x), count_alone("world"));
    index_experiment_close(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_is_new_is_read),
        cmocka_unit_test(what_is_replaced_serves_on),
        cmocka_unit_test(what_is_missing_is_read),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}

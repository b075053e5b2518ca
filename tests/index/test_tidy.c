/* SPDX-License-Identifier: MIT */
/* Joining of small chunks while their experiment is used: file by file, until stopped, by one process at a time, and
 * only chunks still of the same files. */
#include <dirent.h>
#include <sys/file.h>

#include "../ctf/archives.h"
#include "base/store.h"
#include "index/index.h"

enum { ARCHIVES = 9 };

static char *path_in(const char *below)
{
    return mem_printf("%s/%s", scratch, below);
}

static uint64_t seed;

static void add_archive(size_t i)
{
    char name[40];
    snprintf(name, sizeof name, "world/a%zu", i);
    struct archive a = {true, seed + i, 0, 1700000000};
    write_archive(&a, name, i, false);
}

static struct experiment *open_world(const char *store, bool join)
{
    char *traces = path_in("world"), *below = path_in(store);
    const char *args[] = {traces};
    struct index_options how = {.stores = true, .user_space = true, .store = below, .join = join};
    struct experiment *x;
    struct err e = {0};
    if (index_experiment_open(args, 1, &how, &x, &e))
        fail_msg("%s", e.text);
    free(traces);
    free(below);
    return x;
}

static const char *store_dir(const struct experiment *x)
{
    const struct index_trace *traces;
    assert_int_equal(index_experiment_traces(x, &traces), 1);
    return traces->store_dir;
}

/* Files in whose names that is. */
static size_t files_in(const char *dir, const char *part)
{
    DIR *list = opendir(dir);
    size_t n = 0;
    assert_non_null(list);
    for (const struct dirent *d; (d = readdir(list));)
        n += strstr(d->d_name, part) != NULL;
    closedir(list);
    return n;
}

static size_t chunks_in(const char *dir)
{
    return files_in(dir, "chunk.");
}

static void begin_world(void)
{
    char *command = mem_printf("rm -rf '%s/store' '%s/other'", scratch, scratch);
    assert_int_equal(system(command), 0);
    free(command);
    seed = test_seed(77);
    clear_world();
    for (size_t i = 0; i < ARCHIVES; i++) {
        add_archive(i);
        index_experiment_close(open_world("store", false));
    }
}

static bool join(struct experiment *x)
{
    struct err e = {0};
    bool joined;
    if (index_experiment_join(x, &(struct index_options){0}, &joined, &e))
        fail_msg("%s", e.text);
    return joined;
}

/* Returns how many files are left by an `index` that sees each archive arrive. */
static size_t left_by_index(void)
{
    size_t n = 0;
    clear_world();
    for (size_t i = 0; i < ARCHIVES; i++) {
        add_archive(i);
        struct experiment *x = open_world("other", true);
        n = chunks_in(store_dir(x));
        index_experiment_close(x);
    }
    return n;
}

static void until_all_is_joined(void **state)
{
    begin_world();
    struct experiment *x = open_world("store", false);
    uint64_t events = index_experiment_stored_events(x);
    size_t before = chunks_in(store_dir(x)), joins = 0;
    assert_true(events > 0 && before > 3);
    for (; join(x); joins++) {
        size_t now = chunks_in(store_dir(x));
        assert_true(now < before); /* joined ones are gone, too */
        before = now;
    }
    assert_true(joins > 0);
    assert_int_equal(before, left_by_index());
    assert_int_equal(index_experiment_stored_events(x), events);
    assert_int_equal(index_experiment_intact(x, NULL), 0);
    index_experiment_close(x);
    x = open_world("store", true);
    const struct index_trace *traces;
    index_experiment_traces(x, &traces);
    assert_false(traces->built); /* nothing left to do */
    assert_int_equal(index_experiment_stored_events(x), events);
    index_experiment_close(x);
}

static bool stop_now(void *asked)
{
    return ++*(int *)asked > 0;
}

/* Checks a stopped build: it leaves nothing, and the earlier files are unchanged. */
static void stopped(void **state)
{
    begin_world();
    int asked = 0;
    struct experiment *x = open_world("store", false);
    size_t before = chunks_in(store_dir(x));
    struct err e = {0};
    bool joined = true;
    assert_int_equal(
        index_experiment_join(x, &(struct index_options){.stop = stop_now, .stop_arg = &asked}, &joined, &e),
        ERR_CANCELLED);
    assert_false(joined);
    assert_int_equal(asked, 1);
    assert_int_equal(chunks_in(store_dir(x)), before);
    assert_int_equal(files_in(store_dir(x), STORE_TEMPORARY), 0);
    assert_true(join(x));
    index_experiment_close(x);
}

/* Somebody else builds there. */
static void not_beside_others(void **state)
{
    begin_world();
    struct experiment *x = open_world("store", false);
    char *path = mem_printf("%s/lock", store_dir(x));
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    size_t before = chunks_in(store_dir(x));
    assert_false(join(x));
    assert_int_equal(chunks_in(store_dir(x)), before);
    close(fd);
    assert_true(join(x));
    free(path);
    index_experiment_close(x);
}

/* Stores that were built of a later state of the directory are not taken back to an earlier one. */
static void not_of_other_files(void **state)
{
    begin_world();
    struct experiment *x = open_world("store", false);
    add_archive(ARCHIVES);
    struct experiment *later = open_world("store", false);
    size_t before = chunks_in(store_dir(later));
    struct err e = {0};
    bool joined = true;
    assert_int_equal(index_experiment_join(x, &(struct index_options){0}, &joined, &e), ERR_STALE);
    assert_false(joined);
    assert_int_equal(chunks_in(store_dir(later)), before);
    assert_true(join(later));
    index_experiment_close(later);
    index_experiment_close(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(until_all_is_joined),
        cmocka_unit_test(stopped),
        cmocka_unit_test(not_beside_others),
        cmocka_unit_test(not_of_other_files),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}

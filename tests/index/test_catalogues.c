/* SPDX-License-Identifier: MIT */
/* Trees of many archives opened with a catalogue, which is stored among the stores: answers are those of a fresh
 * opening. A wrong entry is reported, and the catalogue removed. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "../base/test.h"
#include "base/file.h"
#include "ctf_writer.h"
#include "index/index.h"

static char top[300];

static const char *path_of(const char *below)
{
    static char path[700];
    snprintf(path, sizeof path, "%s/%s", top, below);
    return path;
}

static int make_top(void **state)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(top, sizeof top, "%s/weft-catalogues-XXXXXX", tmp ? tmp : "/tmp");
    return mkdtemp(top) ? 0 : -1;
}

static int remove_top(void **state)
{
    char command[400];
    snprintf(command, sizeof command, "rm -rf '%s'", top);
    return system(command);
}

static void make_old(const char *dir, int64_t seconds)
{
    struct timespec times[2] = {{.tv_sec = seconds}, {.tv_sec = seconds}};
    DIR *list = opendir(dir);
    for (const struct dirent *d; (d = readdir(list));)
        if (strcmp(d->d_name, ".."))
            assert_int_equal(utimensat(dirfd(list), d->d_name, times, 0), 0);
    closedir(list);
}

/* An archive of one second, with 3 events. */
static void make(const char *tree, uint32_t number)
{
    static const char *const env[] = {"domain=ust", NULL};
    struct ctf_writer_options o = {.hostname = "week",
        .tsdl = "event { name = tick; id = 0; stream_id = 0; fields := struct { uint64_t n; }; };\n",
        .env = env,
        .freq = 1000000000,
        .packet_bytes = 4096,
        .cpus = 1,
        .uuid = {1, 2, 3}};
    struct ctf_writer *w;
    struct err e = {0};
    char dir[800];
    snprintf(dir, sizeof dir, "%s/a%06u", path_of(tree), number);
    assert_int_equal(file_make_dirs(path_of(tree), &e), 0);
    assert_int_equal(ctf_writer_open(dir, &o, &w, &e), 0);
    for (uint64_t i = 0; i < 3; i++)
        assert_int_equal(
            ctf_writer_event(w, 0, 0, 1700000000000000000 + number * 1000000000ll + (int64_t)i, &i, 8, &e), 0);
    assert_int_equal(ctf_writer_close(w, &e), 0);
    make_old(dir, 1700000000 + number);
}

struct opened {
    uint64_t fingerprint, events;
    bool lost, written; /* written: a catalogue is there now */
};

static bool catalogue_is_there(const char *tree)
{
    bool there = false;
    DIR *list = opendir(path_of("stores"));
    size_t n = strlen(tree);
    for (const struct dirent *d; list && (d = readdir(list));) {
        char path[1000];
        snprintf(path, sizeof path, "%s/%s/catalogue", path_of("stores"), d->d_name);
        there |= !strncmp(d->d_name, tree, n) && d->d_name[n] == '-' && !access(path, F_OK);
    }
    if (list)
        closedir(list);
    return there;
}

static struct opened open_tree(const char *tree)
{
    char store[700], path[700];
    snprintf(store, sizeof store, "%s", path_of("stores"));
    snprintf(path, sizeof path, "%s", path_of(tree));
    const char *args[] = {path};
    struct index_options o = {.store = store, .stores = true, .user_space = true};
    struct experiment *x;
    const struct ctf_source *sources;
    struct ctf_merge *m;
    struct ctf_event ev[64];
    struct err e = {0};
    if (index_experiment_open(args, 1, &o, &x, &e))
        fail_msg("%s", e.text);
    assert_int_equal(index_experiment_sources(x, &sources), 1);
    struct opened out = {.fingerprint = ctf_trace_fingerprint(sources[0].trace)};
    assert_int_equal(ctf_merge_new(sources, 1, (struct ctf_window){INT64_MIN, INT64_MAX}, -1, &m, &e), 0);
    for (size_t n; (n = ctf_merge_next(m, ev, 64)) > 0;)
        out.events += n;
    ctf_merge_free(m);
    out.lost = index_experiment_intact(x, &e) == ERR_LOST;
    index_experiment_close(x);
    out.written = catalogue_is_there(tree);
    return out;
}

static void small_trees_have_none(void **state)
{
    for (uint32_t i = 0; i < 5; i++)
        make("few", i);
    struct opened o = open_tree("few");
    assert_int_equal(o.events, 15);
    assert_false(o.written);
}

static void grows(void **state)
{
    for (uint32_t i = 0; i < 150; i++)
        make("many", i);
    struct opened first = open_tree("many"), again = open_tree("many");
    assert_true(first.written && again.written);
    assert_int_equal(first.events, 450);
    assert_int_equal(again.events, 450);
    assert_int_equal(again.fingerprint, first.fingerprint);
    make("many", 150);
    again = open_tree("many");
    assert_int_equal(again.events, 453);
    assert_int_not_equal(again.fingerprint, first.fingerprint);
}

/* Checks a write to an old file: its reader gets an error, and the next opening is right. */
static void goes_when_it_misleads(void **state)
{
    for (uint32_t i = 0; i < 150; i++)
        make("changed", i);
    struct opened first = open_tree("changed");
    make_old(path_of("changed/a000003"), 1710000000);
    struct opened misled = open_tree("changed");
    assert_true(misled.lost);
    assert_false(misled.written);
    struct opened right = open_tree("changed");
    assert_false(right.lost);
    assert_true(right.written);
    assert_int_equal(right.events, 450);
    assert_int_not_equal(right.fingerprint, first.fingerprint);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_trees_have_none),
        cmocka_unit_test(grows),
        cmocka_unit_test(goes_when_it_misleads),
    };
    return cmocka_run_group_tests(tests, make_top, remove_top);
}

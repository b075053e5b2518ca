/* SPDX-License-Identifier: MIT */
/* Changes in trees of directories: what is noticed, and what is no change. */
#include "base/watch.h"

#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <sys/stat.h>
#include <time.h>

#include "base/mem.h"
#include "base/time.h"
#include "test.h"

enum { PATIENCE_S = 60, ROUND_NS = 20000000 };

static char top[] = "/tmp/weft-watch-XXXXXX";

static char *at(const char *name)
{
    static char paths[8][4096];
    static int next;
    char *out = paths[next++ % 8];
    snprintf(out, sizeof paths[0], "%s/%s", top, name);
    return out;
}

static void put(const char *name, const char *text)
{
    int fd = open(at(name), O_WRONLY | O_CREAT | O_APPEND, 0666);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static void make(const char *name)
{
    assert_int_equal(mkdir(at(name), 0777), 0);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    return remove(path);
}

static void remove_all(const char *name)
{
    assert_int_equal(nftw(at(name), remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

static int begin(void **state)
{
    strcpy(top + sizeof top - 7, "XXXXXX");
    return mkdtemp(top) ? 0 : -1;
}

static int end(void **state)
{
    return nftw(top, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Returns the watch once it knows the existing directories. */
static struct watch *walked(struct watch *w)
{
    int64_t again;
    do
        watch_look(w, &again);
    while (!watch_state(w).walked);
    return w;
}

static struct watch *open_top(size_t told)
{
    struct watch_limits limits = watch_limits_usual();
    const char *path = top;
    limits.told = told;
    limits.round_ns = ROUND_NS;
    return walked(watch_open(&path, 1, "metadata", &limits));
}

/* Waits until a change is noticed. */
static bool notices(struct watch *w)
{
    int64_t again, end = time_monotonic_ns() + PATIENCE_S * NS_PER_S;
    while (time_monotonic_ns() < end) {
        if (watch_look(w, &again))
            return true;
        struct pollfd p = {.fd = watch_descriptor(w), .events = POLLIN};
        int64_t wait = again - time_monotonic_ns();
        poll(&p, p.fd >= 0, wait > 0 ? (int)(wait / 1000000) + 1 : 0);
    }
    return false;
}

/* Returns whether everything was checked, after the last round, without a change. */
static bool is_quiet(struct watch *w)
{
    int64_t again, first = 0;
    bool changed = watch_look(w, &first);
    for (int rounds = 0; rounds < 2; rounds++) {
        int64_t wait = first - time_monotonic_ns();
        if (wait > 0)
            poll(NULL, 0, (int)(wait / 1000000) + 1);
        changed |= watch_look(w, &again);
        first = again;
    }
    return !changed;
}

static void notice_all(size_t told)
{
    make("archives");
    struct watch *w = open_top(told);
    make("archives/1");
    make("archives/1/kernel");
    put("archives/1/kernel/metadata", "x");
    assert_true(notices(w));
    assert_int_equal(watch_state(w).leaves, 1);
    put("archives/1/kernel/channel_0", "some");
    assert_true(notices(w));
    put("archives/1/kernel/channel_0", "more");
    assert_true(notices(w));
    make("moved");
    put("moved/metadata", "y");
    assert_true(notices(w));
    assert_int_equal(rename(at("moved"), at("archives/2")), 0);
    do
        assert_true(notices(w));
    while (watch_state(w).leaves != 2);
    assert_int_equal(symlink(at("elsewhere"), at("link")), 0);
    make("elsewhere");
    put("elsewhere/metadata", "z");
    assert_true(notices(w));
    assert_int_equal(unlink(at("archives/1/kernel/metadata")), 0);
    assert_true(notices(w));
    remove_all("archives");
    assert_true(notices(w));
    while (watch_state(w).leaves != 1)
        assert_true(notices(w));
    watch_close(w);
}

static void test_told(void **state)
{
    notice_all(1000);
}

static void test_looked_at(void **state)
{
    notice_all(0);
}

static void test_some_told(void **state)
{
    notice_all(2);
}

/* Checks that changes to other files are not reported. */
static void test_nothing(void **state)
{
    make("a");
    put("a/metadata", "x");
    make("empty");
    for (int told = 0; told <= 100; told += 100) {
        struct watch *w = open_top((size_t)told);
        make("a/.weft");
        put("a/.weft/store", "x");
        put("log", "a line");
        make(told ? "empty/more" : "empty/still");
        assert_true(is_quiet(w));
        watch_close(w);
        remove_all("a/.weft");
    }
}

/* Checks that read permission is given and taken. */
static void test_permission(void **state)
{
    enum { NOBODY = 65534 };
    uid_t me = geteuid();
    make("a");
    make("a/b");
    put("a/b/metadata", "x");
    if (!me) { /* root may read everything */
        assert_int_equal(chown(top, NOBODY, NOBODY), 0);
        assert_int_equal(chown(at("a"), NOBODY, NOBODY), 0);
        assert_int_equal(seteuid(NOBODY), 0);
    }
    struct watch *w = open_top(100);
    chmod(at("a"), 0);
    assert_true(notices(w));
    assert_int_equal(watch_state(w).leaves, 0);
    chmod(at("a"), 0777);
    assert_true(notices(w));
    assert_int_equal(watch_state(w).leaves, 1);
    watch_close(w);
    assert_int_equal(seteuid(me), 0);
}

/* A root may vanish and come back. */
static void test_root(void **state)
{
    char *root = at("root");
    const char *paths[] = {root, at("never")};
    struct watch_limits limits = {.told = 8, .directories = 50, .entries = 64, .round_ns = ROUND_NS};
    make("root");
    put("root/metadata", "x");
    struct watch *w = walked(watch_open(paths, 2, "metadata", &limits));
    assert_int_equal(watch_state(w).leaves, 1);
    remove_all("root");
    while (watch_state(w).leaves)
        assert_true(notices(w));
    make("root");
    put("root/metadata", "x");
    assert_true(notices(w));
    assert_int_equal(watch_state(w).leaves, 1);
    watch_close(w);
}

/* Links in circles, deep trees, more than is followed. */
static void test_hostile(void **state)
{
    struct watch_limits limits = {.told = 8, .directories = 50, .entries = 64, .round_ns = ROUND_NS};
    const char *path = top;
    char deep[512] = "deep";
    make("around");
    assert_int_equal(symlink(top, at("around/again")), 0);
    assert_int_equal(symlink(".", at("around/itself")), 0);
    make(deep);
    for (int i = 0; i < 40; i++) {
        strcat(deep, "/d");
        make(deep);
    }
    for (int i = 0; i < 200; i++) {
        char name[32];
        snprintf(name, sizeof name, "many-%d", i);
        make(name);
    }
    struct watch *w = walked(watch_open(&path, 1, "metadata", &limits));
    struct watch_state is = watch_state(w);
    assert_true(is.full);
    assert_in_range(is.directories, 20, 50);
    assert_in_range(is.told, 1, 8);
    watch_close(w);
}

/* Waits until files get another time than those that were changed before. */
static void let_time_pass(void)
{
    struct timespec begin, now;
    clock_gettime(CLOCK_REALTIME, &begin); /* clock that also dates some files */
    do {
        poll(NULL, 0, 1);
        clock_gettime(CLOCK_REALTIME_COARSE, &now);
    } while (now.tv_sec < begin.tv_sec || (now.tv_sec == begin.tv_sec && now.tv_nsec <= begin.tv_nsec));
}

static void make_archive(const char *name)
{
    char path[64];
    make(name);
    snprintf(path, sizeof path, "%s/kernel", name);
    make(path);
    strcat(path, "/metadata");
    put(path, "x");
}

static void until_leaves(struct watch *w, size_t n)
{
    while (watch_state(w).leaves != n)
        assert_true(notices(w));
}

/* Checks that creation, removal and changes of entries are noticed for very many old directories, and every change for
 * others. */
static void old_ones(size_t told)
{
    enum { OLD = 20 };
    struct watch_limits limits = watch_limits_usual();
    const char *path = top;
    char name[32];
    make("many");
    make("few");
    make_archive("few/0");
    for (int i = 0; i < OLD; i++) {
        snprintf(name, sizeof name, "many/%d", i);
        make_archive(name);
    }
    let_time_pass();
    limits.told = told;
    limits.round_ns = ROUND_NS;
    limits.many = OLD / 2;
    limits.old_ns = 0;
    struct watch *w = walked(watch_open(&path, 1, "metadata", &limits));
    assert_int_equal(watch_state(w).old, OLD);
    assert_int_equal(watch_state(w).leaves, 1);
    assert_true(is_quiet(w));
    make_archive("many/new");
    until_leaves(w, 2);
    put("many/new/kernel/channel", "x");
    assert_true(notices(w));
    make("many/4/ust");
    put("many/4/ust/metadata", "x");
    until_leaves(w, 4);
    remove_all("many/5");
    assert_true(notices(w));
    remove_all("many/6/kernel");
    assert_true(notices(w));
    while (watch_state(w).old != OLD - 3)
        assert_true(notices(w));
    assert_int_equal(rename(at("many/7"), at("seven")), 0);
    until_leaves(w, 5);
    put("few/0/kernel/channel", "x");
    assert_true(notices(w));
    watch_close(w);
}

static void test_old_told(void **state)
{
    old_ones(100);
}

static void test_old_looked_at(void **state)
{
    old_ones(0);
}

/* Checks the limit: the newest directories are reported, and those in which others are created. */
static void test_newest(void **state)
{
    struct watch_limits limits = {.told = 8, .directories = 1000, .entries = 1000, .round_ns = ROUND_NS};
    const char *path = top;
    struct watch *w = watch_open(&path, 1, "metadata", &limits);
    for (int i = 0; i < 100; i++) {
        char name[64];
        snprintf(name, sizeof name, "%03d", i);
        make(name);
        snprintf(name, sizeof name, "%03d/metadata", i);
        put(name, "x");
        while (watch_state(w).leaves != (size_t)i + 1)
            assert_true(notices(w));
        assert_true(watch_state(w).told <= 8);
    }
    int64_t again;
    while (watch_look(w, &again))
        ;
    put("099/channel", "x");
    assert_true(watch_look(w, &again)); /* reported at once */
    put("000/channel", "x");
    assert_true(notices(w));
    watch_close(w);
}

/* Checks changes before the trees were walked. */
static void test_early(void **state)
{
    const struct watch_limits limits = watch_limits_usual();
    const char *path = top;
    int64_t again;
    make("archives");
    make("archives/1");
    put("archives/1/metadata", "x");
    make("archives/2");
    put("archives/2/metadata", "x");
    make("aside");
    put("aside/metadata", "x");
    for (int kind = 0; kind < 5; kind++) {
        usleep(50000); /* times of files are not exact */
        struct watch *w = watch_open(&path, 1, "metadata", &limits);
        switch (kind) {
        case 0: put("archives/1/channel", "x"); break;
        case 1: assert_int_equal(rename(at("aside"), at("archives/3")), 0); break;
        case 2: remove_all("archives/3"); break;
        case 3: assert_int_equal(truncate(at("archives/1/channel"), 0), 0); break;
        default:;
        }
        assert_int_equal(watch_look(w, &again), kind < 4);
        assert_true(watch_state(w).walked);
        watch_close(w);
    }
}

/* ---- a random life of a tree, against a walk over it ---- */

static uint64_t sum;

static int add_file(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    char other[4200];
    snprintf(other, sizeof other, "%.*smetadata", ftw->base, path);
    if (type != FTW_F || access(other, F_OK))
        return 0;
    snprintf(other, sizeof other, "%.*s../metadata", ftw->base, path);
    if (ftw->level > 2 && !access(other, F_OK)) /* directories below a trace do not belong to it */
        return 0;
    uint64_t h = 1469598103934665603u;
    for (const char *p = path; *p; p++)
        h = (h ^ (uint8_t)*p) * 1099511628211u;
    sum += (h ^ (uint64_t)st->st_size * 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
    return 0;
}

/* Files beside a metadata file, none of which is above: their paths and sizes. */
static uint64_t walk(void)
{
    sum = 0;
    nftw(top, add_file, 16, FTW_PHYS);
    return sum;
}

static void step(uint64_t *dice)
{
    char name[64], other[64];
    snprintf(name, sizeof name, "%c", "abc"[test_random(dice, 3)]);
    if (test_random(dice, 2))
        snprintf(name + 1, sizeof name - 1, "/%c", "xyz"[test_random(dice, 3)]);
    snprintf(other, sizeof other, "%c", "abcde"[test_random(dice, 5)]);
    struct stat st;
    bool is = !stat(at(name), &st);
    switch (test_random(dice, 6)) {
    case 0: mkdir(at(name), 0777); break;
    case 1: rename(at(name), at(other)); break;
    case 2:
        if (is && test_random(dice, 2))
            remove_all(name);
        break;
    case 3:
    case 4:
        strcat(name, "/metadata");
        if (is)
            put(name, "x");
        break;
    default:
        strcat(name, "/channel");
        if (is)
            put(name, "x");
    }
}

static void random_life(size_t told, int steps)
{
    uint64_t dice = test_seed(told + 3);
    struct watch *w = open_top(told);
    int64_t again;
    uint64_t before = walk();
    for (int i = 0; i < steps; i++) {
        for (uint32_t n = 1 + test_random(&dice, 6); n; n--)
            step(&dice);
        uint64_t now = walk();
        if (now != before)
            assert_true(notices(w));
        /* Knowledge now must equal that of a watch that begins now. */
        if (told >= 100) {
            watch_look(w, &again);
            struct watch *fresh = open_top(told);
            assert_int_equal(watch_state(w).leaves, watch_state(fresh).leaves);
            assert_int_equal(watch_state(w).directories, watch_state(fresh).directories);
            assert_int_equal(watch_state(w).told, watch_state(fresh).told);
            watch_close(fresh);
        }
        before = now;
    }
    watch_close(w);
}

static void test_random_told(void **state)
{
    random_life(1000, 500);
}

static void test_random_some_told(void **state)
{
    random_life(3, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_told, begin, end),
        cmocka_unit_test_setup_teardown(test_looked_at, begin, end),
        cmocka_unit_test_setup_teardown(test_some_told, begin, end),
        cmocka_unit_test_setup_teardown(test_nothing, begin, end),
        cmocka_unit_test_setup_teardown(test_permission, begin, end),
        cmocka_unit_test_setup_teardown(test_root, begin, end),
        cmocka_unit_test_setup_teardown(test_hostile, begin, end),
        cmocka_unit_test_setup_teardown(test_early, begin, end),
        cmocka_unit_test_setup_teardown(test_old_told, begin, end),
        cmocka_unit_test_setup_teardown(test_old_looked_at, begin, end),
        cmocka_unit_test_setup_teardown(test_newest, begin, end),
        cmocka_unit_test_setup_teardown(test_random_told, begin, end),
        cmocka_unit_test_setup_teardown(test_random_some_told, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

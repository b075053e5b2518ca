/* SPDX-License-Identifier: MIT */
/* Traces on common storage: paths that lead out of the shared directory, entries, and which node has which trace. */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/test.h"
#include "base/file.h"
#include "base/mem.h"
#include "bus/bus.h"
#include "share/shared.h"

static char top[] = "/tmp/weft-shared-XXXXXX";
static char *root; /* the shared directory, with a trace `a/b` */

static int drop(const char *file, const struct stat *st, int flag, struct FTW *at)
{
    (void)st;
    (void)flag;
    (void)at;
    return remove(file);
}

static char *below(const char *name)
{
    return mem_printf("%s/%s", top, name);
}

static void make_dir(const char *name)
{
    char *path = below(name);
    assert_int_equal(mkdir(path, 0700), 0);
    free(path);
}

static void make_link(const char *to, const char *name)
{
    char *path = below(name);
    assert_int_equal(symlink(to, path), 0);
    free(path);
}

static int set_up(void **state)
{
    (void)state;
    if (!mkdtemp(top))
        return -1;
    make_dir("shared");
    make_dir("shared/a");
    make_dir("shared/a/b");
    make_dir("outside");
    char *path = below("shared");
    root = file_real_path(path);
    free(path);
    return root ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    free(root);
    return nftw(top, drop, 16, FTW_DEPTH | FTW_PHYS);
}

/* ---- paths ---- */

static int resolve(const char *path)
{
    struct err e = {0};
    char *real = NULL;
    int rc = share_resolve(root, path, &real, &e);
    if (!rc)
        assert_true(file_is_below(real, root) || !strcmp(real, root));
    else
        assert_null(real);
    free(real);
    return rc;
}

static void paths_stay_below(void **state)
{
    static const char *const out[] = {"..", "a/..", "a/../..", "/", "/tmp", "", "a//b", "a/", "./a", "a/./b"};
    (void)state;
    assert_int_equal(resolve("."), 0);
    assert_int_equal(resolve("a/b"), 0);
    assert_int_equal(resolve("a/c"), ERR_NOTFOUND);
    for (size_t i = 0; i < sizeof out / sizeof *out; i++)
        assert_int_equal(resolve(out[i]), ERR_ARG);
}

static void links_stay_below(void **state)
{
    (void)state;
    make_link("a", "shared/inside");
    assert_int_equal(resolve("inside"), 0);
    make_link("../../outside", "shared/a/leaving");
    assert_int_equal(resolve("a/leaving"), ERR_ARG);
    assert_int_equal(resolve("a"), ERR_ARG); /* the link lies in it */
    assert_int_equal(resolve("a/b"), 0);
}

/* ---- entries ---- */

static int read_entry(const char *path, const char *of)
{
    struct arena a = {0};
    struct text t = {.fd = -1};
    struct err e = {0};
    struct shared_trace out,
        in = {.work = {.path = path, .state = SHARE_WORK_PARTLY, .node = "n", .text = "why"},
            .shared = true,
            .keep_ns = 7};
    char key[SHARED_KEY];
    share_entry_write(&in, &t);
    share_key(of, key);
    struct bus_entry entry = {.kind = BUS_ENTRY_PUT, .key = key, .data = t.v, .n = t.n};
    int rc = share_entry_check(&a, &entry, &out, &e);
    if (!rc) {
        assert_string_equal(out.work.path, path);
        assert_string_equal(out.work.text, "why");
        assert_int_equal(out.work.state, SHARE_WORK_PARTLY);
        assert_true(out.shared && !out.force && out.keep_ns == 7);
        for (size_t n = 0; n < t.n; n++)
            assert_int_equal(share_entry_read(&a, t.v, n, &out, NULL), ERR_FORMAT);
    }
    text_fini(&t);
    arena_fini(&a);
    return rc;
}

static void entries_are_checked(void **state)
{
    (void)state;
    assert_int_equal(read_entry("a/b", "a/b"), 0);
    assert_int_equal(read_entry("a/b", "a/c"), ERR_FORMAT);
    assert_int_equal(read_entry("../b", "../b"), ERR_FORMAT);
}

/* ---- owner nodes ---- */

static size_t owner(const char *path, const char *const *nodes, size_t n)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (share_weight(path, nodes[i]) > share_weight(path, nodes[best]))
            best = i;
    return best;
}

/* A node that joins takes about its share of the traces, and no trace changes between the others. */
static void joining_moves_its_own_only(void **state)
{
    static const char *const nodes[] = {"n1", "n2", "n3", "n4"};
    enum { TRACES = 4000, JOINING = 3 };
    size_t taken = 0;
    char path[32];
    (void)state;
    for (int i = 0; i < TRACES; i++) {
        snprintf(path, sizeof path, "day/%d", i);
        size_t before = owner(path, nodes, JOINING), after = owner(path, nodes, JOINING + 1);
        taken += after == JOINING;
        if (after != JOINING)
            assert_int_equal(after, before);
    }
    assert_in_range(taken, TRACES / 5, TRACES * 3 / 10); /* a quarter; the names are fixed */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_stay_below),
        cmocka_unit_test(links_stay_below),
        cmocka_unit_test(entries_are_checked),
        cmocka_unit_test(joining_moves_its_own_only),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

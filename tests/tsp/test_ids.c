/* SPDX-License-Identifier: MIT */
/* Ids of entries are kept, whatever is requested, in which order, before and after the table is read back; an id is
 * never given to another entry. Ids of few bits, so that keys collide all the time. */
#include "../base/test.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/store.h"
#include "tsp/ids.h"

enum { BITS = 8, KEYS = 200, ROUNDS = 60 };

static char directory[] = "/tmp/weft-ids-XXXXXX", path[64];
static uint64_t next;

static uint64_t dice(uint64_t below)
{
    next = map_mix(next + 1);
    return next % below;
}

static uint64_t key_of(size_t i)
{
    return map_mix(i + 77);
}

static struct tsp_ids *opened(unsigned bits)
{
    struct tsp_ids *t = tsp_ids_new(bits);
    struct err e = {0};
    assert_int_equal(tsp_ids_keep_in(t, path, &e), 0);
    return t;
}

static int begin(void **state)
{
    unlink(path);
    return 0;
}

/* Oracle: the first id returned for each key, and the owner of each id. */
struct told {
    uint64_t id[KEYS];
    size_t who[1 << BITS];
};

static void ask(struct tsp_ids *t, struct told *told, size_t i)
{
    uint64_t id = tsp_ids_of(t, key_of(i));
    assert_in_range(id, 1, (1 << BITS) - 1);
    if (!told->id[i]) {
        assert_int_equal(told->who[id], 0);
        told->id[i] = id;
        told->who[id] = i + 1;
    }
    assert_int_equal(id, told->id[i]);
    assert_int_equal(told->who[id], i + 1);
}

static void test_ids_stay(void **state)
{
    struct told told = {0};
    struct err e = {0};
    size_t known = 0, moved = 0;
    next = test_seed(1);
    for (int round = 0; round < ROUNDS; round++) {
        struct tsp_ids *t = opened(BITS);
        known = known + 12 > KEYS ? KEYS : known + 12;
        for (size_t n = dice(40); n > 0; n--) {
            ask(t, &told, (size_t)dice(known));
            if (!dice(5))
                assert_int_equal(tsp_ids_save(t, dice(2), &e), 0);
        }
        tsp_ids_unref(t);
        assert_int_equal(store_check(path, &e), 0);
    }
    for (size_t i = 0; i < KEYS; i++)
        moved += told.id[i] && told.id[i] != key_of(i) >> (64 - BITS);
    assert_true(moved > 20); /* minimum, else nothing was tested */
}

/* Checks that, without collisions, ids come from the keys alone: another machine's table gives the same. */
static void test_another_table(void **state)
{
    struct tsp_ids *a = tsp_ids_new(IDS_BITS), *b = tsp_ids_new(IDS_BITS);
    for (size_t i = 0; i < KEYS; i++)
        assert_int_equal(tsp_ids_of(a, key_of(i)), key_of(i) >> 12);
    for (size_t i = KEYS; i-- > 0;)
        assert_int_equal(tsp_ids_of(b, key_of(i)), key_of(i) >> 12);
    tsp_ids_unref(a);
    tsp_ids_unref(b);
}

/* 0 is no id, but a key that begins with as many zeros has one. */
static void test_zero(void **state)
{
    struct tsp_ids *t = opened(BITS);
    uint64_t id = tsp_ids_of(t, 5);
    assert_in_range(id, 1, 255);
    tsp_ids_unref(t);
    t = opened(BITS);
    assert_int_equal(tsp_ids_of(t, 5), id);
    tsp_ids_unref(t);
}

/* Checks that moved ids are in the file before they are returned, without the table being closed. */
static void test_moved_are_kept_at_once(void **state)
{
    const uint64_t first = 7ull << 56, second = first + 1;
    struct tsp_ids *t = opened(BITS);
    struct err e = {0};
    assert_int_equal(tsp_ids_of(t, first), 7);
    uint64_t id = tsp_ids_of(t, second);
    assert_int_not_equal(id, 7);
    assert_int_equal(tsp_ids_save(t, false, &e), 0);
    struct tsp_ids *other = opened(BITS);
    assert_int_equal(tsp_ids_of(other, second), id);
    assert_int_equal(tsp_ids_of(other, first), 7);
    tsp_ids_unref(other);
    tsp_ids_unref(t);
}

/* Checks that a few of many are not worth rewriting all; they are written at the end. */
static void test_writing_costs_little(void **state)
{
    struct tsp_ids *t = opened(IDS_BITS);
    struct err e = {0};
    int written = 0;
    for (size_t i = 0; i < 10000; i++) {
        tsp_ids_of(t, key_of(i));
        unlink(path);
        assert_int_equal(tsp_ids_save(t, false, &e), 0);
        written += !access(path, F_OK);
    }
    assert_in_range(written, 20, 120);
    tsp_ids_unref(t);
    assert_int_equal(store_check(path, &e), 0);
}

static void test_nowhere_to_keep(void **state)
{
    struct tsp_ids *t = tsp_ids_new(BITS);
    struct err e = {0};
    struct told told = {0};
    assert_int_equal(tsp_ids_keep_in(t, "/nowhere/at/all/ids", &e), 0);
    for (size_t i = 0; i < 100; i++)
        ask(t, &told, i);
    assert_int_not_equal(tsp_ids_save(t, true, &e), 0);
    for (size_t i = 0; i < 100; i++)
        ask(t, &told, i);
    tsp_ids_unref(t);
}

/* Checks that ids returned before the file was known stay, and are joined with those of the file. */
static void test_file_comes_late(void **state)
{
    struct told told = {0};
    struct tsp_ids *t = opened(BITS);
    struct err e = {0};
    for (size_t i = 0; i < 60; i++)
        tsp_ids_of(t, key_of(i));
    tsp_ids_unref(t);
    t = tsp_ids_new(BITS);
    for (size_t i = 100; i-- > 40;)
        ask(t, &told, i);
    assert_int_equal(tsp_ids_keep_in(t, path, &e), 0);
    for (size_t i = 0; i < KEYS; i++)
        ask(t, &told, i);
    tsp_ids_unref(t);
    t = opened(BITS);
    for (size_t i = KEYS; i-- > 0;)
        ask(t, &told, i);
    tsp_ids_unref(t);
}

static size_t read_whole(char *bytes, size_t most)
{
    FILE *f = fopen(path, "rb");
    size_t n = f ? fread(bytes, 1, most, f) : 0;
    assert_non_null(f);
    fclose(f);
    return n;
}

static void write_whole(const char *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

/* Checks that damage is reported, and changes no id; the next writing replaces the file. */
static void test_damage(void **state)
{
    static char bytes[1 << 16];
    struct tsp_ids *t = opened(BITS);
    struct err e = {0};
    int refused = 0;
    next = test_seed(2);
    for (size_t i = 0; i < 150; i++)
        tsp_ids_of(t, key_of(i));
    tsp_ids_unref(t);
    size_t n = read_whole(bytes, sizeof bytes);
    for (int i = 0; i < 100; i++) {
        size_t at = (size_t)dice(n), length = dice(4) ? n : at;
        struct told told = {0};
        char was = bytes[at];
        bytes[at] = (char)(was ^ (char)(1 + dice(255)));
        write_whole(bytes, length);
        bytes[at] = was;
        t = tsp_ids_new(BITS);
        refused += tsp_ids_keep_in(t, path, &e) != 0;
        for (size_t k = 0; k < 150; k++)
            ask(t, &told, k);
        assert_int_equal(tsp_ids_save(t, true, &e), 0);
        tsp_ids_unref(t);
        t = opened(BITS);
        for (size_t k = 150; k-- > 0;)
            ask(t, &told, k);
        tsp_ids_unref(t);
    }
    assert_true(refused > 60); /* minimum; some bytes are between sections */
}

/* A file that is sound as such, but gives an id to two keys. */
static void test_nonsense(void **state)
{
    const uint64_t bits = BITS, keys[2] = {7ull << 56, (7ull << 56) + 1}, moved[4] = {1, 9, 2, 9}, held[2] = {3, 7};
    struct err e = {0};
    for (int i = 0; i < 3; i++) {
        struct store_writer *w = store_create(path, "ids", 1, bits, 2);
        store_add(w, "keys", keys, sizeof *keys, i ? 1 : 2);
        store_add(w, "moved", i == 1 ? moved : held, 16, i == 1 ? 2 : i == 2);
        assert_int_equal(store_commit(w, &e), 0);
        struct tsp_ids *t = tsp_ids_new(BITS);
        assert_int_equal(tsp_ids_keep_in(t, path, &e), ERR_FORMAT);
        assert_int_equal(tsp_ids_of(t, keys[1]), 7);
        tsp_ids_unref(t);
    }
}

/* Checks any contents of a file that is sound as a container: no two keys get one id, nor one key two. */
static void test_any_contents(void **state)
{
    const uint64_t bits = BITS;
    int taken = 0;
    next = test_seed(3);
    for (int round = 0; round < 200; round++) {
        struct told told = {0};
        struct err e = {0};
        uint64_t keys[4], moved[8];
        size_t n = (size_t)dice(5), n_moved = (size_t)dice(5);
        for (size_t i = 0; i < n; i++)
            keys[i] = dice(3) ? (i + 1) << 58 | dice(3) << 56 : key_of((size_t)dice(KEYS));
        for (size_t i = 0; i < n_moved; i++) {
            moved[2 * i] = dice(3) ? i + dice(2) : key_of((size_t)dice(KEYS));
            moved[2 * i + 1] = dice(300);
        }
        struct store_writer *w = store_create(path, "ids", 1, bits, 2);
        store_add(w, "keys", keys, sizeof *keys, n);
        store_add(w, "moved", moved, 2 * sizeof *moved, n_moved);
        assert_int_equal(store_commit(w, &e), 0);
        struct tsp_ids *t = tsp_ids_new(BITS);
        taken += !tsp_ids_keep_in(t, path, &e);
        for (int twice = 0; twice < 2; twice++)
            for (size_t k = 0; k < 150; k++)
                ask(t, &told, k);
        tsp_ids_unref(t);
    }
    assert_true(taken > 10 && taken < 190);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup(test_ids_stay, begin),
        cmocka_unit_test_setup(test_another_table, begin), cmocka_unit_test_setup(test_zero, begin),
        cmocka_unit_test_setup(test_moved_are_kept_at_once, begin),
        cmocka_unit_test_setup(test_writing_costs_little, begin), cmocka_unit_test_setup(test_nowhere_to_keep, begin),
        cmocka_unit_test_setup(test_file_comes_late, begin), cmocka_unit_test_setup(test_damage, begin),
        cmocka_unit_test_setup(test_nonsense, begin), cmocka_unit_test_setup(test_any_contents, begin)};
    if (!mkdtemp(directory))
        return 1;
    snprintf(path, sizeof path, "%s/ids", directory);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    rmdir(directory);
    return failed;
}

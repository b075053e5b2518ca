/* SPDX-License-Identifier: MIT */
/* Columns: whatever goes in comes out, one by one and all at once; each way is taken where it takes less; bytes and
 * forms that make no sense lead nowhere. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "../base/test.h"
#include "state/column.h"

enum { ALL_WAYS = 1 << COLUMN_LINE | 1 << COLUMN_SPLIT | 1 << COLUMN_TABLE, ROUNDS = 400 };
static const unsigned ways[] = {
    0, 1 << COLUMN_LINE, 1 << COLUMN_SPLIT, 1 << COLUMN_TABLE, 1 << COLUMN_SPLIT | 1 << COLUMN_TABLE};
static const size_t lengths[] = {1, 2, 3, 7, 8, 9, 63, 64, 65, 100, 127, 128};
#define LENGTH(a) (sizeof(a) / sizeof *(a))

static uint64_t seed = 7;

static uint64_t random_bits(unsigned bits)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return bits ? (seed * UINT64_C(0x2545f4914f6cdd1d)) >> (64 - bits) : 0;
}

/* The end of a page behind which nothing can be read or written. */
static uint8_t *page_end(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *p = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(p, MAP_FAILED);
    assert_int_equal(mprotect(p + 2 * page, page, PROT_NONE), 0);
    return p + 2 * page;
}

/* ---- round trip ---- */

enum shape { CONSTANT, RANDOM, SOME_LARGE, FEW, EVEN, EXTREMES, SHAPES };

static void make(enum shape shape, unsigned bits, int64_t *v, size_t n)
{
    static const int64_t extremes[] = {INT64_MIN, INT64_MIN + 1, -1, 0, 1, INT64_MAX - 1, INT64_MAX};
    uint64_t base = random_bits(random_bits(1) ? 64 : (unsigned)random_bits(6)), step = random_bits(bits),
             few = 1 + random_bits(7);
    for (size_t i = 0; i < n; i++) {
        uint64_t d = random_bits(bits);
        switch (shape) {
        case CONSTANT: d = 0; break;
        case SOME_LARGE: d = random_bits(4) ? random_bits(bits / 3) : d; break;
        case FEW: d = random_bits(7) % few * step; break;
        case EVEN: d = i * step + random_bits(bits / 2); break;
        case EXTREMES: base = 0, d = (uint64_t)extremes[random_bits(16) % LENGTH(extremes)]; break;
        default: break;
        }
        v[i] = (int64_t)(base + d);
    }
}

static void round_trip(uint8_t *end, const int64_t *v, size_t n, int64_t from, unsigned allowed)
{
    int64_t out[COLUMN_VALUES];
    struct column_form f;
    uint8_t *room = end - COLUMN_MOST_BYTES;
    size_t taken = state_column_put(room, v, n, from, allowed, &f);
    assert_true(f.way == COLUMN_PLAIN || allowed >> f.way & 1);
    assert_true(taken + 8 <= COLUMN_MOST_BYTES);
    /* Elsewhere, behind anything: a column is its own bytes alone. */
    uint8_t copy[COLUMN_SPARE + COLUMN_MOST_BYTES];
    memset(copy, 0xa5, sizeof copy);
    memcpy(copy, room, taken);
    struct column c = column_open(copy, n, from, f);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(state_column_get(&c, i), v[i]);
    state_column_take(&c, out);
    assert_memory_equal(out, v, n * sizeof *v);
    const uint8_t *own_end;
    assert_null(state_column_defect(copy, n, f, copy + taken, &own_end));
    assert_ptr_equal(own_end, copy + taken);
    if (taken)
        assert_non_null(state_column_defect(copy, n, f, copy + taken - 1, &own_end));
}

static void in_and_out(void **state)
{
    int64_t v[COLUMN_VALUES];
    uint8_t *end = page_end();
    for (int round = 0; round < ROUNDS; round++)
        for (int shape = 0; shape < SHAPES; shape++)
            for (size_t w = 0; w < LENGTH(ways); w++) {
                size_t n = lengths[random_bits(16) % LENGTH(lengths)];
                make((enum shape)shape, 1 + (unsigned)random_bits(6), v, n);
                round_trip(end, v, n, 0, ways[w]);
                round_trip(end, v, n, v[0], ways[w]);
                round_trip(end, v, n, (int64_t)random_bits(64), ways[w]);
            }
}

/* ---- size ---- */

static size_t taken_by(const int64_t *v, unsigned allowed, enum column_way expected)
{
    uint8_t to[COLUMN_MOST_BYTES];
    struct column_form f;
    size_t taken = state_column_put(to, v, COLUMN_VALUES, 0, allowed, &f);
    assert_int_equal(f.way, expected);
    return taken;
}

/* A fifth has 40 bits, the others 8: a bit and eight bits each, and 32 for each of the fifth. */
static void large_ones_are_split(void **state)
{
    int64_t v[COLUMN_VALUES];
    for (int i = 0; i < COLUMN_VALUES; i++)
        v[i] = (int64_t)random_bits(8) | (int64_t)(i % 5 == 1) << 39;
    v[0] = 0;
    assert_in_range(taken_by(v, 1 << COLUMN_SPLIT, COLUMN_SPLIT), 1, 16 + 128 + 26 * 32 / 8);
    assert_int_equal(taken_by(v, 0, COLUMN_PLAIN), 128 * 40 / 8);
    for (int i = 0; i < COLUMN_VALUES; i++) /* equal numbers of large and small values: no way pays */
        v[i] = (i & 1) << 12 | (int64_t)random_bits(12);
    v[0] = 0;
    v[127] |= 1 << 12;
    taken_by(v, 1 << COLUMN_SPLIT, COLUMN_PLAIN);
}

static void few_have_a_table(void **state)
{
    int64_t distinct[64], v[COLUMN_VALUES];
    for (int i = 0; i < 64; i++)
        distinct[i] = (int64_t)random_bits(40);
    for (int i = 0; i < COLUMN_VALUES; i++)
        v[i] = distinct[i * 7 % 5];
    assert_in_range(taken_by(v, ALL_WAYS & ~(1 << COLUMN_LINE), COLUMN_TABLE), 1, 8 + 128 * 3 / 8 + 5 * 5);
    for (int i = 0; i < COLUMN_VALUES; i++)
        v[i] = distinct[i % 64];
    assert_in_range(taken_by(v, 1 << COLUMN_TABLE, COLUMN_TABLE), 1, 8 + 128 * 6 / 8 + 64 * 5);
    v[127] = (int64_t)random_bits(40); /* the 65th */
    taken_by(v, 1 << COLUMN_TABLE, COLUMN_PLAIN);
}

static void what_grows_evenly_lies_by_a_line(void **state)
{
    int64_t v[COLUMN_VALUES];
    for (int i = 0; i < COLUMN_VALUES; i++)
        v[i] = 1700000000000000000 + i * INT64_C(1000000) + (int64_t)random_bits(10);
    assert_in_range(taken_by(v, 1 << COLUMN_LINE, COLUMN_LINE), 1, 8 + 4 + 128 * 12 / 8);
}

/* ---- anything ---- */

static void anything_is_read(void **state)
{
    uint8_t *end = page_end(), *bytes = end - COLUMN_SPARE;
    int64_t out[COLUMN_VALUES];
    for (int round = 0; round < 20000; round++) {
        uint32_t bits = (uint32_t)random_bits(32);
        struct column_form f;
        memcpy(&f, &bits, sizeof f);
        uint8_t fill = (uint8_t)random_bits(8);
        for (size_t i = 0; i < COLUMN_SPARE && round % 4 == 0; i++)
            bytes[i] = round % 8 ? 0xff : (uint8_t)random_bits(8) | fill;
        size_t n = lengths[random_bits(16) % LENGTH(lengths)];
        struct column c = column_open(bytes, n, (int64_t)random_bits(64), f);
        const uint8_t *own_end;
        state_column_take(&c, out);
        if (!state_column_defect(bytes, n, f, end, &own_end)) /* agreement of both ways of reading */
            for (size_t i = 0; i < n; i++)
                assert_int_equal(state_column_get(&c, i), out[i]);
        for (size_t i = 0; i < n; i++)
            state_column_get(&c, i);
    }
}

static void strange_forms_are_told(void **state)
{
    static const struct column_form strange[] = {{.reserved = 1}, {.width = 57}, {.width = 62},
        {.way = COLUMN_SPLIT, .width = 63}, {.way = COLUMN_TABLE, .width = 7},
        {.way = COLUMN_TABLE, .width = 2, .more = 57}, {.way = COLUMN_SPLIT, .more = 63},
        {.way = COLUMN_LINE, .more = 1}, {.more = 1}};
    uint8_t bytes[COLUMN_SPARE] = {0};
    const uint8_t *own_end;
    for (size_t i = 0; i < LENGTH(strange); i++)
        assert_non_null(state_column_defect(bytes, COLUMN_VALUES, strange[i], bytes + sizeof bytes, &own_end));
    assert_null(
        state_column_defect(bytes, COLUMN_VALUES, (struct column_form){.width = 63}, bytes + sizeof bytes, &own_end));
}

int main(void)
{
    seed = test_seed(seed);
    const struct CMUnitTest tests[] = {cmocka_unit_test(in_and_out), cmocka_unit_test(large_ones_are_split),
        cmocka_unit_test(few_have_a_table), cmocka_unit_test(what_grows_evenly_lies_by_a_line),
        cmocka_unit_test(anything_is_read), cmocka_unit_test(strange_forms_are_told)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

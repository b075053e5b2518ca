/* SPDX-License-Identifier: MIT */
/* Recordings with damage at every byte, and cut off there: read in part or refused, and never more than is there. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/test.h"
#include "base/file.h"
#include "read_all.h"

#define CORPUS WEFT_SOURCE_ROOT "/fuzz/corpus/tracedat/"

static void damage(const char *name)
{
    char path[512];
    char *data;
    size_t n;
    struct err e = {0};
    snprintf(path, sizeof path, "%s%s", CORPUS, name);
    assert_int_equal(file_read(path, 1 << 20, &data, &n, &e), 0);
    uint8_t *v = (uint8_t *)data;
    struct read_all whole = read_all(v, n);
    assert_int_equal(whole.code, 0);
    assert_int_equal(whole.problems, 0);
    assert_true(whole.events > 0);
    for (size_t i = 0; i < n; i++) {
        uint8_t was = v[i];
        v[i] = (uint8_t)(was ^ (i % 2 ? 0xff : 0x81));
        struct read_all other = read_all(v, n);
        assert_true(other.events <= n);
        v[i] = was;
        other = read_all(v, i);
        assert_true(other.code || other.events <= whole.events);
    }
    free(data);
}

static void test_version6(void **state)
{
    damage("version6");
}

static void test_version7(void **state)
{
    damage("version7");
}

static void test_zlib(void **state)
{
    damage("version7-zlib");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_version6), cmocka_unit_test(test_version7), cmocka_unit_test(test_zlib)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

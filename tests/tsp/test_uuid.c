/* SPDX-License-Identifier: MIT */
/* Identifiers. Expected values: java.util.UUID.nameUUIDFromBytes, as md5sum with version and variant set shows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tsp/uuid.h"

static void test_names(void **state)
{
    char out[UUID_TEXT];
    tsp_uuid_of_name("", out); /* MD5: d41d8cd98f00b204e9800998ecf8427e (RFC 1321) */
    assert_string_equal(out, "d41d8cd9-8f00-3204-a980-0998ecf8427e");
    tsp_uuid_of_name("abc", out); /* MD5: 900150983cd24fb0d6963f7d28e17f72 (RFC 1321) */
    assert_string_equal(out, "90015098-3cd2-3fb0-9696-3f7d28e17f72");
}

static void test_random(void **state)
{
    char a[UUID_TEXT], b[UUID_TEXT];
    tsp_uuid_random(a);
    tsp_uuid_random(b);
    assert_true(tsp_uuid_valid(a) && tsp_uuid_valid(b));
    assert_string_not_equal(a, b);
    assert_int_equal(a[14], '4');
    assert_non_null(strchr("89ab", a[19]));
}

static void test_valid(void **state)
{
    assert_true(tsp_uuid_valid("90015098-3cd2-3fb0-9696-3f7d28e17f72"));
    assert_true(tsp_uuid_valid("90015098-3CD2-3FB0-9696-3F7D28E17F72"));
    assert_false(tsp_uuid_valid(""));
    assert_false(tsp_uuid_valid("90015098-3cd2-3fb0-9696-3f7d28e17f7"));
    assert_false(tsp_uuid_valid("90015098-3cd2-3fb0-9696-3f7d28e17f722"));
    assert_false(tsp_uuid_valid("900150983cd2-3fb0-9696-3f7d28e17f72-"));
    assert_false(tsp_uuid_valid("90015098-3cd2-3fb0-9696-3f7d28e17f7g"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names), cmocka_unit_test(test_random), cmocka_unit_test(test_valid)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

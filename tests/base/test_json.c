/* SPDX-License-Identifier: MIT */
/* Output of the writer, read back by jansson. */
#include <float.h>
#include <jansson.h>
#include <math.h>

#include "base/json.h"

#include "test.h"

static json_t *parse(struct text *t)
{
    json_error_t error;
    json_t *v = json_loadb(t->v, t->n, JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &error);
    if (!v)
        fail_msg("%s in %.*s", error.text, (int)t->n, t->v);
    return v;
}

static void nesting_and_commas(void **state)
{
    struct text t = {0};
    struct json j = JSON_TO(&t);
    json_begin_object(&j);
    json_key(&j, "empty");
    json_begin_array(&j);
    json_end_array(&j);
    json_key(&j, "deep");
    json_begin_array(&j);
    json_begin_array(&j);
    json_i64(&j, INT64_MIN);
    json_u64(&j, 7);
    json_end_array(&j);
    json_begin_object(&j);
    json_kv_bool(&j, "yes", true);
    json_kv_bool(&j, "no", false);
    json_end_object(&j);
    json_write_null(&j);
    json_raw(&j, "[1.50]", 6);
    json_write_string(&j, NULL);
    json_end_array(&j);
    json_kv_string(&j, "s", "x");
    json_kv_i64(&j, "i", -1);
    json_kv_u64(&j, "u", INT64_MAX);
    json_kv_double(&j, "d", 0.5);
    json_end_object(&j);
    assert_string_equal(text_cstr(&t),
        "{\"empty\":[],\"deep\":[[-9223372036854775808,7],{\"yes\":true,\"no\":false},null,[1.50],null],"
        "\"s\":\"x\",\"i\":-1,\"u\":9223372036854775807,\"d\":0.5}");
    json_decref(parse(&t));
    text_fini(&t);
}

static void sixty_levels(void **state)
{
    struct text t = {0};
    struct json j = JSON_TO(&t);
    for (int i = 0; i < 60; i++) {
        json_begin_array(&j);
        json_u64(&j, (uint64_t)i);
    }
    for (int i = 0; i < 60; i++) {
        json_end_array(&j);
        if (i < 59)
            json_write_null(&j);
    }
    json_t *v = parse(&t), *inner = v;
    for (int i = 0; i < 59; i++, inner = json_array_get(inner, 1))
        assert_int_equal(json_integer_value(json_array_get(inner, 0)), i);
    json_decref(v);
    text_fini(&t);
}

/* Checks that a string appended in pieces and escaped in place equals the string quoted at once. */
static void check_in_place(const char *in, size_t n, const struct text *quoted)
{
    for (size_t before = 0; before < 3; before++) {
        struct text t = {0};
        text_put(&t, "\"\"\"", before);
        text_put(&t, in, n);
        json_escape_since(&t, before);
        assert_int_equal(t.n, before + quoted->n - 2);
        assert_memory_equal(t.v + before, quoted->v + 1, quoted->n - 2);
        text_fini(&t);
    }
}

static void check_string(const char *s, size_t n, const char *expected, size_t expected_n)
{
    struct text t = {0};
    struct json j = JSON_TO(&t);
    json_string_n(&j, s, n);
    json_t *v = parse(&t);
    assert_int_equal(json_string_length(v), expected_n);
    assert_memory_equal(json_string_value(v), expected, expected_n);
    json_decref(v);
    check_in_place(s, n, &t);
    text_fini(&t);
}

static void every_valid_character(void **state)
{
    for (unsigned c = 0; c < 0x110000; c += c < 0x3000 ? 1 : 0x33) {
        if (c >= 0xd800 && c < 0xe000)
            continue;
        char s[6] = "a";
        size_t n = 1;
        if (c < 0x80) {
            s[n++] = (char)c;
        } else if (c < 0x800) {
            s[n++] = (char)(0xc0 | c >> 6);
            s[n++] = (char)(0x80 | (c & 63));
        } else if (c < 0x10000) {
            s[n++] = (char)(0xe0 | c >> 12);
            s[n++] = (char)(0x80 | (c >> 6 & 63));
            s[n++] = (char)(0x80 | (c & 63));
        } else {
            s[n++] = (char)(0xf0 | c >> 18);
            s[n++] = (char)(0x80 | (c >> 12 & 63));
            s[n++] = (char)(0x80 | (c >> 6 & 63));
            s[n++] = (char)(0x80 | (c & 63));
        }
        s[n++] = 'b';
        check_string(s, n, s, n);
    }
}

/* Strings are looked at eight bytes at a time: a byte that must not be copied as it is, at every place of strings of
 * every length. */
static void odd_bytes_at_every_place(void **state)
{
    static const char odd[] = {'"', '\\', 0x1f, 0, '\n', 0x7f, ' ', '!', '#', '[', ']', '}'};
    char s[27];
    for (size_t n = 1; n < sizeof s; n++)
        for (size_t at = 0; at < n; at++)
            for (size_t i = 0; i < sizeof odd; i++) {
                for (size_t k = 0; k < n; k++)
                    s[k] = (char)('a' + k);
                s[at] = odd[i];
                check_string(s, n, s, n);
                s[n - 1] = '"';
                check_string(s, n, s, n);
            }
}

static void known_keys(void **state)
{
    struct text t = {0};
    struct json j = JSON_TO(&t);
    json_begin_object(&j);
    JSON_KEY(&j, "a");
    json_i64(&j, 1);
    JSON_KEY(&j, "b");
    json_begin_array(&j);
    json_end_array(&j);
    json_kv_i64(&j, "c", 2);
    json_end_object(&j);
    assert_string_equal(text_cstr(&t), "{\"a\":1,\"b\":[],\"c\":2}");
    text_fini(&t);
}

#define R "\xef\xbf\xbd"
/* Unicode 15, chapter 3, table 3-7 says which sequences are well-formed. */
static void invalid_bytes_are_replaced(void **state)
{
    static const struct {
        const char *in, *out;
    } cases[] = {
        {"\x80", R},
        {"a\xff"
         "b",
            "a" R "b"},
        {"\xc0\xaf", R R},
        {"\xc1\xbf", R R},
        {"\xc3", R},
        {"\xe0\x9f\xbf", R R R},
        {"\xed\xa0\x80", R R R},
        {"\xf4\x90\x80\x80", R R R R},
        {"\xf0\x8f\xbf\xbf", R R R R},
        {"\xf5\x80\x80\x80", R R R R},
        {"\xe2\x82", R R},
        {"\xe2\x82"
         "a",
            R R "a"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_string(cases[i].in, strlen(cases[i].in), cases[i].out, strlen(cases[i].out));
    /* Pairs of bytes in any frame give JSON that jansson accepts (it refuses invalid UTF-8). */
    for (unsigned a = 0; a < 256; a++)
        for (unsigned b = 0; b < 256; b += 5) {
            char s[] = {(char)a, (char)b, '"', (char)a};
            struct text t = {0};
            struct json j = JSON_TO(&t);
            json_string_n(&j, s, sizeof s);
            json_decref(parse(&t));
            text_fini(&t);
        }
}

static void check_double(double v)
{
    struct text t = {0};
    struct json j = JSON_TO(&t);
    json_double(&j, v);
    json_t *r = parse(&t);
    assert_true(json_is_number(r));
    assert_true(json_number_value(r) == v);
    json_decref(r);
    text_fini(&t);
}

static void doubles_read_back(void **state)
{
    static const double values[] = {0, -0.0, 1, -1, 0.1, 1.0 / 3, 1e22, 1e23, 123456789012345678.0, DBL_MAX, DBL_MIN,
        DBL_TRUE_MIN, -DBL_MAX, 5e-324, 0.30000000000000004};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        check_double(values[i]);
    uint64_t x = test_seed(88172645463325252u);
    for (int i = 0; i < 20000; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        double v;
        memcpy(&v, &x, sizeof v);
        if (isfinite(v))
            check_double(v);
    }
    struct text t = {0};
    struct json j = JSON_TO(&t);
    json_begin_array(&j);
    json_double(&j, NAN);
    json_double(&j, INFINITY);
    json_double(&j, 0.1);
    json_end_array(&j);
    assert_string_equal(text_cstr(&t), "[null,null,0.1]");
    text_fini(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nesting_and_commas),
        cmocka_unit_test(sixty_levels),
        cmocka_unit_test(every_valid_character),
        cmocka_unit_test(odd_bytes_at_every_place),
        cmocka_unit_test(known_keys),
        cmocka_unit_test(invalid_bytes_are_replaced),
        cmocka_unit_test(doubles_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* Round trip: loading gives what was saved; damaged bytes give zeros and an error. */
#include "base/carry.h"
#include "base/err.h"
#include "test.h"

struct item {
    int64_t when;
    int32_t row;
    uint32_t name;
};
struct state {
    bool flag;
    uint8_t kind;
    struct strings names;
    VEC(struct item) items;
    struct map map;
};

static void visit(struct carry *c, struct state *s)
{
    carry_bool(c, &s->flag);
    carry_below(c, &s->kind, 7);
    carry_vec(c, &s->items, sizeof(int64_t));
    for (size_t i = 0; i < s->items.n; i++) {
        carry_number(c, &s->items.v[i].when);
        carry_row(c, &s->items.v[i].row);
        carry_string(c, &s->names, &s->items.v[i].name);
    }
    carry_map(c, &s->map, NULL, NULL);
}

static void end(struct state *s)
{
    strings_fini(&s->names);
    vec_free(&s->items);
    map_fini(&s->map);
}

static const int32_t carried[] = {9, 4};

static void make(struct carry *c, struct state *s, bool backwards)
{
    static const char *const names[] = {"", "sshd", "kworker/0:1"};
    *s = (struct state){.flag = true, .kind = 6};
    for (size_t i = 0; i < 3; i++) /* numbered otherwise: the same names */
        strings_intern(&s->names, names[i && backwards ? 3 - i : i], strlen(names[i && backwards ? 3 - i : i]));
    vec_push(&s->items, ((struct item){-5, 4, backwards ? 2 : 1}));
    vec_push(&s->items, ((struct item){7, -1, 0}));
    vec_push(&s->items, ((struct item){INT64_MAX, 9, backwards ? 1 : 2}));
    for (uint64_t i = 0; i < 100; i++)
        *map_put(&s->map, (backwards ? 99 - i : i) * 1000003, NULL) = (backwards ? 99 - i : i) + 1;
    carry_init(c);
    visit(c, s);
    assert_true(carry_is_marked(c, 4) && carry_is_marked(c, 9) && !carry_is_marked(c, 5) && !carry_is_marked(c, -1));
    carry_save(c, carried, 2);
    visit(c, s);
}

static void saved_is_loaded(void **unused)
{
    struct carry c, again;
    struct state s, t = {0};
    struct err e = {0};
    make(&c, &s, false);
    carry_load(&again, c.bytes.v, c.bytes.n, 2);
    visit(&again, &t);
    assert_int_equal(carry_loaded(&again, &e), 0);
    assert_true(t.flag);
    assert_int_equal(t.kind, 6);
    assert_int_equal(t.items.n, 3);
    assert_int_equal(t.items.v[0].when, -5);
    assert_int_equal(t.items.v[0].row, 1);
    assert_string_equal(strings_get(&t.names, t.items.v[0].name), "sshd");
    assert_int_equal(t.items.v[1].row, -1);
    assert_int_equal(t.items.v[2].row, 0);
    assert_string_equal(strings_get(&t.names, t.items.v[2].name), "kworker/0:1");
    assert_int_equal(t.map.n, 100);
    for (uint64_t i = 0; i < 100; i++)
        assert_int_equal(*map_find(&t.map, i * 1000003), i + 1);
    end(&s);
    end(&t);
    carry_fini(&c);
    carry_fini(&again);
}

static void same_state_same_bytes(void **unused)
{
    struct carry a, b;
    struct state s, t;
    make(&a, &s, false);
    make(&b, &t, true);
    assert_int_equal(a.bytes.n, b.bytes.n);
    assert_memory_equal(a.bytes.v, b.bytes.v, a.bytes.n);
    assert_int_equal(carry_hash(&a), carry_hash(&b));
    end(&s);
    end(&t);
    carry_fini(&a);
    carry_fini(&b);
}

/* Cut at every byte, and with every byte changed in several ways: never a crash, and numbers stay within bounds. */
static void damaged(void **unused)
{
    struct carry c;
    struct state s;
    make(&c, &s, false);
    for (size_t at = 0; at < c.bytes.n; at++)
        for (int how = 0; how < 5; how++) {
            struct carry again;
            struct state t = {0};
            struct err e = {0};
            size_t n = how ? c.bytes.n : at;
            uint8_t *bytes = malloc(n + 1);
            memcpy(bytes, c.bytes.v, n);
            if (how)
                bytes[at] = (uint8_t)(how == 1 ? 0xff : how == 2 ? 0 : how == 3 ? bytes[at] ^ 0x80 : bytes[at] + 1);
            carry_load(&again, bytes, n, 2);
            visit(&again, &t);
            if (!how)
                assert_int_equal(carry_loaded(&again, &e), ERR_FORMAT);
            assert_in_range(t.kind, 0, 6);
            for (size_t i = 0; i < t.items.n; i++) {
                assert_true(t.items.v[i].row < 2);
                assert_true(t.items.v[i].name < t.names.n || !t.items.v[i].name);
            }
            end(&t);
            carry_fini(&again);
            free(bytes);
        }
    end(&s);
    carry_fini(&c);
}

/* A trace may hold a name as long as a packet. */
static void long_text(void **unused)
{
    enum { BYTES = 3 << 20 };
    struct carry c, again;
    struct strings from = {0}, to = {0};
    struct err e = {0};
    char *text = malloc(BYTES);
    memset(text, 'x', BYTES);
    strings_intern(&from, "", 0);
    uint32_t number = strings_intern(&from, text, BYTES), loaded = 0;
    carry_init(&c);
    carry_save(&c, NULL, 0);
    carry_string(&c, &from, &number);
    strings_intern(&to, "", 0);
    carry_load(&again, c.bytes.v, c.bytes.n, 0);
    carry_string(&again, &to, &loaded);
    assert_int_equal(carry_loaded(&again, &e), 0);
    assert_int_equal(strlen(strings_get(&to, loaded)), BYTES);
    free(text);
    strings_fini(&from);
    strings_fini(&to);
    carry_fini(&c);
    carry_fini(&again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(long_text), cmocka_unit_test(saved_is_loaded),
        cmocka_unit_test(same_state_same_bytes), cmocka_unit_test(damaged)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

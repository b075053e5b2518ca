/* SPDX-License-Identifier: MIT */
/* Conversion between the entry numbers of one opening and the ids that clients know: a backend with made-up trees. */
#include "../base/test.h"

#include "base/map.h"
#include "tsp/entries.h"

/* Substitute without connection: no client hangs up. */
bool http_gone(const struct http_request *q)
{
    return false;
}

bool http_was_gone(const struct http_request *q)
{
    return false;
}

/* ---- a backend: so many entries are shared; the outputs' trees have others below them ---- */

enum { SHARED = 6, FIRST = SHARED, MOST = 16 };

static struct {
    struct tsp_entry entries[MOST];
    const char *labels[MOST];
    size_t n;
    uint64_t keys[SHARED];
    bool running;
    int trees; /* gone through */
} world;

static uint64_t key(struct tsp_data *d, int64_t number)
{
    return world.keys[number];
}

static size_t find(struct tsp_data *d, uint64_t id, int64_t *numbers, size_t max)
{
    size_t n = 0;
    for (int64_t i = 0; i < SHARED && n < max; i++)
        if (world.keys[i] >> 12 == id)
            numbers[n++] = i;
    return n;
}

static bool offers(const struct tsp_provider *p, enum tsp_operation operation)
{
    return operation == TSP_TREE;
}

static void ask(struct tsp_data *d, const struct tsp_provider *p, const struct tsp_query *q, struct tsp_answer *answer)
{
    assert_int_equal(q->operation, TSP_TREE);
    assert_false(q->has_items || q->has_range || json_object_get(q->parameters, "isFiltered"));
    world.trees++;
    tsp_begin_tree(answer, NULL, 0, -1);
    for (size_t i = 0; i < world.n; i++)
        tsp_write_entry(answer, &world.entries[i]);
    tsp_end_tree(answer);
    answer->status = world.running ? TSP_RUNNING : TSP_COMPLETED;
}

static int64_t add(int64_t number, int64_t parent, const char *label, uint64_t own)
{
    world.labels[world.n] = label;
    world.entries[world.n] = (struct tsp_entry){
        .id = number, .parent = parent, .key = own, .labels = &world.labels[world.n], .n_labels = 1};
    world.n++;
    return number;
}

static const struct tsp_backend backend = {.offers = offers, .ask = ask, .key = key, .find = find};
static const struct tsp_provider output = {.id = "output"}, family = {.id = "relative", .family = "output"},
                                 stranger = {.id = "stranger"};
static struct tsp_data data = {.shared = SHARED};

/* ---- requests ---- */

static struct arena arena;
static struct http_request http = {.arena = &arena};
static struct tsp_ids *ids;
static struct entry_tables *tables;

static int begin(void **state)
{
    memset(&world, 0, sizeof world);
    for (size_t i = 0; i < SHARED; i++)
        world.keys[i] = map_mix(i + 1);
    ids = tsp_ids_new(IDS_BITS);
    tables = tsp_entry_tables_new(&backend, &data, ids);
    return 0;
}

/* Opens the same traces again. */
static void reopen(void)
{
    tsp_entry_tables_free(tables);
    tables = tsp_entry_tables_new(&backend, &data, ids);
    world.trees = 0;
}

static int end(void **state)
{
    tsp_entry_tables_free(tables);
    tsp_ids_unref(ids);
    arena_fini(&arena);
    arena = (struct arena){0};
    return 0;
}

static struct tsp_query query_of(const struct tsp_provider *p)
{
    static json_t *parameters;
    if (!parameters)
        parameters = json_pack("{s:b}", "isFiltered", 1);
    return (struct tsp_query){.operation = TSP_STATES,
        .http = &http,
        .parameters = parameters,
        .output_id = p->id,
        .element_entry = -1,
        .element_destination = -1};
}

static int64_t id_of(const struct tsp_provider *p, int64_t number)
{
    struct tsp_query q = query_of(p);
    struct tsp_entries e = tsp_entries_of(tables, p, &q);
    return tsp_entries_id(&e, number);
}

static int64_t number_of(const struct tsp_provider *p, int64_t id)
{
    struct tsp_query q = query_of(p);
    struct tsp_entries e = tsp_entries_of(tables, p, &q);
    q.items = &id;
    q.n_items = 1;
    q.has_items = true;
    q.element_entry = id;
    tsp_entries_take_query(&e, &q);
    if (!q.n_items) {
        assert_true(q.element_entry == TSP_NO_ENTRY);
        return -1;
    }
    assert_int_equal(q.n_items, 1);
    assert_int_equal(q.element_entry, q.items[0]);
    return q.items[0];
}

/* ---- tests ---- */

static void test_there_and_back(void **state)
{
    add(FIRST, -1, "host", 0);
    add(FIRST + 1, FIRST, "a", 0);
    add(FIRST + 2, FIRST, "b", 0);
    add(FIRST + 3, 2, "a", 0); /* entry below a shared one */
    for (int64_t n = 0; n < FIRST + 4; n++) {
        int64_t id = id_of(&output, n);
        assert_true(id > 0);
        for (int64_t other = 0; other < n; other++)
            assert_true(id_of(&output, other) != id);
        assert_int_equal(number_of(&output, id), n);
    }
    assert_int_equal(world.trees, 1);
    assert_int_equal(id_of(&output, 1), world.keys[1] >> 12);
    assert_int_equal(id_of(&output, FIRST + 4), -1);
    assert_int_equal(id_of(&output, -1), -1);
    assert_int_equal(id_of(&output, TSP_NO_ENTRY), -1);
    assert_int_equal(world.trees, 1);
}

/* Numbers are others in the next opening; ids are not. */
static void test_renumbered(void **state)
{
    add(FIRST, -1, "host", 0);
    add(FIRST + 1, FIRST, "a", 0);
    add(FIRST + 2, FIRST, "old name", 77);
    int64_t host = id_of(&output, FIRST), a = id_of(&output, FIRST + 1), named = id_of(&output, FIRST + 2);
    reopen();
    world.n = 0;
    add(FIRST, -1, "another", 0);
    add(FIRST + 1, -1, "host", 0);
    add(FIRST + 2, FIRST + 1, "new name", 77);
    add(FIRST + 3, FIRST + 1, "before a", 0);
    add(FIRST + 9, FIRST + 1, "a", 0);
    assert_int_equal(number_of(&output, a), FIRST + 9);
    assert_int_equal(number_of(&output, host), FIRST + 1);
    assert_int_equal(number_of(&output, named), FIRST + 2);
}

static void test_outputs_and_families(void **state)
{
    add(FIRST, -1, "host", 0);
    int64_t id = id_of(&output, FIRST);
    assert_true(id_of(&stranger, FIRST) != id);
    assert_int_equal(id_of(&family, FIRST), id);
    assert_int_equal(number_of(&stranger, id), -1);
    assert_int_equal(number_of(&stranger, id_of(&output, 3)), 3);
}

/* Checks that equal siblings are distinguished by their order. */
static void test_alike(void **state)
{
    for (int64_t i = 0; i < 5; i++)
        add(FIRST + i, -1, "same", 0);
    int64_t before[5];
    for (int64_t i = 0; i < 5; i++) {
        before[i] = id_of(&output, FIRST + i);
        assert_int_equal(number_of(&output, before[i]), FIRST + i);
    }
    reopen();
    for (int64_t i = 4; i >= 0; i--)
        assert_int_equal(id_of(&output, FIRST + i), before[i]);
}

/* Checks two shared entries with the same 52 bits, as of two hosts; an id found in the file is kept. */
static void test_shared_that_meet(void **state)
{
    world.keys[4] = world.keys[1] ^ 1;
    world.keys[5] = world.keys[1] ^ 2;
    int64_t own = (int64_t)(world.keys[1] >> 12);
    int64_t four = id_of(&output, 4), one = id_of(&output, 1);
    assert_int_equal(four, own);
    assert_true(one != own);
    assert_int_equal(number_of(&output, own), 4);
    assert_int_equal(number_of(&output, one), 1);
    reopen();
    /* Entries that have moved are not found by their key: the tree has them. */
    for (int64_t i = 0; i < SHARED; i++)
        add(i, -1, "thread", 0);
    assert_int_equal(number_of(&output, one), 1);
    assert_int_equal(number_of(&output, own), 4);
    assert_int_equal(number_of(&output, id_of(&output, 5)), 5);
}

/* Checks that shared entries need no tree. An unknown id costs one tree for each request at most, and none if it is
 * complete. */
static void test_trees_are_few(void **state)
{
    int64_t many[100];
    add(FIRST, -1, "host", 0);
    for (int64_t i = 0; i < SHARED; i++)
        assert_int_equal(number_of(&output, (int64_t)(world.keys[i] >> 12)), i);
    assert_int_equal(world.trees, 0);
    world.running = true;
    for (int request = 1; request < 4; request++) {
        struct tsp_query q = query_of(&output);
        struct tsp_entries e = tsp_entries_of(tables, &output, &q);
        for (int64_t i = 0; i < 100; i++)
            many[i] = i * 3 + 1;
        q.items = many;
        q.n_items = 100;
        tsp_entries_take_query(&e, &q);
        assert_int_equal(q.n_items, 0);
        assert_int_equal(tsp_entries_id(&e, FIRST + 5), -1);
        assert_int_equal(world.trees, request);
    }
    world.running = false;
    assert_int_equal(number_of(&output, 5), -1);
    assert_int_equal(world.trees, 4);
    assert_int_equal(number_of(&output, 5), -1);
    assert_int_equal(world.trees, 4);
}

/* Items become numbers in ascending order, whatever that of the ids is. */
static void test_items_ascend(void **state)
{
    int64_t all[SHARED];
    struct tsp_query q = query_of(&output);
    struct tsp_entries e = tsp_entries_of(tables, &output, &q);
    for (int64_t i = 0; i < SHARED; i++)
        all[i] = id_of(&output, (i * 5 + 2) % SHARED);
    q.items = all;
    q.n_items = SHARED;
    tsp_entries_take_query(&e, &q);
    assert_int_equal(q.n_items, SHARED);
    for (int64_t i = 0; i < SHARED; i++)
        assert_int_equal(q.items[i], i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_there_and_back, begin, end),
        cmocka_unit_test_setup_teardown(test_renumbered, begin, end),
        cmocka_unit_test_setup_teardown(test_outputs_and_families, begin, end),
        cmocka_unit_test_setup_teardown(test_alike, begin, end),
        cmocka_unit_test_setup_teardown(test_shared_that_meet, begin, end),
        cmocka_unit_test_setup_teardown(test_trees_are_few, begin, end),
        cmocka_unit_test_setup_teardown(test_items_ascend, begin, end)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

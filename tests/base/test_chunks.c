/* SPDX-License-Identifier: MIT */
/* Rows of chunks that are the same row of the host, against a plain search. */
#include "base/chunks.h"

#include "base/mem.h"

#include "test.h"

enum { CHUNKS = 7, MOST_ROWS = 40, HOST_ROWS = 60 };

static void places(void **unused)
{
    uint64_t x = test_seed(77);
    for (int round = 0; round < 200; round++) {
        int32_t rows[CHUNKS][MOST_ROWS];
        struct chunk list[CHUNKS];
        int32_t most = -1;
        for (size_t c = 0; c < CHUNKS; c++) {
            size_t n = 0;
            for (int32_t r = 0; r < HOST_ROWS && n < MOST_ROWS; r++) {
                x = x * 6364136223846793005u + 1442695040888963407u;
                if (x >> 62)
                    continue;
                rows[c][n++] = x >> 60 & 1 ? r : HOST_ROWS - r; /* unordered */
                for (size_t i = 0; i + 1 < n; i++)
                    if (rows[c][i] == rows[c][n - 1])
                        rows[c][n - 1] = -1;
                most = rows[c][n - 1] > most ? rows[c][n - 1] : most;
            }
            list[c] = (struct chunk){
                .begin = (int64_t)c * 10, .end = (int64_t)c * 10 + 10, .rows = rows[c], .n_rows = n};
        }
        struct chunk_rows *r = chunk_rows_new(list, CHUNKS);
        assert_int_equal(chunk_rows_count(r), most + 1);
        for (size_t c = 0; c < CHUNKS; c++)
            assert_memory_equal(chunk_rows_of(r, c), rows[c], list[c].n_rows * sizeof **rows);
        for (int32_t row = -2; row < HOST_ROWS + 3; row++) {
            size_t found = 0;
            for (size_t c = 0; c < CHUNKS; c++) {
                int32_t here = -1;
                for (size_t i = 0; i < list[c].n_rows && row >= 0; i++)
                    if (rows[c][i] == row)
                        here = (int32_t)i;
                if (here < 0)
                    continue;
                assert_int_equal(chunk_rows_place(r, row, found).chunk, c);
                assert_int_equal(chunk_rows_place(r, row, found).row, here);
                found++;
            }
            assert_int_equal(chunk_rows_places(r, row), found);
        }
        chunk_rows_free(r);
    }
}

static void the_only_chunk(void **unused)
{
    struct chunk one = {.begin = 5, .end = 9};
    struct chunk_rows *r = chunk_rows_new(&one, 1);
    assert_int_equal(chunk_rows_count(r), 0);
    assert_null(chunk_rows_of(r, 0));
    assert_int_equal(chunk_rows_places(r, 12), 1);
    assert_int_equal(chunk_rows_place(r, 12, 0).row, 12);
    chunk_rows_free(r);
}

/* Rows that were filled in by who makes the list are what all who open it have, as long as any of them does. */
static void in_common(void **unused)
{
    const size_t counts[] = {2, 3};
    struct chunk_rows *made = chunk_rows_blank(counts, 2);
    memcpy(chunk_rows_fill(made, 0), (int32_t[]){1, 0}, 2 * sizeof(int32_t));
    memcpy(chunk_rows_fill(made, 1), (int32_t[]){2, 1, 3}, 3 * sizeof(int32_t));
    chunk_rows_filled(made, 4);
    struct chunk list[] = {{.end = 5, .rows = chunk_rows_of(made, 0), .n_rows = 2, .list = made},
        {.begin = 5, .end = 9, .rows = chunk_rows_of(made, 1), .n_rows = 3, .list = made}};
    struct chunk_rows *one = chunk_rows_new(list, 2), *other = chunk_rows_new(list, 2);
    assert_ptr_equal(one, made);
    chunk_rows_free(made);
    chunk_rows_free(other);
    struct chunk_place only;
    const struct chunk_place *at;
    assert_int_equal(chunk_rows_count(one), 4);
    assert_int_equal(chunk_rows_all(one, 1, &only, &at), 2);
    assert_true(at[0].chunk == 0 && at[0].row == 0 && at[1].chunk == 1 && at[1].row == 1);
    assert_int_equal(chunk_rows_of(one, 1)[2], 3);
    chunk_rows_free(one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places), cmocka_unit_test(the_only_chunk), cmocka_unit_test(in_common)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

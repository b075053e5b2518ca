/* Which rows of which chunks are the same row of the host, against a plain search. */
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
                rows[c][n++] = x >> 60 & 1 ? r : HOST_ROWS - r; /* not in order */
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(places), cmocka_unit_test(the_only_chunk)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

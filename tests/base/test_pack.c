/* SPDX-License-Identifier: MIT */
/* Files that are packed, and what is not one that was. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test.h"
#include "base/mem.h"
#include "base/pack.h"

static int temporary(void)
{
    char path[] = "/tmp/weft-pack-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    unlink(path);
    return fd;
}

static void write_all(int fd, const uint8_t *v, size_t n)
{
    assert_int_equal(ftruncate(fd, 0), 0);
    for (size_t at = 0; at < n;) {
        ssize_t done = pwrite(fd, v + at, n - at, (off_t)at);
        assert_true(done > 0);
        at += (size_t)done;
    }
}

static size_t size_of(int fd)
{
    return (size_t)lseek(fd, 0, SEEK_END);
}

static void same(int fd, const uint8_t *v, size_t n)
{
    uint8_t *is = mem_alloc(n + 1);
    assert_int_equal(size_of(fd), n);
    for (size_t at = 0; at < n;)
        at += (size_t)pread(fd, is + at, n - at, (off_t)at);
    assert_memory_equal(is, v, n);
    free(is);
}

/* Bytes that repeat, and bytes that do not, of sizes around those of buffers. */
static void there_and_back(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 100, 131071, 131072, 131073, 5000000};
    int from = temporary(), packed = temporary(), back = temporary();
    uint64_t seed = test_seed(3);
    uint8_t *v = mem_zalloc(5000000);
    struct err e = {0};
    for (int repeats = 0; repeats < 2; repeats++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            for (size_t i = 0; i < sizes[s]; i++)
                v[i] = (uint8_t)(repeats ? i / 1000 : test_random(&seed, 256));
            write_all(from, v, sizes[s]);
            assert_int_equal(ftruncate(packed, 0) | ftruncate(back, 0), 0);
            assert_int_equal(pack_file(from, packed, &e), 0);
            if (repeats && sizes[s] > 1000)
                assert_true(size_of(packed) * 20 < sizes[s]);
            if (unpack_file(packed, back, sizes[s], &e))
                fail_msg("%zu bytes: %s", sizes[s], e.text);
            same(back, v, sizes[s]);
            if (sizes[s])
                assert_int_equal(unpack_file(packed, back, sizes[s] - 1, &e), ERR_LIMIT);
        }
    free(v);
    close(from);
    close(packed);
    close(back);
}

static void damaged(void **state)
{
    (void)state;
    int from = temporary(), packed = temporary(), back = temporary();
    uint8_t v[3000], whole[4000];
    uint64_t seed = test_seed(4);
    struct err e = {0};
    for (size_t i = 0; i < sizeof v; i++)
        v[i] = (uint8_t)test_random(&seed, 7);
    write_all(from, v, sizeof v);
    assert_int_equal(pack_file(from, packed, &e), 0);
    size_t n = size_of(packed);
    assert_true(n < sizeof whole && pread(packed, whole, n, 0) == (ssize_t)n);
    for (size_t cut = 0; cut < n; cut += 1 + cut / 10) {
        write_all(packed, whole, cut);
        assert_int_equal(unpack_file(packed, back, 1 << 20, &e), ERR_FORMAT);
    }
    for (int i = 0; i < 300; i++) { /* damage may go unseen, but leads nowhere */
        memcpy(v, whole, n);
        v[test_random(&seed, (uint32_t)n)] ^= (uint8_t)(1 + test_random(&seed, 255));
        write_all(packed, v, n);
        int rc = unpack_file(packed, back, 1 << 20, &e);
        assert_true(rc == 0 || rc == ERR_FORMAT || rc == ERR_LIMIT);
    }
    close(from);
    close(packed);
    close(back);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(there_and_back), cmocka_unit_test(damaged)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
#include "base/store.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

#include "test.h"

struct place {
    char *directory, *path;
};
static const uint64_t times[5] = {1, 2, 3, 5, UINT64_MAX};
static const struct {
    uint32_t a, b;
} pairs[3] = {{1, 2}, {3, 4}, {5, 6}};
static const char names[64] = "sixty-four bytes of names fill the section to its last byte ok.";
static const uint64_t key = 0x1122334455667788;

static int make_place(void **state)
{
    static struct place p;
    p.directory = test_directory_make();
    assert_true(asprintf(&p.path, "%s/graph", p.directory) > 0);
    *state = &p;
    return 0;
}

static int remove_place(void **state)
{
    struct place *p = *state;
    test_directory_remove(p->directory);
    free(p->path);
    return 0;
}

static int write_sample(const char *path, struct err *e)
{
    struct store_writer *w = store_create(path, "graph", 3, key, 4);
    store_add(w, "times", times, sizeof *times, 5);
    store_add(w, "pairs", pairs, sizeof *pairs, 3);
    store_add(w, "nothing", NULL, 4, 0);
    store_add(w, "names", names, 1, sizeof names);
    return store_commit(w, e);
}

static void expect_sample(struct store *s)
{
    size_t n;
    const void *p = store_section(s, "times", sizeof *times, &n);
    assert_int_equal(n, 5);
    assert_memory_equal(p, times, sizeof times);
    assert_int_equal((uintptr_t)p % 64, 0);
    p = store_section(s, "pairs", sizeof *pairs, &n);
    assert_int_equal(n, 3);
    assert_memory_equal(p, pairs, sizeof pairs);
    assert_int_equal((uintptr_t)p % 64, 0);
    p = store_section(s, "names", 1, &n);
    assert_int_equal(n, sizeof names);
    assert_memory_equal(p, names, n);
    assert_int_equal(store_key(s), key);
}

static void reads_back(void **state)
{
    struct place *p = *state;
    struct err e = {0};
    assert_int_equal(write_sample(p->path, &e), ERR_OK);
    struct store *s;
    assert_int_equal(store_open(p->path, "graph", 3, &key, &s, &e), ERR_OK);
    expect_sample(s);
    size_t n = 99;
    assert_non_null(store_section(s, "nothing", 4, &n));
    assert_int_equal(n, 0);
    n = 99;
    assert_null(store_section(s, "unknown", 4, &n));
    assert_int_equal(n, 0);
    n = 99;
    assert_null(store_section(s, "times", 4, &n));
    assert_int_equal(n, 0);
    store_close(s);
    assert_int_equal(store_open(p->path, "graph", 3, NULL, &s, &e), ERR_OK);
    store_close(s);
    assert_int_equal(store_check(p->path, &e), ERR_OK);
    assert_int_equal(test_directory_files(p->directory), 1);
    store_close(NULL);
}

static void without_sections(void **state)
{
    struct place *p = *state;
    struct err e = {0};
    assert_int_equal(store_commit(store_create(p->path, "12345678", 1, 0, 0), &e), ERR_OK);
    struct store *s;
    assert_int_equal(store_open(p->path, "12345678", 1, NULL, &s, &e), ERR_OK);
    store_close(s);
    struct stat st;
    assert_int_equal(stat(p->path, &st), 0);
    assert_int_equal(st.st_size, 64);
}

/* Checks that items added in portions are stored as if added at once, and can be read meanwhile. */
static void parts_are_one_section(void **state)
{
    struct place *p = *state;
    struct err e = {0};
    for (size_t bytes = 0; bytes <= sizeof names; bytes++) {
        char *whole, *pieces;
        const void *items;
        size_t n, m;
        struct file_map map;
        struct store_writer *w = store_create(p->path, "graph", 3, key, 2);
        store_add(w, "times", times, sizeof *times, 5);
        store_add(w, "names", names, 1, bytes);
        assert_int_equal(store_commit(w, &e), ERR_OK);
        assert_int_equal(file_read(p->path, 1 << 20, &whole, &n, &e), ERR_OK);
        w = store_create(p->path, "graph", 3, key, 2);
        store_add(w, "times", times, sizeof *times, 5);
        store_begin(w, "names", 1);
        for (size_t done = 0, k = 0; done < bytes; done += k) {
            k = bytes - done < 20 ? bytes - done : 20;
            store_append(w, names + done, k);
            store_append(w, NULL, 0);
            assert_int_equal(store_look_back(w, &map, &items, &e), ERR_OK);
            assert_memory_equal(items, names, done + k);
            file_map_close(&map);
        }
        assert_int_equal(store_commit(w, &e), ERR_OK);
        assert_int_equal(store_check(p->path, &e), ERR_OK);
        assert_int_equal(file_read(p->path, 1 << 20, &pieces, &m, &e), ERR_OK);
        assert_int_equal(n, m);
        assert_memory_equal(whole, pieces, n);
        free(whole);
        free(pieces);
    }
}

/* Larger than what goes to the file at once, and sections that end anywhere. */
static void large_sections_arrive_whole(void **state)
{
    enum { PART = 10007, PARTS = 700, BYTES = PART * (PARTS - 1) + 5, OTHER = (5 << 20) + 1 };
    struct place *p = *state;
    struct err e = {0};
    struct store *s;
    uint8_t *bytes = malloc(OTHER > BYTES ? OTHER : BYTES);
    size_t n;
    for (size_t i = 0; i < BYTES; i++)
        bytes[i] = (uint8_t)(i * 2654435761u >> 13);
    struct store_writer *w = store_create(p->path, "graph", 3, key, 3);
    store_begin(w, "pieces", 1);
    for (size_t i = 0; i < BYTES; i += PART)
        store_append(w, bytes + i, BYTES - i < PART ? BYTES - i : PART);
    store_add(w, "other", bytes, 1, OTHER);
    store_add(w, "names", names, 1, sizeof names);
    assert_int_equal(store_commit(w, &e), ERR_OK);
    assert_int_equal(store_open(p->path, "graph", 3, &key, &s, &e), ERR_OK);
    assert_memory_equal(store_section(s, "pieces", 1, &n), bytes, BYTES);
    assert_int_equal(n, BYTES);
    assert_memory_equal(store_section(s, "other", 1, &n), bytes, OTHER);
    assert_int_equal(n, OTHER);
    assert_memory_equal(store_section(s, "names", 1, &n), names, sizeof names);
    store_close(s);
    free(bytes);
}

/* The old file stays, and nothing is left of the new one. */
static void given_up(void **state)
{
    struct place *p = *state;
    struct err e = {0};
    assert_int_equal(write_sample(p->path, &e), ERR_OK);
    struct store_writer *w = store_create(p->path, "graph", 3, key, 2);
    store_add(w, "names", names, 1, sizeof names);
    assert_int_equal(store_writing(w, &e), ERR_OK);
    assert_int_equal(test_directory_files(p->directory), 2);
    store_abort(w);
    store_abort(NULL);
    assert_int_equal(test_directory_files(p->directory), 1);
    struct store *s;
    assert_int_equal(store_open(p->path, "graph", 3, &key, &s, &e), ERR_OK);
    expect_sample(s);
    store_close(s);
}

/* The bytes that docs/formats/container.md promises, so that the format does not change by accident. */
static void layout_as_documented(void **state)
{
    struct place *p = *state;
    struct err e = {0};
    assert_int_equal(write_sample(p->path, &e), ERR_OK);
    struct file_map m;
    assert_int_equal(file_map_open(p->path, &m, &e), ERR_OK);
    /* header 64 + table 4·48 = 256; times 40 → 64; pairs 24 → 64; names 64 */
    assert_int_equal(m.size, 256 + 64 + 64 + 64);
    assert_memory_equal(m.data, "\x9dWEFT\r\n\x1a\x01\0\0\0\x03\0\0\0graph\0\0\0\x88\x77\x66\x55\x44\x33\x22\x11", 32);
    assert_memory_equal(m.data + 32, "\xc0\x01\0\0\0\0\0\0\x04\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 24);
    assert_memory_equal(
        m.data + 64, "times\0\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\x08\0\0\0\0\0\0\0", 40);
    assert_memory_equal(
        m.data + 112, "pairs\0\0\0\0\0\0\0\0\0\0\0\x40\x01\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\x08\0\0\0\0\0\0\0", 40);
    assert_memory_equal(m.data + 256, times, sizeof times);
    assert_memory_equal(m.data + 320, pairs, sizeof pairs);
    assert_memory_equal(m.data + 384, names, sizeof names);
    file_map_close(&m);
}

static void what_does_not_belong(void **state)
{
    struct place *p = *state;
    struct err e = {0};
    struct store *s;
    uint64_t other = key + 1;
    assert_int_equal(store_open(p->path, "graph", 3, &key, &s, &e), ERR_NOTFOUND);
    assert_null(s);
    assert_int_equal(write_sample(p->path, &e), ERR_OK);
    assert_int_equal(store_open(p->path, "graph", 4, &key, &s, &e), ERR_STALE);
    assert_int_equal(store_open(p->path, "graph", 3, &other, &s, &e), ERR_STALE);
    assert_int_equal(store_open(p->path, "flows", 3, &key, &s, &e), ERR_FORMAT);
    assert_int_equal(store_open(p->path, "grap", 3, &key, &s, &e), ERR_FORMAT);
    assert_int_equal(store_open(p->directory, "graph", 3, &key, &s, &e), ERR_IO);
    assert_null(s);
}

/* Changes every byte in two ways, and the length in every way: the store is refused, or has the same contents. */
static void damage_is_seen(void **state)
{
    struct place *p = *state;
    struct err e = {0};
    assert_int_equal(write_sample(p->path, &e), ERR_OK);
    char *good;
    size_t n;
    assert_int_equal(file_read(p->path, 1 << 20, &good, &n, &e), ERR_OK);
    struct store *s;
    for (size_t i = 0; i < n; i++)
        for (unsigned flip = 1; flip < 256; flip = flip == 1 ? 0x80 : flip == 0x80 ? 0xff : 256) {
            good[i] ^= (char)flip;
            test_write_file(p->path, good, n);
            good[i] ^= (char)flip;
            e.text[0] = '\0';
            int code = store_open(p->path, "graph", 3, &key, &s, &e);
            assert_true(code == ERR_FORMAT || code == ERR_STALE);
            assert_non_null(strstr(e.text, p->path));
            assert_null(s);
            assert_true(store_check(p->path, &e) < 0);
        }
    for (size_t length = 0; length < n; length++) {
        test_write_file(p->path, good, length);
        assert_int_equal(store_open(p->path, "graph", 3, &key, &s, &e), ERR_FORMAT);
    }
    char *longer = calloc(1, n + 64);
    memcpy(longer, good, n);
    for (size_t more = 1; more <= 64; more++) {
        test_write_file(p->path, longer, n + more);
        assert_int_equal(store_open(p->path, "graph", 3, &key, &s, &e), ERR_FORMAT);
    }
    test_write_file(p->path, good, n);
    assert_int_equal(store_open(p->path, "graph", 3, &key, &s, &e), ERR_OK);
    expect_sample(s);
    store_close(s);
    free(longer);
    free(good);
}

/* RLIMIT_FSIZE stands for the full disk, at every length at which it may fill. */
static void a_full_disk_leaves_nothing(void **state)
{
    struct place *p = *state;
    struct err e = {0};
    struct rlimit before, limit;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    for (rlim_t size = 0; size < 448; size += 16) {
        limit = before;
        limit.rlim_cur = size;
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
        int code = write_sample(p->path, &e);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
        assert_int_equal(code, ERR_IO);
        assert_non_null(strstr(e.text, p->path));
        assert_int_equal(test_directory_files(p->directory), 0);
    }
    assert_int_equal(write_sample(p->path, &e), ERR_OK);
}

static void places_that_cannot_be_written(void **state)
{
    struct place *p = *state;
    struct err e = {0};
    char path[4096];
    snprintf(path, sizeof path, "%s/absent/graph", p->directory);
    assert_int_equal(write_sample(path, &e), ERR_IO);
    assert_int_equal(write_sample(p->directory, &e), ERR_IO); /* a directory is in the way */
    assert_int_equal(test_directory_files(p->directory), 0);
    char name[300];
    snprintf(name, sizeof name, "%s.tmp.%ld", p->directory, (long)getpid());
    assert_int_not_equal(access(name, F_OK), 0);
}

static void the_same_bytes_each_time(void **state)
{
    struct place *p = *state;
    struct err e = {0};
    char *a, *b;
    size_t na, nb;
    assert_int_equal(write_sample(p->path, &e), ERR_OK);
    assert_int_equal(file_read(p->path, 1 << 20, &a, &na, &e), ERR_OK);
    assert_int_equal(write_sample(p->path, &e), ERR_OK);
    assert_int_equal(file_read(p->path, 1 << 20, &b, &nb, &e), ERR_OK);
    assert_int_equal(na, nb);
    assert_memory_equal(a, b, na);
    free(a);
    free(b);
}

/* ---- parts ---- */

static void add_sample(struct store_writer *w)
{
    store_add(w, "times", times, sizeof *times, 5);
    store_add(w, "pairs", pairs, sizeof *pairs, 3);
    store_add(w, "nothing", NULL, 4, 0);
    store_add(w, "names", names, 1, sizeof names);
}

/* A part bit by bit, with a look back, an own section, another part. */
static int write_with_parts(const char *path, struct err *e)
{
    struct store_writer *w = store_create(path, "chunk", 1, 5, 3);
    const struct store_place place = {path, w};
    struct store_writer *part = store_create_at(place, "graph", 3, key, 4);
    add_sample(part);
    assert_int_equal(store_commit(part, e), ERR_OK);
    store_add(w, "rows", pairs, sizeof *pairs, 3);
    part = store_create_at(place, "states", 4, key, 1);
    struct file_map map;
    const void *items;
    store_begin(part, "cells", 8);
    store_append(part, times, 2);
    assert_int_equal(store_look_back(part, &map, &items, e), ERR_OK);
    assert_memory_equal(items, times, 16);
    file_map_close(&map);
    store_append(part, times + 2, 3);
    assert_int_equal(store_commit(part, e), ERR_OK);
    return store_commit(w, e);
}

static void expect_parts(const struct store *s, const char *path)
{
    struct err e = {0};
    struct store *part;
    size_t n;
    assert_non_null(store_section(s, "rows", sizeof *pairs, &n));
    assert_int_equal(n, 3);
    assert_int_equal(store_open_from(s, path, "graph", 3, &part, &e), ERR_OK);
    expect_sample(part);
    assert_int_equal(store_intact(part, &e), ERR_OK);
    store_populate(part);
    store_close(part);
    assert_int_equal(store_open_unread_from(s, path, "states", 4, &part, &e), ERR_OK);
    assert_memory_equal(store_section(part, "cells", 8, &n), times, sizeof times);
    assert_int_equal(n, 5);
    store_close(part);
}

static void parts_read_back(void **state)
{
    struct place *p = *state;
    struct err e = {0};
    struct store *s, *part, *none;
    assert_int_equal(write_with_parts(p->path, &e), ERR_OK);
    assert_int_equal(store_check(p->path, &e), ERR_OK);
    assert_int_equal(store_open(p->path, "chunk", 1, NULL, &s, &e), ERR_OK);
    expect_parts(s, p->path);
    assert_int_equal(store_check_part(s, p->path, "states", &e), ERR_OK);
    assert_int_equal(store_open_from(s, p->path, "states", 3, &none, &e), ERR_STALE);
    assert_int_equal(store_open_from(s, p->path, "rows", 3, &none, &e), ERR_FORMAT);
    assert_int_equal(store_open_from(s, p->path, "stacks", 3, &none, &e), ERR_FORMAT);
    assert_non_null(strstr(e.text, "stacks"));
    assert_int_equal(store_open_from(s, p->path, "graph", 3, &part, &e), ERR_OK);
    store_close(s);
    expect_sample(part); /* the part outlives the store it belongs to */
    assert_int_equal(store_intact(part, &e), ERR_OK);
    store_close(part);
    assert_int_equal(test_directory_files(p->directory), 1);
}

/* The bytes of a part are those of a file. */
static void a_part_is_a_file(void **state)
{
    struct place *p = *state;
    struct err e = {0};
    char *alone, *within;
    size_t n, n_within;
    assert_int_equal(write_sample(p->path, &e), ERR_OK);
    assert_int_equal(file_read(p->path, 1 << 20, &alone, &n, &e), ERR_OK);
    assert_int_equal(write_with_parts(p->path, &e), ERR_OK);
    assert_int_equal(file_read(p->path, 1 << 20, &within, &n_within, &e), ERR_OK);
    size_t front = (64 + 3 * 48 + 63) / 64 * 64;
    assert_true(n_within > front + n);
    assert_memory_equal(within + front, alone, n);
    free(alone);
    free(within);
}

/* Changes every byte: either the store is refused, or its part. */
static void damage_of_parts_is_seen(void **state)
{
    struct place *p = *state;
    struct err e = {0};
    char *good;
    size_t n, in_parts = 0;
    assert_int_equal(write_with_parts(p->path, &e), ERR_OK);
    assert_int_equal(file_read(p->path, 1 << 20, &good, &n, &e), ERR_OK);
    for (size_t i = 0; i < n; i++) {
        struct store *s, *part;
        good[i] ^= 0x10;
        test_write_file(p->path, good, n);
        good[i] ^= 0x10;
        assert_true(store_check(p->path, &e) < 0);
        if (store_open(p->path, "chunk", 1, NULL, &s, &e))
            continue;
        int graph = store_check_part(s, p->path, "graph", &e), states = store_check_part(s, p->path, "states", &e);
        const char *kind = graph ? "graph" : "states";
        assert_true(graph ? !states : states);
        assert_non_null(strstr(e.text, p->path));
        assert_true(store_open_from(s, p->path, kind, graph ? 3 : 4, &part, &e) < 0);
        assert_null(part);
        assert_non_null(strstr(e.text, kind));
        store_close(s);
        in_parts++;
    }
    assert_in_range(in_parts, 600, n);
    free(good);
}

static void parts_given_up(void **state)
{
    struct place *p = *state;
    struct err e = {0};
    struct store_writer *w = store_create(p->path, "chunk", 1, 5, 1);
    struct store_writer *part = store_create_at((struct store_place){p->path, w}, "graph", 3, key, 4);
    store_add(part, "times", times, sizeof *times, 5);
    store_abort(part);
    assert_int_equal(store_commit(w, &e), ERR_CANCELLED);
    assert_int_equal(test_directory_files(p->directory), 0);

    w = store_create(p->path, "chunk", 1, 5, 2);
    part = store_create_at((struct store_place){p->path, w}, "graph", 3, key, 4);
    store_abort(w);
    add_sample(part);
    assert_int_equal(store_writing(part, &e), ERR_CANCELLED);
    assert_int_equal(store_commit(part, &e), ERR_CANCELLED);
    assert_int_equal(test_directory_files(p->directory), 0);
}

static void *write_part(void *around)
{
    struct err e = {0};
    struct store_writer *part = store_create_at((struct store_place){"later", around}, "later", 1, 0, 4);
    add_sample(part);
    return store_commit(part, &e) ? NULL : around;
}

/* Checks that a thread that arrives while a part is written waits for its end. */
static void parts_by_two_threads(void **state)
{
    struct place *p = *state;
    struct err e = {0};
    for (int round = 0; round < 20; round++) {
        struct store_writer *w = store_create(p->path, "chunk", 1, 5, 2);
        struct store_writer *part = store_create_at((struct store_place){p->path, w}, "first", 1, 0, 4);
        pthread_t other;
        void *done;
        assert_int_equal(pthread_create(&other, NULL, write_part, w), 0);
        if (round % 2)
            usleep(1000);
        add_sample(part);
        assert_int_equal(store_commit(part, &e), ERR_OK);
        assert_int_equal(pthread_join(other, &done), 0);
        assert_ptr_equal(done, w);
        assert_int_equal(store_commit(w, &e), ERR_OK);
        assert_int_equal(store_check(p->path, &e), ERR_OK);
    }
}

#define HERE(f) cmocka_unit_test_setup_teardown(f, make_place, remove_place)
int main(void)
{
    const struct CMUnitTest tests[] = {
        HERE(reads_back),
        HERE(without_sections),
        HERE(layout_as_documented),
        HERE(what_does_not_belong),
        HERE(damage_is_seen),
        HERE(a_full_disk_leaves_nothing),
        HERE(places_that_cannot_be_written),
        HERE(the_same_bytes_each_time),
        HERE(parts_are_one_section),
        HERE(large_sections_arrive_whole),
        HERE(given_up),
        HERE(parts_read_back),
        HERE(a_part_is_a_file),
        HERE(damage_of_parts_is_seen),
        HERE(parts_given_up),
        HERE(parts_by_two_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* Damage of the state carried out of a chunk is found when the next one is built. Nothing else reveals it: as on a disk
 * that fails silently, the stamp of the file is the one in the manifest. */
#include <glob.h>

#include "../ctf/archives.h"
#include "base/file.h"
#include "base/store.h"
#include "base/store_layout.h"
#include "index/index.h"

enum { ARCHIVES = 4, DAMAGED_FROM = 2 };

static struct experiment *open_store(bool stores)
{
    char *traces = mem_printf("%s/world", scratch), *dir = mem_printf("%s/store", scratch);
    const char *args[] = {traces};
    struct index_options how = {.stores = stores, .user_space = true, .store = dir};
    struct experiment *x;
    struct err e = {0};
    if (index_experiment_open(args, 1, &how, &x, &e))
        fail_msg("%s", e.text);
    free(traces);
    free(dir);
    return x;
}

static void write_over(const char *path, const char *bytes, size_t n)
{
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static struct store_entry *entry_of(char *file, const char *name)
{
    struct store_header *h = (struct store_header *)file;
    struct store_entry *v = (struct store_entry *)(h + 1);
    for (uint32_t i = 0; i < h->n_sections; i++)
        if (!strcmp(v[i].name, name))
            return &v[i];
    fail_msg("no section %s", name);
    return NULL;
}

/* The manifest gets the stamp that the file has now. */
static void seal_again(const char *path, const struct file_stamp *old, const struct file_stamp *now)
{
    char *bytes, *at;
    size_t n;
    assert_int_equal(file_read(path, 1 << 20, &bytes, &n, NULL), 0);
    struct store_entry *chunks = entry_of(bytes, "chunks");
    assert_non_null(at = memmem(bytes + chunks->offset, chunks->count * chunks->item_bytes, old, sizeof *old));
    memcpy(at, now, sizeof *now);
    chunks->checksum = XXH3_64bits(bytes + chunks->offset, store_aligned(chunks->count * chunks->item_bytes));
    struct store_header *h = (struct store_header *)bytes;
    h->checksum = store_header_checksum(h, store_table_end(h->n_sections));
    write_over(path, bytes, n);
    free(bytes);
}

/* Damages the carried state of each chunk that has some. Returns how many. */
static size_t damage_carries(void)
{
    char *pattern = mem_printf("%s/store/*/chunk.*", scratch);
    size_t damaged = 0;
    glob_t found;
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        const char *path = found.gl_pathv[i];
        struct file_stamp old, now;
        char *bytes;
        size_t n;
        assert_int_equal(file_read(path, 1 << 20, &bytes, &n, NULL), 0);
        assert_int_equal(file_stamp(path, &old, NULL), 0);
        const struct store_entry *carry = entry_of(bytes, "carry");
        if (carry->count) {
            bytes[carry->offset + carry->count / 2] ^= 4;
            write_over(path, bytes, n);
            assert_int_equal(file_stamp(path, &now, NULL), 0);
            char *manifest = mem_printf("%.*smanifest", (int)(file_name(path) - path), path);
            seal_again(manifest, &old, &now);
            free(manifest);
            damaged++;
        }
        free(bytes);
    }
    globfree(&found);
    free(pattern);
    return damaged;
}

static bool tells_of_carry(const struct experiment *x)
{
    const struct index_note *notes;
    size_t n = index_experiment_notes(x, &notes);
    for (size_t i = 0; i < n; i++)
        if (strstr(notes[i].text, "\"carry\"") && strstr(notes[i].text, "built again"))
            return true;
    return false;
}

static void on_finding(void *arg, const struct index_finding *f)
{
    *(bool *)arg |= f->problem && strstr(f->problem, "\"carry\"");
}

static bool verify_tells(void)
{
    bool told = false;
    struct experiment *x = open_store(false);
    int rc = index_experiment_verify(x, on_finding, &told, NULL);
    assert_int_equal(rc, told ? ERR_FORMAT : 0);
    index_experiment_close(x);
    return told;
}

static void come(size_t number)
{
    char dir[40];
    snprintf(dir, sizeof dir, "world/a%zu", number);
    write_archive(&(struct archive){.seed = number + 1, .modified = 1000 + (int64_t)number}, dir, number, false);
}

static void damage_is_found_where_it_is_used(void **state)
{
    clear_world();
    for (size_t i = 0; i < ARCHIVES; i++) {
        come(i);
        if (i >= DAMAGED_FROM) {
            assert_true(damage_carries() > 0);
            assert_true(verify_tells());
        }
        struct experiment *x = open_store(true);
        assert_int_equal(tells_of_carry(x), i >= DAMAGED_FROM);
        index_experiment_close(x);
        assert_false(verify_tells());
    }
}

/* Checks that opening for queries does not read it. */
static void opening_does_not_need_it(void **state)
{
    struct experiment *x = open_store(true);
    uint64_t events = index_experiment_stored_events(x);
    index_experiment_close(x);
    assert_true(damage_carries() > 0);
    x = open_store(true);
    assert_false(tells_of_carry(x));
    assert_int_equal(index_experiment_stored_events(x), events);
    index_experiment_close(x);
    assert_true(verify_tells());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damage_is_found_where_it_is_used), cmocka_unit_test(opening_does_not_need_it)};
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}

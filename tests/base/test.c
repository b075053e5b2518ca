/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <dirent.h>

char *test_directory_make(void)
{
    const char *base = getenv("TMPDIR");
    char *path;
    assert_true(asprintf(&path, "%s/weft-test-XXXXXX", base ? base : "/tmp") > 0);
    assert_non_null(mkdtemp(path));
    return path;
}

static size_t each_file(const char *directory, int remove_it)
{
    DIR *d = opendir(directory);
    assert_non_null(d);
    size_t n = 0;
    for (struct dirent *f; (f = readdir(d));) {
        if (!strcmp(f->d_name, ".") || !strcmp(f->d_name, ".."))
            continue;
        n++;
        if (remove_it)
            unlinkat(dirfd(d), f->d_name, 0);
    }
    closedir(d);
    return n;
}

size_t test_directory_files(const char *directory)
{
    return each_file(directory, 0);
}

void test_directory_remove(char *directory)
{
    each_file(directory, 1);
    rmdir(directory);
    free(directory);
}

void test_write_file(const char *path, const void *data, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

/* What the tests of base share. */
#ifndef TESTS_BASE_TEST_H
#define TESTS_BASE_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* A fresh directory, removed with what is in it (one level) by test_directory_remove. */
char *test_directory_make(void);
void test_directory_remove(char *directory);
/* Files in a directory. */
size_t test_directory_files(const char *directory);
void test_write_file(const char *path, const void *data, size_t n);

#endif

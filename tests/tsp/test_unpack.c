/* SPDX-License-Identifier: MIT */
/* Unpacking of archives: it stops once no client wants the archive any more. */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tsp/unpack.h"

enum { TAR_BLOCK = 512 };

/* An entry of a tar archive as POSIX has it (ustar); kind '5': a directory, '0': a file of zeros. */
static void put_entry(FILE *f, const char *name, char kind, unsigned size)
{
    char head[TAR_BLOCK] = "";
    unsigned sum = 0;
    snprintf(head, 100, "%s", name);
    memcpy(head + 100, "0000755\0000000000\0000000000\0", 24);
    snprintf(head + 124, 12, "%011o", size);
    memcpy(head + 136, "00000000000\0        ", 20);
    head[156] = kind;
    memcpy(head + 257, "ustar\00000", 8);
    for (int i = 0; i < TAR_BLOCK; i++)
        sum += (unsigned char)head[i];
    snprintf(head + 148, 8, "%06o", sum);
    fwrite(head, 1, sizeof head, f);
    memset(head, 0, sizeof head);
    for (unsigned n = 0; n < size; n += TAR_BLOCK)
        fwrite(head, 1, sizeof head, f);
}

struct place {
    char dir[32], archive[32];
    FILE *f;
};

static void begin(struct place *p)
{
    strcpy(p->dir, "/tmp/weft-unpack-XXXXXX");
    strcpy(p->archive, "/tmp/weft-archive-XXXXXX");
    assert_non_null(mkdtemp(p->dir));
    p->f = fdopen(mkstemp(p->archive), "w");
    assert_non_null(p->f);
}

static void end_archive(struct place *p)
{
    char end[2 * TAR_BLOCK] = "";
    fwrite(end, 1, sizeof end, p->f);
    assert_int_equal(fclose(p->f), 0);
}

/* Number of names in the directory, which are empty, and go with it. */
static unsigned end(struct place *p)
{
    DIR *d = opendir(p->dir);
    unsigned n = 0;
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d));)
        n += !unlinkat(dirfd(d), e->d_name, 0) || !unlinkat(dirfd(d), e->d_name, AT_REMOVEDIR);
    closedir(d);
    assert_int_equal(rmdir(p->dir), 0);
    unlink(p->archive);
    return n;
}

/* Client that disappears after so many checks. */
struct client {
    unsigned asked, patience;
};

static bool is_gone(void *client)
{
    struct client *c = client;
    return c->asked++ >= c->patience;
}

static int unpack(const struct place *p, struct client *c, uint64_t most_bytes, char why[200])
{
    struct arena a = {0};
    const char *reason = "";
    int status = tsp_unpack_archive(&(struct unpack_job){p->archive, p->dir, most_bytes, is_gone, c, &a}, &reason);
    snprintf(why, 200, "%s", reason ? reason : "");
    arena_fini(&a);
    return status;
}

/* An archive of so many entries, and what comes of it with a client of that patience. Returns how many were made. */
static unsigned made_of(char kind, unsigned names, struct client *c, int *status, char why[200])
{
    struct place p;
    char name[20];
    begin(&p);
    for (unsigned i = 0; i < names; i++) {
        snprintf(name, sizeof name, "%u", i);
        put_entry(p.f, name, kind, 0);
    }
    end_archive(&p);
    *status = unpack(&p, c, 1000, why);
    return end(&p);
}

/* Checks giving up, also if an archive has no contents to copy. */
static void test_given_up(void **state)
{
    enum { NAMES = 1000, PATIENCE = 300 };
    for (const char *kind = "50"; *kind; kind++) {
        struct client stays = {.patience = UINT_MAX}, leaves = {.patience = PATIENCE};
        char why[200];
        int status;
        assert_int_equal(made_of(*kind, NAMES, &stays, &status, why), NAMES);
        assert_int_equal(status, 0);
        assert_true(stays.asked > NAMES);
        assert_in_range(made_of(*kind, NAMES, &leaves, &status, why), 1, PATIENCE);
        assert_int_equal(status, 503); /* the server may be what stops */
        assert_string_equal(why, "The server cannot finish the upload now: send it again");
        assert_int_equal(leaves.asked, PATIENCE + 1); /* no further attempt */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_given_up)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

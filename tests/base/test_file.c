/* SPDX-License-Identifier: MIT */
#include "base/file.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "test.h"

struct place {
    char *directory, *path;
};

static int make_place(void **state)
{
    static struct place p;
    p.directory = test_directory_make();
    assert_true(asprintf(&p.path, "%s/file", p.directory) > 0);
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

static void every_size_has_zeros_behind(void **state)
{
    struct place *p = *state;
    long page = sysconf(_SC_PAGESIZE);
    char *data = malloc((size_t)page * 3);
    memset(data, 0x5a, (size_t)page * 3);
    const long sizes[] = {
        0, 1, 63, 64, 65, page - 65, page - 64, page - 63, page - 1, page, page + 1, 2 * page, 2 * page + 1, 3 * page};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t n = (size_t)sizes[i];
        test_write_file(p->path, data, n);
        struct file_map m;
        struct err e = {0};
        assert_int_equal(file_map_open(p->path, &m, &e), ERR_OK);
        assert_int_equal(m.size, n);
        assert_non_null(m.data);
        assert_memory_equal(m.data, data, n);
        for (size_t k = 0; k < 64; k++)
            assert_int_equal(m.data[n + k], 0);
        file_map_close(&m);
        file_map_close(&m); /* a closed one again: nothing happens */
    }
    free(data);
}

/* Returns the number of bytes of the map that can be read without a fault. */
static size_t ready_bytes(const struct file_map *m)
{
    FILE *f = fopen("/proc/self/smaps", "r");
    char line[512], start[32];
    size_t kb = 0;
    bool found = false;
    assert_non_null(f);
    snprintf(start, sizeof start, "%lx-", (unsigned long)(uintptr_t)m->data);
    while (fgets(line, sizeof line, f)) {
        found |= !strncmp(line, start, strlen(start));
        if (found && sscanf(line, "Rss: %zu kB", &kb) == 1)
            break;
    }
    fclose(f);
    assert_true(found);
    return kb * 1024;
}

static void what_is_in_memory_is_readied(void **state)
{
    enum { SIZE = 9 << 20 };
    struct place *p = *state;
    char *data = malloc(SIZE);
    struct file_map m;
    struct err e = {0};
    unsigned char first;
    memset(data, 0x5a, SIZE);
    test_write_file(p->path, data, SIZE);
    assert_int_equal(file_map_open(p->path, &m, &e), ERR_OK);
    assert_in_range(ready_bytes(&m), 0, SIZE / 2);
    file_map_populate(&m, 0, m.size);
    assert_in_range(ready_bytes(&m), SIZE - 4 * 4096, SIZE);
    assert_memory_equal(m.data, data, SIZE);
    file_map_close(&m);

    int fd = open(p->path, O_RDWR);
    assert_int_equal(fsync(fd), 0);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
    assert_int_equal(file_map_open(p->path, &m, &e), ERR_OK);
    assert_int_equal(mincore((void *)(uintptr_t)m.data, 1, &first), 0);
    if (!(first & 1)) { /* except on file systems in memory */
        file_map_populate(&m, 0, m.size);
        assert_int_equal(ready_bytes(&m), 0);
    }
    assert_memory_equal(m.data, data, SIZE);
    file_map_close(&m);

    test_write_file(p->path, "x", 1);
    assert_int_equal(file_map_open(p->path, &m, &e), ERR_OK);
    file_map_populate(&m, 0, m.size);
    assert_int_equal(m.data[0], 'x');
    file_map_close(&m);
    free(data);
}

static void what_is_no_file(void **state)
{
    struct place *p = *state;
    struct file_map m;
    struct err e = {0};
    assert_int_equal(file_map_open(p->path, &m, &e), ERR_NOTFOUND);
    assert_int_equal(e.code, ERR_NOTFOUND);
    assert_non_null(strstr(e.text, p->path));
    assert_int_equal(file_map_open(p->directory, &m, &e), ERR_IO);
    assert_non_null(strstr(e.text, "directory"));
    assert_int_equal(mkfifo(p->path, 0600), 0);
    assert_int_equal(file_map_open(p->path, &m, &e), ERR_IO); /* opened without waiting for a writer */
    char *data;
    size_t n;
    assert_int_equal(file_read(p->path, 100, &data, &n, &e), ERR_IO);
}

/* cmocka catches SIGBUS itself, so what concerns that signal runs in processes of its own, started before the first
 * test. */
static int in_a_child(int (*f)(void))
{
    pid_t child = fork();
    if (child == 0)
        _exit(f());
    int status = -1;
    waitpid(child, &status, 0);
    return status;
}

enum { PAGES = 8 };
struct shrinking {
    char path[64];
    int fd;
    size_t page, n;
    struct file_map m;
};

/* A mapped file of PAGES pages full of sevens, less `short_of` bytes. */
static bool make_sevens(struct shrinking *s, size_t short_of)
{
    static char data[1 << 16];
    strcpy(s->path, "/tmp/weft-test-XXXXXX");
    s->fd = mkstemp(s->path);
    s->page = (size_t)sysconf(_SC_PAGESIZE);
    s->n = PAGES * s->page - short_of;
    memset(data, 7, s->n);
    return write(s->fd, data, s->n) == (ssize_t)s->n && file_map_open(s->path, &s->m, NULL) == ERR_OK &&
        !file_map_intact(&s->m, NULL);
}

static bool cut(struct shrinking *s, size_t to)
{
    return ftruncate(s->fd, (off_t)to) == 0;
}

static bool says(const struct shrinking *s, const char *what)
{
    struct err e = {0};
    return file_map_intact(&s->m, &e) == ERR_LOST && e.code == ERR_LOST && strstr(e.text, s->path) &&
        strstr(e.text, what);
}

static int done(struct shrinking *s, bool good)
{
    file_map_close(&s->m);
    unlink(s->path);
    close(s->fd);
    return good ? 0 : 1;
}

/* Checks that bytes cut off read as zeros, from the first place read; earlier ones are unchanged. */
static int zeros_where_it_was(void)
{
    struct shrinking s;
    bool good = make_sevens(&s, 0) && cut(&s, s.page);
    for (size_t i = 0; good && i < s.n; i += 512)
        good = s.m.data[i] == (i < s.page ? 7 : 0);
    return done(&s, good && says(&s, " 4096 of 32768 bytes are left"));
}

/* Checks every place of a cut, and every earlier read: bytes that read as anything but sevens are reported. */
static int told_wherever_it_is_cut(void)
{
    bool good = true;
    for (size_t to = 0; good && to < PAGES * 4096; to += 512 + 128) {
        struct shrinking s;
        good = make_sevens(&s, 100) && cut(&s, to);
        bool same = true;
        for (size_t i = s.n; good && i-- > 0;)
            same &= s.m.data[i] == 7;
        good = good && (same || says(&s, "bytes are left"));
        done(&s, true);
    }
    return good ? 0 : 1;
}

/* Checks a loss that no read has met; the partly cut page reads as zeros without any fault. */
static int told_without_being_read(void)
{
    struct shrinking s;
    bool good = make_sevens(&s, 0) && cut(&s, 6 * s.page + 5);
    return done(&s, good && s.m.data[6 * s.page + 5] == 0 && says(&s, "bytes are left"));
}

/* The last page was read when the file was opened, and so was a small file. */
static int last_page_stays(void)
{
    struct shrinking s, small;
    bool good = make_sevens(&s, 10) && cut(&s, 7 * s.page + 1);
    for (size_t i = 0; good && i < s.n; i++)
        good = s.m.data[i] == 7;
    good = done(&s, good && !file_map_intact(&s.m, NULL) && s.m.data[s.n] == 0) == 0;
    good = make_sevens(&small, 7 * 4096 + 1) && cut(&small, 0) && good;
    return done(&small, good && small.m.data[small.n - 1] == 7 && !file_map_intact(&small.m, NULL));
}

static int why(void)
{
    struct shrinking s;
    bool good = make_sevens(&s, 0) && cut(&s, 0) && says(&s, " 0 of 32768 bytes") && cut(&s, s.n) &&
        says(&s, "written anew");
    unlink(s.path);
    return done(&s, good && says(&s, "removed"));
}

static void *read_on(void *arg)
{
    const struct shrinking *s = arg;
    bool good = true;
    for (int round = 0; round < 200; round++) {
        bool same = true;
        for (size_t i = (size_t)round; i < s->n; i += 64)
            same &= s->m.data[i] == 7;
        good &= same || file_map_intact(&s->m, NULL) == ERR_LOST;
    }
    return good ? arg : NULL;
}

static int many_readers(void)
{
    struct shrinking s;
    pthread_t threads[4];
    bool good = make_sevens(&s, 0);
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, read_on, &s);
    for (size_t pages = PAGES - 1; pages-- > 0;)
        good &= cut(&s, pages * s.page + 77);
    for (int i = 0; i < 4; i++) {
        void *result;
        pthread_join(threads[i], &result);
        good &= result != NULL;
    }
    return done(&s, good);
}

static int (*const shrinkings[])(void) = {
    zeros_where_it_was, told_wherever_it_is_cut, told_without_being_read, last_page_stays, why, many_readers};
enum { SHRINKINGS = sizeof shrinkings / sizeof *shrinkings };

/* The default below weft's handler, also where a sanitizer has put its own. */
static int raise_it(void)
{
    struct file_map m;
    signal(SIGBUS, SIG_DFL);
    if (file_map_open("/proc/self/exe", &m, NULL))
        return 1;
    raise(SIGBUS);
    return 2;
}

static int fault_elsewhere(void)
{
    struct file_map m;
    char path[] = "/tmp/weft-test-XXXXXX";
    int fd = mkstemp(path);
    unlink(path);
    signal(SIGBUS, SIG_DFL);
    if (file_map_open("/proc/self/exe", &m, NULL) || ftruncate(fd, 4096))
        return 1;
    volatile char *p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED || ftruncate(fd, 0))
        return 1;
    return p[0] + 2;
}

static int shrunk[SHRINKINGS], raised, faulted;

static void shrinking_kills_nobody_and_is_told(void **state)
{
    for (int i = 0; i < SHRINKINGS; i++) {
        if (!WIFEXITED(shrunk[i]) || WEXITSTATUS(shrunk[i]) != 0)
            print_error("shrinking %d: status %#x\n", i, shrunk[i]);
        assert_true(WIFEXITED(shrunk[i]));
        assert_int_equal(WEXITSTATUS(shrunk[i]), 0);
    }
}

/* Checks that other SIGBUS end the process as they would without weft. */
static void other_bus_errors_still_kill(void **state)
{
    assert_true(WIFSIGNALED(raised));
    assert_int_equal(WTERMSIG(raised), SIGBUS);
    assert_true(WIFSIGNALED(faulted));
    assert_int_equal(WTERMSIG(faulted), SIGBUS);
}

static void reading_whole_files(void **state)
{
    struct place *p = *state;
    struct err e = {0};
    char *data;
    size_t n;
    test_write_file(p->path, "", 0);
    assert_int_equal(file_read(p->path, 10, &data, &n, &e), ERR_OK);
    assert_int_equal(n, 0);
    assert_string_equal(data, "");
    free(data);
    test_write_file(p->path, "0123456789", 10);
    assert_int_equal(file_read(p->path, 10, &data, &n, &e), ERR_OK);
    assert_int_equal(n, 10);
    assert_string_equal(data, "0123456789");
    free(data);
    assert_int_equal(file_read(p->path, 9, &data, &n, &e), ERR_LIMIT);
    assert_null(data);
    /* Files below /proc have size 0 and contents. */
    assert_int_equal(file_read("/proc/self/status", 1 << 20, &data, &n, &e), ERR_OK);
    assert_true(n > 100);
    free(data);
    char big[9000];
    memset(big, 'b', sizeof big);
    test_write_file(p->path, big, sizeof big);
    assert_int_equal(file_read(p->path, 1 << 20, &data, &n, &e), ERR_OK);
    assert_int_equal(n, sizeof big);
    assert_memory_equal(data, big, n);
    free(data);
}

static void directories(void **state)
{
    struct place *p = *state;
    struct err e = {0};
    char path[4096];
    snprintf(path, sizeof path, "%s//a/b//c/", p->directory);
    assert_int_equal(file_make_dirs(path, &e), ERR_OK);
    assert_int_equal(file_make_dirs(path, &e), ERR_OK);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    test_write_file(p->path, "x", 1);
    snprintf(path, sizeof path, "%s/file/sub", p->directory);
    assert_int_equal(file_make_dirs(path, &e), ERR_IO);
    for (const char **s = (const char *[]){"a/b/c", "a/b", "a", NULL}; *s; s++) {
        snprintf(path, sizeof path, "%s/%s", p->directory, *s);
        rmdir(path);
    }
    assert_int_equal(file_make_dirs("", &e), ERR_ARG);
}

static void writing_replaces(void **state)
{
    struct place *p = *state;
    struct err e = {0};
    assert_int_equal(file_write(p->path, "one", 3, &e), ERR_OK);
    assert_int_equal(file_write(p->path, "two!", 4, &e), ERR_OK);
    char *data;
    size_t n;
    assert_int_equal(file_read(p->path, 10, &data, &n, &e), ERR_OK);
    assert_string_equal(data, "two!");
    free(data);
    assert_int_equal(test_directory_files(p->directory), 1);
}

/* RLIMIT_FSIZE makes write() fail as a full disk does: after some bytes. */
static void a_failed_write_leaves_the_old_file(void **state)
{
    struct place *p = *state;
    struct err e = {0};
    assert_int_equal(file_write(p->path, "old", 3, &e), ERR_OK);
    static char big[100000];
    struct rlimit before, limit;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = 50000;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    int code = file_write(p->path, big, sizeof big, &e);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(code, ERR_IO);
    char *data;
    size_t n;
    assert_int_equal(file_read(p->path, 10, &data, &n, &e), ERR_OK);
    assert_string_equal(data, "old");
    free(data);
    assert_int_equal(test_directory_files(p->directory), 1);
}

#define HERE(f) cmocka_unit_test_setup_teardown(f, make_place, remove_place)
static void links_stay_links(void **state)
{
    char dir[] = "/tmp/weft-link-XXXXXX", file[64], link[64];
    struct stat st;
    struct err e = {0};
    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(file, sizeof file, "%s/file", dir);
    snprintf(link, sizeof link, "%s/link", dir);
    assert_int_equal(file_write(file, "old", 3, &e), ERR_OK);
    assert_int_equal(symlink("file", link), 0);
    assert_int_equal(file_write(link, "longer", 6, &e), ERR_OK);
    assert_int_equal(lstat(link, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(stat(file, &st), 0);
    assert_int_equal(st.st_size, 6);
    unlink(link);
    unlink(file);
    rmdir(dir);
}

/* "--svg /dev/full" must not put a file in the place of the device. */
static void devices_stay_devices(void **state)
{
    struct stat st;
    struct err e = {0};
    (void)state;
    if (stat("/dev/full", &st) || !S_ISCHR(st.st_mode))
        skip_without("/dev/full");
    assert_int_equal(file_write("/dev/full", "text", 4, &e), ERR_IO);
    assert_int_equal(file_write("/dev/null", "text", 4, &e), ERR_OK);
    assert_int_equal(stat("/dev/full", &st), 0);
    assert_true(S_ISCHR(st.st_mode));
}

static void below(void **state)
{
    (void)state;
    assert_true(file_is_below("/a/b", "/a") && file_is_below("/a", "/a") && file_is_below("/a", "/"));
    assert_true(file_is_below("/a/b", "/a/") && file_is_below("a/b/c", "a/b"));
    assert_false(file_is_below("/ab", "/a") || file_is_below("/a", "/a/b") || file_is_below("/b", "/a"));
    assert_false(file_is_below("/a", "") || file_is_below("/a", NULL) || file_is_below("", "/"));
}

int main(void)
{
    for (int i = 0; i < SHRINKINGS; i++)
        shrunk[i] = in_a_child(shrinkings[i]);
    raised = in_a_child(raise_it);
    faulted = in_a_child(fault_elsewhere);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(below),
        HERE(every_size_has_zeros_behind),
        HERE(what_is_in_memory_is_readied),
        HERE(what_is_no_file),
        cmocka_unit_test(shrinking_kills_nobody_and_is_told),
        cmocka_unit_test(other_bus_errors_still_kill),
        HERE(reading_whole_files),
        HERE(directories),
        HERE(writing_replaces),
        HERE(a_failed_write_leaves_the_old_file),
        cmocka_unit_test(devices_stay_devices),
        cmocka_unit_test(links_stay_links),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

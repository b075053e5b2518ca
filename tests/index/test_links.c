/* SPDX-License-Identifier: MIT */
/* Stores in a trace whose owner is somebody else: links in its directory lead no builder to other files, also while the
 * owner puts them there. Names that no store has stay. Stores of other users are read; refused ones are reported. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "../ctf/archives.h"
#include "base/nolinks.h"
#include "base/store.h"
#include "index/index.h"

static char *below(const char *name)
{
    return mem_printf("%s/%s", scratch, name);
}

static void run(const char *format)
{
    char *command = mem_printf(format, scratch);
    assert_int_equal(system(command), 0);
    free(command);
}

/* Names used by stores, or by files under construction, in a directory that must not be touched. */
static const char *const others[] = {"chunk.1", "chunk.77", "manifest", "manifest.tmp.1.0", "chunk.3.tmp.00ff", "lock",
    "graph.1", "packets", "rows.1-1", "clocks-1"};
enum { OTHERS = sizeof others / sizeof *others };

static void begin(void)
{
    run("rm -rf '%1$s/world' '%1$s/cache' '%1$s/victim' && mkdir '%1$s/world' '%1$s/victim'");
    struct archive a = {true, 5, 0, 1700000000};
    write_archive(&a, "world", 0, false);
    for (size_t i = 0; i < OTHERS; i++)
        write_text("victim", others[i], "not yours");
    char *cache = below("cache");
    setenv("XDG_CACHE_HOME", cache, 1);
    free(cache);
}

static size_t files_of(const char *directory)
{
    char *path = below(directory);
    DIR *d = opendir(path);
    size_t n = 0;
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d));)
        n += e->d_name[0] != '.';
    closedir(d);
    free(path);
    return n;
}

static void expect_untouched(void)
{
    assert_int_equal(files_of("victim"), OTHERS);
    for (size_t i = 0; i < OTHERS; i++) {
        char *path = mem_printf("%s/victim/%s", scratch, others[i]), text[32] = "";
        FILE *f = fopen(path, "r");
        assert_non_null(f);
        assert_int_equal(fread(text, 1, sizeof text - 1, f), strlen("not yours"));
        assert_string_equal(text, "not yours");
        fclose(f);
        free(path);
    }
}

static int open_world(bool force, struct experiment **x, struct err *e)
{
    char *traces = below("world");
    const char *args[] = {traces};
    struct index_options how = {.stores = true, .user_space = true, .force = force};
    *e = (struct err){0};
    int rc = index_experiment_open(args, 1, &how, x, e);
    free(traces);
    return rc;
}

static const char *dir_of(const struct experiment *x)
{
    const struct index_trace *t;
    assert_int_equal(index_experiment_traces(x, &t), 1);
    return t->store_dir;
}

static bool notes_have(const struct experiment *x, const char *part)
{
    const struct index_note *v;
    bool found = false;
    for (size_t i = 0, n = index_experiment_notes(x, &v); i < n; i++)
        found |= strstr(v[i].text, part) != NULL;
    return found;
}

static void a_linked_directory_is_not_entered(void **state)
{
    struct experiment *x;
    struct err e;
    begin();
    run("ln -s ../victim '%1$s/world/.weft'");
    if (open_world(false, &x, &e))
        fail_msg("%s", e.text);
    char *cache = below("cache");
    assert_non_null(strstr(dir_of(x), cache));
    assert_true(notes_have(x, "symbolic link"));
    expect_untouched();
    index_experiment_close(x);
    free(cache);
}

static void a_linked_lock_is_not_written(void **state)
{
    static const char *const locks[] = {
        "ln -s ../../victim/lock '%1$s/world/.weft/lock'",
        "ln '%1$s/victim/lock' '%1$s/world/.weft/lock'", /* hard link, if the system allows it */
        "mkfifo '%1$s/world/.weft/lock'",
    };
    for (size_t i = 0; i < sizeof locks / sizeof *locks; i++) {
        struct experiment *x = NULL;
        struct err e;
        begin();
        run("mkdir '%1$s/world/.weft'");
        run(locks[i]);
        if (open_world(false, &x, &e))
            fail_msg("%s", e.text);
        assert_true(index_experiment_partial(x));
        assert_true(notes_have(x, "/.weft/lock: "));
        assert_true(notes_have(x, "--store"));
        expect_untouched();
        index_experiment_close(x);
    }
}

static void links_of_stores_are_replaced(void **state)
{
    struct experiment *x;
    struct err e;
    begin();
    run("mkdir '%1$s/world/.weft' && cd '%1$s/world/.weft' && ln -s ../../victim/manifest manifest && "
        "ln -s ../../victim/chunk.1 chunk.1 && for i in 0 1 2 3 4 5 6 7 8 9; do "
        "ln -s ../../victim/lock manifest.tmp.$PPID.$i; ln -s ../../victim/lock chunk.1.tmp.$PPID.$i; done");
    if (open_world(false, &x, &e))
        fail_msg("%s", e.text);
    index_experiment_close(x);
    expect_untouched();
    struct stat st;
    char *manifest = below("world/.weft/manifest");
    assert_int_equal(lstat(manifest, &st), 0);
    assert_true(S_ISREG(st.st_mode));
    free(manifest);
}

static void other_names_stay(void **state)
{
    static const char *const kept[] = {"notes.tmp.txt", "rows.backup", "chunk.old", "chunk.1.tmp.mine", "x.tmp.0.1"};
    struct experiment *x;
    struct err e;
    begin();
    run("mkdir '%1$s/world/.weft'");
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        write_text("world/.weft", kept[i], "mine");
    write_text("world/.weft", "chunk.9.tmp.12.0", "left behind");
    write_text("world/.weft", "chunk.10.tmp.0123456789abcdef", "left behind");
    if (open_world(true, &x, &e))
        fail_msg("%s", e.text);
    index_experiment_close(x);
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        char *path = mem_printf("%s/world/.weft/%s", scratch, kept[i]);
        if (access(path, F_OK))
            fail_msg("%s is gone", kept[i]);
        free(path);
    }
    assert_int_equal(files_of("world/.weft"), sizeof kept / sizeof *kept + 3); /* lock, manifest, a chunk */
}

/* ---- changes meanwhile ---- */

struct swapping {
    char *weft, *aside, *victim;
    atomic_bool ends;
    atomic_uint swaps;
};

static void *swap(void *arg)
{
    struct swapping *s = arg;
    while (!atomic_load(&s->ends)) {
        if (!rename(s->weft, s->aside) && !symlink(s->victim, s->weft))
            atomic_fetch_add(&s->swaps, 1);
        unlink(s->weft);
        for (int i = 0; rename(s->aside, s->weft) && errno != ENOENT; i++) { /* a new one was made meanwhile */
            char *old = mem_printf("%s-%u-%d", s->aside, atomic_load(&s->swaps), i);
            rename(s->weft, old);
            free(old);
        }
    }
    return NULL;
}

static void swapped_while_it_is_built(void **state)
{
    struct swapping s = {.weft = below("world/.weft"), .aside = below("world/.aside"), .victim = below("victim")};
    pthread_t thread;
    begin();
    run("mkdir '%1$s/world/.weft'");
    assert_int_equal(pthread_create(&thread, NULL, swap, &s), 0);
    for (unsigned i = 0; i < 100 || atomic_load(&s.swaps) < 100; i++) {
        struct experiment *x = NULL;
        struct err e;
        if (!open_world(i % 2, &x, &e))
            index_experiment_close(x);
        else
            assert_true(e.text[0]);
    }
    atomic_store(&s.ends, true);
    pthread_join(thread, NULL);
    expect_untouched();
    free(s.weft);
    free(s.aside);
    free(s.victim);
}

/* ---- stores of others ---- */

/* Runs as a user who may read all and write only a cache. Returns a letter: 'd' failure, 't' their stores are used, 'c'
 * those of the cache, 'n' neither, with a reason. */
static int as_another(void)
{
    struct experiment *x;
    struct err e;
    fflush(NULL);
    pid_t child = fork();
    if (!child) {
        if (!geteuid() && (setgid(65534) || setuid(65534)))
            _exit('s');
        if (open_world(false, &x, &e))
            _exit('d');
        char *cache = below("cache");
        bool in_cache = strstr(dir_of(x), cache) != NULL;
        _exit(!in_cache ? 't' : notes_have(x, "/.weft") ? 'n' : 'c');
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void stores_of_others_are_read(void **state)
{
    struct experiment *x;
    struct err e;
    begin();
    if (open_world(false, &x, &e))
        fail_msg("%s", e.text);
    index_experiment_close(x);
    run("chmod -R a+rX,a-w '%1$s' && mkdir -p '%1$s/cache' 2>/dev/null; chmod u+w '%1$s' && mkdir -p '%1$s/cache' && "
        "chmod 777 '%1$s/cache'");
    assert_int_equal(as_another(), 't');
    run("chmod u+w '%1$s/world/.weft' '%1$s'/world/.weft/* && printf damaged > '%1$s/world/.weft/manifest' && "
        "chmod -R a-w '%1$s/world/.weft'");
    assert_int_equal(as_another(), 'n');
    run("chmod -R u+w '%1$s'");
}

/* ---- systems without openat2 ---- */

static void parts_are_walked_alike(void **state)
{
    static const struct {
        const char *path;
        int flags, error;
    } cases[] = {
        {"world/metadata", O_RDONLY, 0},
        {"world//./metadata", O_RDONLY, 0},
        {"world", O_RDONLY | O_DIRECTORY, 0},
        {"world/", O_RDONLY | O_DIRECTORY, 0},
        {"world/new", O_RDWR | O_CREAT, 0},
        {"world/none", O_RDONLY, ENOENT},
        {"none/metadata", O_RDONLY, ENOENT},
        {"world/metadata/x", O_RDONLY, ENOTDIR},
        {"link/metadata", O_RDONLY, ELOOP},
        {"world/file", O_RDONLY, ELOOP},
        {"world/file", O_RDWR | O_CREAT, ELOOP},
        {"world/file", O_PATH, ELOOP},
        {"link", O_RDONLY | O_DIRECTORY, ELOOP},
        {"link", O_PATH | O_DIRECTORY, ELOOP},
    };
    begin();
    run("ln -s world '%1$s/link' && ln -s metadata '%1$s/world/file'");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int walks = 0; walks < 2; walks++) {
            char *path = below(cases[i].path);
            int fd = (walks ? nolinks_walk : nolinks_open)(path, cases[i].flags, 0600);
            int error = fd < 0 ? errno : 0;
            if (error != cases[i].error)
                fail_msg("%s, %s: %s", cases[i].path, walks ? "walked" : "openat2", strerror(error));
            if (fd >= 0)
                close(fd);
            free(path);
        }
    struct err e = {0};
    char *path = below("link/made");
    assert_int_equal(nolinks_make_dirs(path, &e), ERR_IO);
    assert_non_null(strstr(e.text, "symbolic link"));
    free(path);
    path = below("world/a//b/");
    assert_int_equal(nolinks_make_dirs(path, &e), 0);
    assert_int_equal(nolinks_make_dirs(path, &e), 0);
    assert_int_equal(access(path, F_OK), 0);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_linked_directory_is_not_entered),
        cmocka_unit_test(a_linked_lock_is_not_written),
        cmocka_unit_test(links_of_stores_are_replaced),
        cmocka_unit_test(other_names_stay),
        cmocka_unit_test(swapped_while_it_is_built),
        cmocka_unit_test(stores_of_others_are_read),
        cmocka_unit_test(parts_are_walked_alike),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}

/* SPDX-License-Identifier: MIT */
/* A recording of one directory whose files are appended to: chunks of what was there stay. What was changed, and not
 * only appended, is built again. */
#include <glob.h>
#include <sys/stat.h>

#include "../ctf/archives.h"
#include "index/index.h"

enum { EVENTS_PER_PACKET = 150, MOST_CHUNKS = 20, FILES_PER_CHUNK = 1 };

static int64_t at[STREAMS], modified;
static uint64_t dice;

static char *file_of(uint32_t cpu)
{
    return mem_printf("%s/world/c%u", scratch, cpu);
}

static void touch(uint32_t cpu)
{
    char name[20];
    snprintf(name, sizeof name, "c%u", cpu);
    stamp("world", name, ++modified);
}

static void append(uint32_t cpu, int packets)
{
    char *path = file_of(cpu);
    FILE *f = fopen(path, "ab");
    assert_non_null(f);
    for (int i = 0; i < packets; i++) {
        int64_t begin = at[cpu];
        start_bytes(false);
        size_t head = begin_packet((uint64_t)begin, 0, 0, cpu);
        for (int k = 0; k < EVENTS_PER_PACKET; k++) {
            compact(0, (uint32_t)at[cpu]);
            put(&b, test_random(&dice, 1 << 30), 8);
            at[cpu] += 1 + test_random(&dice, 20);
        }
        patch(&b, head + 32, (uint64_t)at[cpu]++, 8);
        end_packet(head, 0);
        assert_int_equal(fwrite(b.v, 1, b.n, f), b.n);
    }
    fclose(f);
    free(path);
    touch(cpu);
}

static void append_all(int packets)
{
    for (uint32_t cpu = 0; cpu < STREAMS; cpu++)
        append(cpu, packets);
}

/* Adds to a number of 8 bytes in the first packet of the first file. */
static void edit(size_t offset, int by)
{
    char *path = file_of(0);
    FILE *f = fopen(path, "r+b");
    uint64_t v;
    assert_non_null(f);
    assert_int_equal(fseek(f, (long)offset, SEEK_SET), 0);
    assert_int_equal(fread(&v, sizeof v, 1, f), 1);
    v += (uint64_t)(int64_t)by;
    assert_int_equal(fseek(f, (long)offset, SEEK_SET), 0);
    assert_int_equal(fwrite(&v, sizeof v, 1, f), 1);
    fclose(f);
    free(path);
    touch(0);
}

/* ---- contents of the stores ---- */

struct files {
    size_t n;
    struct file {
        char name[40];
        uint64_t inode;
        struct timespec changed;
    } v[MOST_CHUNKS * FILES_PER_CHUNK];
};

static struct files list_files(void)
{
    struct files files = {0};
    char *pattern = mem_printf("%s/store/*/chunk.[0-9]*", scratch);
    glob_t g;
    assert_int_equal(glob(pattern, 0, NULL, &g), 0);
    for (size_t i = 0; i < g.gl_pathc; i++) {
        struct file *f = &files.v[files.n++];
        struct stat st;
        assert_true(files.n <= MOST_CHUNKS * FILES_PER_CHUNK);
        assert_int_equal(stat(g.gl_pathv[i], &st), 0);
        snprintf(f->name, sizeof f->name, "%s", strrchr(g.gl_pathv[i], '/') + 1);
        f->inode = st.st_ino;
        f->changed = st.st_ctim;
    }
    globfree(&g);
    free(pattern);
    return files;
}

static bool has(const struct files *files, const struct file *f)
{
    for (size_t i = 0; i < files->n; i++)
        if (!strcmp(files->v[i].name, f->name) && files->v[i].inode == f->inode &&
            !memcmp(&files->v[i].changed, &f->changed, sizeof f->changed))
            return true;
    return false;
}

/* Opens it, which builds what must be built. Returns how many files of the stores are as they were; *first (or NULL):
 * is that of the first chunk? */
static size_t stay(bool *first)
{
    char *traces = mem_printf("%s/world", scratch), *store = mem_printf("%s/store", scratch);
    const char *args[] = {traces};
    struct index_options how = {.stores = true, .user_space = true, .store = store, .memory = 1};
    const struct index_trace *trace;
    struct experiment *x;
    struct opened fresh;
    struct err e = {0};
    struct files before = {0}, after;
    size_t same = 0;
    if (!access(store, F_OK))
        before = list_files();
    if (index_experiment_open(args, 1, &how, &x, &e))
        fail_msg("%s", e.text);
    assert_int_equal(index_experiment_traces(x, &trace), 1);
    open_all(&fresh, traces);
    assert_int_equal(ctf_trace_items(trace->trace), ctf_trace_items(fresh.sources[0].trace));
    close_all(&fresh);
    index_experiment_close(x);
    after = list_files();
    for (size_t i = 0; i < before.n; i++) {
        bool is = has(&after, &before.v[i]);
        same += is;
        if (first && !strcmp(before.v[i].name, "chunk.1"))
            *first = is;
    }
    free(traces);
    free(store);
    return same;
}

static void what_is_there_stays(void **state)
{
    bool first = false;
    dice = test_seed(93);
    modified = 1700000000;
    at[0] = at[1] = 1000;
    clear_world();
    write_text("world", "metadata", declared[0]);
    append_all(60);
    assert_int_equal(stay(NULL), 0);
    size_t n = list_files().n;
    assert_true(n >= 4 * FILES_PER_CHUNK);

    append_all(10);
    assert_int_equal(stay(&first), n - FILES_PER_CHUNK); /* every chunk except the last */
    assert_true(first);
    n = list_files().n;
    assert_int_equal(stay(NULL), n);
    append(1, 30); /* again, with one that stays as it is */
    assert_int_equal(stay(NULL), n - FILES_PER_CHUNK);
    append(0, 30); /* append to a file that was behind: data after its end differ */
    assert_true(stay(&first) > 0);
    assert_true(first);
    n = list_files().n;
    append_all(1); /* twice between two openings */
    append_all(1);
    assert_int_equal(stay(NULL), n - FILES_PER_CHUNK);
}

static void what_was_changed_does_not(void **state)
{
    bool first = true;
    const size_t event = 64 + 4, begin = 24;
    edit(event, 1);
    stay(&first);
    assert_false(first); /* single event, and nothing appended */

    first = true;
    touch(0);
    stay(&first);
    assert_false(first); /* unknown contents */

    first = true;
    edit(begin, -1);
    append_all(2);
    stay(&first);
    assert_false(first); /* the head of a packet, and something appended */

    first = true;
    append(0, 1);
    char *path = file_of(0), *command = mem_printf("cp '%s' '%s.new' && mv '%s.new' '%s'", path, path, path, path);
    assert_int_equal(system(command), 0);
    touch(0);
    stay(&first);
    assert_false(first); /* replaced file */
    free(command);
    free(path);

    first = true;
    path = file_of(0);
    assert_int_equal(truncate(path, 20 * (64 + 12 * EVENTS_PER_PACKET)), 0);
    touch(0);
    stay(&first);
    assert_false(first);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_there_stays),
        cmocka_unit_test(what_was_changed_does_not),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}

/* SPDX-License-Identifier: MIT */
/* A tree of archives that grows and changes at random: opened with a catalogue it is what it is opened afresh. */
#include "archives.h"
#include "ctf/catalogue.h"

enum { ARCHIVES = 260, STEPS = 40, NEWEST = 100, RANGES = 4 };

struct world {
    struct archive archives[ARCHIVES];
    uint32_t name[ARCHIVES]; /* names of its directory */
    size_t n;
};

static const char *dir_of(const struct world *w, size_t i)
{
    static char dir[100];
    snprintf(dir, sizeof dir, "world/s%u/a%05zu-%u", (unsigned)(i % 2), i, w->name[i]);
    return dir;
}

static void run(const char *format, const char *a, const char *c)
{
    char command[2500];
    snprintf(command, sizeof command, format, scratch, a, scratch, c);
    assert_int_equal(system(command), 0);
}

static void write_one(const struct world *w, size_t i)
{
    run("rm -rf '%s/%s'; mkdir -p '%s/%s'", dir_of(w, i), dir_of(w, i));
    write_archive(&w->archives[i], dir_of(w, i), i, false);
}

static void add_one(struct world *w, uint64_t *dice)
{
    w->archives[w->n] = (struct archive){
        true, 1 + test_random(dice, 1 << 30), w->n > ARCHIVES - 20, 1700000000 + (int64_t)w->n * 60};
    w->name[w->n] = 0;
    write_one(w, w->n++);
}

/* ---- opened traces ---- */

struct seen {
    uint64_t sum, items;
    bool lost, misled;
    size_t dirs, read;
};

static uint64_t add(uint64_t sum, uint64_t x)
{
    uint64_t both[2] = {sum, x};
    return map_hash(both, sizeof both);
}

static uint64_t sum_of(const struct ctf_group *g, const struct ctf_trace *t)
{
    const struct ctf_problem *problems;
    struct ctf_stream_info s;
    uint64_t sum = ctf_trace_fingerprint(t);
    size_t n = ctf_trace_problems(t, &problems);
    for (size_t i = 0; i < n; i++)
        sum = add(add(sum, map_hash(problems[i].text, strlen(problems[i].text))), problems[i].count);
    for (size_t i = 0; i < g->n; i++)
        sum = add(sum, map_hash(g->dirs[i], strlen(g->dirs[i])));
    for (size_t i = 0; i < ctf_trace_streams(t); i++) {
        ctf_trace_stream(t, i, &s);
        uint64_t parts[8] = {s.class_id, (uint64_t)s.cpu, s.packets, s.lost_events, s.lost_packets, s.bytes,
            (uint64_t)s.begin, (uint64_t)s.end};
        sum = add(add(sum, map_hash(parts, sizeof parts)), map_hash(s.name, strlen(s.name)));
    }
    for (int64_t i = 0; i < RANGES; i++)
        sum = add(sum, ctf_trace_range_fingerprint(t, i * 60 * SPAN, (i + 1) * 60 * SPAN));
    return sum;
}

static struct seen look(struct ctf_catalogue *c)
{
    char path[600];
    struct err e = {0};
    struct ctf_group *groups;
    struct seen out = {0};
    size_t n;
    snprintf(path, sizeof path, "%s/world", scratch);
    struct ctf_root root = {.path = path, .catalogue = c};
    if (ctf_discover_all(&root, 1, &groups, &n, &e))
        fail_msg("%s", e.text);
    out.sum = add(n, root.found);
    for (size_t i = 0; i < n; i++) {
        struct ctf_trace *t;
        bool lost;
        if (ctf_trace_open(&groups[i], NULL, &t, &e)) {
            assert_int_equal(e.code, ERR_LOST); /* a file was looked at while it was opened */
            out.lost = out.misled = true;
            continue;
        }
        out.sum = add(out.sum, sum_of(&groups[i], t));
        out.items = add(out.items, digest(t, INT64_MIN, INT64_MAX, &lost));
        out.lost |= lost;
        out.misled |= ctf_trace_misled(t);
        ctf_trace_close(t);
    }
    ctf_groups_free(groups, n);
    if (c)
        out.dirs = ctf_catalogue_dirs(c, &out.read);
    return out;
}

static const char *catalogue_path(void)
{
    static char path[600];
    snprintf(path, sizeof path, "%s/catalogue", scratch);
    return path;
}

static struct seen look_again(void)
{
    struct ctf_catalogue *c;
    struct err e = {0};
    if (ctf_catalogue_load(catalogue_path(), &c, &e))
        fail_msg("%s", e.text);
    struct seen s = look(c);
    if (!s.misled && ctf_catalogue_save(c, catalogue_path(), &e))
        fail_msg("%s", e.text);
    ctf_catalogue_free(c);
    return s;
}

static struct seen look_first(void)
{
    struct err e = {0};
    struct ctf_catalogue *c = ctf_catalogue_new();
    struct seen s = look(c);
    if (ctf_catalogue_save(c, catalogue_path(), &e))
        fail_msg("%s", e.text);
    ctf_catalogue_free(c);
    return s;
}

static void assert_same(const struct seen *a, const struct seen *c)
{
    assert_false(a->lost || c->lost || a->misled || c->misled);
    assert_int_equal(a->sum, c->sum);
    assert_int_equal(a->items, c->items);
}

static void make_world(struct world *w, uint64_t *dice, size_t n)
{
    clear_world();
    w->n = 0;
    while (w->n < n)
        add_one(w, dice);
}

/* ---- changes ---- */

static void rename_one(struct world *w, size_t i)
{
    char old[100];
    snprintf(old, sizeof old, "%s", dir_of(w, i));
    w->name[i]++;
    run("mv '%s/%s' '%s/%s'", old, dir_of(w, i));
}

static void append_packet(struct world *w, size_t i)
{
    char path[1200];
    start_bytes(false);
    size_t head = begin_packet((2 + i) * SPAN - 1, (2 + i) * SPAN - 1, 0, 1);
    compact(0, (uint32_t)(2 + i) * SPAN - 1);
    put(&b, 7, 8);
    end_packet(head, 0);
    snprintf(path, sizeof path, "%s/%s/c1", scratch, dir_of(w, i));
    FILE *f = fopen(path, "ab");
    assert_non_null(f);
    assert_int_equal(fwrite(b.v, 1, b.n, f), b.n);
    fclose(f);
}

static void cut_file(const struct world *w, size_t i)
{
    char path[1200];
    struct stat st;
    snprintf(path, sizeof path, "%s/%s/c0", scratch, dir_of(w, i));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(truncate(path, st.st_size - 10), 0);
}

/* Something happens to the archive, its files and directory among others. */
static void change(struct world *w, uint64_t *dice, size_t i)
{
    if (!w->archives[i].there)
        return;
    switch (test_random(dice, 9)) {
    case 0:
        run("rm -r '%s/%s'; true '%s%s'", dir_of(w, i), "");
        w->archives[i].there = false;
        break;
    case 1:
        w->archives[i].seed++;
        write_one(w, i);
        break;
    case 2: stamp(dir_of(w, i), "c0", 1800000000 + (int64_t)test_random(dice, 1000)); break;
    case 3: cut_file(w, i); break;
    case 4: rename_one(w, i); break;
    case 5: append_packet(w, i); break;
    case 6: run("cp '%s/%s'/c0 '%s/%s'/c7", dir_of(w, i), dir_of(w, i)); break;
    case 7: run("rm -f '%s/%s'/c1; true '%s%s'", dir_of(w, i), ""); break;
    default: write_text(dir_of(w, i), "metadata", declared[test_random(dice, 2)]); break;
    }
}

static void as_afresh(void **state)
{
    static struct world w;
    uint64_t dice = test_seed(4711);
    make_world(&w, &dice, 180);
    look_first();
    for (int step = 0; step < STEPS; step++) {
        for (uint32_t k = 1 + test_random(&dice, 2); k > 0; k--) {
            if (w.n < ARCHIVES && test_random(&dice, 2))
                add_one(&w, &dice);
            else
                change(&w, &dice, w.n - 1 - test_random(&dice, NEWEST));
        }
        struct seen known = look_again(), afresh = look(NULL);
        assert_same(&known, &afresh);
    }
}

/* Checks that, in a tree that only grows, new data are read, and removed ones are gone. */
static void only_what_is_new_is_read(void **state)
{
    static struct world w;
    uint64_t dice = test_seed(4712);
    make_world(&w, &dice, 200);
    struct seen s = look_first(), afresh;
    assert_int_equal(s.read, 200);
    for (size_t i = 0; i < 4; i++) {
        add_one(&w, &dice);
        s = look_again();
        assert_int_equal(s.dirs, 201);
        assert_int_equal(s.read, 1);
        run("rm -r '%s/%s'; true '%s%s'", dir_of(&w, 10 * i), "");
        rename_one(&w, 10 * i + 5);
        s = look_again();
        afresh = look(NULL);
        assert_same(&s, &afresh);
        assert_int_equal(s.dirs, 200);
        assert_int_equal(s.read, 1);
    }
    s = look_again();
    assert_int_equal(s.read, 0);
}

/* Checks that directories reached by links count once, under the first of their names, whether trusted or read. */
static void links_lead_to_what_counts_once(void **state)
{
    static const char *const names[] = {"world/0", "world/s0/a00010-x", "world/s1/b", "world/z"},
                             *const targets[] = {"world", "world/s0", "world/s1/a00005-0", "world/s0/a00022-0"};
    static struct world w;
    uint64_t dice = test_seed(4715);
    bool linked[4] = {false};
    make_world(&w, &dice, 200);
    look_first();
    for (int step = 0; step < 24; step++) {
        char link[1200], target[1200];
        uint32_t i = step ? test_random(&dice, 4) : 3, to = step ? test_random(&dice, 4) : 2; /* z comes last */
        snprintf(link, sizeof link, "%s/%s", scratch, names[i]);
        snprintf(target, sizeof target, "%s/%s", scratch, targets[to]);
        if (linked[i])
            assert_int_equal(unlink(link), 0);
        linked[i] = !linked[i] || test_random(&dice, 2);
        if (linked[i])
            assert_int_equal(symlink(target, link), 0);
        struct seen known = look_again(), afresh = look(NULL);
        assert_same(&known, &afresh);
        assert_int_equal(known.dirs, 200);
    }
}

/* Checks whether there is a trace at all. */
static void one_is_enough(void **state)
{
    static struct world w;
    char path[1200];
    struct err e = {0};
    uint64_t dice = test_seed(4716);
    make_world(&w, &dice, 3);
    run("mkdir -p '%s/%s' '%s/%s'", "world/0/empty", "empty/below");
    snprintf(path, sizeof path, "%s/world", scratch);
    assert_int_equal(ctf_discover_any(path, &e), 0);
    snprintf(path, sizeof path, "%s/empty", scratch);
    assert_int_equal(ctf_discover_any(path, &e), ERR_NOTFOUND);
    snprintf(path, sizeof path, "%s/absent", scratch);
    assert_true(ctf_discover_any(path, &e) < 0);
}

/* Checks a cut file of a trusted directory: its reader gets an error; without the catalogue all is well again. */
static void who_is_misled_is_told(void **state)
{
    static struct world w;
    uint64_t dice = test_seed(4713);
    make_world(&w, &dice, 200);
    look_first();
    cut_file(&w, 20);
    struct seen s = look_again();
    assert_true(s.lost && s.misled);
    s = look_first();
    assert_false(s.lost || s.misled);
    struct seen again = look_again();
    assert_same(&s, &again);
}

/* ---- damage ---- */

static void flips_do_no_harm(void **state)
{
    static struct world w;
    uint64_t dice = test_seed(4714);
    struct ctf_catalogue *c;
    struct err e = {0};
    struct stat st;
    make_world(&w, &dice, 6);
    look_first();
    assert_int_equal(stat(catalogue_path(), &st), 0);
    for (int i = 0; i < 200; i++) {
        FILE *f = fopen(catalogue_path(), "r+b");
        long at = (long)test_random(&dice, (uint32_t)st.st_size);
        fseek(f, at, SEEK_SET);
        int was = fgetc(f);
        fseek(f, at, SEEK_SET);
        fputc(was ^ (1 << test_random(&dice, 8)), f);
        fclose(f);
        assert_true(ctf_catalogue_load(catalogue_path(), &c, &e) < 0);
        f = fopen(catalogue_path(), "r+b");
        fseek(f, at, SEEK_SET);
        fputc(was, f);
        fclose(f);
    }
    struct seen s = look_again(), afresh = look(NULL);
    assert_same(&s, &afresh);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_afresh),
        cmocka_unit_test(only_what_is_new_is_read),
        cmocka_unit_test(links_lead_to_what_counts_once),
        cmocka_unit_test(one_is_enough),
        cmocka_unit_test(who_is_misled_is_told),
        cmocka_unit_test(flips_do_no_harm),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
